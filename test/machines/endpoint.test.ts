import { expect } from 'chai';
import { type EndpointContext, type EndpointEvent, endpointMachine } from '../../machines/endpoint.ts';
import { Drive } from '../support/drive.ts';
import { hourMs, startMs, type Untimed } from '../support/moves.ts';

const minute = 60_000;
const deadline = 72 * hourMs;

type Told = Untimed<EndpointEvent>;

class Endpoint extends Drive<EndpointContext, EndpointEvent> {
  constructor(autoProbe = true) {
    const input = { at: startMs, disableAfterMs: deadline, autoProbe };
    super(endpointMachine, input);
  }

  fail(charged = true): this {
    return this.send({ type: 'attempt.failed', charged });
  }

  succeed(): this {
    return this.send({ type: 'attempt.succeeded' });
  }

  operator(what: 'enabled' | 'disabled' | 'updated' | 'deleted'): this {
    return this.send({ type: `operator.${what}`, reason: 'because' } as Told);
  }

  merchant(what: 'enabled' | 'updated' | 'deleted'): this {
    return this.send({ type: `merchant.${what}`, key: 'key_1' } as Told);
  }

  get alerts(): unknown[] {
    return this.params('raiseAlert').map(({ kind }) => kind);
  }
}

const states: Record<string, () => Endpoint> = {
  active: () => new Endpoint(),
  'failing.fresh': () => new Endpoint().fail(),
  'failing.warned': () => new Endpoint().fail().wait(24 * hourMs),
  'failing.warnedTwice': () => new Endpoint().fail().wait(48 * hourMs),
  lastTry: () => new Endpoint().fail().wait(deadline),
  'disabled.automatic.probing': () => new Endpoint().fail().wait(deadline).fail(),
  'disabled.automatic.resting': () => new Endpoint(false).fail().wait(deadline),
  'disabled.operator': () => new Endpoint().operator('disabled'),
  deleted: () => new Endpoint().operator('deleted'),
};

