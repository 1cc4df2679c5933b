import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Parts, type Part } from './parts.ts';

/** Parts that write down what happens to them; those of `failing` fail at it. */
function setup({ failing = [] }: { readonly failing?: readonly string[] } = {}) {
  const happened: string[] = [];
  const happens = async (what: string): Promise<void> => {
    await Promise.resolve();
    happened.push(what);
    if (failing.includes(what)) throw new Error(what);
  };
  const part = (name: string): Part => ({
    name,
    start: () => happens(`start ${name}`),
    close: () => happens(`close ${name}`),
  });
  return { happened, list: [part('a'), part('b'), part('c')] };
}

test('parts start in order, one after the other, and close in reverse', async () => {
  const { happened, list } = setup();
  const parts = new Parts(list);
  await parts.start();
  await parts.close();
  assert.deepEqual(happened, ['start a', 'start b', 'start c', 'close c', 'close b', 'close a']);
});

test('when a part cannot start, those after it do not; all are closed, and the error is its own', async () => {
  const { happened, list } = setup({ failing: ['start b', 'close a'] });
  await assert.rejects(new Parts(list).start(), { message: 'start b' });
  assert.deepEqual(happened, ['start a', 'start b', 'close c', 'close b', 'close a']);
});

test('a part that cannot be closed keeps no other from it, and is named', async () => {
  const { happened, list } = setup({ failing: ['close a', 'close c'] });
  const parts = new Parts(list);
  await parts.start();
  happened.length = 0;
  await assert.rejects(parts.close(), (err: AggregateError) => {
    assert.equal(err.message, 'not closed: c, a');
    assert.deepEqual(
      err.errors.map(({ message }: Error) => message),
      ['close c', 'close a'],
    );
    return true;
  });
  assert.deepEqual(happened, ['close c', 'close b', 'close a']);
});

test('parts are closed once', async () => {
  const { happened, list } = setup();
  const parts = new Parts(list);
  await parts.start();
  happened.length = 0;
  await Promise.all([parts.close(), parts.close()]);
  await parts.close();
  assert.deepEqual(happened, ['close c', 'close b', 'close a']);
});
