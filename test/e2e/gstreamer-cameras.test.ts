import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';

const run = promisify(execFile);

test(
  'GStreamer cameras: an independent client gets what each promises, and a wrong password nothing',
  {
    skip: gstreamerMissing(),
  },
  async () => {
    const login = { user: 'eve', password: 'p@ss:w/rd' };
    await using cameras = await GstreamerCameras.start([
      { name: 'secret', video: 'h264', audio: 'aac', auth: 'digest', ...login, fps: 10 },
      { name: 'open', video: 'h265', audio: 'pcma', fps: 10 },
    ]);
    const streams = async (url: string): Promise<string[]> => {
      const args = [
        '-v',
        'error',
        '-rtsp_transport',
        'tcp',
        '-show_entries',
        'stream=codec_name',
        '-of',
        'csv=p=0',
        url,
      ];
      return (await run('ffprobe', args)).stdout.trim().split('\n');
    };
    assert.deepEqual(await streams(cameras.url('secret', login)), ['h264', 'aac']);
    assert.deepEqual(await streams(cameras.url('open')), ['hevc', 'pcm_alaw']);
    await assert.rejects(streams(cameras.url('secret', { ...login, password: 'wrong' })), /401/);
  },
);
