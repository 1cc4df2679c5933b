// Cameras and encoders that offer only sound. The number is that of docs/cameras.md.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import { openFootage } from '../../recorder/footage/open.ts';
import { Authenticator } from '../../recorder/http/auth.ts';
import { exportWindow } from '../../recorder/jobs/export.ts';
import { buildPlayback } from '../../recorder/playback/app.ts';
import { audioMedia } from '../camera/media.ts';
import type { AudioMedia, AudioName } from '../camera/media.ts';
import { audioTrack } from '../camera/tracks.ts';
import { closedFootage } from '../support/closed-footage.ts';
import { filesIn } from '../support/record.ts';
import { workspace } from '../support/workspace.ts';
import { linearOf } from './g711-reference.ts';
import { decodedSound, packetTimes, setStage, streamsOf } from './stage.ts';
import type { Stage } from './stage.ts';

type Test = Parameters<typeof setStage>[0];

const run = promisify(execFile);
const SEGMENT_MS = 4_000;

async function setSoundStage(t: Test, name: AudioName): Promise<{ stage: Stage; media: AudioMedia }> {
  const media = await audioMedia(name);
  return { stage: await setStage(t, { tracks: [audioTrack(media)], segmentDurationMs: SEGMENT_MS }), media };
}

/** Waits for the recorder to play, then sends sound for so long, each frame at its time. */
async function play(stage: Stage, ms: number, connection = 1): Promise<void> {
  const { camera } = stage;
  await camera.untilPlaying(connection);
  await camera.settled();
  const fromMs = camera.nextFrameAtMs;
  for (let at = fromMs; at < fromMs + ms;) {
    camera.sendUntil(at + 0.001);
    const nextMs = camera.nextFrameAtMs;
    await stage.pass(nextMs - at);
    at = nextMs;
  }
}

/** What G.711 says, sample for sample. */
const sourceOf = (media: AudioMedia): Buffer =>
  linearOf(Buffer.concat(media.frames.map((frame) => frame.data)), 'alaw');

/** Milliseconds of 16-bit sound. */
const lengthOf = (sound: Buffer, { sampleRate, channels }: AudioMedia): number =>
  (sound.length * 1000) / (2 * channels * sampleRate);

test('96. a camera that offers only sound is recorded, in files that follow one another', async (t) => {
  for (const [name, codec] of [
    ['aac', 'aac'],
    ['aac-44k', 'aac'],
    ['pcma', 'flac'],
  ] as const) {
    const { stage, media } = await setSoundStage(t, name);
    await play(stage, 9_000);
    assert.equal(stage.status.state, 'recording');
    assert.equal(stage.status.audio?.codec, codec);
    assert.equal(stage.status.video, undefined);
    const { videoFrames, audioFrames, leadFrames } = stage.status.counters;
    assert.deepEqual([videoFrames, leadFrames], [0, audioFrames], 'what the account of the time goes by');
    assert.ok(audioFrames > 100);
    const { files } = await stage.finish();
    assert.equal(files.length, 3);
    for (const file of files) assert.deepEqual(await streamsOf(file), [`audio ${codec}`]);
    const sound = Buffer.concat(await Promise.all(files.map((file) => decodedSound(file))));
    const frameMs = (media.samplesPerFrame * 1000) / media.sampleRate;
    assert.ok(Math.abs(lengthOf(sound, media) - 9_000) < 4 * frameMs, `${lengthOf(sound, media)} ms of sound`);
    if (name === 'pcma') assert.ok(sourceOf(media).includes(sound), 'sample for sample what the camera sent');
    const footage = await closedFootage(files);
    for (const [i, { fromMs }] of footage.entries())
      if (i > 0) assert.ok(Math.abs(fromMs - (footage[i - 1]?.toMs ?? 0)) < 1, 'without a gap between files');
    for (const file of files) {
      const times = await packetTimes(file, 'a');
      for (const [i, { ptsMs }] of times.entries())
        if (i > 0) assert.ok(Math.abs(ptsMs - (times[i - 1]?.ptsMs ?? 0) - frameMs) < 0.1, `a frame at ${ptsMs} ms`);
    }
  }
});

