import assert from 'node:assert/strict';
import * as nodeFs from 'node:fs';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { lockFile } from '../../base/file-lock.ts';
import { silentLog } from '../../base/log.ts';
import { settle } from '../../operator/kube/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { PrepareError, prepareNode, untilPrepared, type PrepareOptions } from './prepare-node.ts';

const ID = '0c6e3a52-0000-4000-8000-000000000001';
const OTHER_ID = '0c6e3a52-0000-4000-8000-000000000002';
const CLOSED = '2026/11/21/Gate_gate_20261121_100000000.mp4';
const OPEN = '2026/11/22/Gate_gate_20261122_100000000.mp4';
const NOW_MS = Date.UTC(2026, 10, 22, 12);
const [USER, GROUP] = [65_532, 65_532];
/** Owners can be changed by root only; for others of these tests it is enough that it is asked for. */
const isRoot = process.getuid?.() === 0;

interface Node {
  readonly archive: string;
  readonly state: string;
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** As a recorder of the layout before left it. */
function earlier(directory: string, { id = ID, namespace = 'video' } = {}): Node {
  const node = { archive: join(directory, 'archive'), state: join(directory, 'state') };
  write(join(node.archive, CLOSED), 'closed');
  write(join(node.archive, OPEN), 'open');
  write(join(node.archive, `2025/12/31/Gate_gate_20251231_100000000.mp4`), 'old');
  write(join(node.archive, '.kube-nvr/archive.json'), JSON.stringify({ id, node: 'node-1' }));
  write(join(node.archive, `.kube-nvr/open/7_${OPEN.split('/').at(-1)}`), '');
  write(join(node.archive, '.kube-nvr/gaps/alive'), 'alive');
  mkdirSync(join(node.archive, 'lost+found'));
  write(join(node.state, 'state/archive-id'), JSON.stringify({ '/var/lib/recorder/recordings': id }));
  write(join(node.state, 'state/cluster/node_node-1/assignments.json'), JSON.stringify({ namespace }));
  return node;
}

/** Without what changes owners, which only root may. */
const fsOf = (changes: Partial<typeof nodeFs> = {}): typeof nodeFs => ({
  ...nodeFs,
  ...(isRoot ? {} : { lchownSync: () => {} }),
  ...changes,
});

const prepare = (node: Node, options: Partial<PrepareOptions> = {}): string[] => {
  const said: string[] = [];
  const say = (line: string): void => void said.push(line);
  const owner = { namespace: 'video', pool: 'north', user: USER, group: GROUP };
  prepareNode({ ...node, ...owner, say, nowMs: () => NOW_MS, fs: fsOf(), ...options });
  return said;
};

/** Files with their content, by path; without the lock that a second run takes. */
const filesIn = (directory: string): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name !== 'lock')
      .map(({ parentPath, name }) => join(parentPath, name))
      .sort()
      .map((path) => [path.slice(directory.length + 1), readFileSync(path, 'utf8')]),
  );

const moved = (files: ReadonlyMap<string, string>): [string, string][] =>
  [...files].map(([path, text]) => [`video_north/${path}`, text]);

test('an empty node gets directories of the pool, for its user and for no other', (t) => {
  const directory = workspace(t);
  const node = { archive: join(directory, 'a'), state: join(directory, 's') };
  for (const volume of Object.values(node)) mkdirSync(volume);
  prepare(node);
  for (const volume of Object.values(node)) {
    assert.deepEqual(readdirSync(volume), ['video_north']);
    const { mode, uid, gid } = statSync(join(volume, 'video_north'));
    assert.equal(mode & 0o027, 0);
    if (isRoot) assert.deepEqual([uid, gid], [USER, GROUP]);
  }
});

test('directories that the kubelet has made, for all to read, are the user’s alone', (t) => {
  const directory = workspace(t);
  const node = { archive: join(directory, 'a'), state: join(directory, 's') };
  for (const volume of Object.values(node)) mkdirSync(join(volume, 'video_north'), { recursive: true, mode: 0o755 });
  prepare(node);
  for (const volume of Object.values(node)) assert.equal(statSync(join(volume, 'video_north')).mode & 0o777, 0o750);
});

