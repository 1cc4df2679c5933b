import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { crc32 } from 'node:zlib';
import { VIDEO_TRACK_ID } from '../../recorder/mp4/fragment.ts';
import { SegmentWriter } from '../../recorder/mp4/segment.ts';
import { VIDEO } from './archive.ts';
import type { Media } from './media.ts';
import type { SentStats } from './sender.ts';
import { judge, readMark, readRecorded } from './verify.ts';

const slices = [0, 1, 2].map((i) => Buffer.from([i === 0 ? 0x65 : 0x41, 0x80, i, i, i]));
const media: Media = {
  path: '',
  pictures: slices.map((slice) => crc32(slice)),
  audio: [10, 11, 12],
  bytesPerSecond: 0,
  packetsPerSecond: 0,
};

const nal = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);

function picture(frame: number): Buffer {
  const mark = `knvr-bench-frame007:${String(frame).padStart(8, '0')}:${String(123).padStart(19, '0')};`;
  return Buffer.concat([nal(Buffer.from(`\x06\x05${mark}`, 'latin1')), nal(slices[frame % 3] as Buffer)]);
}

/** A complete recording with these pictures in one fragment. */
function record(t: TestContext, pictures: readonly Buffer[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'verify-test-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const writer = new SegmentWriter([VIDEO], {
    cameraId: 'a',
    runId: '00000000000000aa',
    sequence: 0,
    wallStartMs: 0,
    clock: 'settled',
    gapBeforeMs: 0,
  });
  const samples = pictures.map((bytes) => ({ size: bytes.length, duration: 3600, compositionOffset: 0, sync: true }));
  const head = writer.append([{ trackId: VIDEO_TRACK_ID, baseDecodeTime: 0, samples }]);
  const { tail, patch } = writer.finish();
  const file = Buffer.concat([writer.header(), head, ...pictures, tail]);
  patch.bytes.copy(file, patch.offset);
  const path = join(directory, 'a.mp4');
  writeFileSync(path, file);
  return path;
}

const sent = (firstKeyFrame: number, lastFrame: number): SentStats => ({
  camera: 7,
  firstFrame: firstKeyFrame,
  firstKeyFrame,
  lastFrame,
  audioFrames: 0,
  dropped: 0,
  queued: 0,
  bytes: 0,
  writes: 0,
  packets: 0,
  open: true,
});

test('a mark tells camera, picture and time', () => {
  assert.deepEqual(readMark(picture(41)), { camera: 7, frame: 41, sentNs: 123n, at: 6 });
  assert.equal(readMark(Buffer.from('no mark here')), undefined);
});

test('pictures that are in the file and whole are found', (t) => {
  const recorded = readRecorded([record(t, [picture(3), picture(4), picture(5)])], media);
  assert.deepEqual(recorded, { frames: [3, 4, 5], torn: 0, audio: [] });
  assert.deepEqual(judge(recorded, [sent(3, 5)], media), { sent: 3, lost: 0, torn: 0, disordered: 0, audioLost: 0 });
});

test('a picture with one other byte is torn, one that is missing is lost, one that comes twice is out of order', (t) => {
  const damaged = picture(4);
  damaged[damaged.length - 1] = 0xff;
  const recorded = readRecorded([record(t, [picture(3), damaged, picture(6), picture(6)])], media);
  const verdict = judge({ ...recorded, audio: [0, 1, 2] }, [sent(3, 7)], media);
  assert.deepEqual(verdict, { sent: 5, lost: 2, torn: 1, disordered: 1, audioLost: 0 });
});

test('audio frames that are missing are counted, within the loop and beside the pictures', () => {
  const hole = { frames: [0], torn: 0, audio: [0, 1, 0, 1] };
  assert.equal(judge(hole, [sent(0, 0)], media).audioLost, 1);
  const silent = { frames: Array.from({ length: 300 }, (_, i) => i), torn: 0, audio: [] };
  assert.equal(judge(silent, [sent(0, 299)], media).audioLost, 296);
});
