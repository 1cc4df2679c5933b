// Writes what this version of the recorder leaves on a disk when it is killed, and what it answers about it:
// `node test/upgrade/save.ts`. Part of a release (docs/releasing.md); test/e2e/upgrade.test.ts reads it.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCamera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { answersOf, CAMERAS, overState, questions, type Released } from './released.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Keys and certificates are made again; a socket is no file. */
const LEFT_OUT = ['work/tls', 'work/admin.token', 'work/redis/redis.sock', 'config.yaml'];

const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-released-'));
const state = join(directory, 'state');
mkdirSync(state);
const started = Date.now();
const cameras = await Promise.all(
  CAMERAS.map(async () => startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' })),
);
const recorder = await RecorderProcess.start({
  directory: state,
  config: {
    cameras: CAMERAS.map((camera, i) => ({ ...camera, source: cameras[i]?.url })),
    archive: { segmentDuration: '5s' },
  },
});
const post = async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
  const answer = await fetch(recorder.url + path, {
    method: 'POST',
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return (await answer.json()) as Record<string, unknown>;
};
const files = async (): Promise<number> => (await recorder.files()).length;
await until('there are some files', async () => (await files()) >= 6);

// A camera that is lost for a while, and one that a user stops.
await cameras[1]?.close();
await until('the loss is a gap', async () => {
  const { gaps } = (await recorder.get('/api/archive/yard/gaps')) as { gaps: readonly { cause: string }[] };
  return gaps.some(({ cause }) => cause === 'camera-unreachable');
});
await post('/cameras/stop', { id: 'yard', reason: 'works at the gate' });
const { archive } = (await recorder.get('/api/archive/gate/segments')) as { archive: readonly { start_ms: number }[] };
const from = (Math.min(...archive.map(({ start_ms }) => start_ms)) + 1_000) / 1000;
await post(
  `/api/archive/gate/protect?from=${from.toFixed(3)}&to=${(from + 3).toFixed(3)}&note=the+red+car&until=never`,
);
const { job_id: id } = await post(`/api/archive/gate/export?from=${from.toFixed(3)}&to=${(from + 4).toFixed(3)}`);
const job = await until('the export has ended', async () => {
  const answer = (await recorder.get(`/api/archive/jobs/${id as string}`)) as { state: string };
  return (answer.state === 'done' || answer.state === 'failed') && answer;
});
assert.equal(job.state, 'done', JSON.stringify(job));
const killed = await files();
await until('a file is being written', async () => (await files()) > killed);
await recorder.child.stop('SIGKILL');
const nowMs = Date.now() + 1_000;
await cameras[0]?.close();

// Its own answers, over a copy: the kept state is as the kill left it.
const copy = join(directory, 'copy');
for (const path of LEFT_OUT) rmSync(join(state, path), { recursive: true, force: true });
cpSync(state, copy, { recursive: true });
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const interval = { fromMs: Math.floor(started / 1000) * 1000, toMs: nowMs };
const again = await overState(copy, nowMs);
const released: Released = { version, ...interval, nowMs, answers: await answersOf(again, questions(interval)) };
await again.child.stop('SIGTERM');

const kept = join(ROOT, 'test/testdata/released');
rmSync(kept, { recursive: true, force: true });
mkdirSync(kept, { recursive: true });
execFileSync('tar', ['--sort=name', '--owner=0', '--group=0', '-czf', join(kept, 'state.tar.gz'), '-C', state, '.']);
// When a file was last written depends on when it was repaired.
const text = JSON.stringify(released, (key, value: unknown) => (key === 'mtime' ? undefined : value), 2);
writeFileSync(join(kept, 'answers.json'), `${text}\n`);
rmSync(directory, { recursive: true });
