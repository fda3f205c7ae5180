import { expect } from 'chai';
import fc from 'fast-check';
import { models } from '../support/every-chart.ts';
import { checked, type History } from '../support/invariants.ts';
import type { Move } from '../support/moves.ts';
import { type Path, type Survey, survey, titleOf } from '../support/paths.ts';
import { sized } from '../support/size.ts';

/** Every step of every chart, generated from the charts themselves. */
describe('generated paths', function () {
  this.timeout(300_000);
  for (const model of models) {
    describe(model.name, () => {
      const surveyed = survey(model);

      it('are walked over every transition: each branch of each on, after and always', () => {
        const all = [...surveyed.chart.transitions.values()].sort();
        expect([...surveyed.walked].sort()).to.deep.equal(all);
        const { paths, cover } = surveyed;
        expect([...replayed(surveyed, paths)].sort(), 'by the paths below alone').to.deep.equal(all);
        expect([...replayed(surveyed, cover)].sort(), 'by the few of the engine').to.deep.equal(all);
      });

      it(`keep every promise on each of ${surveyed.edges.length} steps`, () => {
        const histories = new Map<readonly Move[], History>();
        const starts = new Map(
          model.variants.map((variant) => [variant, startOf(surveyed, variant.input)] as const),
        );
        for (const { variant, path, before, move, after, from } of surveyed.edges) {
          const past = histories.get(from) ?? starts.get(variant);
          histories.set(
            path,
            saying(path, () => checked(model, surveyed.chart, past, before, move, after)),
          );
        }
      });

      it('keep every promise on walks at random', () => {
        const choices = fc.array(fc.nat({ max: 999 }), { minLength: 1, maxLength: 40 });
        fc.assert(
          fc.property(fc.constantFrom(...model.variants), choices, (variant, numbers) => {
            let position = surveyed.chart.begin(variant.input);
            let history = startOf(surveyed, variant.input);
            for (const number of numbers) {
              const moves = model.moves(position);
              const move = moves[number % moves.length]!;
              const next = surveyed.chart.step(position, move.event, move.fires);
              history = checked(model, surveyed.chart, history, position, move, next);
              position = next;
            }
          }),
          { numRuns: sized(40, 150) },
        );
      });

      for (const path of surveyed.paths) {
        it(titleOf(path), () => {
          const { chart } = surveyed;
          let position = chart.begin(path.variant.input);
          let history = startOf(surveyed, path.variant.input);
          for (const move of path.moves) {
            const next = chart.step(position, move.event, move.fires);
            expect(chart.step(position, move.event, move.fires), 'the chart is pure').to.deep.equal(next);
            expect(next.taken, `${move.type} in ${position.state}`).not.to.deep.equal([]);
            history = checked(model, chart, history, position, move, next);
            position = next;
          }
        });
      }
    });
  }
});

function startOf({ model, chart }: Survey, input: { at: number }): History {
  const move = { type: 'created', event: { type: 'created', at: input.at } };
  return checked(model, chart, undefined, undefined, move, chart.begin(input));
}

/** The transitions that paths take when they are walked from their beginnings. */
function replayed({ chart }: Survey, paths: readonly Path[]): Set<string> {
  const walked = new Set<string>();
  for (const { variant, moves } of paths) {
    let position = chart.begin(variant.input);
    for (const key of position.taken) walked.add(key);
    for (const { event, fires } of moves) {
      position = chart.step(position, event, fires);
      for (const key of position.taken) walked.add(key);
    }
  }
  return walked;
}

function saying<T>(path: readonly Move[], check: () => T): T {
  try {
    return check();
  } catch (error) {
    (error as Error).message += ` (after ${path.map(({ type }) => type).join(' → ')})`;
    throw error;
  }
}
