// Real small file systems under a real recorder: a stranger fills them, they are pulled, they become read-only.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readMeta } from '../../recorder/mp4/reader.ts';
import type { RecordedMeta } from '../../recorder/mp4/meta.ts';
import { startCamera } from '../camera/camera.ts';
import { decodeFiles } from '../camera/frame-numbers.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { Mount, Stranger, type MountKind } from '../support/mount.ts';
import { decodingErrors } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { holdings } from '../support/resources.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';

const MIB = 1024 * 1024;
const IDS = ['cam0', 'cam1', 'cam2', 'cam3'];

interface Ready {
  readonly status: string;
  readonly failed?: readonly string[];
  readonly warnings: readonly { code: string; camera_id?: string }[];
}

async function start(
  t: TestContext,
  where: { readonly path?: string; readonly retention?: object },
  ids = IDS,
  through: readonly string[] = [],
): Promise<RecorderProcess> {
  const cameras = await Promise.all(
    ids.map(async (id) => {
      const camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
      t.after(() => camera.close());
      return { id, source: camera.url, transport: 'tcp' };
    }),
  );
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      ...(where.path === undefined ? {} : { record_path: where.path }),
      archive: { segmentDuration: '2s', syncInterval: '1s', retention: where.retention ?? {} },
      cameras,
    },
    through,
  });
  t.after(() => recorder[Symbol.asyncDispose]());
  await recorder.untilRecording(...ids);
  return recorder;
}

const ready = async (recorder: RecorderProcess): Promise<Ready> =>
  (await fetch(`${recorder.url}/api/health/ready`)).json() as Promise<Ready>;

/** The cameras' own words on what becomes of their footage. */
async function recordingOf(
  recorder: RecorderProcess,
  id: string,
): Promise<{ state: string; reason: { code: string } | null }> {
  const answer = (await recorder.get(`/api/cameras/${id}`)) as {
    recording: { state: string; reason: { code: string } | null };
  };
  return answer.recording;
}

async function metric(recorder: RecorderProcess, name: string): Promise<number> {
  const text = await (await fetch(recorder.metricsUrl)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`kube_nvr_${name}`));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function metaOf(path: string): Promise<RecordedMeta> {
  const bytes = readFileSync(path);
  const state = await readMeta(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length);
  assert.equal(state.kind, 'finalized', path);
  return (state as { meta: RecordedMeta }).meta;
}

/** From its oldest file to its newest a camera's footage is whole: no gap, no file that does not play, no picture missing. */
async function assertWhole(recorder: RecorderProcess, id: string): Promise<number> {
  const files = (await recorder.files()).filter((file) => file.includes(`_${id}_`));
  const paths = files.map((file) => join(recorder.recordPath, file));
  const { numbers, complaints } = await decodeFiles(paths);
  assert.equal(complaints, '');
  let before: number | undefined;
  for (const [i, file] of files.entries()) {
    const meta = await metaOf(paths[i] as string);
    if (i > 0) assert.ok(meta.gapBeforeMs < 1, `${file} begins ${meta.gapBeforeMs} ms after the one before`);
    for (const number of numbers[i] ?? []) {
      if (before !== undefined) assert.equal(number, (before + 1) % 250, `${file}: in order`);
      before = number;
    }
  }
  return files.length;
}

/** All files; `root`: the archive, where it is mounted now. */
async function assertDecodable(recorder: RecorderProcess, root = recorder.recordPath): Promise<void> {
  const files = await recorder.files();
  assert.equal(await decodingErrors(...files.map((file) => join(root, file))), '');
}

const KINDS: readonly MountKind[] = LONG ? ['ext4', 'tmpfs'] : ['ext4'];

for (const kind of KINDS) {
  test(`${kind}: a stranger fills the disk while 4 cameras record: the oldest goes, and no new picture is lost`, async (t) => {
    const mount = Mount.make(t, kind, 4 * MIB);
    if (!mount) return;
    const stranger = new Stranger(mount);
    stranger.fillTo(1.2 * MIB);
    const recorder = await start(t, mount);
    await recorder.untilMoreFiles(9, ...IDS);
    const [oldest] = await recorder.files();
    // All that is free at once, again and again, but no more than old footage can pay for.
    for (let i = 0; i < 3; i++) {
      stranger.fillTo(0);
      // Lasts: the disk is full, and the recorder makes room.
      await sleep(1_000);
    }
    await recorder.untilMoreFiles(1, ...IDS);
    await until('the oldest goes', async () => (await metric(recorder, 'retention_removed_segments_total')) > 4);
    // A look may come before the next write does, or after: both are as they should be.
    t.diagnostic(`${await metric(recorder, 'retention_write_waits_total')} writes found the disk full and waited`);
    assert.equal(await metric(recorder, 'camera_dropped_frames_total'), 0);
    assert.ok(!(await recorder.files()).includes(oldest as string));
    assert.equal((await recorder.stop()).code, 0);
    for (const id of IDS) assert.ok((await assertWhole(recorder, id)) >= 2);
  });
}

