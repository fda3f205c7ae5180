import { expect } from 'chai';
import { models } from '../support/every-chart.ts';
import { checked } from '../support/invariants.ts';
import type { Model, Move } from '../support/moves.ts';
import { type Path, survey, titleOf } from '../support/paths.ts';
import { lostWhenMadeOnce, patienceMs, Rig, type RigOptions } from '../support/rig.ts';
import { Run } from '../support/run.ts';
import { sized } from '../support/size.ts';

/**
 * The generated paths once more, through the real engine on real MongoDB: every kind
 * of step as it should be, and every transition as it should not: twice, in the wrong order, with processes that
 * die and with commits nobody hears of.
 */
describe('charts in the engine', function () {
  this.timeout(600_000);

  for (const model of models) {
    describe(model.name, () => {
      const { paths, cover } = survey(model);

      const walked = sized(cover, paths);
      // What the engine does with what goes wrong is the same for all paths; a part of them shows it of each chart.
      const few = sized(
        cover.filter((_, n) => n % 4 === 0),
        cover,
      );

      it(`${walked.length} paths end as the chart says, step by step`, () => walkAll(model, walked, inOrder));

      it('the second time an answer, a timer or a request comes it changes nothing', () =>
        walkAll(model, few, async (run, moves) => {
          for (const move of moves) await run.repeat(await run.move(move));
        }));

      it('a process that dies loses nothing: the next one makes again what is still to be made', () =>
        walkAll(model, few, withCrashes));

      it('a commit that nobody heard of is not applied a second time', () =>
        walkAll(model, few, inOrder, { losesAcknowledgements: true }));

      it('events in the wrong order end as the chart says', () =>
        walkAll(model, few, (run, moves) => inOrder(run, inWrongOrder(moves))));
    });
  }

  describe('a collection whose rail says everything twice', () => {
    const collection = models.find(({ name }) => name === 'collection')!;

    it('posts its money once, whatever it hears again as a fact', () =>
      walkAll(collection, survey(collection).cover, async (run, moves) => {
        const { model, chart } = run.rig;
        const begun = run.position;
        let history = checked(model, chart, undefined, undefined, created(run.input.at), begun);
        for (const move of moves) {
          if (!run.canMake(move)) continue;
          const times = move.event.type.startsWith('push.') || move.event.type.startsWith('ask.') ? 2 : 1;
          for (let time = 0; time < times; time += 1) {
            const before = run.position;
            if (time === 0) await run.move(move);
            else await run.again(move.event);
            history = checked(model, chart, history, before, move, run.position);
          }
        }
      }));
  });

  describe('a prompt', () => {
    const collection = models.find(({ name }) => name === 'collection')!;
    const { input } = collection.variants[0]!;
    let rig: Rig;

    before(async () => {
      rig = await Rig.open(collection);
    });
    after(() => rig.close());

    /** A push that was claimed by a process that then died. */
    async function claimed(): Promise<{ run: Run; callId: string }> {
      const run = await Run.begin(rig, input);
      const callId = run.doc.calls[0]!.id;
      await run.makeCall(callId);
      run.crash();
      return { run, callId };
    }

    it('is never pushed again by another process', async () => {
      const { run, callId } = await claimed();
      for (const waitMs of [0, 60_000, patienceMs - 60_001]) {
        run.clock.advance(waitMs);
        await run.makeCall(callId, { type: 'push.accepted', at: run.clock.now() });
        const doc = await run.stored();
        await run.workers.overdue('collection', doc, doc.calls[0]!);
        await run.compare();
      }
      expect(run.made.get(callId)?.times).to.equal(1);
    });

    it('is unknown when its patience is over, and then asked about', async () => {
      const { run, callId } = await claimed();
      run.clock.advance(patienceMs);
      const doc = await run.stored();
      await run.workers.overdue('collection', doc, doc.calls[0]!);
      const { state, calls } = await run.stored();
      expect(state).to.equal('created.confirming.polling');
      expect(calls.map(({ type }) => type)).to.deep.equal(['askRail']);
      expect(run.made.get(callId)?.times).to.equal(1);
    });

    it('tells the truth even when its worker wakes up after that', async () => {
      const { run, callId } = await claimed();
      run.clock.advance(patienceMs);
      const doc = await run.stored();
      await run.workers.overdue('collection', doc, doc.calls[0]!);
      const fact = { type: 'push.succeeded', at: run.clock.now(), receipt: 'R1' };
      await run.send(fact, { stepId: callId, answers: { callId, factual: true } });
      expect((await run.stored()).state).to.equal('succeeded.standing');
      expect(await rig.written(run.id)).to.deep.equal(['postCapture', 'recordEvent', 'openDeliveries']);
    });
  });

  describe('timers that are all late', () => {
    it('fire one after another, the earliest first', async () => {
      const endpoint = models.find(({ name }) => name === 'endpoint')!;
      const rig = await Rig.open(endpoint);
      try {
        const run = await Run.begin(rig, endpoint.variants[0]!.input);
        const { at } = endpoint.variants[0]!.input;
        await run.move({ type: 'failed', event: { type: 'attempt.failed', at, charged: true } });
        run.clock.advance(80 * 3_600_000);
        await run.workers.wake('endpoint', run.id);
        const lines = await rig.history(run.id);
        expect(lines.map(({ to }) => to)).to.deep.equal([
          'active',
          'failing.fresh',
          'failing.warned',
          'lastTry',
        ]);
      } finally {
        await rig.close();
      }
    });
  });
});

type Walk = (run: Run, moves: readonly Move[]) => Promise<void>;

async function inOrder(run: Run, moves: readonly Move[]): Promise<void> {
  for (const move of moves) if (run.canMake(move)) await run.move(move);
}

/** Every process dies right after its commit, and every call is first made by one that dies with it unanswered. */
async function withCrashes(run: Run, moves: readonly Move[]): Promise<void> {
  for (const move of moves) {
    run.crash();
    for (const { id, type, startedAt } of run.doc.calls) {
      if (type in lostWhenMadeOnce || startedAt) continue;
      await run.makeCall(id);
      await run.compare();
    }
    run.crash();
    await run.move(move);
  }
  for (const { type, times } of run.made.values()) {
    if (type in lostWhenMadeOnce) expect(times, `${type} is made at most once`).to.equal(1);
  }
}

/** Each pair of neighbours the other way round. */
function inWrongOrder(moves: readonly Move[]): Move[] {
  const swapped = [...moves];
  for (let first = 0; first + 1 < swapped.length; first += 2) {
    [swapped[first], swapped[first + 1]] = [swapped[first + 1]!, swapped[first]!];
  }
  return swapped;
}

function created(at: number): Move {
  return { type: 'created', event: { type: 'created', at } };
}

async function walkAll(
  model: Model,
  paths: readonly Path[],
  walk: Walk,
  options: RigOptions = {},
): Promise<void> {
  const rig = await Rig.open(model, options);
  try {
    await Promise.all(
      paths.map(async (path) => {
        try {
          const run = await Run.begin(rig, path.variant.input);
          await walk(run, path.moves);
          await run.compareHistory();
        } catch (error) {
          (error as Error).message += ` (${titleOf(path)})`;
          throw error;
        }
      }),
    );
  } finally {
    await rig.close();
  }
}
