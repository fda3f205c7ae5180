import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { type AnyStateMachine, StateMachine } from 'xstate';
import { chartMermaid, chartSvg, svgOf } from './drawing.ts';
import { layOut, type Placed } from './layout.ts';
import { moneyPage } from './money.ts';
import { readChart } from './read.ts';

/** `npm run charts`: drawings of every machine into docs/charts, those of machines that are gone out of it, and docs/MONEY.md. */
const machinesFolder = new URL('../../machines/', import.meta.url);
const chartsFolder = new URL('../../docs/charts/', import.meta.url);
const moneyFile = new URL('../../docs/MONEY.md', import.meta.url);

/** Every machine of the house, in the order of their files. */
export async function allMachines(): Promise<AnyStateMachine[]> {
  const files = readdirSync(machinesFolder).sort();
  const modules = await Promise.all(files.map((file) => import(new URL(file, machinesFolder).href)));
  return modules.flatMap((exported) =>
    Object.values(exported as object).filter((value) => value instanceof StateMachine),
  );
}

/** The whole chart of each machine, laid out: most of the work of a drawing. */
export function layOutAll(machines: readonly AnyStateMachine[]): Map<AnyStateMachine, Placed> {
  return new Map(machines.map((machine) => [machine, layOut(readChart(machine))]));
}

/** File names in docs/charts and what they hold. */
export function drawingsOf(laidOut: ReadonlyMap<AnyStateMachine, Placed>): Map<string, string> {
  return new Map(
    [...laidOut].flatMap(([machine, placed]) => [
      [`${machine.id}.svg`, svgOf(machine, placed, 'full', {}, false)],
      [`${machine.id}.overview.svg`, chartSvg(machine, 'overview')],
      [`${machine.id}.mmd`, chartMermaid(machine)],
    ]),
  );
}

if (import.meta.filename === process.argv[1]) {
  const drawn = drawingsOf(layOutAll(await allMachines()));
  mkdirSync(chartsFolder, { recursive: true });
  for (const name of readdirSync(chartsFolder)) if (!drawn.has(name)) rmSync(new URL(name, chartsFolder));
  for (const [name, text] of drawn) writeFileSync(new URL(name, chartsFolder), text);
  writeFileSync(moneyFile, moneyPage());
}
