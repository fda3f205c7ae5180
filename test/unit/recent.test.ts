import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'chai';
import { Recent } from '../../src/recent.ts';

describe('what was read a moment ago', () => {
  const counting = (goodForMs: number, answer: (n: number) => Promise<string>, keptMax?: number) => {
    const asked: string[] = [];
    const recent = new Recent((id) => answer(asked.push(id)), goodForMs, keptMax);
    return { asked, recent };
  };

  it('is asked for once by all who ask together or soon after, each id by itself', async () => {
    const { asked, recent } = counting(60_000, async (n) => `answer ${n}`);
    const answers = await Promise.all([recent.read('a'), recent.read('a'), recent.read('b')]);
    expect([...answers, await recent.read('a')]).deep.equal(['answer 1', 'answer 1', 'answer 2', 'answer 1']);
    expect(asked).deep.equal(['a', 'b']);
  });

  it('is asked for again when it is too old, counted from the question', async () => {
    const { recent } = counting(20, async (n) => {
      await wait(30);
      return `answer ${n}`;
    });
    expect(await recent.read('a')).equal('answer 1');
    expect(await recent.read('a')).equal('answer 2');
  });

  it('is asked for again when it has changed, also while the question is on its way', async () => {
    const { recent } = counting(60_000, async (n) => `answer ${n}`);
    const first = recent.read('a');
    recent.forget('a');
    expect(await recent.read('a')).equal('answer 2');
    expect(await first).equal('answer 1');
    expect(await recent.read('a')).equal('answer 2');
  });

  it('keeps no failure, and no more than it may', async () => {
    const { asked, recent } = counting(
      60_000,
      async (n) => {
        if (n === 1) throw new Error('away');
        return `answer ${n}`;
      },
      2,
    );
    expect(await recent.read('a').catch(String)).equal('Error: away');
    expect(await recent.read('a')).equal('answer 2');
    for (const id of ['b', 'c', 'a']) await recent.read(id);
    expect(asked).deep.equal(['a', 'a', 'b', 'c', 'a']);
  });
});
