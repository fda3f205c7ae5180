import { expect } from 'chai';
import type { ActorDoc } from '../src/index.ts';
import { updateOf } from '../src/plan.ts';

describe('The update of an actor', () => {
  const terms = { pollLadderMs: [1, 2, 3] };
  const doc = {
    _id: 'col_1',
    machineVersion: 1,
    seq: 4,
    state: 'created.awaitingApproval',
    status: 'created',
    snapshot: {
      value: { created: 'awaitingApproval' },
      context: { terms, asks: 0, receipt: null, note: 'x' },
    },
    timers: [{ id: 'a', event: 'e', dueAt: new Date(5), armedSeq: 1 }],
    calls: [],
    dueAt: new Date(5),
    lastStep: 'one',
    updatedAt: new Date(1),
    merchantId: 'mer_1',
    mode: 'test',
    data: { reference: 'r' },
  } as unknown as ActorDoc;

  type Room = Record<string, unknown>;

  const updateFor = (changes: Partial<ActorDoc>, data?: Room, fields?: Room) => {
    const write = updateOf(
      { plural: 'collections' },
      doc,
      { ...doc, ...changes, ...fields, seq: 5 } as ActorDoc,
      data,
      fields,
    );
    if (write.op !== 'update') throw new Error('an update');
    expect(write.filter).to.deep.equal({ _id: 'col_1', seq: 4 });
    return write.update as { $set: Room; $unset?: Room };
  };

  const setOf = (changes: Partial<ActorDoc>, data?: Room, fields?: Room) => {
    const { $set, ...others } = updateFor(changes, data, fields);
    expect(others).to.deep.equal({});
    const { seq, lastStep, updatedAt, ...rest } = $set;
    expect([seq, lastStep, updatedAt]).to.deep.equal([5, 'one', new Date(1)]);
    return rest;
  };

  it('says nothing of what stays as it was', () => {
    expect(setOf({ dueAt: new Date(5) }, undefined, { status: 'created' })).to.deep.equal({});
  });

  it('names each field of the context that changed, and no other', () => {
    const context = { ...doc.snapshot.context, asks: 1, receipt: 'R1' };
    expect(setOf({ snapshot: { ...doc.snapshot, context } })).to.deep.equal({
      'snapshot.context.asks': 1,
      'snapshot.context.receipt': 'R1',
    });
  });

  it('writes the state with its value, the timers and calls that differ, and the moment they are due', () => {
    const value = { succeeded: 'standing' };
    const changes = {
      state: 'succeeded.standing',
      snapshot: { ...doc.snapshot, value },
      timers: [],
      dueAt: null,
    };
    const fields = { status: 'succeeded' };
    expect(setOf(changes, { note: 'n' }, fields)).to.deep.equal({
      ...{ state: 'succeeded.standing', 'snapshot.value': value, timers: [], dueAt: null },
      ...{ status: 'succeeded', 'data.note': 'n' },
    });
  });

  it('takes a field away that is there no more', () => {
    const { note: _gone, ...rest } = doc.snapshot.context;
    expect(updateFor({ snapshot: { ...doc.snapshot, context: rest } }).$unset).to.deep.equal({
      'snapshot.context.note': '',
    });
    expect(updateFor({}, { reference: undefined }).$unset).to.deep.equal({ 'data.reference': '' });
  });

  it('writes the context whole where a field is named like a path', () => {
    const dotted = { ...doc.snapshot.context, 'a.b': 1 };
    expect(setOf({ snapshot: { ...doc.snapshot, context: dotted } })).to.deep.equal({
      'snapshot.context': dotted,
    });
  });
});
