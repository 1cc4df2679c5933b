import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { TransportChoice } from '../../recorder/contract/camera-source.ts';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { record } from '../support/record.ts';

const run = promisify(execFile);
const skip = gstreamerMissing();

/** Records until there is sound; codecs of the last file's streams, which ffmpeg decodes without a complaint. */
async function recorded(t: TestContext, source: string, transport: TransportChoice): Promise<string[]> {
  const recording = await record({ source, transport });
  t.after(() => recording.close());
  await recording.until(({ counters }) => counters.videoFrames > 20 && counters.audioFrames > 50);
  // Where sound came late, it began a file of its own.
  const file = (await recording.stop()).at(-1) ?? '';
  const { stderr } = await run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'null', '-']);
  assert.equal(stderr, '');
  const { stdout } = await run('ffprobe', [
    '-v',
    'error',
    '-show_entries',
    'stream=codec_name',
    '-of',
    'csv=p=0',
    file,
  ]);
  return stdout.trim().split('\n');
}

test('GStreamer: through an HTTP tunnel with a login, and sound in L16, MP2 and MP3', { skip }, async (t) => {
  const login = { user: 'eve', password: 'p@ss:w/rd' };
  await using cameras = await GstreamerCameras.start([
    { name: 'tunnel', video: 'h264', audio: 'mp2', auth: 'digest', ...login, fps: 10 },
    { name: 'waves', video: 'h264', audio: 'l16', fps: 10 },
    { name: 'plain', video: 'h264', audio: 'mp3', fps: 10 },
  ]);
  const tunnel = cameras.url('tunnel', login).replace('rtsp:', 'rtsp+http:');
  assert.deepEqual(await recorded(t, tunnel, 'auto'), ['h264', 'mp3']);
  assert.deepEqual(await recorded(t, cameras.url('waves'), 'udp'), ['h264', 'flac']);
  assert.deepEqual(await recorded(t, cameras.url('plain'), 'tcp'), ['h264', 'mp3']);
});
