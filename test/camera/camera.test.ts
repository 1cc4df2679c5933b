import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { startCamera } from './camera.ts';
import { decodeFrameNumbers } from './frame-numbers.ts';
import { audioMedia, videoMedia } from './media.ts';
import type { AudioName, VideoName } from './media.ts';
import { audioTrack, videoTrack } from './tracks.ts';
import { PATIENCE_MS } from '../support/until.ts';

const run = promisify(execFile);

async function scratchDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'camera-test-'));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}

/** Lets ffmpeg, a client that is not ours, record 100 pictures; returns what it wrote. */
async function recordWithFfmpeg(
  t: TestContext,
  camera: Awaited<ReturnType<typeof startCamera>>,
  transport: 'tcp' | 'udp',
): Promise<string> {
  const file = join(await scratchDirectory(t), 'out.mkv');
  const input = ['-v', 'error', '-rtsp_transport', transport, '-i', camera.urlWithLogin];
  // Decoded: ffmpeg does not copy B-frames from RTSP, which gives them no decoding times. Passed through: it would drop
  // pictures that come a little early.
  const output = ['-map', '0', '-vsync', 'passthrough', '-c:v', 'ffv1', '-c:a', 'copy', '-frames:v', '100', file];
  await run('ffmpeg', [...input, ...output], { timeout: PATIENCE_MS });
  return file;
}

async function tracksOf(video: VideoName, audio?: AudioName) {
  return [videoTrack(await videoMedia(video)), ...(audio ? [audioTrack(await audioMedia(audio))] : [])];
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

const combinations: [VideoName, AudioName | undefined, 'tcp' | 'udp'][] = [
  ['h264', 'aac', 'tcp'],
  ['h264-bframes', 'pcma', 'tcp'],
  ['h265', 'opus', 'tcp'],
  ['h264', undefined, 'udp'],
];
for (const [video, audio, transport] of combinations) {
  test(`ffmpeg plays ${video} with ${audio ?? 'no sound'} over ${transport}`, async (t) => {
    await using camera = await startCamera({ tracks: await tracksOf(video, audio), pace: 8 });
    const file = await recordWithFfmpeg(t, camera, transport);
    const numbers = await decodeFrameNumbers(file);
    assert.deepEqual(numbers, range(0, 100));
    const { stdout } = await run('ffprobe', [
      '-v',
      'error',
      '-show_entries',
      'stream=codec_type',
      '-of',
      'csv=p=0',
      file,
    ]);
    assert.deepEqual(stdout.trim().split('\n'), audio ? ['video', 'audio'] : ['video']);
  });
}

test('ffmpeg logs in with Digest, and the camera computes the same hash over its request line', async (t) => {
  const credentials = { username: 'admin', password: 'p@ss:/#%41' };
  await using camera = await startCamera({ credentials, pace: 8 });
  await recordWithFfmpeg(t, camera, 'tcp');
  // TEARDOWN may still be on its way when ffmpeg has ended.
  await camera.until(() => camera.logins.length === 4, 'the login of TEARDOWN');
  assert.deepEqual(camera.refusals, ['no Authorization header']);
  assert.deepEqual(
    camera.logins.map((login) => login.scheme),
    ['digest', 'digest', 'digest', 'digest'],
  );
});

test('ffmpeg with a wrong password is refused', async () => {
  await using camera = await startCamera({ credentials: { username: 'admin', password: 'right' } });
  const url = camera.urlWithLogin.replace('right', 'wrong');
  await assert.rejects(run('ffmpeg', ['-v', 'error', '-i', url, '-f', 'null', '-']), /401/);
  assert.ok(camera.refusals.includes('wrong response'));
});

test('ffmpeg plays over RTSPS', async (t) => {
  await using camera = await startCamera({ tls: true, pace: 8 });
  const numbers = await decodeFrameNumbers(await recordWithFfmpeg(t, camera, 'tcp'));
  assert.deepEqual(numbers, range(0, numbers.length));
});

test('in real time, a camera hands out 25 pictures a second', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const socket = connect(camera.port, '127.0.0.1');
  t.after(() => socket.destroy());
  let received = 0;
  socket.on('data', (bytes: Buffer) => (received += bytes.length));
  const ask = (method: string, url: string, extra: string): void => {
    socket.write(`${method} ${url} RTSP/1.0\r\nCSeq: 1\r\n${extra}\r\n`);
  };
  ask('SETUP', `${camera.url}/trackID=1`, 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n');
  await camera.until(() => camera.sessions.size === 1, 'SETUP');
  const [session] = [...camera.sessions.values()];
  ask('PLAY', camera.url, `Session: ${session?.id}\r\n`);
  await camera.untilPlaying();
  const startMs = performance.now();
  await camera.until(() => (session?.packetsSent ?? 0) >= 26, '25 pictures and a report');
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs > 850, `25 pictures in ${tookMs} ms`);
  assert.ok(received > 5_000);
});

test('a camera of one session answers the second with 453 until the first ends', async (t) => {
  await using camera = await startCamera({ maxSessions: 1, sessionsOutliveConnections: true });
  const answers: string[] = [];
  const socket = connect(camera.port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('data', (bytes: Buffer) => answers.push(bytes.toString('latin1', 9, 12)));
  const ask = async (method: string, extra: string): Promise<void> => {
    const before = answers.length;
    socket.write(`${method} ${camera.url}/trackID=1 RTSP/1.0\r\nCSeq: 1\r\n${extra}\r\n`);
    while (answers.length === before) await once(socket, 'data');
  };
  const transport = 'Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n';
  await ask('SETUP', transport);
  await ask('SETUP', transport);
  await ask('TEARDOWN', `Session: ${[...camera.sessions.keys()][0]}\r\n`);
  await ask('SETUP', transport);
  assert.deepEqual(answers, ['200', '453', '200', '200']);
});
