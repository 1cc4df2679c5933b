import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fakeVideo } from '../../test/support/recorded-file.ts';
import { workspace } from '../../test/support/workspace.ts';
import type { NalParameters } from '../codec/access-unit.ts';
import { Mp4Error } from './error.ts';
import { initSegment } from './init.ts';
import { parseAvcFields, parseHevcFields } from './parameter-sets.ts';
import { sampleEntry } from './sample-entry.ts';

/** The configuration box that ffmpeg writes, without fields in which unknown values are encoded differently. */
function encoded(directory: string, format: string, encoder: readonly string[], type: string): Buffer {
  const path = join(directory, 'encoded.mp4');
  // prettier-ignore
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc=size=162x98', '-frames:v', '2',
    '-pix_fmt', format, '-preset', 'ultrafast', ...encoder, path], { stdio: ['ignore', 'ignore', 'inherit'] });
  const bytes = readFileSync(path);
  const at = bytes.indexOf(type);
  return bytes.subarray(at + 4, at - 4 + bytes.readUInt32BE(at - 4));
}

const formats = [
  { format: 'yuv420p', profile: [] },
  { format: 'yuv420p10le', profile: [] },
  { format: 'yuv444p', profile: [] },
] as const;

for (const { format } of formats) {
  test(`H.264 ${format}: avcC is the one that ffmpeg writes`, (t) => {
    const expected = encoded(workspace(t), format, ['-c:v', 'libx264', '-x264-params', '8x8dct=1'], 'avcC');
    const spsLength = expected.readUInt16BE(6);
    const sps = expected.subarray(8, 8 + spsLength);
    const ppsLength = expected.readUInt16BE(9 + spsLength);
    const pps = expected.subarray(11 + spsLength, 11 + spsLength + ppsLength);
    const entry = sampleEntry({ ...fakeVideo(1).parameters, sps: [sps], pps: [pps] });
    const at = entry.indexOf('avcC');
    assert.deepEqual(entry.subarray(at + 4), expected);
  });

  test(`H.265 ${format}: hvcC says what ffmpeg says`, (t) => {
    const expected = encoded(
      workspace(t),
      format,
      ['-c:v', 'libx265', '-x265-params', 'log-level=none', '-tag:v', 'hvc1'],
      'hvcC',
    );
    const nals: Buffer[] = [];
    for (let at = 23; at < expected.length;) {
      const length = expected.readUInt16BE(at + 3);
      nals.push(expected.subarray(at + 5, at + 5 + length));
      at += 5 + length;
    }
    const [vps, sps, pps] = nals.map((nal) => [nal]) as [Buffer[], Buffer[], Buffer[]];
    const video: NalParameters = { ...fakeVideo(1).parameters, codec: 'h265', vps, sps, pps: pps };
    const entry = sampleEntry(video);
    const ours = entry.subarray(entry.indexOf('hvcC') + 4);
    assert.equal(entry.toString('latin1', 4, 8), 'hvc1');
    assert.deepEqual(ours.subarray(0, 13), expected.subarray(0, 13)); // profile, tier and level
    assert.deepEqual(ours.subarray(16, 19), expected.subarray(16, 19)); // sample format
    assert.equal(ours[21], expected[21]); // layers and length size
    for (const [i, type] of [32, 33, 34].entries()) {
      const array = Buffer.concat([Buffer.from([0x80 | type, 0, 1, 0, (nals[i] as Buffer).length]), nals[i] as Buffer]);
      assert.ok(ours.includes(array), `array ${type} is complete`);
    }
  });
}

test('parameter sets that end early or make no sense are refused', () => {
  const sps = Buffer.from('6764000aacd942846240000003004000000ca3c489658', 'hex');
  for (let end = 0; end < 5; end++) assert.throws(() => parseAvcFields(sps.subarray(0, end)), Mp4Error);
  for (let end = 0; end < 16; end++) assert.throws(() => parseHevcFields(sps.subarray(0, end)), Mp4Error);
  assert.throws(() => parseAvcFields(Buffer.from('6764000a000000000000', 'hex')), Mp4Error);
  assert.throws(() => sampleEntry({ ...fakeVideo(1).parameters, pps: [] }), Mp4Error);
});

test('an initialization segment is ftyp and a moov with mvex and no samples', () => {
  const init = initSegment([fakeVideo(1).parameters]);
  assert.equal(init.toString('latin1', 4, 12), 'ftypiso5');
  const moovAt = init.readUInt32BE(0);
  assert.equal(init.toString('latin1', moovAt + 4, moovAt + 8), 'moov');
  assert.equal(moovAt + init.readUInt32BE(moovAt), init.length);
  assert.ok(init.includes('trex'));
  assert.ok(!init.includes('avc1', 0, 'latin1') || init.indexOf('avc1') > moovAt, 'avc1 among the brands');
});

test('sample entry of MJPEG: mp4v whose esds says JPEG and no more', () => {
  const entry = sampleEntry({
    kind: 'video',
    codec: 'mjpeg',
    width: 320,
    height: 180,
    codecString: 'mp4v.6C',
    reorderDepth: 0,
  });
  assert.equal(entry.toString('latin1', 4, 8), 'mp4v');
  assert.deepEqual([entry.readUInt16BE(32), entry.readUInt16BE(34)], [320, 180]);
  // ES descriptor: length and tag of the decoder configuration; object type JPEG; stream type visual; sizes and rates unknown; no
  // specific information; SL configuration.
  assert.ok(entry.toString('hex').endsWith('048080800d6c110000000000000000000000068080800102'));
});

test('sample entry of AV1: av01 with the configuration as it is', () => {
  const config = Buffer.from('81000c000a0b00000004473e73ffe6c3', 'hex');
  const size = { width: 320, height: 180 };
  const entry = sampleEntry({
    kind: 'video',
    codec: 'av1',
    ...size,
    config,
    codecString: 'av01.0.00M.08',
    reorderDepth: 0,
  });
  assert.equal(entry.toString('latin1', 4, 8), 'av01');
  assert.equal(entry.toString('latin1', 90, 94), 'av1C');
  assert.deepEqual(entry.subarray(94), config);
});