test('a recorder waits until its directories are those of its user', async (t) => {
  const directory = workspace(t);
  const clock = new VirtualClock();
  const { uid, gid } = statSync(directory);
  await untilPrepared([directory], `${uid}:${gid}`, { clock, log: silentLog });
  let isOver = false;
  const missing = join(directory, 'not-yet');
  const waiting = untilPrepared([directory, missing], `${uid}:${gid}`, { clock, log: silentLog });
  void waiting.then(() => (isOver = true));
  clock.advance(60_000);
  await settle();
  assert.equal(isOver, false);
  mkdirSync(missing);
  clock.advance(60_000);
  await waiting;
});

test('what a version before left after a rollback stays while a recorder runs that does not wait for it', (t) => {
  const node = earlier(workspace(t));
  prepare(node);
  write(join(node.state, 'state/archive-id'), '{}');
  const lock = lockFile(join(node.state, 'video_north/state/lock'));
  assert.match(prepare(node).join(), /will be moved at a start before/);
  assert.ok(existsSync(join(node.state, 'state')));
  lock?.release();
  prepare(node);
  assert.ok(!existsSync(join(node.state, 'state')));
});

test('footage and state of the layout before are moved as they are, and nothing else is', (t) => {
  const node = earlier(workspace(t));
  const [archive, state] = [filesIn(node.archive), filesIn(node.state)];
  const { ino } = statSync(join(node.archive, CLOSED));
  prepare(node);
  assert.deepEqual([...filesIn(node.archive)], moved(archive));
  assert.deepEqual([...filesIn(node.state)], moved(state));
  assert.deepEqual(readdirSync(node.archive).sort(), ['lost+found', 'video_north']);
  assert.equal(statSync(join(node.archive, 'video_north', CLOSED)).ino, ino, 'it is the same file');
  assert.deepEqual(prepare(node), isRoot ? [] : prepare(node), 'done once, it says nothing');
});

test(
  'directories, state and the files that were open are the user’s; closed footage keeps its owner',
  { skip: !isRoot },
  (t) => {
    const node = earlier(workspace(t));
    prepare(node);
    const ownerOf = (path: string): number => statSync(join(node.archive, 'video_north', path)).uid;
    for (const path of ['.', '2026', '2026/11/21', '.kube-nvr', '.kube-nvr/archive.json', '.kube-nvr/open', OPEN])
      assert.equal(ownerOf(path), USER, path);
    assert.equal(ownerOf(CLOSED), 0);
    assert.equal(statSync(join(node.state, 'video_north/state/archive-id')).uid, USER);
    assert.equal(statSync(node.archive).uid, 0, 'the volume stays its owner’s');
    prepare(node, { user: 1234 });
    assert.equal(ownerOf('2026/11/21'), 1234, 'another user later gets it');
  },
);

test('killed at every step, the next run completes it: every file is there once, with its content', (t) => {
  const directory = workspace(t);
  const mutating = ['mkdirSync', 'renameSync', 'lchownSync', 'rmdirSync', 'fsyncSync'] as const;
  for (let step = 0; ; step++) {
    const node = earlier(join(directory, String(step)));
    const [archive, state] = [filesIn(node.archive), filesIn(node.state)];
    let left = step;
    const killing = Object.fromEntries(
      mutating.map((name) => [
        name,
        (...args: unknown[]) => {
          if (left-- === 0) throw new Error('killed');
          return (fsOf()[name] as (...all: unknown[]) => unknown)(...args);
        },
      ]),
    );
    let isKilled = false;
    try {
      prepare(node, { fs: fsOf(killing) });
    } catch {
      isKilled = true;
    }
    prepare(node);
    assert.deepEqual([...filesIn(node.archive)], moved(archive), `step ${step}`);
    assert.deepEqual([...filesIn(node.state)], moved(state), `step ${step}`);
    if (isRoot) assert.equal(statSync(join(node.archive, 'video_north/2026/11/21')).uid, USER, `step ${step}`);
    if (!isKilled) break;
    assert.ok(step < 200);
  }
});

