import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { workspace } from '../../test/support/workspace.ts';
import { nodeFileSystem, type FileSystem } from '../archive/disk/file-system.ts';
import { NodeCameraSwitch, type NodeCameraSwitchDeps } from './camera-switch.ts';
import { SwitchError } from '../contract/camera-switch.ts';
import { CameraFile, toCameraConfig, type CameraConfig } from '../config/schema.ts';

const camera = (id: string, enabled = true): CameraConfig =>
  toCameraConfig(CameraFile.parse({ id, source: `rtsp://10.0.0.9/${id}`, enabled }), {
    segmentDurationMs: 300_000,
    maxBitrate: 1e8,
  });

interface Setting {
  readonly workDir: string;
  /** Cameras of the file; tests change it. */
  files: CameraConfig[];
  /** How often the recorder was told to do what is wanted. */
  applied: number;
  start(changes?: Partial<NodeCameraSwitchDeps>): Promise<NodeCameraSwitch>;
}

function setting(t: TestContext, ...files: CameraConfig[]): Setting {
  const clock = new VirtualClock(Date.UTC(2026, 10, 21, 12));
  const it: Setting = {
    workDir: join(workspace(t), 'work'),
    files,
    applied: 0,
    async start(changes = {}) {
      const made = new NodeCameraSwitch({
        fs: nodeFileSystem,
        workDir: it.workDir,
        files: () => it.files,
        refusal: () => undefined,
        apply: async () => void it.applied++,
        clock,
        log: silentLog,
        ...changes,
      });
      await made.load();
      return made;
    },
  };
  return it;
}

const enabled = (cameras: readonly { id: string; enabled: boolean }[]): string[] =>
  cameras.flatMap(({ id, enabled }) => (enabled ? [id] : []));

const codeOf = (change: Promise<number>): Promise<string> =>
  change.then(
    (count) => `${count}`,
    (err: unknown) => {
      assert.ok(err instanceof SwitchError, String(err));
      return err.code;
    },
  );

test('a camera of a file stays stopped over restarts until it is started, and the rest stays as the file says', async (t) => {
  const it = setting(t, camera('gate'), camera('yard'), camera('off', false));
  const first = await it.start();
  assert.equal(await first.stop('gate', 'ops'), 1);
  assert.equal(await first.stop('gate', 'ops'), 0);
  assert.equal(it.applied, 1, 'nothing to do the second time');
  assert.deepEqual(enabled(first.overrule(it.files)), ['yard']);

  const second = await it.start();
  assert.deepEqual(
    second.overrule(it.files).map(({ id, halted }) => [id, halted?.reason, halted?.sinceMs]),
    [
      ['gate', { code: 'stopped-by-user', message: 'stopped by ops' }, Date.UTC(2026, 10, 21, 12)],
      ['yard', undefined, undefined],
      ['off', { code: 'disabled', message: 'enabled is false in the configuration' }, undefined],
    ],
  );
  assert.equal(await second.start('gate', 'ops'), 1);
  assert.deepEqual(enabled(second.overrule(it.files)), ['gate', 'yard']);
  assert.deepEqual(enabled((await it.start()).overrule(it.files)), ['gate', 'yard']);
});

test('a camera that the file says is off can be started; what the file then says is heard again', async (t) => {
  const it = setting(t, camera('off', false));
  const one = await it.start();
  assert.equal(await one.stop('off', 'ops'), 0);
  assert.equal(await one.start('off', 'ops'), 1);
  assert.equal(await one.start('off', 'ops'), 0);
  assert.deepEqual(enabled((await it.start()).overrule(it.files)), ['off']);
  assert.equal(await one.stop('off', 'ops'), 1);
  it.files = [camera('off', true)];
  assert.deepEqual(enabled(one.overrule(it.files)), ['off']);
});

test('a camera that is removed and comes back is as it was; one that nobody knows cannot be changed', async (t) => {
  const it = setting(t, camera('gate'));
  const one = await it.start();
  await one.stop('gate', 'ops');
  it.files = [];
  assert.deepEqual(one.overrule(it.files), []);
  assert.equal(await codeOf(one.start('gate', 'ops')), 'unknown-camera');
  it.files = [camera('gate')];
  assert.deepEqual(enabled(one.overrule(it.files)), []);
});

