// Memory counts where it is held: cameras that begin with a backlog at the highest rate that is allowed do not get the process killed.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RecorderProcess } from '../support/recorder-process.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';
import { MemoryGroup } from './memory-group.ts';

const MIB = 1024 ** 2;
const CAMERAS = 8;
const PICTURE_BYTES = 150_000;
const MEGABITS = 90;
/** More than the first pictures of a connection ever wait. */
const SECONDS = 20;

for (let round = 1; round <= (LONG ? 20 : 1); round++) {
  test(`8 cameras of 90 Mbit/s that begin with a backlog, in 512 MiB: nothing is killed (round ${round})`, async (t) => {
    const directory = workspace(t);
    const cameras = spawn(
      process.execPath,
      [join(import.meta.dirname, 'backlog.ts'), String(PICTURE_BYTES), String(MEGABITS)],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    t.after(() => cameras.kill());
    const [port] = (await once(cameras.stdout, 'data')) as [Buffer];
    const started: { recorder?: RecorderProcess } = {};
    t.after(() => started.recorder?.[Symbol.asyncDispose]());
    const group = MemoryGroup.make(t, 512 * MIB);
    if (!group) return;
    const source = `rtsp://127.0.0.1:${String(port).trim()}/`;
    const ids = Array.from({ length: CAMERAS }, (_, i) => `cam${i}`);
    const recorder = await RecorderProcess.start({
      directory,
      through: group.through,
      config: { cameras: ids.map((id) => ({ id, source: source + id, transport: 'tcp' })) },
    });
    started.recorder = recorder;
    for (let seconds = 0; seconds < SECONDS; seconds++) {
      // Lasts: the pictures come.
      await sleep(1_000);
      assert.equal(group.kills, 0);
      assert.ok(!recorder.child.ended, recorder.child.output.slice(-2_000));
    }
    const status = readFileSync(`/proc/${recorder.child.pid}/status`, 'latin1');
    t.diagnostic(`at most ${Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1024)} MiB of its own`);
  });
}
