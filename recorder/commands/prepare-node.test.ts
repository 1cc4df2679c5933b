import assert from 'node:assert/strict';
import * as nodeFs from 'node:fs';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { settle } from '../../operator/kube/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { PrepareError, prepareNode, untilPrepared, type PrepareOptions } from './prepare-node.ts';

const CLOSED = '2026/11/21/Gate_gate_20261121_100000000.mp4';
const OPEN = '2026/11/22/Gate_gate_20261122_100000000.mp4';
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

/** As a recorder of another user left it. */
function used(directory: string): Node {
  const node = { archive: join(directory, 'archive'), state: join(directory, 'state') };
  const archive = join(node.archive, 'video_north');
  write(join(archive, CLOSED), 'closed');
  write(join(archive, OPEN), 'open');
  write(join(archive, '.kube-nvr/archive.json'), '{}');
  write(join(archive, `.kube-nvr/open/7_${OPEN.split('/').at(-1)}`), '');
  write(join(node.state, 'video_north/state/archive-id'), '{}');
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
  prepareNode({ ...node, ...owner, say, fs: fsOf(), ...options });
  return said;
};

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

test('further disks are prepared, too, and one that cannot be written holds up neither the others nor the archive', (t) => {
  const directory = workspace(t);
  const node = { archive: join(directory, 'a'), state: join(directory, 's') };
  const disks = [join(directory, 'gone'), join(directory, 'd')];
  for (const volume of [node.archive, node.state, join(directory, 'd')]) mkdirSync(volume);
  const said = prepare(node, { disks });
  for (const volume of [node.archive, node.state, join(directory, 'd')])
    assert.deepEqual(readdirSync(volume), ['video_north']);
  assert.ok(said.some((line) => line.includes(join(directory, 'gone'))));
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

test(
  'directories, state and the files that were open are the user’s; closed footage keeps its owner',
  { skip: !isRoot },
  (t) => {
    const node = used(workspace(t));
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

test('killed at every step, the next run completes it', { skip: !isRoot }, (t) => {
  const directory = workspace(t);
  const mutating = ['mkdirSync', 'lchownSync'] as const;
  for (let step = 0; ; step++) {
    const node = used(join(directory, String(step)));
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
    for (const path of ['.', '2026/11/21', '.kube-nvr/archive.json', OPEN])
      assert.equal(statSync(join(node.archive, 'video_north', path)).uid, USER, `${path}, step ${step}`);
    if (!isKilled) break;
    assert.ok(step < 200);
  }
});

test('an owner that cannot be changed is an error that says what to do', (t) => {
  const node = used(workspace(t));
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
