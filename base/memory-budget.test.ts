import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../test/support/fast-check.ts';
import { MemoryBudget } from './memory-budget.ts';

test('when bytes are short, users give way in the order in which they were opened, and the last gives way to nobody', () => {
  const budget = new MemoryBudget(100);
  const asked: string[] = [];
  const giving = (name: string) => {
    const account = budget.open(name, {
      maxBytes: 100,
      shed(bytes) {
        asked.push(`${name} ${bytes}`);
        account.giveBack(Math.min(bytes, account.usedBytes));
      },
    });
    return account;
  };
  const viewers = giving('viewers');
  const caches = giving('caches');
  const writing = budget.open('writing', { maxBytes: 100 });
  assert.ok(writing.take(40));
  assert.ok(caches.take(30));
  assert.ok(viewers.take(30));
  assert.deepEqual(asked, []);
  assert.ok(writing.take(45));
  assert.deepEqual(asked, ['viewers 45', 'caches 15']);
  assert.equal(writing.usedBytes, 85);
  assert.equal(budget.usedBytes, 100);
  assert.ok(!writing.take(20), 'more than the others can give');
  assert.equal(writing.usedBytes, 85);
  assert.deepEqual([viewers.sheds, caches.sheds, writing.refusals], [1, 2, 1]);
});

test('a user cannot take what those behind it hold', () => {
  const budget = new MemoryBudget(100);
  const viewers = budget.open('viewers', { maxBytes: 100 });
  const writing = budget.open('writing', {
    maxBytes: 100,
    shed: () => assert.fail('footage gives way to a viewer'),
  });
  assert.ok(viewers.take(10));
  assert.ok(writing.take(90));
  assert.ok(!viewers.take(1));
});

test('no user holds more than its own part, however much is free', () => {
  const budget = new MemoryBudget(100);
  const caches = budget.open('caches', { maxBytes: 30 });
  assert.ok(caches.take(30));
  assert.ok(!caches.take(1));
  assert.equal(budget.usedBytes, 30);
});

test('what is held in any case leaves less to others, but to each what it has whatever happens', () => {
  const budget = new MemoryBudget(100);
  const cameras = budget.open('cameras', { maxBytes: Infinity });
  const writing = budget.open('writing', { maxBytes: 90, minBytes: 30 });
  cameras.hold(60);
  assert.ok(writing.take(40));
  assert.ok(!writing.take(1));
  writing.giveBack(20);
  cameras.hold(160);
  assert.ok(writing.take(10));
  assert.ok(!writing.take(1));
  cameras.hold(0);
  assert.ok(writing.take(60));
});

test('a picture larger than the budget is accepted when its user holds nothing, so that it does not block a camera', () => {
  const budget = new MemoryBudget(100);
  const writing = budget.open('writing', { maxBytes: 50 });
  assert.ok(writing.take(500));
  assert.ok(!writing.take(1));
  writing.giveBack(500);
  assert.ok(writing.take(1));
});

test('work that can wait gets its memory in the order in which it asked, when others have given back', async () => {
  const budget = new MemoryBudget(100);
  const playback = budget.open('playback', { maxBytes: 50 });
  const done: string[] = [];
  await playback.taken(40);
  const waiting = [playback.taken(30).then(() => done.push('large')), playback.taken(5).then(() => done.push('small'))];
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(done, [], 'the small one does not overtake');
  playback.giveBack(40);
  await Promise.all(waiting);
  assert.deepEqual(done, ['large', 'small']);
  assert.equal(budget.usedBytes, 35);
});

test('what is in blocks counts although no user counts it, and what is counted in blocks does not count twice', () => {
  const budget = new MemoryBudget(100);
  let blocks = 0;
  budget.inBlocks = () => blocks;
  const viewers = budget.open('viewers', { maxBytes: 100, shed: (bytes) => void (blocks -= bytes) });
  const images = budget.open('images', { maxBytes: 100, isApart: true });
  const writing = budget.open('writing', { maxBytes: 100 });
  assert.ok(viewers.take(1));
  blocks = 90;
  assert.ok(writing.take(80), 'these bytes are among the blocks');
  assert.equal(budget.usedBytes, 90);
  assert.ok(images.take(10));
  assert.equal(budget.usedBytes, 100);
  images.giveBack(10);
  assert.ok(images.take(5));
  blocks = 98;
  assert.ok(writing.take(10), 'viewers let go of blocks');
  assert.equal(blocks, 95);
  viewers.giveBack(1);
  blocks = 120;
  assert.ok(!writing.take(1));
});

test('releasing more memory than was taken is reported as a bug', () => {
  const writing = new MemoryBudget(100).open('writing', { maxBytes: 100 });
  writing.take(10);
  assert.throws(() => writing.giveBack(11), /bug: more memory is released/);
});

test('any history: the sum of the users is what is used, never beyond the limit but for one piece a user', () => {
  const NAMES = ['viewers', 'caches', 'writing'] as const;
  const step = fc.record({
    who: fc.nat({ max: NAMES.length - 1 }),
    bytes: fc.nat({ max: 60 }),
    back: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const budget = new MemoryBudget(100);
      const held = NAMES.map((): number[] => []);
      const accounts = NAMES.map((name, i) =>
        budget.open(name, {
          maxBytes: 80,
          shed(bytes) {
            if (i === 2) return;
            for (let left = bytes; left > 0;) {
              const piece = held[i]?.pop();
              if (piece === undefined) return;
              accounts[i]?.giveBack(piece);
              left -= piece;
            }
          },
        }),
      );
      let largest = 0;
      for (const { who, bytes, back } of steps) {
        const account = accounts[who];
        const own = held[who];
        if (!account || !own) continue;
        if (back) account.giveBack(own.pop() ?? 0);
        else if (account.take(bytes)) own.push(bytes);
        largest = Math.max(largest, bytes);
        const sums = held.map((pieces) => pieces.reduce((a, b) => a + b, 0));
        assert.deepEqual(
          accounts.map(({ usedBytes }) => usedBytes),
          sums,
        );
        assert.equal(
          budget.usedBytes,
          sums.reduce((a, b) => a + b, 0),
        );
        assert.ok(budget.usedBytes <= budget.limitBytes + largest * NAMES.length);
      }
      for (const [i, pieces] of held.entries()) for (const piece of pieces.splice(0)) accounts[i]?.giveBack(piece);
      assert.equal(budget.usedBytes, 0);
    }),
  );
});
