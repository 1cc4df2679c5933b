// Every way in which footage leaves a recorder, for codecs other than H.264 and H.265 (which the other tests of this
// directory use): files, playlists, windows, thumbnails, exports, time-lapses, and what a crash leaves.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../camera/camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { probePackets } from '../support/encoded-samples.ts';
import { startMsOf } from '../support/file-start.ts';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { imageAt } from '../support/image-at.ts';
import { readJpeg } from '../support/packetize-mjpeg.ts';
import { decodingErrors, probe } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const skip = spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : false;

interface CameraJson {
  readonly codecs: { readonly video: { readonly codec: string } | null; readonly mime: string | null };
}

/** Numbers follow each other, and start over where the camera's recording does. */
function assertWhole(numbers: readonly number[], count: number, what: string): void {
  for (const [i, number] of numbers.entries()) {
    if (i > 0) assert.equal(number, ((numbers[i - 1] as number) + 1) % count, `${what}: ${numbers.join(' ')}`);
  }
}

const AV1 = { codec: 'av1', probed: 'av1', mime: /^video\/mp4; codecs="av01\.0\.\d\dM\.08"$/ } as const;
const CODECS = [
  { name: 'mjpeg', codec: 'mjpeg', probed: 'mjpeg', mime: /^video\/mp4; codecs="mp4v\.6C"$/ },
  { name: 'av1', ...AV1 },
  { name: 'av1-hidden', ...AV1 },
] as const;

