import type { ActorDoc, CallView } from '@kusanya/durable-actors';
import { expect } from 'chai';
import { callsOver, isLeft, kept, sentOnce } from '../../src/rails/rails.ts';

const doc: ActorDoc = {
  ...{ _id: 'rf_1', merchantId: 'mer_1', mode: 'live', machineVersion: 1, seq: 2, state: 'created' },
  ...{ snapshot: { value: 'created', context: {} }, timers: [], calls: [], dueAt: null, lastStep: 'x' },
  ...{ updatedAt: new Date(0), data: {} },
};
const call = { id: 'rf_1.2.0', type: 'send', params: {}, notBefore: new Date(0), dueAt: new Date(0) };

function viewAt(claimedAt?: number): CallView {
  const signal = new AbortController().signal;
  const view = { doc, call, at: 5_000, earlierStarts: 0, lane: undefined, signal };
  return { ...view, claimedAt, claim: async () => true, aside: async (until) => until };
}

/** What `kept` writes, by where: `[into, what of it is told]`. */
function keptBy(answer: Parameters<typeof kept>[2]) {
  return kept(viewAt(4_000), 'reversal', answer).map((write) => {
    if (write.op !== 'insert') throw new Error(`${write.op}: an answer is kept by inserts`);
    const { kind, about, collectionId, askedAt } = write.doc as Record<string, unknown>;
    return { into: write.into, kind, about, collectionId, askedAt };
  });
}

describe('calls over a rail', () => {
  it('keep what was answered, from when it was claimed', () => {
    const [evidence, ...more] = keptBy({ kind: 'succeeded', evidence: { atMs: 4_500, code: 'INS-0' } });
    expect(evidence).to.include({ into: 'railAnswers', kind: 'succeeded', collectionId: 'rf_1' });
    expect(evidence!.askedAt).to.deep.equal(new Date(4_000));
    expect(more, 'nobody has to act').to.deep.equal([]);
  });

  it('raise an alert where we or the network have to act, and say where our wallet was empty', () => {
    const kinds = (fault: 'us' | 'provider' | 'customer', code: string) =>
      keptBy({ kind: 'failed', fault, code })
        .filter(({ into }) => into === 'alerts')
        .map(({ kind, about }) => [kind, about]);
    expect(kinds('us', 'float_insufficient')).to.deep.equal([['float_low', 'rf_1']]);
    expect(kinds('provider', 'provider_error')).to.deep.equal([['rail_refused', 'rf_1']]);
    expect(kinds('customer', 'rejected')).to.deep.equal([]);
  });

  it('are left to another process where this one has no such rail, or ends before it began', async () => {
    const answer = { event: { type: 'reverse.succeeded' } };
    const run = callsOver((mode) => (mode === 'test' ? 'the door' : undefined))(async () => answer);
    expect(await run({ ...viewAt(), doc: { ...doc, mode: 'test' } })).to.equal(answer);
    expect(await run(viewAt())).to.deep.equal({ postponeMs: 2_000 });
    const stopping = { kind: 'notAttempted', why: 'stopping' };
    expect(isLeft(viewAt(), stopping)).to.equal(true);
    expect(isLeft(viewAt(4_000), stopping), 'begun').to.equal(false);
    expect(isLeft(viewAt(), { ...stopping, why: 'too_late' })).to.equal(false);
  });

  it('that were claimed and never answered are unknown, since when they were claimed', () => {
    const { atMostOnce, factual } = sentOnce('reverse.unknown');
    const lost = atMostOnce!.lost({ ...call, startedAt: new Date(4_000) }, 9_000);
    expect(lost).to.deep.equal({ type: 'reverse.unknown', at: 9_000, askedAt: 4_000 });
    expect(factual).to.equal(true);
  });
});