test('a stranger takes every inode while 2 cameras record: the oldest goes, and no new picture is lost', async (t) => {
  const mount = Mount.make(t, 'ext4', 16 * MIB, 128);
  if (!mount) return;
  const ids = ['cam0', 'cam1'];
  const recorder = await start(t, mount, ids);
  await recorder.untilMoreFiles(6, ...ids);
  const areBack = holdings(recorder);
  const [oldest = ''] = await recorder.files();
  new Stranger(mount).takeInodes();
  await recorder.untilMoreFiles(3, ...ids);
  assert.ok((await metric(recorder, 'retention_removed_segments_total')) > 0);
  assert.ok(!existsSync(join(mount.path, oldest)));
  assert.equal(await metric(recorder, 'camera_dropped_frames_total'), 0);
  await areBack();
  assert.equal((await recorder.stop()).code, 0);
  for (const id of ids) assert.ok((await assertWhole(recorder, id)) >= 2);
});

test('files that nobody may remove: a warning says so, newer ones go, recording continues, and they go when they may', async (t) => {
  const mount = Mount.make(t, 'ext4', 64 * MIB);
  if (!mount) return;
  const recorder = await start(t, { path: mount.path, retention: { maxSize: '600KiB' } }, ['cam0']);
  await until('retention', async () => (await metric(recorder, 'retention_removed_segments_total')) > 0);
  const areBack = holdings(recorder);
  // But not the file that is being written, and the one before it.
  const stuck = (await recorder.files()).slice(0, -2).map((file) => join(mount.path, file));
  for (const file of stuck) spawnSync('chattr', ['+i', file]);
  const held = stuck.filter((file) => existsSync(file));
  assert.ok(held.length > 0);
  const warned = async () => (await ready(recorder)).warnings.map(({ code }) => code);
  await until('a warning', async () => (await warned()).includes('segment-not-removable'));
  const removed = await metric(recorder, 'retention_removed_segments_total');
  await recorder.untilMoreFiles(3, 'cam0');
  await until('newer ones go', async () => (await metric(recorder, 'retention_removed_segments_total')) > removed);
  assert.deepEqual(
    held.filter((file) => !existsSync(file)),
    [],
  );
  assert.equal((await ready(recorder)).status, 'ready');
  assert.equal(await metric(recorder, 'camera_dropped_frames_total'), 0);
  for (const file of held) spawnSync('chattr', ['-i', file]);
  await until('they go', () => held.every((file) => !existsSync(file)));
  await until('no warning', async () => !(await warned()).includes('segment-not-removable'));
  await areBack();
  assert.equal((await recorder.stop()).code, 0);
  await assertDecodable(recorder);
});

test('nothing is left to remove: ready, metric and cameras say so, and recording continues by itself when there is space', async (t) => {
  const mount = Mount.make(t, 'tmpfs', 8 * MIB);
  if (!mount) return;
  const stranger = new Stranger(mount);
  const recorder = await start(t, mount, ['cam0', 'cam1']);
  await recorder.untilMoreFiles(2, 'cam0', 'cam1');
  const areBack = holdings(recorder);
  await until('the alarm', async () => {
    stranger.fillTo(0);
    return (await ready(recorder)).warnings.some(({ code }) => code === 'disk-exhausted');
  });
  assert.equal(await metric(recorder, 'retention_exhausted'), 1);
  await until('a camera that says why', async () => {
    stranger.fillTo(0);
    return (await recordingOf(recorder, 'cam0')).reason?.code === 'disk-full';
  });
  await until('ready to fail', async () => {
    stranger.fillTo(0);
    return (await ready(recorder)).failed?.includes('recordings_dir');
  });
  stranger.leave();
  await until(
    'both to record again',
    async () => {
      const states = await Promise.all(['cam0', 'cam1'].map((id) => recordingOf(recorder, id)));
      return states.every(({ state }) => state === 'writing');
    },
    60_000,
  );
  await until('ready', async () => (await ready(recorder)).status === 'ready');
  await areBack();
  assert.equal((await recorder.stop()).code, 0);
  await assertDecodable(recorder);
});

test('a disk that is pulled: ready fails, cameras say why, no byte lands beneath it, and it continues when it is back', async (t) => {
  const mount = Mount.make(t, 'ext4', 16 * MIB);
  if (!mount) return;
  const recorder = await start(t, mount, ['cam0', 'cam1']);
  await recorder.untilMoreFiles(2, 'cam0', 'cam1');
  const areBack = holdings(recorder);
  mount.detach();
  await until('ready to fail', async () => (await ready(recorder)).failed?.includes('recordings_dir'));
  await until('a warning', async () => (await ready(recorder)).warnings[0]?.code === 'archive-missing');
  await until('a camera that says why', async () => {
    return (await recordingOf(recorder, 'cam0')).reason?.code === 'archive-missing';
  });
  // Lasts: the disk is away.
  await sleep(3_000);
  assert.deepEqual(readdirSync(mount.path), [], 'nothing lies beneath the mount point');
  const lists = await fetch(`${recorder.url}/api/archive/cam0/segments`);
  assert.equal(lists.status, 500, 'no list is shown for an empty one');
  mount.attach();
  await until('ready again', async () => (await ready(recorder)).status === 'ready');
  await until(
    'both to record again',
    async () => {
      const states = await Promise.all(['cam0', 'cam1'].map((id) => recordingOf(recorder, id)));
      return states.every(({ state }) => state === 'writing');
    },
    60_000,
  );
  await areBack();
  assert.equal((await recorder.stop()).code, 0);
  const again = await recorder.restart();
  await again.stop();
  await assertDecodable(recorder);
});

