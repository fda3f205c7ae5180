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
    const tries = new WrongTries({ burst: 3, perSecond: 0.5, pauseMs: 0 }, { elapsedMs: () => nowMs });
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

  it('are told of where many come from one address: once an hour, and of all addresses once a minute', async () => {
    let nowMs = 0;
    const told: string[] = [];
    const tries = new WrongTries(
      { suspicious: 3, pauseMs: 0 },
      { elapsedMs: () => nowMs, tell: (address) => told.push(`${address} ${nowMs / 1_000}`) },
    );
    const wrong = async (address: string, times: number) => {
      for (let n = 0; n < times; n += 1) await verdict(tries, address);
    };
    await wrong('a', 2);
    expect(told).to.deep.equal([]);
    await wrong('a', 50);
    await wrong('b', 50);
    expect(told).to.deep.equal(['a 0']);
    nowMs = 60_000;
    await wrong('a', 50);
    await wrong('b', 50);
    nowMs = 3_600_000;
    await wrong('a', 2);
    await wrong('a', 1);
    expect(told).to.deep.equal(['a 0', 'b 60', 'a 3600']);
  });

  it('never stand in the way of a right one', async () => {
    const tries = new WrongTries({ burst: 1, pauseMs: 0 }, { elapsedMs: () => 0 });
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
