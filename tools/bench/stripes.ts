import type { Stage } from './stage.ts';

/** Successes per second of one merchant from several processes: a stripe each, beside one counter for all. */

const runMs = 3_000;
const rounds = 2;

interface Paid {
  made: number;
  retries: number;
}

export async function stripes(stage: Stage, print: (line: string) => void): Promise<void> {
  print('\nSuccesses of one merchant, committed by several processes (64 at once each):');
  const payers = await Promise.all(
    Array.from({ length: 4 }, async () => (await stage.start('payer.ts', 'bench_stripes')).child),
  );
  for (const processes of [2, 4]) {
    const perSecond: Record<'own' | 'shared', number[]> = { own: [], shared: [] };
    const retries = { own: 0, shared: 0 };
    // In turn, so that a noisy machine is unfair to neither.
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of ['own', 'shared'] as const) {
        const merchantId = `mer_${kind}_${processes}_${round}`;
        const paid = await Promise.all(
          payers.slice(0, processes).map((payer, i) => {
            const stripe = kind === 'own' ? 1 + i : 1;
            return stage.ask<Paid>(payer, { merchantId, stripe, ms: runMs });
          }),
        );
        perSecond[kind].push((paid.reduce((sum, { made }) => sum + made, 0) * 1_000) / runMs);
        retries[kind] += paid.reduce((sum, each) => sum + each.retries, 0);
      }
    }
    const [own, shared] = [median(perSecond.own), median(perSecond.shared)];
    print(
      `  ${processes} processes, a stripe each        ${Math.round(own)}/s   ${retries.own} batches aborted`,
    );
    print(
      `  ${processes} processes, one shared counter  ${Math.round(shared)}/s   ${retries.shared} batches aborted`,
    );
    print(`  ratio ${(own / Math.max(1, shared)).toFixed(1)}`);
  }
  for (const payer of payers) await stage.end(payer);
}

function median(numbers: number[]): number {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
}