test('a disk that is not there at the start: the recorder runs, records nothing, and begins when it is', async (t) => {
  const mount = Mount.make(t, 'ext4', 16 * MIB);
  if (!mount) return;
  const first = await start(t, mount, ['cam0']);
  await first.untilMoreFiles(2, 'cam0');
  first.child.signal('SIGKILL');
  await first.child.exit();
  mount.detach();
  const recorder = await first.restart({ waitUntilReady: false });
  t.after(() => recorder[Symbol.asyncDispose]());
  await until('an answer', async () => (await ready(recorder)).failed?.includes('recordings_dir'));
  await until('a camera that says why', async () => {
    return (await recordingOf(recorder, 'cam0')).reason?.code === 'archive-missing';
  });
  assert.deepEqual(readdirSync(mount.path), []);
  mount.attach();
  await until('it records', async () => (await recordingOf(recorder, 'cam0')).state === 'writing', 60_000);
  assert.equal((await recorder.stop()).code, 0);
  await assertDecodable(recorder);
});

test('a disk that becomes read-only: ready fails and cameras say so, nothing is mistaken for removed, and it continues when it is mounted again', async (t) => {
  const mount = Mount.make(t, 'ext4', 16 * MIB);
  if (!mount) return;
  const recorder = await start(t, mount, ['cam0']);
  await recorder.untilMoreFiles(2, 'cam0');
  const areBack = holdings(recorder);
  mount.abort();
  await until('ready to fail', async () => (await ready(recorder)).failed?.includes('recordings_dir'));
  await until('a camera that says why', async () => {
    return (await recordingOf(recorder, 'cam0')).reason?.code === 'disk-read-only';
  });
  const removed = await metric(recorder, 'retention_removed_segments_total');
  // Lasts: the disk is read-only.
  await sleep(2_000);
  assert.equal(await metric(recorder, 'retention_removed_segments_total'), removed);
  mount.detach();
  mount.attach();
  await until('it records again', async () => (await recordingOf(recorder, 'cam0')).state === 'writing', 60_000);
  await until('ready again', async () => (await ready(recorder)).status === 'ready');
  await areBack();
  assert.equal((await recorder.stop()).code, 0);
  // What the disk did not take any more is repaired.
  await (await recorder.restart()).stop();
  await assertDecodable(recorder);
});

/** Permissions bind everybody but those with CAP_DAC_OVERRIDE, as root usually is. */
const UNPRIVILEGED = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : [];

test('a directory that may not be written, or not even entered: ready fails, cameras say why, and it continues when it may', async (t) => {
  const [command] = UNPRIVILEGED;
  if (command !== undefined && spawnSync(command, ['--version']).status !== 0) {
    t.skip('setpriv (util-linux) is not here, and permissions do not bind root');
    return;
  }
  const recorder = await start(t, {}, ['cam0', 'cam1'], UNPRIVILEGED);
  const root = recorder.recordPath;
  await recorder.untilMoreFiles(2, 'cam0', 'cam1');
  const below = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
  const directories = [root, ...below.map(({ parentPath, name }) => join(parentPath, name)).sort()];
  const open = (): void => directories.forEach((path) => chmodSync(path, 0o755));
  for (const mode of [0o555, 0]) {
    for (const path of directories.toReversed()) chmodSync(path, mode);
    try {
      await until('ready to fail', async () => (await ready(recorder)).failed?.includes('recordings_dir'));
      await until('cameras that say why', async () => {
        const reasons = await Promise.all(['cam0', 'cam1'].map((id) => recordingOf(recorder, id)));
        return reasons.every(({ reason }) => reason?.code === 'disk-denied');
      });
      const { status } = await fetch(`${recorder.url}/api/archive/cam0/segments`);
      assert.equal(
        status,
        mode === 0 ? 500 : 200,
        'what can be read is listed, and else nothing is shown for an empty list',
      );
    } finally {
      open();
    }
    await until('ready again', async () => (await ready(recorder)).status === 'ready');
    await until(
      'both to record again',
      async () => {
        const states = await Promise.all(['cam0', 'cam1'].map((id) => recordingOf(recorder, id)));
        return states.every(({ state }) => state === 'writing');
      },
      60_000,
    );
  }
  assert.equal((await recorder.stop()).code, 0);
  await assertDecodable(recorder, root);
});
