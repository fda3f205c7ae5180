import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import type { AnyStateMachine } from 'xstate';
import { collectionMachine } from '../../machines/collection.ts';
import { deliveryMachine } from '../../machines/delivery.ts';
import { endpointMachine } from '../../machines/endpoint.ts';
import { settlementMachine } from '../../machines/settlement.ts';
import { chartMermaid, chartSvg } from './charts.ts';

/** `npm run charts`: every machine's drawings into docs/charts, and what is there of machines that are gone, out. */
const machines: readonly AnyStateMachine[] = [
  collectionMachine,
  deliveryMachine,
  endpointMachine,
  settlementMachine,
];

const folder = new URL('../../docs/charts/', import.meta.url);

/** File names in docs/charts and what they hold. */
export function drawings(): Map<string, string> {
  return new Map(
    machines.flatMap((machine) => [
      [`${machine.id}.svg`, chartSvg(machine)],
      [`${machine.id}.overview.svg`, chartSvg(machine, 'overview')],
      [`${machine.id}.mmd`, chartMermaid(machine)],
    ]),
  );
}

if (import.meta.filename === process.argv[1]) {
  const files = drawings();
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(new URL(name, folder));
  for (const [name, text] of files) writeFileSync(new URL(name, folder), text);
}