test('of many calls at once the last one counts, and together they say how often it changed', async (t) => {
  const it = setting(t, camera('gate'));
  let running = 0;
  const one = await it.start({
    async apply() {
      assert.equal(++running, 1, 'one change at a time');
      await new Promise(setImmediate);
      running--;
    },
  });
  const calls = Array.from({ length: 51 }, (_, i) =>
    i % 3 === 1 ? one.start('gate', 'ops') : one.stop('gate', 'ops'),
  );
  const counts = await Promise.all(calls);
  assert.deepEqual(enabled(one.overrule(it.files)), []);
  assert.deepEqual(enabled((await it.start()).overrule(it.files)), [], 'the file says the same');
  // stop, start, stop; the next three begin with a stop that changes nothing.
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    1 + 17 * 2,
  );
});

test('a change that the disk does not take is refused, and nothing has changed', async (t) => {
  const it = setting(t, camera('gate'), camera('yard'));
  let full = false;
  const fs: FileSystem = {
    ...nodeFileSystem,
    async create(path) {
      if (full) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      return nodeFileSystem.create(path);
    },
  };
  const one = await it.start({ fs });
  await one.stop('gate', 'ops');
  full = true;
  assert.equal(await codeOf(one.start('gate', 'ops')), 'switch-not-kept');
  assert.equal(await codeOf(one.stop('yard', 'ops')), 'switch-not-kept');
  assert.deepEqual(enabled(one.overrule(it.files)), ['yard']);
  assert.equal(it.applied, 1);
  assert.deepEqual(enabled((await it.start()).overrule(it.files)), ['yard']);
  full = false;
  assert.equal(await one.start('gate', 'ops'), 1, 'and the next try works');
});

test('a file that is damaged stops no recording, and is replaced by the next change', async (t) => {
  const it = setting(t, camera('gate'), camera('yard'));
  await (await it.start()).stop('gate', 'ops');
  const file = join(it.workDir, 'switched-cameras.json');
  assert.match(await readFile(file, 'utf8'), /"by": "ops"/);
  for (const text of ['', '{', 'null', '{"cameras": 7}', '{"cameras": {"gate": null, "yard": {"enabled": "no"}}}']) {
    await writeFile(file, text);
    const one = await it.start();
    assert.deepEqual(enabled(one.overrule(it.files)), ['gate', 'yard'], text);
  }
  const one = await it.start();
  await one.stop('yard', 'ops');
  assert.deepEqual(enabled((await it.start()).overrule(it.files)), ['gate']);
});

test('a camera that the licence does not allow is not started; stopping needs no licence', async (t) => {
  const it = setting(t, camera('gate'));
  const refusal = () => ({ code: 'license-expired', message: 'the licence was valid until 2026-11-20' }) as const;
  const one = await it.start({ refusal });
  assert.equal(await one.stop('gate', 'ops'), 1);
  await assert.rejects(one.start('gate', 'ops'), {
    code: 'license-expired',
    message: 'the licence was valid until 2026-11-20',
  });
  assert.deepEqual(enabled(one.overrule(it.files)), []);
});

test('a camera of the database is switched there, unless the files have one of its id', async (t) => {
  const it = setting(t, camera('gate'));
  const rows = new Map([
    ['gate', true],
    ['yard', true],
  ]);
  let away = false;
  const database = {
    cameras: () => Array.from(rows, ([id, enabled]) => camera(id, enabled)),
    async setEnabled(id: string, enabled: boolean) {
      if (away) throw new Error('connect ECONNREFUSED');
      const changed = rows.get(id) !== enabled;
      rows.set(id, enabled);
      return changed;
    },
  };
  const one = await it.start({ database });
  assert.equal(await one.stop('yard', 'ops'), 1);
  assert.equal(await one.stop('yard', 'ops'), 0);
  assert.equal(await one.stop('gate', 'ops'), 1);
  assert.deepEqual([...rows.values()], [true, false]);
  away = true;
  await assert.rejects(one.start('yard', 'ops'), /^SwitchError: the database cannot be changed: connect ECONNREFUSED$/);
  assert.equal(rows.get('yard'), false);
  assert.equal(await one.start('gate', 'ops'), 1, 'cameras of files need no database');
});