for (const { name, codec, probed, mime } of CODECS) {
  test(
    `${name}: files, playlists, windows, thumbnails, exports and time-lapses have the camera's pictures`,
    { skip },
    async (t) => {
      const directory = workspace(t);
      const media = await videoMedia(name);
      const count = media.frames.length;
      const camera = await startCamera({ tracks: [videoTrack(media)], pace: 'realtime' });
      t.after(() => camera.close());
      await using recorder = await RecorderProcess.start({
        directory,
        config: {
          archive: { segmentDuration: '2s' },
          cameras: [{ id: 'gate', source: camera.url, transport: 'tcp' }],
        },
      });
      await recorder.untilRecording('gate');
      await until('four files', async () => (await recorder.files()).length >= 4, 60_000);
      const { codecs } = (await recorder.get('/api/cameras/gate')) as CameraJson;
      assert.equal(codecs.video?.codec, codec);
      assert.match(codecs.mime ?? '', mime);

      const files = await recorder.files();
      const whole: number[] = [];
      for (const file of files.slice(0, 3)) {
        const { streams } = await probe(join(recorder.recordPath, file));
        assert.deepEqual([streams[0]?.codec_name, streams[0]?.width], [probed, 320]);
        const { numbers, complaints } = await decodePictures(join(recorder.recordPath, file));
        assert.equal(complaints, '');
        whole.push(...numbers);
      }
      assertWhole(whole, count, 'files');

      // The window begins while the picture `first` is on screen, and ends 75 later: in the middle between two pictures, because at an
      // edge it would be luck which of two is shown. Pictures that came late from a busy machine are closer together than 40 ms.
      const times = files.slice(0, 3).flatMap((file) => {
        const begin = startMsOf(file) / 1000;
        return probePackets(join(recorder.recordPath, file)).map(({ pts }) => begin + pts / 90_000);
      });
      const first = 50;
      const [from, to] = [first, first + 75].map((n) => ((times[n] as number) + (times[n + 1] as number)) / 2) as [
        number,
        number,
      ];
      const window = `from=${from.toFixed(3)}&to=${to.toFixed(3)}`;
      for (const path of [`hls/gate/index.m3u8?${window}`, `window/gate.mp4?${window}`]) {
        const { numbers, complaints } = await decodePictures(`${recorder.playbackUrl}/${path}`);
        assert.equal(complaints, '', path);
        assertWhole(numbers, count, path);
        assert.ok(numbers.length >= 76, `${path}: ${numbers.length} pictures`);
      }

      const thumbnail = await imageAt(`${recorder.url}/api/cameras/gate/thumbnail`);
      assert.equal(readJpeg(Buffer.from(await thumbnail.arrayBuffer())).width, 320);

      for (const job of [`export?${window}`, `timelapse?${window}&speed=2`]) {
        const asked = await fetch(`${recorder.url}/api/archive/gate/${job}`, { method: 'POST' });
        assert.equal(asked.status, 202, await asked.clone().text());
        const { job_id } = (await asked.json()) as { job_id: string };
        const path = `/api/archive/jobs/${job_id}`;
        let state = '';
        await until(
          'the job ends',
          async () => {
            state = ((await recorder.get(path)) as { state: string }).state;
            return state === 'done' || state === 'failed';
          },
          60_000,
        );
        assert.equal(state, 'done', JSON.stringify(await recorder.get(path)));
        const movie = join(directory, `${job_id}.mp4`);
        writeFileSync(movie, Buffer.from(await (await fetch(`${recorder.url}${path}/download`)).arrayBuffer()));
        const { numbers, complaints } = await decodePictures(movie);
        assert.equal(complaints, '', job);
        if (job.startsWith('export')) {
          assertWhole(numbers, count, job);
          // Those that only lead from the key frame to the window are marked; ffmpeg decodes them all the same for AV1.
          const shown = probePackets(movie).filter(({ flags }) => !flags.includes('D')).length;
          assert.equal(shown, 76);
        } else {
          assert.equal((await probe(movie)).streams[0]?.codec_name, 'h264');
          // 30 a second, at twice the speed; the pictures on screen at both ends may be there whole.
          const [least, most] = [to - from, (times[first + 76] as number) - (times[first] as number)].map(
            (seconds) => (seconds / 2) * 30,
          ) as [number, number];
          const told = `${numbers.length} pictures of ${least} to ${most}`;
          assert.ok(numbers.length >= least - 1 && numbers.length <= most + 1, told);
          assert.equal(new Set(numbers).size, numbers.length);
        }
      }
    },
  );

  test(`${name}: what kill -9 leaves is recovered up to its last second`, async (t) => {
    const media = await videoMedia(name);
    const camera = await startCamera({ tracks: [videoTrack(media)], pace: 'realtime' });
    t.after(() => camera.close());
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: { cameras: [{ id: 'gate', source: camera.url, transport: 'tcp' }] },
    });
    await recorder.untilRecording('gate');
    await until('a file', async () => (await recorder.files()).length > 0);
    const [file = ''] = await recorder.files();
    const path = join(recorder.recordPath, file);
    await until('some seconds are written', async () => (await decodePictures(path)).numbers.length > 60);
    await recorder.child.stop('SIGKILL');
    await camera.close();
    await using again = await recorder.restart();
    await again.stop();
    assert.equal(await decodingErrors(path), '');
    const { numbers } = await decodePictures(path);
    assert.ok(numbers.length > 60);
    assertWhole(numbers, media.frames.length, file);
  });
}

test(
  'MJPEG of GStreamer in 4:2:0 and 4:2:2, larger than its packets can say, is recorded',
  { skip: gstreamerMissing() },
  async (t) => {
    await using cameras = await GstreamerCameras.start([
      { name: 'even', video: 'mjpeg', audio: 'none', width: 2560, height: 120 },
      { name: 'fine', video: 'mjpeg-422', audio: 'pcma', width: 320, height: 180 },
    ]);
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        archive: { segmentDuration: '2s' },
        cameras: [
          { id: 'even', source: cameras.url('even'), transport: 'tcp' },
          { id: 'fine', source: cameras.url('fine'), transport: 'udp' },
        ],
      },
    });
    await until('two files of each', async () => (await recorder.files()).length >= 6, 60_000);
    await recorder.stop();
    for (const file of await recorder.files()) {
      const path = join(recorder.recordPath, file);
      const { streams } = await probe(path);
      const [video] = streams;
      assert.equal(video?.codec_name, 'mjpeg');
      // GStreamer does not say a height that is no multiple of 8.
      assert.deepEqual([video.width, video.height], file.includes('even') ? [2560, 120] : [320, 184]);
      assert.equal(await decodingErrors(path), '', file);
    }
  },
);
