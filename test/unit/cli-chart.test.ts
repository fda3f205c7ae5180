import { expect } from 'chai';
import type { AnyStateNode } from 'xstate';
import { breakerMachine } from '../../machines/breaker.ts';
import { collectionMachine } from '../../machines/collection.ts';
import { deliveryMachine } from '../../machines/delivery.ts';
import { endpointMachine } from '../../machines/endpoint.ts';
import { settlementMachine } from '../../machines/settlement.ts';
import { type StateConfig, waysOf } from '../../packages/cli/src/chart.ts';

/** `kusanya admin chart` reads a definition as the operators' routes give it, without XState. */
describe('the command line’s reading of a chart', () => {
  it('names the ways on of every state of every chart as XState has them', () => {
    const charts = [collectionMachine, deliveryMachine, endpointMachine, settlementMachine, breakerMachine];
    for (const machine of charts) {
      const definition: StateConfig = JSON.parse(JSON.stringify(machine.config));
      const leaves = leavesOf(machine.root);
      expect(leaves.length).to.be.at.least(3);
      for (const leaf of leaves) {
        const targets = new Set(waysOf(definition, leaf.path.join('.')).map(({ to }) => to));
        expect([...targets].sort(), `${machine.id} ${leaf.path.join('.')}`).to.deep.equal(targetsOf(leaf));
      }
    }
  });
});

function leavesOf(node: AnyStateNode): AnyStateNode[] {
  const inner = Object.values(node.states) as AnyStateNode[];
  return inner.length === 0 ? [node] : inner.flatMap(leavesOf);
}

/** Where a state can lead to, by XState's own reading of the definition. */
function targetsOf(leaf: AnyStateNode): string[] {
  const targets = new Set<string>();
  const heard = new Set<string>();
  for (let node: AnyStateNode | undefined = leaf; node; node = node.parent) {
    const transitions = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
    for (const { eventType, guard, target } of transitions) {
      if (heard.has(eventType)) continue;
      if (!guard) heard.add(eventType);
      for (const { path } of (target ?? []) as AnyStateNode[]) targets.add(path.join('.'));
    }
  }
  return [...targets].sort();
}
