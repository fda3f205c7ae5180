import { expect } from 'chai';
import { type ReplayContext, type ReplayEvent, replayMachine } from '../../machines/replay.ts';
import { Drive } from '../support/drive.ts';
import { hourMs, startMs } from '../support/moves.ts';

class Replay extends Drive<ReplayContext, ReplayEvent> {
  constructor() {
    const input = { at: startMs, pageDelayMs: 2_000 };
    super(replayMachine, input);
  }

  page(cursor: string | null, replayed: number, hasMore: boolean): this {
    return this.send({ type: 'page.replayed', cursor, replayed, hasMore });
  }

  cancel(): this {
    return this.send({ type: 'operator.canceled', reason: 'the wrong endpoint' });
  }
}

describe('replay', () => {
  it('goes page by page, with a pause after each but the last', () => {
    const replay = new Replay();
    expect([replay.state, replay.asked]).to.deep.equal(['running.paging', ['replayPage']]);
    replay.page('dlv_2', 100, true);
    expect([replay.state, replay.asked]).to.deep.equal(['running.pausing', []]);
    expect(replay.timers).to.deep.equal({ 'xstate.after.pageDelay.pausing': 2_000 });
    replay.wait(2_000);
    expect([replay.state, replay.asked]).to.deep.equal(['running.paging', ['replayPage']]);
    replay.page('dlv_3', 7, false);
    expect([replay.state, replay.timers]).to.deep.equal(['done', {}]);
    expect(replay.context).to.include({ cursor: 'dlv_3', replayed: 107, endedAt: replay.now });
  });

  it('keeps its place when a page held nothing', () => {
    const replay = new Replay().page('dlv_2', 1, true).wait(2_000).page(null, 0, false);
    expect([replay.state, replay.context.cursor]).to.deep.equal(['done', 'dlv_2']);
  });

  it('makes one page at a time', () => {
    const replay = new Replay().wait(hourMs);
    expect(replay.times('replayPage')).to.equal(1);
  });

  it('canceled in a pause begins no further page', () => {
    const replay = new Replay().page('dlv_2', 100, true).cancel().wait(hourMs);
    expect([replay.state, replay.timers, replay.times('replayPage')]).to.deep.equal(['canceled', {}, 1]);
  });

  it('canceled within a page still counts that one', () => {
    const replay = new Replay().cancel();
    const endedAt = replay.now;
    replay.wait(500).page('dlv_2', 60, true);
    expect([replay.state, replay.asked]).to.deep.equal(['canceled', []]);
    expect(replay.context).to.include({ cursor: 'dlv_2', replayed: 60, endedAt });
  });

  it('is not canceled when it is done', () => {
    expect(new Replay().page(null, 0, false).cancel().isTaken).to.equal(false);
  });
});
