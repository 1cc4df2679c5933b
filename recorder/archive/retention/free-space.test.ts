import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { errorCode } from '../../../base/error.ts';
import { systemError, temporaryDirectory, TestFileSystem } from '../test-support.ts';
import { spaceMaking, type SpaceMaker } from './free-space.ts';

/** So much old footage, each piece of which makes space for one try. */
class Space implements SpaceMaker {
  removals = 0;
  asked = 0;
  written = 0;
  left: number;

  constructor(left: number) {
    this.left = left;
  }

  async makeSpace(removals: number): Promise<boolean> {
    this.asked++;
    if (this.removals > removals) return true;
    if (this.left === 0) return false;
    this.left--;
    this.removals++;
    return true;
  }

  wrote(bytes: number): void {
    this.written += bytes;
  }
}

function fullFor(fs: TestFileSystem, refusals: number, code = 'ENOSPC'): void {
  let left = refusals;
  fs.before = ({ name }) => {
    if ((name === 'write' || name === 'create' || name === 'makeDirectory') && left-- > 0) throw systemError(code);
  };
}

for (const code of ['ENOSPC', 'EDQUOT']) {
  test(`${code}: a write waits until there is space, and leaves the same bytes as on an empty disk`, async (t) => {
    const root = temporaryDirectory(t);
    const inner = new TestFileSystem(root);
    const space = new Space(10);
    const fs = spaceMaking(inner, () => space);
    fullFor(inner, 3, code);
    const file = await fs.create(join(root, 'a'));
    fullFor(inner, 4, code);
    assert.equal(await file.write([Buffer.from('one '), Buffer.from('two')], 0), 7);
    await file.close();
    assert.equal(readFileSync(join(root, 'a'), 'utf8'), 'one two');
    assert.equal(space.left, 3);
    assert.equal(space.written, 7);
  });
}

test('with nothing left to remove the error is the caller\u2019s', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const space = new Space(2);
  const fs = spaceMaking(inner, () => space);
  fullFor(inner, 5);
  await assert.rejects(fs.makeDirectory(join(root, 'day')), (err) => errorCode(err) === 'ENOSPC');
  assert.equal(space.asked, 3);
});

test('what another write has removed meanwhile counts: two writers do not remove twice as much', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const space = new Space(10);
  const fs = spaceMaking(inner, () => space);
  const files = await Promise.all(['a', 'b', 'c'].map((name) => fs.create(join(root, name))));
  fullFor(inner, 3);
  await Promise.all(files.map((file) => file.write([Buffer.from('x')], 0)));
  await Promise.all(files.map((file) => file.close()));
  assert.equal(space.asked, 3);
  assert.equal(space.removals, 1);
});

test('other errors are not answered with space', async (t) => {
  const root = temporaryDirectory(t);
  const inner = new TestFileSystem(root);
  const space = new Space(10);
  fullFor(inner, 1, 'EIO');
  await assert.rejects(spaceMaking(inner, () => space).create(join(root, 'a')), (err) => errorCode(err) === 'EIO');
  assert.equal(space.asked, 0);
});