test('what belongs to another tenant stays where it is, and a second pool begins beside it', (t) => {
  const node = earlier(workspace(t));
  const [archive, state] = [filesIn(node.archive), filesIn(node.state)];
  prepare(node, { namespace: 'guest', pool: 'south' });
  assert.deepEqual([...filesIn(node.archive)], [...archive]);
  assert.deepEqual([...filesIn(node.state)], [...state]);
  assert.ok(existsSync(join(node.archive, 'guest_south')));
  // And is still there for whose it is.
  prepare(node);
  assert.deepEqual([...filesIn(node.archive)], moved(archive));
});

test('an archive that says whose it is, is that pool’s whatever the state says', (t) => {
  const node = earlier(workspace(t));
  const marker = { id: ID, node: 'node-1', pool: 'video/south' };
  write(join(node.archive, '.kube-nvr/archive.json'), JSON.stringify(marker));
  prepare(node);
  assert.ok(existsSync(join(node.archive, CLOSED)));
});

test('an archive that this pool does not know is taken, but not while a recorder writes to it', (t) => {
  const node = earlier(workspace(t), { id: OTHER_ID });
  write(join(node.state, 'state/archive-id'), '{}');
  const alive = join(node.archive, '.kube-nvr/gaps/alive');
  utimesSync(alive, NOW_MS / 1000, NOW_MS / 1000 - 5);
  assert.throws(
    () => prepare(node),
    (err) => err instanceof PrepareError && /is in use by a recorder/.test(err.message),
  );
  assert.ok(existsSync(join(node.archive, CLOSED)));
  utimesSync(alive, NOW_MS / 1000, NOW_MS / 1000 - 60);
  prepare(node);
  assert.ok(existsSync(join(node.archive, 'video_north', CLOSED)));
});

test('the archive of this pool is taken at once, however lately it was written to', (t) => {
  const node = earlier(workspace(t));
  utimesSync(join(node.archive, '.kube-nvr/gaps/alive'), NOW_MS / 1000, NOW_MS / 1000);
  prepare(node);
  assert.ok(existsSync(join(node.archive, 'video_north', CLOSED)));
});

test('what a version before recorded after a rollback comes to the rest, and replaces nothing', (t) => {
  const directory = workspace(t);
  const node = earlier(directory);
  prepare(node);
  const LATER = '2026/11/22/Gate_gate_20261122_110000000.mp4';
  write(join(node.archive, LATER), 'later');
  write(join(node.archive, CLOSED), 'not the same');
  write(join(node.archive, '.kube-nvr/archive.json'), JSON.stringify({ id: OTHER_ID, node: 'node-1' }));
  write(join(node.archive, `.kube-nvr/open/0_${LATER.split('/').at(-1)}`), '');
  write(join(node.state, 'state/archive-id'), JSON.stringify({ '/var/lib/recorder/recordings': OTHER_ID }));
  prepare(node);
  const own = join(node.archive, 'video_north');
  const text = (path: string): string => readFileSync(join(own, path), 'utf8');
  assert.deepEqual([text(LATER), text(CLOSED)], ['later', 'closed']);
  assert.equal(readFileSync(join(node.archive, CLOSED), 'utf8'), 'not the same');
  assert.ok(text('.kube-nvr/archive.json').includes(ID));
  assert.ok(existsSync(join(own, '.kube-nvr.rolled-back-1/archive.json')));
  if (isRoot) assert.equal(statSync(join(own, LATER)).uid, USER, 'open when that version ended');
});

test('an owner that cannot be changed is an error that says what to do', (t) => {
  const node = earlier(workspace(t));
  const lchownSync = (path: nodeFs.PathLike): void => {
    throw Object.assign(new Error(`EPERM: operation not permitted, lchown '${String(path)}'`), { code: 'EPERM', path });
  };
  assert.throws(
    () => prepare(node, { fs: fsOf({ lchownSync }) }),
    (err) =>
      err instanceof PrepareError &&
      /EPERM.*; give .* to user 65532 on the node, or set spec\.runAsUser/.test(err.message),
  );
});
