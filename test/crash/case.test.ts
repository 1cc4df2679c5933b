// kill -9 while a large case is copied: its job goes on after the restart and ends once, and nothing of the first try is left.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { linkSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { encodeVideo } from '../support/encoded-samples.ts';
import { recordedPart, WALL_START_MS } from '../support/joined-file.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
const CAMERAS = Array.from({ length: 64 }, (_, i) => `gate-${i}`);
const PATIENCE_MS = 120_000;

interface JobAnswer {
  readonly job_id: string;
  readonly state: string;
  readonly progress: number;
  readonly reason?: string;
}

test(
  'kill -9 while a case is copied: its job ends once, with the right archive, and nothing else is left',
  { skip },
  async (t) => {
    const directory = workspace(t);
    // Noise makes it large: copying 64 of them takes a while.
    const noise = {
      encoderParameters: 'keyint=25',
      size: '640x360',
      frames: 50,
      extra: ['-vf', 'noise=alls=60:allf=t'],
    };
    const footage = recordedPart(encodeVideo(directory, { codec: 'h264', ...noise }));
    const paths = CAMERAS.map((cameraId) =>
      join(directory, 'recordings', formatPath({ name: cameraId, cameraId, startMs: WALL_START_MS })),
    );
    const [first = '', ...others] = paths;
    mkdirSync(dirname(first), { recursive: true });
    writeFileSync(first, footage);
    for (const path of others) linkSync(first, path);
    const config = { cameras: [], log: { level: 'warn' } };
    let recorder = await RecorderProcess.start({ directory, config });
    t.after(() => recorder[Symbol.asyncDispose]());
    const from = WALL_START_MS / 1000;
    const answer = await fetch(`${recorder.url}/api/cases`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cameras: CAMERAS, from, to: from + 2 }),
    });
    assert.equal(answer.status, 202, await answer.clone().text());
    const results = join(directory, 'work/jobs');
    await until(
      'it is being copied',
      () => readdirSync(results).some((name) => name.endsWith('.part')),
      PATIENCE_MS,
      5,
    );
    recorder.child.signal('SIGKILL');
    await recorder.child.exit();
    t.diagnostic(`killed with ${readdirSync(results).join(', ')}`);
    recorder = await recorder.restart();
    const listed = async (): Promise<JobAnswer[]> =>
      ((await recorder.get('/api/archive/jobs')) as { jobs: JobAnswer[] }).jobs;
    const job = await until(
      'the case is made',
      async () => (await listed()).find(({ state }) => state === 'done' || state === 'failed'),
      PATIENCE_MS,
    );
    assert.deepEqual([job.state, job.reason, (await listed()).length], ['done', undefined, 1]);
    const id = job.job_id;
    assert.deepEqual(readdirSync(results).sort(), [`${id}.manifest`, `${id}.mp4`]);
    const verify = [
      '--import',
      import.meta.resolve('../support/preload.ts'),
      MAIN,
      'verify',
      join(results, `${id}.mp4`),
    ];
    assert.match(execFileSync(process.execPath, verify).toString(), /\nas it was made\n$/);
  },
);
