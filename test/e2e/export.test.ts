// From a scripted camera through a recorder process to exported files: exactly the pictures of the window, also in
// Chromium, also after kill -9 of recorder and Redis.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { formatPath } from '../../recorder/archive/disk/names.ts';
import type { RecordedMeta } from '../../recorder/mp4/meta.ts';
import { readMeta } from '../../recorder/mp4/reader.ts';
import { startCamera } from '../camera/camera.ts';
import { decodeFiles, decodePictures } from '../camera/frame-numbers.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { browserMissing } from '../support/browser.ts';
import { startMsOf } from '../support/file-start.ts';
import { numberedVideo, recordedPart, WALL_START_MS } from '../support/joined-file.ts';
import { Mount } from '../support/mount.ts';
import { openMovie } from '../support/movie-page.ts';
import { probe } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;

interface JobAnswer {
  readonly job_id: string;
  readonly state: string;
  readonly size_bytes?: number;
  readonly duration_seconds?: number;
  readonly gaps?: readonly unknown[];
  readonly reason?: string;
}

async function ask(recorder: RecorderProcess, path: string): Promise<string> {
  const answer = await fetch(`${recorder.url}/api/archive/${path}`, { method: 'POST' });
  assert.equal(answer.status, 202, await answer.clone().text());
  return ((await answer.json()) as JobAnswer).job_id;
}

async function ended(recorder: RecorderProcess, id: string): Promise<JobAnswer> {
  let job: JobAnswer | undefined;
  await until(`job ${id} ends`, async () => {
    const answer = await fetch(`${recorder.url}/api/archive/jobs/${id}`);
    job = answer.ok ? ((await answer.json()) as JobAnswer) : undefined;
    return job?.state === 'done' || job?.state === 'failed';
  });
  return job as JobAnswer;
}

async function download(recorder: RecorderProcess, id: string, to: string): Promise<Buffer> {
  const answer = await fetch(`${recorder.url}/api/archive/jobs/${id}/download`);
  assert.equal(answer.status, 200);
  const bytes = Buffer.from(await answer.arrayBuffer());
  writeFileSync(to, bytes);
  return bytes;
}

/** A recorder whose camera has sent some seconds, in files of two seconds, and still sends. */
async function recording(t: TestContext, video: 'h264' | 'h264-bframes', seconds: number): Promise<RecorderProcess> {
  const tracks = [videoTrack(await videoMedia(video)), audioTrack(await audioMedia('aac'))];
  const camera = await startCamera({ tracks, pace: 'realtime' });
  t.after(() => camera.close());
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      archive: { segmentDuration: '2s' },
      cameras: [{ id: 'gate', source: camera.url, transport: 'tcp' }],
    },
  });
  await recorder.untilRecording('gate');
  await until(`${seconds} seconds of footage`, async () => (await recorder.files()).length > seconds / 2 + 1);
  return recorder;
}

/** How long the pictures of this wall time play, by what the files say of the two. */
async function mediaSeconds(recorder: RecorderProcess, fromMs: number, toMs: number): Promise<number> {
  let ms = 0;
  for (const file of await recorder.files()) {
    const bytes = readFileSync(join(recorder.recordPath, file));
    const state = await readMeta(async (offset, length) => bytes.subarray(offset, offset + length), bytes.length);
    assert.equal(state.kind, 'finalized', file);
    const { wallStartMs, wallDurationMs, mediaDurationMs } = (state as { meta: RecordedMeta }).meta;
    const shared = Math.min(toMs, wallStartMs + wallDurationMs) - Math.max(fromMs, wallStartMs);
    ms += (Math.max(0, shared) * mediaDurationMs) / wallDurationMs;
  }
  return ms / 1000;
}

/** The numbers of all pictures recorded, file after file. */
async function recorded(recorder: RecorderProcess): Promise<number[]> {
  return (await decodeFiles((await recorder.files()).map((file) => join(recorder.recordPath, file)))).numbers.flat();
}

