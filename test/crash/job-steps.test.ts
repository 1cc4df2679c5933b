// kill -9 of a process with jobs at each step of a job: the next process ends the job, with the right result.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, test, type TestContext } from 'node:test';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { ended } from '../support/jobs-stage.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../support/joined-file.ts';
import { jobsIn, STEPS } from '../support/killed-jobs.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;
const PROGRAM = join(import.meta.dirname, '../support/killed-jobs.ts');
const FOOTAGE = numberedVideo(tmpdir());

/** The directory and the job of a process that was killed at a step. */
async function killedAt(t: TestContext, step: string): Promise<{ readonly directory: string; readonly id: string }> {
  // Short, because it contains a socket.
  const directory = mkdtempSync(join(tmpdir(), 'killed-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, 'recordings', formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, recordedPart(FOOTAGE));
  const killed = spawn(process.execPath, [PROGRAM, directory, step], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed, [, signal]] = await Promise.all([text(killed.stdout), once(killed, 'exit')]);
  assert.equal(signal, 'SIGKILL');
  return { directory, id: printed.trim() };
}

// Side by side: a job that was interrupted waits until the lock of the dead process has expired.
describe('a job whose process is killed', { skip, concurrency: STEPS.length + 1 }, () => {
  test('while it is written: it can be removed at the next start, although the dead process has its lock', async (t) => {
    const { directory, id } = await killedAt(t, 'planned');
    const jobs = await jobsIn(directory);
    t.after(() => jobs.close());
    await jobs.start();
    assert.equal(await jobs.remove(id), true);
    assert.deepEqual([await jobs.get(id), await jobs.list()], [undefined, []]);
    assert.deepEqual(readdirSync(join(directory, 'results')), []);
  });

  for (const step of STEPS) {
    test(`when it is ${step}: the next process ends the job`, async (t) => {
      const { directory, id } = await killedAt(t, step);
      const jobs = await jobsIn(directory);
      t.after(() => jobs.close());
      await jobs.start();
      const job = await ended(jobs, id);
      assert.equal(job.state, 'done', job.reason);
      const result = await jobs.result(job);
      assert.ok(result);
      assert.equal(createHash('sha256').update(readFileSync(result.path)).digest('hex'), job.outcome?.sha256);
      const { numbers } = await decodePictures(result.path);
      assert.deepEqual(
        numbers,
        Array.from({ length: 100 }, (_, i) => i),
      );
      assert.ok(await jobs.manifest(job));
      assert.deepEqual(readdirSync(join(directory, 'results')).sort(), [`${job.id}.manifest`, `${job.id}.mp4`]);
    });
  }
});
