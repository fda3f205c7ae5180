import { expect } from 'chai';
import { collectionMachine } from '../../machines/collection.ts';
import { deliveryMachine } from '../../machines/delivery.ts';
import { endpointMachine } from '../../machines/endpoint.ts';
import { settlementMachine } from '../../machines/settlement.ts';
import { startTestService } from '../support/service.ts';

/** What the engine refuses (packages/durable-actors/test/traps.test.ts) does not get in by the service either. */
describe('the event of a timer', () => {
  it('is refused at the operators’ route', async () => {
    const service = await startTestService();
    try {
      const merchant = await service.merchant();
      const { id } = (await merchant.create({ phone: '255700000021' })).json;
      const [timer] = (await service.actor(id)).timers;
      const steps = (await service.history(id)).length;
      for (const type of [
        timer?.event ?? 'xstate.after.answerTimeout.sending',
        'xstate.init',
        '*',
        'push.failed',
      ]) {
        for (const more of [{}, { dry_run: true }]) {
          const body = { type, reason: 'trying', ...more };
          const answer = await service.call('POST', `/admin/actors/${id}/events`, { body });
          expect(answer.status, type).equal(400);
        }
      }
      const kinds = (await service.history(id)).slice(steps).map(({ cause }) => cause.kind);
      expect(kinds).not.include('operator');
    } finally {
      await service.stop();
    }
  });

  it('is named, never numbered, in the charts of the service', () => {
    for (const machine of [collectionMachine, deliveryMachine, endpointMachine, settlementMachine]) {
      const timers = machine.events.filter((type) => type.startsWith('xstate.after.'));
      expect(timers, machine.id).not.empty;
      for (const type of timers) expect(type).match(/^xstate\.after\.[a-z][A-Za-z]+\.[a-z][A-Za-z]+$/);
    }
  });
});
