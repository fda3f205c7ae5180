import { expect } from 'chai';
import { check } from '../support/checker.ts';
import {
  calmMs,
  isLostAtKill,
  promptedAtOnce,
  type Rehearsal,
  type RehearsalPlan,
  type Rehearsed,
  rehearse,
  timesToEnd,
  wasPhoneTaken,
  workerLostAfterMs,
} from '../support/rehearsal.ts';
import { isLong } from '../support/size.ts';
import { seed } from '../support/world.ts';

const one = ['all'] as const;
const three = ['api', 'worker', 'worker'] as const;

/** Stories whose money, answer or callback takes another way, and that end within a minute. */
const stories = ['01', '02', '03', '08', '10', '13', '16', '23', '24', '25'].map(
  (last) => `2557400000${last}`,
);

const long = {
  speed: 1,
  payments: 100,
  overMs: 100_000,
  kills: 8,
  stories,
  patienceMs: 900_000,
  endsWithPushes: false,
};
const short = {
  speed: 8,
  payments: 9,
  overMs: 4_000,
  kills: 2,
  stories: [],
  patienceMs: 60_000,
  endsWithPushes: true,
};

const plans: readonly RehearsalPlan[] = isLong
  ? [
      { mode: 'sync', roles: one, ...long },
      { mode: 'sync', roles: three, ...long },
      { mode: 'async', roles: one, ...long },
      { mode: 'async', roles: three, ...long },
    ]
  : [
      { mode: 'sync', roles: three, ...short },
      { mode: 'async', roles: one, ...short },
    ];

/** Until what a dead process held is taken up: it is found dead, the sweep comes round, and a busy machine is slow. */
const recoveryMs = workerLostAfterMs + 12_000;

function nameOf({ mode, roles }: RehearsalPlan): string {
  return `${mode}, ${roles.length === 1 ? 'one process' : 'an api and two workers'}`;
}

describe(`live: the rail of live mode under kill -9, by the network’s own journal (SEED=${seed})`, () => {
  const rehearsals = new Map<RehearsalPlan, Promise<Rehearsal>>();
  const rehearsalOf = (plan: RehearsalPlan) => {
    const begun = rehearsals.get(plan) ?? rehearse(plan);
    rehearsals.set(plan, begun);
    return begun;
  };

  before(() => {
    // They wait more than they work: side by side.
    for (const plan of plans) rehearsalOf(plan).catch(() => undefined);
  });

  after(async () => {
    for (const rehearsal of await Promise.allSettled(rehearsals.values()))
      if (rehearsal.status === 'fulfilled') await rehearsal.value.close();
  });

  for (const plan of plans) {
    it(`${nameOf(plan)}: nobody is prompted or debited twice, and no payment is lost for nothing`, async function () {
      this.timeout(300_000 + 2 * (plan.patienceMs + plan.overMs));
      const rehearsal = await rehearsalOf(plan);
      tell(rehearsal);
      const { payments, lines, kills, world } = rehearsal;
      expect(kills.length, 'kills').to.equal(plan.kills);
      expect(payments.length, 'payments').to.equal(2 * plan.payments);
      expect(faultsOf(payments), 'payments').to.deep.equal([]);
      expect(promptedAtOnce(lines), 'second prompts on a phone').to.deep.equal([]);
      expect(unprompted(rehearsal).lost, 'pushes that could still be made').to.deep.equal([]);
      expect(await rehearsal.told('invariants')).to.deep.include({ clean: true });
      expect((await rehearsal.told('callbacks')).wrong, 'acknowledged wrongly').to.deep.equal([]);
      const { received: _heard, ...outside } = world.outside;
      // The short version does not wait for what a dead process leaves to be asked about.
      const isOpen = ({ status }: Rehearsed) => status === 'created';
      const excused = payments.filter((each) => isLostAtKill(each, rehearsal) || (!isLong && isOpen(each)));
      const breaches = await check(world.db, outside, Date.now());
      const isExcused = (breach: string) => excused.some(({ id }) => breach.startsWith(`${id} never ended`));
      expect(breaches.filter((breach) => !isExcused(breach))).to.deep.equal([]);
    });
  }
});

/** What no crash excuses, in each payment. */
function faultsOf(payments: readonly Rehearsed[]): string[] {
  return payments.flatMap(({ id, state, status, pushes, debits }) => {
    const isPaid = status === 'succeeded' || /latePaid/.test(state) || status === 'created';
    return [
      ...(pushes > 1 ? [`${id} was pushed ${pushes} times`] : []),
      ...(debits > 1 ? [`${id} was debited ${debits} times`] : []),
      ...(debits === 0 && status === 'succeeded' ? [`${id} succeeded without a debit`] : []),
      ...(debits > 0 && !isPaid ? [`${id} was paid and is ${state}`] : []),
    ];
  });
}

/** Payments without a prompt: why not, and those for which there is no excuse. */
function unprompted(rehearsal: Rehearsal): { atKill: number; noTime: number; phone: number; lost: string[] } {
  const { payments } = rehearsal;
  const none = payments.filter(({ pushes }) => pushes === 0);
  const atKill = none.filter((each) => isLostAtKill(each, rehearsal));
  const noTime = none.filter((each) => !atKill.includes(each) && calmMs(each, rehearsal) < recoveryMs);
  const phone = none.filter(
    (each) => !atKill.includes(each) && !noTime.includes(each) && wasPhoneTaken(each, payments),
  );
  // What nobody has claimed and has time yet may still be pushed.
  const isWaiting = ({ status, claimedAtMs, notAfterMs }: Rehearsed) =>
    status === 'created' && claimedAtMs === undefined && Date.now() < notAfterMs;
  const lost = none.filter((each) => ![...atKill, ...noTime, ...phone].includes(each) && !isWaiting(each));
  return {
    ...{ atKill: atKill.length, noTime: noTime.length, phone: phone.length },
    lost: lost.map(({ id, state, withKills }) => `${id} ${state}${withKills ? '' : ' (without kills)'}`),
  };
}

/** The figures, for whoever runs it. */
function tell(rehearsal: Rehearsal): void {
  const { plan, payments, kills, lines } = rehearsal;
  const sessions = lines.filter(({ kind }) => kind === 'session').length;
  const { atKill, noTime, phone, lost } = unprompted(rehearsal);
  const times = [false, true].map((withKills) => {
    const { median, p95 } = timesToEnd(payments.filter((each) => each.withKills === withKills));
    return `${withKills ? 'with' : 'without'} kills: median ${median.toFixed(1)} s, p95 ${p95.toFixed(1)} s`;
  });
  const statuses = new Map<string, number>();
  for (const { status } of payments) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  process.stdout.write(
    `      ${nameOf(plan)}: ${payments.length} payments, ${kills.length} kills; to the end ${times.join('; ')}\n` +
      `      ended ${[...statuses].map(([status, count]) => `${count} ${status}`).join(', ')}; not prompted: ` +
      `${lost.length} lost, ${atKill} claimed as a kill came, ${noTime} without time, ${phone} phone taken; ${sessions} sessions\n`,
  );
}
