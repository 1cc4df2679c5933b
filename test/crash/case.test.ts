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
    const results = join(directory, 'work/jobs');
    const left = (ending: string): string[] => readdirSync(results).filter((name) => name.endsWith(ending));
    let asked = 0;
    // On a busy machine a case may be done before this process looks: then the next one is looked at.
    do {
      const body = JSON.stringify({ cameras: CAMERAS, from, to: from + 2 - asked++ / 25 });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${recorder.url}/api/cases`, { method: 'POST', headers, body });
      assert.equal(answer.status, 202, await answer.clone().text());
      const isCopied = (): boolean => left('.part').length > 0 || left('.mp4').length === asked;
      await until('the case is being copied, or done', isCopied, undefined, 5);
    } while (left('.part').length === 0 && asked < 20);
    recorder.child.signal('SIGKILL');
    await recorder.child.exit();
    t.diagnostic(`killed with ${readdirSync(results).join(', ')}`);
    recorder = await recorder.restart();
    const listed = async (): Promise<JobAnswer[]> =>
      ((await recorder.get('/api/archive/jobs')) as { jobs: JobAnswer[] }).jobs;
    const jobs = await until('the cases are made', async () => {
      const all = await listed();
      return all.every(({ state }) => state === 'done' || state === 'failed') && all;
    });
    assert.deepEqual(
      jobs.map(({ state, reason }) => [state, reason]),
      Array.from({ length: asked }, () => ['done', undefined]),
    );
    const ids = jobs.map(({ job_id }) => job_id);
    assert.deepEqual(readdirSync(results).sort(), ids.flatMap((id) => [`${id}.manifest`, `${id}.mp4`]).sort());
    const { keys } = (await recorder.get('/api/keys')) as { keys: { fingerprint: string }[] };
    for (const id of ids) {
      const preload = ['--import', import.meta.resolve('../support/preload.ts')];
      const verify = [
        ...preload,
        MAIN,
        'verify',
        join(results, `${id}.mp4`),
        '--fingerprint',
        String(keys[0]?.fingerprint),
      ];
      assert.match(execFileSync(process.execPath, verify).toString(), /\nas it was made\n$/);
    }
  },
);
