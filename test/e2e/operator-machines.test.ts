import { MovableClock, quarantinedAt } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { collectionMachine } from '../../machines/collection.ts';
import type { Answer, TestMerchant, TestService } from '../support/service.ts';
import { startTestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The machines, who stands where on them, and how it looked at any step. */
describe('operators and machines', () => {
  let test: TestService;
  let merchant: TestMerchant;

  before(async () => {
    test = await startTestService({}, { clock: new MovableClock() });
    merchant = await test.merchant();
  });

  after(() => test.stop());

  const get = (path: string) => test.call('GET', `/admin${path}`);
  const codeOf = ({ status, json }: Answer) => `${status} ${json.error?.code}`;
  const ended = async (phone: string, of = merchant) => {
    const { json } = await of.create({ phone });
    return (await of.final(json.id)).id as string;
  };
  const idsOf = ({ json }: Answer): string[] => json.data.map(({ id }: { id: string }) => id);
  const stored = () => test.service.wired.db.collection<{ _id: string }>('collections');

  it('each is listed with its version and how many actors are in each state', async () => {
    await ended('255700000000');
    const { json } = await get('/machines');
    const names = json.data.map(({ id }: { id: string }) => id);
    expect(names).to.have.members([
      ...[
        'collection',
        'delivery',
        'endpoint',
        'replay',
        'settlement',
        'reconciliation',
        'difference',
        'destination',
        'payout',
        'schedule',
        'refund',
        'breaker',
      ],
    ]);
    const collection = json.data.find(({ id }: { id: string }) => id === 'collection');
    expect(collection).to.include({ object: 'machine', version: Number(collectionMachine.version) });
    const standing = collection.actors.find(({ state }: { state: string }) => state === 'succeeded.standing');
    expect(standing).to.include({ mode: 'test', is_more: false }).and.to.have.property('count').above(0);
    expect(collection.calls).to.include('pushPrompt');
    expect(collection.events).to.include('operator.resolved');
  });

  it('one is shown with its definition, the versions in use and its drawings', async () => {
    await ended('255700000000');
    const { json } = await get('/machines/collection');
    expect(json.versions).to.deep.equal([Number(collectionMachine.version)]);
    expect(json.definition.states.created.states).to.have.property('underReview');
    const svg = await get('/machines/collection/diagram.svg');
    expect(svg.headers.get('content-type')).to.match(/^image\/svg\+xml/);
    expect(svg.text).to.include('data-state="created.underReview"').and.to.include('[isSecondNotFound]');
    const overview = await get('/machines/collection/diagram.svg?detail=overview');
    expect(overview.text)
      .to.include('data-state="created.underReview"')
      .and.not.to.include('isSecondNotFound');
    const mermaid = await get('/machines/delivery/diagram.mmd');
    expect(mermaid.headers.get('content-type')).to.match(/^text\/plain/);
    expect(mermaid.text).to.match(/^stateDiagram-v2/m);
  });

  it('404 for one that is not there', async () => {
    for (const path of ['', '/actors', '/diagram.svg', '/diagram.mmd'])
      expect(codeOf(await get(`/machines/nothing${path}`)), path).to.equal('404 resource_not_found');
  });

  it('actors are listed newest first, by state, merchant and mode, in pages', async () => {
    const other = await test.merchant();
    const ids: string[] = [];
    for (const phone of ['255700000000', '255700000004', '255700000000'])
      ids.unshift(await ended(phone, other));
    const of = `/machines/collection/actors?merchant=${other.id}`;
    expect(idsOf(await get(of))).to.deep.equal(ids);
    expect(idsOf(await get(`${of}&state=succeeded`))).to.deep.equal([ids[0], ids[2]]);
    expect(idsOf(await get(`${of}&state=failed,expired`))).to.deep.equal([ids[1]]);
    // A failure is watched for a while, and rests from then on.
    await until(async () => (await test.actor(ids[1]!)).state === 'failed.resting');
    expect(idsOf(await get(`${of}&state=failed.resting`))).to.deep.equal([ids[1]]);
    expect(idsOf(await get(`${of}&state=failed.watching`))).to.deep.equal([]);
    expect(idsOf(await get(`${of}&mode=live`))).to.deep.equal([]);
    const page = await get(`${of}&limit=2`);
    expect([idsOf(page), page.json.has_more, page.json.next]).to.deep.equal([ids.slice(0, 2), true, ids[1]]);
    const rest = await get(`${of}&limit=2&starting_after=${page.json.next}`);
    expect([idsOf(rest), rest.json.has_more, rest.json.next]).to.deep.equal([[ids[2]], false, null]);
    const all = await get('/machines/collection/actors?mode=test&limit=3');
    expect(idsOf(all)).to.deep.equal(ids);
    expect(idsOf(await get('/machines/collection/actors?newer_than=3600&limit=1'))).to.deep.equal([ids[0]]);
    expect(idsOf(await get('/machines/collection/actors?older_than=3600'))).to.deep.equal([]);
    expect(codeOf(await get('/machines/breaker/actors?older_than=1'))).to.equal('400 parameter_invalid');
    const row = all.json.data[0];
    expect(row).to.include({
      object: 'actor',
      machine: 'collection',
      state: 'succeeded.standing',
      mode: 'test',
    });
    expect(all.text).to.not.include('255700000000');
  });

  it('an actor is drawn as it is, and as it was at any step', async () => {
    const id = await ended('255700000000');
    const history = await test.history(id);
    const lit = async (query: string) => {
      const { text } = await get(`/actors/${id}/diagram.svg${query}`);
      const classes = (state: string) =>
        new RegExp(`class="([^"]*)" id="[^"]*" data-state="${state}"`).exec(text)?.[1] ?? '';
      return (state: string) =>
        ['active', 'visited'].filter((name) => classes(state).split(' ').includes(name));
    };
    const first = await lit('?seq=1');
    expect(first('created.pushing.sending')).to.deep.equal(['active', 'visited']);
    expect(first('succeeded.standing')).to.deep.equal([]);
    const last = await lit('');
    expect(last('succeeded.standing')).to.deep.equal(['active', 'visited']);
    expect(last('created.pushing.sending')).to.deep.equal(['visited']);
    expect(last('failed')).to.deep.equal([]);
    for (const { seq, to } of history) expect((await lit(`?seq=${seq}`))(to), to).to.include('active');
    expect(codeOf(await get('/actors/col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB/diagram.svg'))).to.equal(
      '404 resource_not_found',
    );
  });

  describe('a quarantined actor', () => {
    const release = (id: string, body: object = { reason: 'repaired' }) =>
      test.call('POST', `/admin/actors/${id}/release`, { body });

    it('goes on from where it stood, with a line in its history and in the audit', async () => {
      const json = await test.underReview(merchant);
      const { db, actors } = test.service.wired;
      const set = quarantinedAt(new Date(), 'planted');
      // A step of its own may come in between: it is set aside as it then is.
      await stored().updateOne({ _id: json.id }, { $set: set, $inc: { seq: 1 } });
      const list = await get('/machines/collection/actors?quarantined=true');
      expect(idsOf(list)).to.deep.equal([json.id]);
      const before = await test.actor(json.id);
      const released = await release(json.id);
      expect(released.status).to.equal(200);
      expect(released.json).to.include({ state: before.state, quarantined: null });
      expect(released.json.due_at).to.be.a('string');
      const line = (await test.history(json.id)).at(-1);
      expect(line.event).to.deep.equal({ type: 'operator.released', reason: 'repaired' });
      expect(line).to.deep.include({ from: before.state, to: before.state });
      const audit = await db.collection('audit').findOne({ target: json.id, action: 'actor.released' });
      expect(audit).to.deep.include({ by: 'admin', reason: 'repaired', before: { quarantined: 'planted' } });
      const asked = await test.call('POST', `/admin/actors/${json.id}/events`, {
        body: { type: 'operator.resolved', outcome: 'failed', reason: 'seen in the portal' },
      });
      expect(asked.json.to).to.match(/^failed/);
      expect((await actors.read({ machine: 'collection', id: json.id }))?.quarantined).to.equal(undefined);
    });

    it('is not let go while nobody understands it, and nothing is let go that is not held', async () => {
      const id = await ended('255700000004');
      expect(codeOf(await release(id))).to.equal('409 action_not_allowed');
      expect((await release(id, {})).json.error.param).to.equal('reason');
      const strange = { value: 'nowhere', context: {} };
      await stored().updateOne(
        { _id: id },
        { $set: { ...quarantinedAt(new Date(), 'planted'), snapshot: strange } },
      );
      const answer = await release(id);
      expect(codeOf(answer)).to.equal('409 action_not_allowed');
      expect(answer.json.error.message).to.match(/still not understood/);
      expect(await stored().findOne({ _id: id, 'quarantined.why': 'planted' })).to.not.equal(null);
      expect(codeOf(await release('col_01K5J8Q2R3S4T5V6W7X8Y9Z0AB'))).to.equal('404 resource_not_found');
    });
  });
});
