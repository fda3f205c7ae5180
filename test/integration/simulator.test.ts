import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MovableClock } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { Bearers } from '../../src/rails/mpesa/session.ts';
import { drawnMs } from '../../src/rails/rails.ts';
import { readLimits } from '../../tools/simulator/limits.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../tools/simulator/simulator.ts';
import { simulatorKeys } from '../support/simulator-keys.ts';
import { until } from '../support/until.ts';

/** The simulated network as its callers meet it: what it refuses, remembers and draws. */
describe('the simulated network', () => {
  let dataDir: string;
  let clock: MovableClock;
  let network: Simulator;
  let bearers: Bearers;
  let session: string;
  let last = 0;

  const start = async (more: Partial<SimulatorOptions> = {}) => {
    network = await startSimulator({
      ...{ keys: simulatorKeys, dataDir, clock, mode: 'async', activationMs: 0 },
      ...more,
    });
    bearers = new Bearers(network.publicKey);
  };
  const restart = async (more: Partial<SimulatorOptions> = {}) => {
    await network.close();
    await start(more);
  };

  type Said = { status: number } & Record<string, string>;
  const say = async (method: string, path: string, bearer: string, fields?: object, origin = '*') => {
    const query =
      method === 'GET' && fields ? `?${new URLSearchParams(fields as Record<string, string>)}` : '';
    const answer = await fetch(`${network.baseUrl}/ipg/v2/vodacomTZN/${path}/${query}`, {
      method,
      headers: { authorization: `Bearer ${bearers.of(bearer)}`, origin },
      ...(method === 'GET' || !fields ? {} : { body: JSON.stringify(fields) }),
    });
    return { status: answer.status, ...((await answer.json()) as object) } as Said;
  };
  const open = async (origin?: string) => {
    const answer = await say('GET', 'getSession', simulatorKeys.apiKey, undefined, origin);
    session = answer.output_SessionID ?? '';
    return answer;
  };
  const newNumber = () => {
    last += 1;
    return last;
  };
  const newReference = () => `01SIMULATOR${String(newNumber()).padStart(15, '0')}`;
  const push = (changes: object = {}, origin?: string) =>
    say(
      'POST',
      'c2bPayment/singleStage',
      session,
      {
        ...{ input_Amount: '1000', input_CustomerMSISDN: `2557${58_000_000 + newNumber()}` },
        ...{ input_Country: 'TZN', input_Currency: 'TZS', input_ServiceProviderCode: '000000' },
        ...{ input_TransactionReference: 'T1', input_ThirdPartyConversationID: newReference() },
        ...{ input_PurchasedItemsDesc: 'Coffee', ...changes },
      },
      origin,
    );
  const query = (reference: string) =>
    say('GET', 'queryTransactionStatus', session, {
      ...{ input_QueryReference: reference, input_ServiceProviderCode: '000000', input_Country: 'TZN' },
      input_ThirdPartyConversationID: newReference(),
    });
  const reverse = (receipt: string, conversation: string, provider = '000000') =>
    say('PUT', 'reversal', session, {
      ...{ input_TransactionID: receipt, input_ReversalAmount: '1000', input_Country: 'TZN' },
      ...{ input_ServiceProviderCode: provider, input_ThirdPartyConversationID: conversation },
    });
  const codeOf = async (answer: Promise<Said>) => (await answer).output_ResponseCode;
  /** A payment that its customer has made; its receipt. */
  const paid = async (changes: object = {}) => {
    const reference = newReference();
    await push({ input_ThirdPartyConversationID: reference, ...changes });
    clock.advance(20_000);
    return (await query(reference)).output_OriginalTransactionID!;
  };

  beforeEach(async () => {
    clock = new MovableClock();
    dataDir = await mkdtemp(join(tmpdir(), 'kusanya-simulator-'));
  });
  afterEach(async () => {
    await network.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  describe('limits', () => {
    it('of one session: each has its code, and a new session has them anew', async () => {
      await start({ limits: readLimits(['single=5000', 'count=3', 'value=9000', 'customer-count=1']) });
      await open();
      const input_CustomerMSISDN = '255758999999';
      expect(await codeOf(push({ input_Amount: '5001' })), 'one payment').to.equal('INS-995');
      expect(await codeOf(push({ input_CustomerMSISDN }))).to.equal('INS-0');
      clock.advance(20_000);
      expect(await codeOf(push({ input_CustomerMSISDN })), 'count of a customer').to.equal('INS-991');
      expect(await codeOf(push({ input_Amount: '5000' }))).to.equal('INS-0');
      expect(await codeOf(push({ input_Amount: '4000' })), 'value').to.equal('INS-994');
      expect(await codeOf(push())).to.equal('INS-0');
      expect(await codeOf(push()), 'count').to.equal('INS-993');
      expect(await codeOf(push({ input_Amount: '4000' })), 'both').to.equal('INS-992');
      await restart({ limits: readLimits(['count=3']) });
      expect(await codeOf(push()), 'remembered').to.equal('INS-993');
      await open();
      expect(await codeOf(push())).to.equal('INS-0');
    });

    it('of a customer’s sum, of the hours and of what is enabled', async () => {
      await start({ limits: readLimits(['customer-value=1500', 'without=reversal']) });
      await open();
      const input_CustomerMSISDN = '255758999999';
      expect(await codeOf(push({ input_CustomerMSISDN }))).to.equal('INS-0');
      expect(await codeOf(push({ input_CustomerMSISDN })), 'value of a customer').to.equal('INS-990');
      expect(await codeOf(reverse('SIM1', 'R1'))).to.equal('INS-997');
      const hour = (Math.floor(clock.now() / 3_600_000) + 3) % 24;
      await restart({ limits: { hours: [(hour + 1) % 24, (hour + 2) % 24] } });
      expect(await codeOf(push())).to.equal('INS-996');
      clock.advance(3_600_000 - (clock.now() % 3_600_000));
      await open();
      expect(await codeOf(push())).to.equal('INS-0');
    });

    it('of calls in a second: the gate refuses with 429, without a code', async () => {
      clock = new MovableClock(1_800_000_000_000);
      await start({ limits: readLimits(['per-second=2']) });
      await open();
      expect(await codeOf(push())).to.equal('INS-0');
      const refused = await push();
      expect(refused).to.include({ status: 429, output_error: 'Too many requests' });
      expect(refused).not.to.have.property('output_ResponseCode');
      clock.advance(1_000);
      expect(await codeOf(push())).to.equal('INS-0');
    });

    it('that nobody knows are refused at the start', () => {
      expect(() => readLimits(['speed=3'])).to.throw(RangeError, 'speed');
      expect(() => readLimits(['count=many'])).to.throw(RangeError, 'many');
      expect(readLimits(['hours=22-6'])).to.deep.equal({ hours: [22, 6] });
    });
  });

  describe('whose', () => {
    it('a short code of somebody else is refused (INS-13), and so is the return of another’s money (INS-35)', async () => {
      await start({ providers: ['111111', '222222'] });
      await open();
      expect(await codeOf(push())).to.equal('INS-13');
      const reference = newReference();
      const ids = { input_ThirdPartyConversationID: reference, input_ServiceProviderCode: '111111' };
      expect(await codeOf(push(ids))).to.equal('INS-0');
      clock.advance(20_000);
      const payment = network.network.find(reference)!;
      await network.network.settle(payment);
      const { receipt } = payment;
      expect(await codeOf(reverse(receipt, 'R1', '222222'))).to.equal('INS-35');
      expect(await codeOf(reverse(receipt, 'R1', '111111'))).to.equal('INS-0');
    });

    it('a return finds too little after a withdrawal (INS-2006)', async () => {
      await start();
      await open();
      const receipt = await paid();
      const withdraw = await fetch(new URL('/_sim/withdrawals', network.baseUrl), {
        method: 'POST',
        body: JSON.stringify({ provider: '000000', amount: 1 }),
      });
      expect(await withdraw.json()).to.deep.equal({ provider: '000000', balance: 999 });
      expect(await codeOf(reverse(receipt, 'R1'))).to.equal('INS-2006');
      await restart();
      expect(await codeOf(reverse(receipt, 'R1')), 'remembered').to.equal('INS-2006');
    });

    it('an Origin that is no trusted source gets no session and passes no gate', async () => {
      await start({ origins: ['10.0.0.1'] });
      expect(await open('*')).to.include({ status: 400, output_ResponseCode: 'INS-989' });
      expect(await open('10.0.0.1')).to.include({ output_ResponseCode: 'INS-0' });
      expect((await push({}, '*')).status).to.equal(401);
      expect(await codeOf(push({}, '10.0.0.1'))).to.equal('INS-0');
    });
  });

  describe('a payment', () => {
    it('that is not indexed yet may be INS-6140', async () => {
      await start();
      await open();
      const reference = newReference();
      const story = { input_ThirdPartyConversationID: reference, input_CustomerMSISDN: '255740000027' };
      await push(story);
      expect(await codeOf(query(reference))).to.equal('INS-6140');
      clock.advance(240_000);
      expect(await query(reference)).to.include({ output_ResponseTransactionStatus: 'Completed' });
    });

    it('for a phone on which a prompt stands is refused, prompts nobody, and is told', async () => {
      await start();
      await open();
      const input_CustomerMSISDN = '255758123456';
      const [first, second, third] = [newReference(), newReference(), newReference()];
      expect(await codeOf(push({ input_CustomerMSISDN, input_ThirdPartyConversationID: first }))).to.equal(
        'INS-0',
      );
      expect(await codeOf(push({ input_CustomerMSISDN, input_ThirdPartyConversationID: second }))).to.equal(
        'INS-6',
      );
      clock.advance(20_000);
      expect(await query(first)).to.include({ output_ResponseTransactionStatus: 'Completed' });
      expect(await query(second)).to.include({ output_ResponseTransactionStatus: 'Failed' });
      expect(await codeOf(push({ input_CustomerMSISDN, input_ThirdPartyConversationID: third }))).to.equal(
        'INS-0',
      );
      expect(network.carelessness().prompted_at_once).to.deep.equal([input_CustomerMSISDN]);
    });

    it('that never arrived is remembered by its reference: the same again is INS-10, also after a restart', async () => {
      await start();
      await open();
      const story = { input_CustomerMSISDN: '255740000009', input_ThirdPartyConversationID: newReference() };
      const bearer = bearers.of(session);
      const lost = await fetch(`${network.baseUrl}/ipg/v2/vodacomTZN/c2bPayment/singleStage/`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, origin: '*' },
        body: JSON.stringify({
          ...{ input_Amount: '1000', input_Country: 'TZN', input_Currency: 'TZS', ...story },
          ...{ input_ServiceProviderCode: '000000', input_TransactionReference: 'T1' },
          input_PurchasedItemsDesc: 'Coffee',
        }),
      });
      expect(lost.status).to.equal(502);
      expect(await codeOf(query(story.input_ThirdPartyConversationID))).to.equal('INS-23');
      expect(await codeOf(push(story))).to.equal('INS-10');
      await restart();
      expect(await codeOf(push(story))).to.equal('INS-10');
      expect(network.carelessness().pushed_again).to.deep.equal([story.input_ThirdPartyConversationID]);
      expect(await codeOf(query(story.input_ThirdPartyConversationID)), 'and is never found').to.equal(
        'INS-23',
      );
    });

    it('is as slow as the seed has it: half within the median, few several times as long', () => {
      const drawn = (seed: string) =>
        Array.from({ length: 2_000 }, (_, n) => drawnMs(12_000, 0.35, `${seed}.${n}`)).sort((a, b) => a - b);
      expect(drawn('one')).to.deep.equal(drawn('one'));
      expect(drawn('one')).not.to.deep.equal(drawn('two'));
      expect(drawn('one')[1_000]).to.be.within(11_000, 13_000);
      expect(drawn('one')[1_900]).to.be.within(28_000, 40_000);
      expect(drawn('one').at(-1)).to.be.at.most(72_000);
      expect(drawnMs(12_000, 0, 'anything')).to.equal(12_000);
    });

    it('takes its customer’s time and that of the line from the seed, also in another process', async () => {
      const debitAfter = async (seed: string) => {
        const reference = '01SIMULATOR999999999999999';
        await start({ seed, spread: 0.35 });
        await open();
        await push({ input_ThirdPartyConversationID: reference });
        const { scenario } = network.network.find(reference)!;
        await network.close();
        await rm(dataDir, { recursive: true, force: true });
        return (scenario.outcome as { afterMs: number }).afterMs;
      };
      const [one, again, two] = [await debitAfter('one'), await debitAfter('one'), await debitAfter('two')];
      expect(one).to.equal(again);
      expect(one).not.to.equal(two);
      await start();
    });
  });

  describe('a session', () => {
    it('is the only one: the next one ends it when it is live, and both outlive a restart', async () => {
      await start({ activationMs: 30_000 });
      await open();
      expect((await push()).status, 'not live yet').to.equal(401);
      clock.advance(30_000);
      expect(await codeOf(push())).to.equal('INS-0');
      const older = session;
      await open();
      const newer = session;
      session = older;
      await restart({ activationMs: 30_000 });
      expect(await codeOf(push()), 'the older one serves').to.equal('INS-0');
      clock.advance(30_000);
      expect((await push()).status, 'the older one is over').to.equal(401);
      session = newer;
      expect(await codeOf(push())).to.equal('INS-0');
    });

    it('is shown with the settings, and its id is not', async () => {
      await start({ limits: { count: 100 }, seed: 'shown' });
      await open();
      const told = await (await fetch(new URL('/_sim/about', network.baseUrl))).text();
      const about = JSON.parse(told);
      expect(about.settings).to.deep.include({
        limits: { count: 100 },
        seed: 'shown',
        providers: ['000000'],
      });
      expect(about.session.serving.sinceMs).to.be.at.most(clock.now());
      expect(told).not.to.include(session);
    });
  });

  it('keeps a fault that comes after the network for a call that reaches it', async () => {
    await start({ activationMs: 30_000 });
    await open();
    network.faults.add({ operation: 'push', does: 'fails', when: 'after', times: 1 });
    expect((await push()).status, 'the gate').to.equal(401);
    expect(network.faults.list()).to.have.length(1);
    clock.advance(30_000);
    const reference = newReference();
    const failed = await push({ input_ThirdPartyConversationID: reference }).catch(() => undefined);
    expect(failed, 'HTML').to.equal(undefined);
    expect(network.faults.list()).to.have.length(0);
    expect(network.network.find(reference)).to.not.equal(undefined);
  });

  describe('callbacks', () => {
    let receiver: Server;
    let heard: Record<string, string>[];
    let answer: (fields: Record<string, string>) => { status: number; body: string };

    beforeEach(async () => {
      heard = [];
      receiver = createServer((request, response) => {
        let text = '';
        request.on('data', (chunk) => (text += chunk));
        request.on('end', () => {
          heard.push(JSON.parse(text));
          const { status, body } = answer(JSON.parse(text));
          response.writeHead(status).end(body);
        });
      });
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    });
    afterEach(() => new Promise((resolve) => receiver.close(resolve)));

    const acknowledged = (fields: Record<string, string>) => ({
      status: 200,
      body: JSON.stringify({
        output_OriginalConversationID: fields.input_OriginalConversationID,
        ...{ output_ResponseCode: '0', output_ResponseDesc: 'Successfully Accepted Result' },
        output_ThirdPartyConversationID: fields.input_ThirdPartyConversationID,
      }),
    });
    const startCalling = async () => {
      const { port } = receiver.address() as AddressInfo;
      await start({ speed: 1_000, callbackUrl: `http://127.0.0.1:${port}/` });
      await open();
    };

    it('are looked at: acknowledged, unheard, or answered with something else', async () => {
      await startCalling();
      answer = acknowledged;
      await push();
      await until(async () => network.heard.acknowledged === 1);
      answer = () => ({ status: 503, body: '' });
      await push();
      await until(async () => network.heard.unheard === 1);
      answer = (fields) => acknowledged({ ...fields, input_ThirdPartyConversationID: 'another' });
      await push();
      await until(async () => network.heard.wrong.length === 1);
      expect(network.heard).to.include({ sent: 3, acknowledged: 1, unheard: 1 });
      expect(network.heard.wrong[0]).to.include('output_ThirdPartyConversationID is "another"');
    });

    it('of a reversal name its own reference, and its answer no transaction', async () => {
      await startCalling();
      answer = acknowledged;
      const receipt = await paid();
      const reversal = await reverse(receipt, 'R1SIMULATOR');
      expect(reversal).to.include({
        output_ResponseCode: 'INS-0',
        output_ThirdPartyConversationID: 'R1SIMULATOR',
      });
      expect(reversal).not.to.have.property('output_TransactionID');
      const callback = await until(async () =>
        heard.find((each) => each.input_ThirdPartyConversationID === 'R1SIMULATOR'),
      );
      expect(callback).to.include({ input_ResultCode: 'INS-0', input_TransactionID: `R${receipt}` });
      expect(callback!.input_OriginalConversationID).to.equal(reversal.output_ConversationID);
      await restart({ mode: 'sync' });
      expect(await codeOf(reverse(receipt, 'R1SIMULATOR')), 'again').to.equal('INS-10');
    });
  });
});
