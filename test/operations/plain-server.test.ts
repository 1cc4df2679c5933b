// docs/operations/restore.md, "A plain server": from a copy of /etc/recorder and the archive's disk alone.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCamera } from '../camera/camera.ts';
import { Child } from '../support/child.ts';
import { freePorts, MAIN } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

type Listed = {
  readonly archive: readonly { readonly filename: string; readonly is_open: boolean; readonly size: number }[];
};

/** Of a file with pictures: its header alone is shorter. */
const FOOTAGE_BYTES = 10_000;

const READY_MS = 180_000;

test('a server that burnt down is restored from its configuration, and old and new footage is listed together', async (t) => {
  const directory = workspace(t);
  const path = (name: string): string => join(directory, name);
  await using camera = await startCamera({ pace: 'realtime' });
  const [api, playback, metrics] = await freePorts(3);
  mkdirSync(path('etc/conf.d'), { recursive: true });
  writeFileSync(
    path('etc/config.yaml'),
    JSON.stringify({
      nodeName: 'nvr-1',
      listen: `127.0.0.1:${api}`,
      playback: { listen: `127.0.0.1:${playback}` },
      metrics: { listen: `127.0.0.1:${metrics}` },
      record_path: path('disk'),
      workDir: path('work'),
      auth: { mode: 'none' },
    }),
  );
  writeFileSync(path('etc/conf.d/cameras.yaml'), JSON.stringify({ cameras: [{ id: 'gate', source: camera.url }] }));
  mkdirSync(path('disk'));
  const start = async (config: string): Promise<Child> => {
    const child = new Child(process.execPath, [MAIN, '--config', join(config, 'config.yaml')]);
    t.after(() => child[Symbol.asyncDispose]());
    await until('it is ready', async () => (await ask('/api/health/ready')).ok, READY_MS);
    return child;
  };
  const ask = (what: string): Promise<Response> => fetch(`http://127.0.0.1:${api}${what}`);
  const listed = async (): Promise<Listed['archive']> =>
    ((await (await ask('/api/archive/gate/segments')).json()) as Listed).archive;
  const untilOpen = (): Promise<string> =>
    until(
      'it records',
      async () => (await listed()).find(({ is_open, size }) => is_open && size > FOOTAGE_BYTES)?.filename,
      READY_MS,
    );

  cpSync(path('etc'), path('backup'), { recursive: true });
  const first = await start(path('etc'));
  const { version } = (await (await ask('/api/health/ready')).json()) as { version: string };
  const old = await untilOpen();
  first.signal('SIGKILL');
  await first.exit();
  for (const lost of ['etc', 'work']) rmSync(path(lost), { recursive: true });

  cpSync(path('backup'), path('etc'), { recursive: true });
  await start(path('etc'));
  assert.equal(((await (await ask('/api/health/ready')).json()) as { version: string }).version, version);
  const now = await untilOpen();
  const files = await listed();
  assert.deepEqual(
    files.map(({ filename, is_open }) => [filename, is_open]),
    [
      [old, false],
      [now, true],
    ],
  );
});