describe('endpoint', () => {
  for (const [state, reach] of Object.entries(states)) {
    it(`${state} is where its way leads`, () => {
      expect(reach().state).to.equal(state);
    });
  }

  describe('an outage', () => {
    it('begins with the first charged failure, at that moment', () => {
      const endpoint = new Endpoint().wait(hourMs).fail();
      expect(endpoint.state).to.equal('failing.fresh');
      const at = startMs + hourMs;
      expect(endpoint.context).to.include({ failingSince: at, lastFailureAt: at, failures: 1 });
      expect(endpoint.timers).to.deep.equal({
        'xstate.after.disableDeadline.failing': deadline,
        'xstate.after.firstWarning.fresh': 24 * hourMs,
      });
    });

    it('is counted from the attempt, though the endpoint hears of it later', () => {
      const endpoint = new Endpoint()
        .wait(hourMs)
        .send({ type: 'attempt.failed', charged: true, at: startMs });
      expect(endpoint.context.failingSince).to.equal(startMs);
      expect(endpoint.timers['xstate.after.disableDeadline.failing']).to.equal(deadline - hourMs);
    });

    it('is not put off by further failures', () => {
      const endpoint = new Endpoint().fail();
      for (let n = 1; n <= 71; n += 1) endpoint.wait(hourMs).fail();
      expect(endpoint.context).to.include({ failingSince: startMs, failures: 72 });
      expect(endpoint.timers['xstate.after.disableDeadline.failing']).to.equal(hourMs);
    });

    it('is warned of after 24 and after 48 hours', () => {
      const endpoint = new Endpoint().fail();
      const warnedAt: number[] = [];
      endpoint.wait(deadline - 1, () => {
        expect(endpoint.alerts).to.deep.equal(['endpoint_failing']);
        warnedAt.push((endpoint.now - startMs) / hourMs);
      });
      expect(warnedAt).to.deep.equal([24, 48]);
    });

    it('is warned of on time again after a warning that came late', () => {
      const endpoint = new Endpoint().fail();
      endpoint.send({ type: 'attempt.failed', charged: true, at: startMs + 40 * hourMs }).wait(0);
      expect(endpoint.state).to.equal('failing.warned');
      expect(endpoint.timers['xstate.after.secondWarning.warned']).to.equal(8 * hourMs);
    });

    for (const state of ['failing.fresh', 'failing.warned', 'failing.warnedTwice', 'lastTry']) {
      it(`ends with one success: ${state}`, () => {
        const endpoint = states[state]!().succeed();
        expect([endpoint.state, endpoint.timers]).to.deep.equal(['active', {}]);
        expect(endpoint.context).to.include({ failingSince: null, failures: 0, disabledAt: null });
        endpoint.wait(hourMs).fail();
        expect(endpoint.context.failingSince, 'the next begins anew').to.equal(endpoint.now);
      });
    }
  });

  describe('72 hours', () => {
    const moments: [atMs: number, state: string][] = [
      [deadline - 1, 'failing'],
      [deadline, 'disabled.automatic.probing'],
      [deadline + 1, 'disabled.automatic.probing'],
    ];
    for (const [atMs, state] of moments) {
      it(`a failure ${atMs} ms after the first leads to ${state}`, () => {
        const endpoint = new Endpoint().fail();
        endpoint.send({ type: 'attempt.failed', charged: true, at: startMs + atMs });
        expect(endpoint.state.startsWith(state), endpoint.state).to.equal(true);
        const isDisabled = state.startsWith('disabled');
        expect(endpoint.alerts).to.deep.equal(isDisabled ? ['endpoint_disabled'] : []);
        expect(endpoint.context.disabledAt).to.equal(isDisabled ? startMs + atMs : null);
      });
    }

    it('without any attempt lead to one last try, not a moment before', () => {
      const endpoint = new Endpoint().fail().wait(deadline - 1);
      expect(endpoint.state).to.equal('failing.warnedTwice');
      endpoint.wait(1);
      expect([endpoint.state, endpoint.asked]).to.deep.equal(['lastTry', ['probeDelivery']]);
      expect(endpoint.params('probeDelivery')).to.deep.equal([{ which: 'newestFailed' }]);
    });

    const endings: [how: string, end: (endpoint: Endpoint) => void][] = [
      ['failed', (endpoint) => endpoint.fail()],
      ['there is none', (endpoint) => endpoint.send({ type: 'probe.none' })],
      ['a minute went by', (endpoint) => endpoint.send({ type: 'probe.started' }).wait(minute)],
    ];
    for (const [how, end] of endings) {
      it(`disable after the last try: ${how}`, () => {
        const endpoint = states.lastTry!();
        end(endpoint);
        expect([endpoint.state, endpoint.alerts]).to.deep.equal([
          'disabled.automatic.probing',
          ['endpoint_disabled'],
        ]);
      });
    }

    it('leave the last try its whole minute', () => {
      expect(states.lastTry!().wait(minute - 1).state).to.equal('lastTry');
    });

    it('disable at once where nothing is probed', () => {
      const endpoint = new Endpoint(false).fail().wait(deadline - 1);
      expect(endpoint.state).to.equal('failing.warnedTwice');
      endpoint.wait(1);
      expect([endpoint.state, endpoint.alerts]).to.deep.equal([
        'disabled.automatic.resting',
        ['endpoint_disabled'],
      ]);
      expect(endpoint.wait(90 * 24 * hourMs).times('probeDelivery')).to.equal(0);
    });
  });

  it('charges nothing that was our own fault', () => {
    for (const [state, reach] of Object.entries(states)) {
      const endpoint = reach();
      const { context, timers } = endpoint;
      expect(endpoint.fail(false).isTaken, state).to.equal(false);
      expect(
        endpoint.send({ type: 'attempt.failed', charged: false, at: startMs + 90 * hourMs }).state,
      ).to.equal(state);
      expect(endpoint.context).to.deep.equal(context);
      expect(Object.keys(endpoint.timers)).to.deep.equal(Object.keys(timers));
    }
  });

  describe('disabled by itself', () => {
    it('is probed after 1, 2, 4, 8 and 16 hours and then daily, with the oldest held delivery', () => {
      const endpoint = states['disabled.automatic.probing']!();
      const waits: number[] = [];
      let last = endpoint.now;
      endpoint.wait(103 * hourMs, () => {
        expect(endpoint.params('probeDelivery')).to.deep.equal([{ which: 'oldestHeld' }]);
        waits.push((endpoint.now - last) / hourMs);
        last = endpoint.now;
        endpoint.fail();
      });
      expect(waits).to.deep.equal([1, 2, 4, 8, 16, 24, 24, 24]);
      expect(endpoint.context.failingSince).to.equal(startMs);
    });

    it('is active again after one success, releases what is held, and is probed from the start next time', () => {
      const endpoint = states['disabled.automatic.probing']!()
        .wait(40 * hourMs)
        .succeed();
      expect([endpoint.state, endpoint.asked]).to.deep.equal(['active', ['releaseHeld']]);
      endpoint.fail().wait(deadline).fail();
      expect(endpoint.timers).to.deep.equal({ 'xstate.after.probeDelay.probing': hourMs });
    });
  });

  describe('operators', () => {
    for (const [state, reach] of Object.entries(states)) {
      if (state === 'deleted') continue;
      const isByOperator = state === 'disabled.operator';
      it(`disable it from ${state}, for good until they enable it`, () => {
        const endpoint = reach().wait(10).operator('disabled');
        expect(endpoint.isTaken).to.equal(true);
        expect([endpoint.state, endpoint.timers]).to.deep.equal(['disabled.operator', {}]);
        if (!isByOperator) expect(endpoint.context.disabledAt).to.equal(endpoint.now);
        endpoint
          .succeed()
          .fail()
          .send({ type: 'probe.none' })
          .wait(90 * 24 * hourMs);
        expect([endpoint.state, endpoint.times('releaseHeld')]).to.deep.equal(['disabled.operator', 0]);
        endpoint.operator('enabled');
        expect([endpoint.state, endpoint.asked]).to.deep.equal(['active', ['releaseHeld']]);
        expect(endpoint.context).to.include({ failingSince: null, disabledAt: null, failures: 0 });
      });

      it(`enable ${state} if it is disabled`, () => {
        const endpoint = reach().operator('enabled');
        expect(endpoint.isTaken).to.equal(state.startsWith('disabled'));
        expect(endpoint.asked).to.deep.equal(state.startsWith('disabled') ? ['releaseHeld'] : []);
      });

      it(`change the data of ${state} without moving it`, () => {
        const endpoint = reach();
        const { timers } = endpoint;
        endpoint.operator('updated');
        expect([endpoint.isTaken, endpoint.state, endpoint.timers]).to.deep.equal([true, state, timers]);
      });

      it(`delete it from ${state}`, () => {
        const endpoint = reach().operator('deleted');
        expect([endpoint.state, endpoint.timers]).to.deep.equal(['deleted', {}]);
      });
    }

    it('keep the moment of the first disablement', () => {
      const endpoint = states['disabled.operator']!().wait(hourMs).operator('disabled');
      expect(endpoint.context.disabledAt).to.equal(startMs);
    });
  });

  describe('its merchant', () => {
    for (const [state, reach] of Object.entries(states)) {
      if (state === 'deleted') continue;
      const isByItself = state.startsWith('disabled.automatic');
      it(`${isByItself ? 'enables' : 'does not enable'} it in ${state}`, () => {
        const endpoint = reach().merchant('enabled');
        expect(endpoint.isTaken).to.equal(isByItself);
        expect([endpoint.state, endpoint.asked]).to.deep.equal(
          isByItself ? ['active', ['releaseHeld']] : [state, []],
        );
      });

      it(`changes the data of ${state} without moving it, and deletes it`, () => {
        const endpoint = reach();
        const { timers } = endpoint;
        endpoint.merchant('updated');
        expect([endpoint.isTaken, endpoint.state, endpoint.timers]).to.deep.equal([true, state, timers]);
        endpoint.merchant('deleted');
        expect([endpoint.state, endpoint.timers]).to.deep.equal(['deleted', {}]);
      });
    }
  });

  it('goes on releasing while there is more', () => {
    const endpoint = new Endpoint().send({ type: 'release.more' });
    expect([endpoint.state, endpoint.asked]).to.deep.equal(['active', ['releaseHeld']]);
    expect(endpoint.send({ type: 'release.done' }).asked).to.deep.equal([]);
  });

  it('deleted hears nothing', () => {
    const endpoint = states.deleted!().fail().succeed().operator('enabled').operator('disabled');
    endpoint.operator('updated').operator('deleted').send({ type: 'release.more' });
    endpoint.merchant('updated').merchant('enabled').merchant('deleted');
    expect([endpoint.state, endpoint.asked, endpoint.timers]).to.deep.equal(['deleted', [], {}]);
  });
});
