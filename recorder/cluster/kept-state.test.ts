import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { parseCamera } from '../../crds/camera.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { KeptState, type KeptContent } from './kept-state.ts';

const camera = parseCamera({
  apiVersion: 'kube-nvr.dev/v1alpha1',
  kind: 'Camera',
  metadata: { name: 'gate', namespace: 'shop', uid: 'u1', resourceVersion: '7' },
  spec: { source: 'rtsp://10.0.0.9/stream1', credentialsSecretRef: { name: 'gate-login' } },
  status: {
    assignment: { node: 'node-1', epoch: 3, reason: 'Scheduled', time: '2026-11-21T10:00:00Z' },
  },
});
const kept = (epoch: number): KeptContent => ({
  assignments: new Map([['gate', { camera, state: 'own', epoch }]]),
  logins: new Map([
    ['gate-login', { username: 'viewer', password: 'secret', hosts: ['10.0.0.0/8'] }],
    ['yard-login', { username: 'viewer', password: 'secret', hosts: undefined }],
  ]),
});

async function place(t: TestContext) {
  const directory = await mkdtemp(join(tmpdir(), 'kept-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const witnessDirectory = join(directory, 'archive', '.kube-nvr');
  await mkdir(witnessDirectory, { recursive: true });
  const options = { fs: nodeFileSystem, dataDir: join(directory, 'data'), nodeId: 'node-1', witnessDirectory };
  return {
    witnessDirectory,
    open: (namespace = 'shop') => new KeptState({ ...options, namespace }),
  };
}

test('what was kept last is there after a restart, with logins, for its owner alone', async (t) => {
  const { open } = await place(t);
  const first = open();
  assert.deepEqual(await first.load(), { kind: 'none' });
  await first.save(kept(3));
  await first.save(kept(4));
  const again = open();
  assert.deepEqual(await again.load(), { kind: 'kept', kept: kept(4) });
  assert.equal((await stat(again.path)).mode & 0o777, 0o600);
});

test('a copy of a version that did not ask whom a login is for has it for where it went', async (t) => {
  const { open } = await place(t);
  const state = open();
  await state.save(kept(3));
  const file = JSON.parse(await readFile(state.path, 'utf8')) as { logins: Record<string, { hosts?: unknown }> };
  for (const login of Object.values(file.logins)) delete login.hosts;
  await writeFile(state.path, JSON.stringify(file));
  const loaded = await open().load();
  assert.ok(loaded.kind === 'kept');
  assert.deepEqual(
    Array.from(loaded.kept.logins, ([name, { hosts }]) => [name, hosts]),
    [
      ['gate-login', ['10.0.0.9']],
      ['yard-login', []],
    ],
  );
});

test('a camera that this version cannot read costs the copy that camera alone', async (t) => {
  const { open } = await place(t);
  const state = open();
  const [assignment] = kept(3).assignments.values();
  assert.ok(assignment);
  const yard = { ...assignment, camera: { ...camera, metadata: { ...camera.metadata, name: 'yard' } } };
  await state.save({ ...kept(3), assignments: new Map([...kept(3).assignments, ['yard', yard]]) });
  const text = await readFile(state.path, 'utf8');
  const changed = (from: string, to: string): Promise<void> => {
    assert.ok(text.includes(from));
    return writeFile(state.path, text.replace(from, to));
  };
  const names = async (): Promise<readonly string[]> => {
    const loaded = await open().load();
    return loaded.kind === 'kept' ? [...loaded.kept.assignments.keys()] : [loaded.kind];
  };
  await changed('"transport":"Auto"', '"transport":"Quic"');
  assert.deepEqual(await names(), ['gate', 'yard'], 'one field has its default');
  await changed('"epoch":3,"reason"', '"epoch":"three","reason"');
  assert.deepEqual(await names(), ['yard']);
});

test('a copy from a backup is stale: the archive knows of a later one', async (t) => {
  const { open } = await place(t);
  const state = open();
  await state.save(kept(3));
  const backup = `${state.path}.backup`;
  await copyFile(state.path, backup);
  await state.save(kept(4));
  await copyFile(backup, state.path);
  const restored = open();
  assert.deepEqual(await restored.load(), { kind: 'stale' });
  // Later assignments are kept again.
  await restored.save(kept(5));
  assert.deepEqual(await open().load(), { kind: 'kept', kept: kept(5) });
});

test('a crash between the copy and its witness costs nothing', async (t) => {
  const { open, witnessDirectory } = await place(t);
  const state = open();
  await state.save(kept(3));
  await copyFile(join(witnessDirectory, 'cluster-witness.json'), join(witnessDirectory, 'old'));
  await state.save(kept(4));
  await copyFile(join(witnessDirectory, 'old'), join(witnessDirectory, 'cluster-witness.json'));
  assert.deepEqual(await open().load(), { kind: 'kept', kept: kept(4) });
});

test('a copy of another tenant is none, and one that cannot be understood is damaged', async (t) => {
  const { open } = await place(t);
  const state = open();
  await state.save(kept(3));
  assert.deepEqual(await open('other').load(), { kind: 'none' });
  await writeFile(state.path, '{"version": 1, "cut');
  assert.deepEqual(await open().load(), { kind: 'damaged' });
});

test('without the archive nothing is written where its disk should be', async (t) => {
  const { open, witnessDirectory } = await place(t);
  await rm(witnessDirectory, { recursive: true });
  await open().save(kept(3));
  await assert.rejects(stat(witnessDirectory), { code: 'ENOENT' });
  assert.deepEqual(await open().load(), { kind: 'kept', kept: kept(3) });
});

test('a node that leaves forgets what was assigned to it', async (t) => {
  const { open } = await place(t);
  const state = open();
  await state.save(kept(3));
  await state.erase();
  await state.erase();
  assert.deepEqual(await open().load(), { kind: 'none' });
});
