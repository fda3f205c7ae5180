import { expect } from 'chai';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { type Received, type Receiver, startReceiver, startTestService } from '../support/service.ts';

/** CONTRACT 8.2 to 8.6. */
describe('GET /v1/collections/{id}', () => {
  let test: TestService;
  let merchant: TestMerchant;
  let receiver: Receiver;

  before(async () => {
    test = await startTestService();
    merchant = await test.merchant();
    receiver = await startReceiver();
    await test.endpoint(merchant.id, receiver.url);
  });

  after(async () => {
    await test.stop();
    await receiver.close();
  });

  /** An answer without what must differ from request to request. */
  const withoutRequestId = ({ status, text, json }: Answer) => [
    status,
    text.replace(json.error.request_id, 'req_…'),
  ];

  it('is, right after creation, what the 202 said', async () => {
    const made = await merchant.create({ phone: '255700000021', description: 'x', metadata: { a: 1 } });
    const { status, json } = await merchant.get(`/v1/collections/${made.json.id}`);
    expect([status, json]).to.deep.equal([200, made.json]);
  });

  it('shows the success: when it was and the receipt of the network, all else unchanged', async () => {
    const { json: made } = await merchant.create({ metadata: { a: 1 } });
    const { completed_at, provider_reference, ...rest } = await merchant.final(made.id);
    expect(rest).to.deep.equal({ ...made, status: 'succeeded' });
    expect(Date.parse(completed_at)).to.be.within(
      Date.parse(made.created_at),
      test.service.wired.clock.now() + 1_000,
    );
    expect(provider_reference).to.be.a('string').and.to.not.equal('');
  });

  it('shows a failure with its code and a text for people', async () => {
    const { json: made } = await merchant.create({ phone: '255700000001' });
    const { completed_at, failure_message, ...rest } = await merchant.final(made.id);
    expect(rest).to.deep.equal({ ...made, status: 'failed', failure_code: 'insufficient_funds' });
    expect(failure_message).to.match(/enough money/);
    expect(Date.parse(completed_at)).to.be.at.least(Date.parse(made.created_at));
  });

  it('shows an expiry without any failure code', async () => {
    const { json: made } = await merchant.create({ phone: '255700000005' });
    const { completed_at, ...rest } = await merchant.final(made.id);
    expect(rest).to.deep.equal({ ...made, status: 'expired' });
    expect(completed_at).to.be.a('string');
  });

  it('agrees with the event that told of the final state', async () => {
    const { json: made } = await merchant.create();
    const final = await merchant.final(made.id);
    const told = await hookOf(receiver, made.id);
    expect(told.event.data).to.deep.equal(final);
    // A receiver that asks at once, as the interface tells it to, never reads an older state.
    expect((await merchant.get(`/v1/collections/${made.id}`)).json).to.deep.equal(told.event.data);
  });

  it('is 404 for ids that do not exist, are malformed, or are somebody else’s: all with the same bytes', async () => {
    const other = await test.merchant();
    const { json: theirs } = await other.create();
    const { secret: live } = await test.issueKey(merchant.id, 'live');
    const { json: mine } = await merchant.create();
    const { event } = await hookOf(receiver, mine.id);
    const strange = await Promise.all([
      merchant.get('/v1/collections/col_00000000000000000000000000'),
      merchant.get(`/v1/collections/${theirs.id}`),
      test.call('GET', `/v1/collections/${mine.id}`, { token: live }),
      merchant.get(`/v1/collections/${mine.id.toLowerCase()}`),
      merchant.get(`/v1/collections/${mine.id}0`),
      merchant.get(`/v1/collections/${event.id}`),
      merchant.get('/v1/collections/%24where'),
      merchant.get('/v1/collections/%00'),
      merchant.get(`/v1/collections/${'x'.repeat(2_000)}`),
    ]);
    const [first, ...others] = strange.map(withoutRequestId);
    expect(first![0]).to.equal(404);
    expect(strange[0]!.json.error.code).to.equal('resource_not_found');
    for (const answer of others) expect(answer).to.deep.equal(first);
  });

  it('takes no query parameters', async () => {
    const { json: made } = await merchant.create();
    const answer = await merchant.get(`/v1/collections/${made.id}?expand=events`);
    expect([answer.status, answer.json.error.code]).to.deep.equal([400, 'parameter_unknown']);
  });
});

function hookOf(receiver: Receiver, collectionId: string): Promise<Received> {
  return receiver.next(({ event }) => event.data.id === collectionId);
}
