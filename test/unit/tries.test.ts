import { expect } from 'chai';
import { AppError } from '../../src/http/http.ts';
import { WrongTries } from '../../src/http/tries.ts';

describe('wrong keys and tokens', () => {
  const from = (remoteAddress: string) => ({ req: { socket: { remoteAddress } } as never });
  const verdict = (tries: WrongTries, address: string) =>
    tries.wrong(from(address)).then(
      () => 'counted',
      (error: AppError) => `${error.code} ${error.retryAfterSeconds}`,
    );

  it('are slowed beyond a burst, for each address by itself, and come back with time', async () => {
    let nowMs = 0;
    const tries = new WrongTries({ burst: 3, perSecond: 0.5, pauseMs: 0 }, () => nowMs);
    const four = [];
    for (let n = 0; n < 4; n += 1) four.push(await verdict(tries, 'a'));
    expect(four).to.deep.equal(['counted', 'counted', 'counted', 'rate_limited 2']);
    expect(await verdict(tries, 'b')).to.equal('counted');
    nowMs = 2_000;
    expect([await verdict(tries, 'a'), await verdict(tries, 'a')]).to.deep.equal([
      'counted',
      'rate_limited 2',
    ]);
  });

  it('never stand in the way of a right one', async () => {
    const tries = new WrongTries({ burst: 1, pauseMs: 0 }, () => 0);
    const refuse = () => Promise.reject(new AppError('api_key_invalid'));
    const codes = [];
    for (let n = 0; n < 3; n += 1)
      codes.push(await tries.guard(from('a'), refuse).catch((error: AppError) => error.code));
    expect(codes).to.deep.equal(['api_key_invalid', 'rate_limited', 'rate_limited']);
    expect(await tries.guard(from('a'), async () => 'who')).to.equal('who');
    const other = await tries
      .guard(from('a'), async () => Promise.reject(new AppError('api_key_missing')))
      .catch((error) => error.code);
    expect(other).to.equal('api_key_missing');
  });
});
