import assert from 'node:assert/strict';
import { chmodSync, chownSync, lchownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../test/support/workspace.ts';
import { asOwnerOf, giveAway } from './as-owner.ts';

const USER = 12_345;
const NEEDS_ROOT = { skip: process.getuid?.() !== 0 && 'only root has rights to leave' };

/** A directory of root, one of a user, and one of root in that; all in a directory of root. */
function places(t: TestContext) {
  const root = workspace(t);
  chmodSync(root, 0o755);
  const [mine, theirs] = [join(root, 'mine'), join(root, 'theirs')];
  for (const path of [mine, theirs, join(theirs, 'of-root')]) mkdirSync(path, { mode: 0o700 });
  chownSync(theirs, USER, USER);
  return { root, mine, theirs };
}

const whoIs = (path: string): Promise<readonly unknown[]> =>
  asOwnerOf(path, async () => [process.geteuid?.(), process.getegid?.(), process.getgroups?.()]);

test('root works with the rights of the user who owns the path or a directory above it', NEEDS_ROOT, async (t) => {
  const { root, mine, theirs } = places(t);
  const before = [process.geteuid?.(), process.getegid?.(), process.getgroups?.()];
  for (const path of [theirs, join(theirs, 'new/one'), join(theirs, 'of-root/new')])
    assert.deepEqual(await whoIs(path), [USER, USER, [USER]], path);
  for (const path of [root, mine, join(mine, 'new/one')]) assert.deepEqual(await whoIs(path), before, path);
  await assert.rejects(
    asOwnerOf(theirs, () => Promise.reject(new Error('no'))),
    /^Error: no$/,
  );
  assert.deepEqual([process.geteuid?.(), process.getegid?.(), process.getgroups?.()], before);
});

test(
  'a link that a user has put anywhere in the path is followed with the rights of that user',
  NEEDS_ROOT,
  async (t) => {
    const { root, mine, theirs } = places(t);
    symlinkSync(mine, join(theirs, 'link'));
    symlinkSync(mine, join(root, 'given'));
    lchownSync(join(root, 'given'), USER, USER);
    symlinkSync(join(theirs, 'link'), join(root, 'of-root'));
    for (const path of [join(theirs, 'link'), join(root, 'given'), join(root, 'of-root')]) {
      const write = (): void => writeFileSync(join(path, 'file'), '');
      await assert.rejects(asOwnerOf(path, write), { code: 'EACCES' }, path);
      giveAway(path, { uid: USER, gid: USER });
    }
    assert.equal(statSync(mine).uid, 0);
    giveAway(mine, { uid: USER, gid: USER });
    assert.equal(statSync(mine).uid, USER, 'a path of root alone');
  },
);
