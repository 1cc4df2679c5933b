// From GStreamer's RTSP server through a recorder process to files that ffmpeg agrees with.

import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { GstreamerCameras, gstreamerMissing } from '../support/gstreamer-cameras.ts';
import { decodingErrors, probe, topLevelBoxes } from '../support/probe.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

/** `<record_path>/YYYY/MM/DD/<name>_<camera_id>_<date>_<time>.mp4`, UTC. */
const FILE_NAME = /^(\d{4})\/(\d\d)\/(\d\d)\/([A-Za-z0-9.-]+)_([A-Za-z0-9.-]+)_(\d{8})_(\d{9})\.mp4$/;
const LOGIN = { user: 'gate-keeper', password: 'p@ss:w/rd' };

function startOf(file: string): { camera: string; ms: number } {
  const match = FILE_NAME.exec(file);
  assert.ok(match, `${file} is named as the specification says`);
  const [, year, month, day, , camera, date, time] = match as unknown as string[];
  assert.equal(date, `${year}${month}${day}`);
  const at = [time!.slice(0, 2), time!.slice(2, 4), `${time!.slice(4, 6)}.${time!.slice(6)}`].join(':');
  return { camera: camera!, ms: Date.parse(`${year}-${month}-${day}T${at}Z`) };
}

describe('recording from GStreamer', { skip: gstreamerMissing() }, () => {
  for (const transport of ['tcp', 'udp'] as const) {
    test(`${transport}: H.264 with AAC, H.265 with Opus, B-frames with G.711: every file plays, every session ends`, async (t) => {
      const directory = workspace(t);
      await using cameras = await GstreamerCameras.start([
        { name: 'gate', video: 'h264', audio: 'aac', auth: 'digest', ...LOGIN, gop: 25 },
        { name: 'yard', video: 'h265', audio: 'opus', gop: 25, width: 320, height: 180 },
        { name: 'hall', video: 'h264-b', audio: 'pcmu', gop: 25, width: 320, height: 180 },
      ]);
      await using recorder = await RecorderProcess.start({
        directory,
        config: {
          cameras: [
            { id: 'gate', name: 'Front gate', source: cameras.url('gate', LOGIN), transport },
            { id: 'yard', source: cameras.url('yard'), transport },
            { id: 'hall', source: cameras.url('hall'), transport },
          ],
          archive: { segmentDuration: '2s' },
        },
      });
      await recorder.untilRecording('gate', 'yard', 'hall');
      const count = (files: readonly string[], camera: string): number =>
        files.filter((file) => file.includes(`_${camera}_`)).length;
      await until('three files of each camera', async () => {
        const files = await recorder.files();
        return ['gate', 'yard', 'hall'].every((camera) => count(files, camera) >= 3);
      });
      assert.equal(await cameras.sessions(), 3, 'one session a camera');

      const ended = await recorder.stop();
      assert.deepEqual({ code: ended.code, signal: ended.signal }, { code: 0, signal: null }, recorder.child.output);
      assert.ok(ended.elapsedMs < 5_000, `stopped in ${ended.elapsedMs} ms`);
      await until('no session is left', async () => (await cameras.sessions()) === 0);

      const expected: Record<string, string[]> = {
        gate: ['h264', 'aac'],
        yard: ['hevc', 'opus'],
        hall: ['h264', 'flac'],
      };
      const files = await recorder.files();
      for (const camera of Object.keys(expected)) {
        const mine = files.filter((file) => startOf(file).camera === camera);
        let previousEndMs: number | undefined;
        for (const [i, file] of mine.entries()) {
          const path = join(recorder.recordPath, file);
          const { streams, durationSeconds } = await probe(path);
          assert.deepEqual(
            streams.map((stream) => stream.codec_name),
            expected[camera],
            file,
          );
          assert.equal(await decodingErrors(path), '', file);
          const boxes = await topLevelBoxes(path);
          assert.equal(boxes[0], 'ftyp', file);
          assert.equal(boxes.at(-1), 'moov', `${file} is finalised: ${boxes.join(' ')}`);
          assert.ok(!boxes.includes('moof'), `${file} shows no fragments: ${boxes.join(' ')}`);
          const startMs = startOf(file).ms;
          if (previousEndMs !== undefined) {
            const afterMs = startMs - previousEndMs;
            // The first pictures of a connection may have waited at the sender, and then the first file is dated late, and overlaps the second.
            const overlapMs = i === 1 ? 2_000 : 250;
            assert.ok(afterMs > -overlapMs && afterMs < 250, `${file} starts ${afterMs} ms after the end`);
          }
          const video = streams.find((stream) => stream.codec_type === 'video')!;
          const pictures = Number(video.nb_read_packets);
          assert.ok(
            Math.abs(pictures / 25 - Number(video.duration)) < 0.15,
            `${file}: ${pictures} in ${video.duration} s`,
          );
          previousEndMs = startMs + durationSeconds * 1000;
        }
        assert.ok(mine.length >= 3, camera);
      }
      assert.ok(files.every((file) => startOf(file).camera in expected));
    });
  }
});