for (const video of ['h264', 'h264-bframes'] as const) {
  test(`${video}: an export over several files has exactly the pictures of its window`, { skip }, async (t) => {
    await using recorder = await recording(t, video, 8);
    const [first = ''] = await recorder.files();
    // A second of it is before the window: the sound of a recording begins after its first picture. The window begins and ends
    // in the middle of a picture's 40 ms, because at an edge it would be luck which of two pictures is on screen; and in the
    // middle of a file, because the sound at a file's first picture is in the file before it.
    const from = startMsOf(first) / 1000 + 1.5;
    const id = await ask(recorder, `gate/export?from=${from}&to=${from + 4}`);
    const job = await ended(recorder, id);
    assert.equal(job.state, 'done', job.reason);
    assert.deepEqual(job.gaps, []);
    const file = join(workspace(t), 'export.mp4');
    const bytes = await download(recorder, id, file);
    assert.equal(bytes.length, job.size_bytes);
    const { numbers, complaints } = await decodePictures(file);
    assert.equal(complaints, '');
    const { streams, durationSeconds } = await probe(file);
    assert.ok(Math.abs(durationSeconds - (job.duration_seconds ?? 0)) <= 0.001);
    const sound = streams.find(({ codec_type }) => codec_type === 'audio');
    // Sound is whole AAC frames of 1024 samples at 16 kHz: one may be missing or too many at either end.
    assert.ok(
      Math.abs(Number(sound?.duration) - durationSeconds) <= (2 * 1024) / 16_000,
      `${sound?.duration} s of sound`,
    );
    await recorder.stop();
    // Where pictures came late, as on a busy machine, wall time in the files is slewed against the time of the pictures.
    const expected = await mediaSeconds(recorder, from * 1000, (from + 4) * 1000);
    assert.ok(Math.abs(durationSeconds - expected) <= 0.003, `${durationSeconds} s, and ${expected} s in the files`);
    const all = await recorded(recorder);
    const start = all.indexOf(numbers[0] as number);
    assert.ok(start >= 0);
    assert.deepEqual(numbers, all.slice(start, start + numbers.length));
    // One picture is on screen when the window begins, one when it ends.
    assert.equal(numbers.length, Math.round(expected * 25) + 1);
    const missing = browserMissing();
    if (missing !== false) {
      t.skip(missing);
      return;
    }
    const movie = await openMovie(t, bytes);
    const seen = movie.durationSeconds;
    assert.ok(Math.abs(seen - durationSeconds) <= 0.001, `${seen} s in Chromium`);
    const { numberAt } = movie;
    assert.equal(await numberAt(0.001), numbers[0], 'Chromium begins with the first picture');
    for (const seconds of [0.5, 2.1, 3.3]) {
      const seen = numbers.indexOf(await numberAt(seconds));
      assert.ok(Math.abs(seen - seconds * 25) <= 1, `picture ${seen} at ${seconds} s`);
    }
    assert.equal(await numberAt(durationSeconds - 0.001), numbers.at(-1), 'and ends with the last');
  });
}

test('a window into the future has no gap after the newest footage of a camera that records', { skip }, async (t) => {
  await using recorder = await recording(t, 'h264', 4);
  const now = Math.floor(Date.now() / 1000);
  const { archive } = (await recorder.get('/api/archive/gate/segments')) as { archive: { start_ms: number }[] };
  const from = Math.ceil((archive[0]?.start_ms ?? 0) / 1000) + 1;
  interface Known {
    readonly gaps: readonly { readonly start: string; readonly end: string }[];
    readonly known_until_ms: number;
    readonly duration_seconds: number;
  }
  /** A machine under load may really miss pictures, within the footage: that time is a gap there, and not at the end. */
  const isWholeToItsEnd = (answer: Known): void => {
    const { gaps, known_until_ms: untilMs, duration_seconds: seconds } = answer;
    const said = JSON.stringify(answer);
    assert.deepEqual(
      gaps.filter(({ end }) => Date.parse(end) >= untilMs),
      [],
      said,
    );
    const missingMs = gaps.reduce((sum, gap) => sum + Date.parse(gap.end) - Date.parse(gap.start), 0);
    assert.ok(Math.abs(from * 1000 + seconds * 1000 + missingMs - untilMs) < 100, said);
  };
  for (let i = 0; i < 20; i++) {
    const url = `${recorder.url}/api/archive/gate/export?from=${from}&to=${now + 600}&dry_run=1`;
    const answer = (await (await fetch(url, { method: 'POST' })).json()) as Known;
    assert.ok(answer.known_until_ms <= Date.now());
    isWholeToItsEnd(answer);
  }
  const job = (await ended(recorder, await ask(recorder, `gate/export?from=${from}&to=${now + 600}`))) as JobAnswer &
    Known;
  assert.equal(job.state, 'done');
  isWholeToItsEnd(job);
  await recorder.stop();
});