test('96. sound that is alone and stops: connected again, with a reason that says sound, and a gap', async (t) => {
  const { stage } = await setSoundStage(t, 'aac');
  await play(stage, 5_000);
  await stage.passUntil(() => stage.status.state !== 'recording', 'an end of the recording');
  assert.equal(stage.status.reason?.code, 'stream-silent');
  assert.match(stage.status.reason?.message ?? '', /sent no sound for 1[0-2] s/);
  await stage.passUntil(() => stage.camera.playing.length > 0, 'a second connection');
  await play(stage, 5_000, 2);
  assert.equal(stage.status.state, 'recording');
  // That footage and gaps cover the time, and every gap has a cause, is asserted at the end of each recording.
  const footage = await closedFootage((await stage.finish()).files);
  const recordedMs = footage.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  assert.ok(Math.abs(recordedMs - 10_000) < 500, `${recordedMs} ms recorded`);
});

test('96. a file with sound alone that a crash left open is completed', async (t) => {
  const { stage, media } = await setSoundStage(t, 'pcma');
  await play(stage, 3_000);
  const root = join(workspace(t), 'left');
  cpSync(stage.recording.root, root, { recursive: true });
  const archive = new Archive({ root, clock: new VirtualClock(), log: silentLog, syncIntervalMs: 5_000 });
  const { repairs } = await archive.recover();
  await archive.close();
  assert.deepEqual(
    [...repairs.values()].map(({ kind }) => kind),
    ['recovered'],
  );
  const [file = ''] = await filesIn(root);
  const sound = await decodedSound(file);
  assert.ok(lengthOf(sound, media) > 2_000, `${lengthOf(sound, media)} ms of sound`);
  assert.ok(sourceOf(media).includes(sound), 'sample for sample what the camera sent');
});

test('96. sound that is alone plays as HLS and as one MP4, and is exported; a time-lapse of it is refused', async (t) => {
  const { stage, media } = await setSoundStage(t, 'pcma');
  await play(stage, 9_000);
  const { files } = await stage.finish();
  const { root } = stage.recording;
  const { clock } = stage;
  const archive = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000 });
  await archive.recover();
  const auth = new Authenticator({ mode: 'none', tokens: [] }, { clock });
  const footage = openFootage({ recordPath: root, archive, clock, log: silentLog });
  const app = await buildPlayback({ version: '1.2.3', footage, auth, clock, log: silentLog });
  t.after(async () => {
    await app.close();
    await archive.close();
  });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const source = sourceOf(media);
  const [first] = await closedFootage(files);
  const fromMs = Math.floor(first?.fromMs ?? 0);

  const playlist = (seconds: number): string =>
    `${address}/hls/cam/index.m3u8?from=${fromMs / 1000}&to=${fromMs / 1000 + seconds}`;
  // Times begin at 0 in each file, which ffprobe lists as they are, and the sound of which ffmpeg would leave out.
  const frameMs = (media.samplesPerFrame * 1000) / media.sampleRate;
  assert.equal((await packetTimes(playlist(9), 'a')).length, 9_000 / frameMs);
  const hls = await decodedSound(playlist(4));
  assert.equal(lengthOf(hls, media), 4_000);
  assert.ok(source.includes(hls), 'HLS has what the camera sent');

  const query = `from=${fromMs / 1000 + 2}&to=${fromMs / 1000 + 7}`;
  const window = await decodedSound(`${address}/window/cam.mp4?${query}`);
  assert.ok(Math.abs(lengthOf(window, media) - 5_000) < 100, `${lengthOf(window, media)} ms of sound as one MP4`);

  const deps = {
    recordPath: root,
    archive,
    wallMs: () => clock.wallMs(),
    version: '1.2.3',
    spareBytes: async () => Infinity,
  };
  const request = { cameraId: 'cam', fromMs: fromMs + 2_000, toMs: fromMs + 7_000 };
  const result = join(workspace(t), 'export.mp4');
  const { outcome } = await exportWindow(request, result, deps, new AbortController().signal);
  assert.deepEqual(outcome.gaps, []);
  assert.deepEqual(await streamsOf(result), ['audio flac']);
  const exported = await decodedSound(result);
  assert.ok(source.includes(exported), 'the export has what the camera sent, over the border of two files');
  assert.ok(Math.abs(lengthOf(exported, media) - 5_000) < 100, `${lengthOf(exported, media)} ms of sound exported`);
  const { stdout } = await run('ffmpeg', ['-v', 'warning', '-i', result, '-f', 'null', '-']);
  assert.equal(stdout, '');
  const lapse = exportWindow({ ...request, lapseSpeed: 60 }, result, deps, new AbortController().signal);
  await assert.rejects(lapse, { code: 'no-pictures' });
});