test('jobs outlive kill -9 of recorder and Redis: each ends once, with the right file', { skip }, async (t) => {
  let recorder = await recording(t, 'h264', 4);
  t.after(() => recorder[Symbol.asyncDispose]());
  const now = Math.floor(Date.now() / 1000);
  const ids: string[] = [];
  for (let i = 0; i < 6; i++)
    ids.push(await ask(recorder, `gate/timelapse?from=${now - 60 - i}&to=${now - 1}&speed=2`));
  const work = join(recorder.recordPath, '../work');
  await until('a movie is encoded', () => processesOf('ffmpeg', join(work, 'jobs')).length > 0);
  assert.equal(processesOf('redis-server', join(work, 'redis')).length, 1);
  recorder.child.signal('SIGKILL');
  await recorder.child.exit();
  await until('the programs of the killed recorder have ended with it', () => {
    return [...processesOf('ffmpeg', work), ...processesOf('redis-server', work)].length === 0;
  });
  recorder = await recorder.restart();
  for (const id of ids) {
    const job = await ended(recorder, id);
    assert.equal(job.state, 'done', job.reason);
    assert.equal((await download(recorder, id, join(work, 'result'))).length, job.size_bytes);
  }
  await recorder.stop();
  const left = readdirSync(join(work, 'jobs')).sort();
  assert.deepEqual(left, ids.flatMap((id) => [`${id}.manifest`, `${id}.mp4`]).sort());
  assert.deepEqual(processesOf('redis-server', work), [], 'Redis has ended with the recorder');
});

test('without ffmpeg, exports are refused, and the list of cameras and ready say so before anyone asks', async (t) => {
  await using recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      cameras: [{ id: 'gate', source: 'rtsp://127.0.0.1:1/', enabled: false }],
      ffmpeg: { path: 'no-such-ffmpeg' },
    },
  });
  for (const about of ['/api/cameras', '/api/health/ready']) {
    const codes = await until(`${about} warns`, async () => {
      const { warnings } = (await recorder.get(about)) as { warnings: { code: string }[] };
      return warnings.length > 0 && warnings.map(({ code }) => code);
    });
    assert.deepEqual(codes, ['ffmpeg-missing']);
  }
  const refused = await fetch(`${recorder.url}/api/archive/gate/export?from=1&to=2`, { method: 'POST' });
  assert.equal(refused.status, 503);
});

test('a job never takes the room that is kept for recording', { skip }, async (t) => {
  const mount = Mount.make(t, 'tmpfs', 32 * 1024 * 1024);
  if (!mount) return;
  const footage = recordedPart(numberedVideo(workspace(t), { size: '320x192', frames: 150 }));
  const path = join(mount.path, 'recordings', formatPath({ name: 'Gate', cameraId: 'gate', startMs: WALL_START_MS }));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, footage);
  const free = (): number => {
    const { bavail, bsize } = statfsSync(mount.path);
    return bavail * bsize;
  };
  const minFree = free() - Math.round(footage.length * 0.7);
  await using recorder = await RecorderProcess.start({
    directory: mount.path,
    config: { cameras: [], archive: { retention: { minFree: `${minFree}B` } } },
  });
  const from = WALL_START_MS / 1000;
  const failed = await ended(recorder, await ask(recorder, `gate/export?from=${from}&to=${from + 6}`));
  assert.match(failed.reason ?? '', /^the result needs \d+ bytes, but the free space is reserved for recording$/);
  const small = await ended(recorder, await ask(recorder, `gate/export?from=${from}&to=${from + 2}`));
  assert.equal(small.state, 'done', small.reason);
  assert.ok(free() >= minFree, 'what is kept for recording is still there');
  assert.equal((await recorder.files()).length, 1);
  await recorder.stop();
});

/** Processes of a program, by a path in their arguments. */
function processesOf(program: string, path: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}/cmdline`))
    .filter((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
        return command.startsWith(program) && command.includes(path);
      } catch {
        return false;
      }
    })
    .map(Number);
}
