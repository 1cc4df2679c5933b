import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { EncodedSample } from '../../test/support/encoded-samples.ts';
import { encodeAudio, encodeVideo, probePackets } from '../../test/support/encoded-samples.ts';
import { RecordedFile, fakeAudio, fakeVideo, meta, readFrom } from '../../test/support/recorded-file.ts';
import { workspace } from '../../test/support/workspace.ts';
import type { VideoParameters } from '../codec/access-unit.ts';
import { initSegment } from './init.ts';
import { paceOf } from './meta.ts';
import { readMeta } from './reader.ts';
import { readSampleIndex } from './sample-index.ts';
import { SegmentWriter } from './segment.ts';

const BASELINE = { codec: 'h264', encoderParameters: 'keyint=25', extra: ['-profile:v', 'baseline'] } as const;
const B_PYRAMID = { codec: 'h264', encoderParameters: 'keyint=25:bframes=3:b-pyramid=normal:b-adapt=0' } as const;
const HEVC = { codec: 'h265', encoderParameters: 'keyint=25:bframes=3:open-gop=0' } as const;

const combinations = [
  { name: 'H.264 baseline and AAC', video: BASELINE, audio: 'aac' },
  { name: 'H.264 with B pyramid and Opus', video: B_PYRAMID, audio: 'opus' },
  { name: 'H.265 and FLAC', video: HEVC, audio: 'flac' },
  { name: 'H.264 baseline and MP2', video: BASELINE, audio: 'mp2' },
  { name: 'H.264 with B pyramid and MP3', video: B_PYRAMID, audio: 'mp3' },
] as const;

for (const { name, video: videoOptions, audio: audioCodec } of combinations) {
  test(`${name}: every packet is read back from the open, the finished and the progressive file`, (t) => {
    const directory = workspace(t);
    const video = encodeVideo(directory, videoOptions);
    const audio = encodeAudio(directory, audioCodec);
    const file = RecordedFile.of(video, audio);

    const open = join(directory, 'open.mp4');
    writeFileSync(open, file.bytes);
    assert.deepEqual(timesOf(open, 0), video.samples.map(expected(0)));
    assert.deepEqual(timesOf(open, 1), audio.samples.map(expected(0)));
    assertDecodes(open);

    const progressive = join(directory, 'progressive.mp4');
    writeFileSync(progressive, file.progressive());
    const finished = join(directory, 'finished.mp4');
    file.finish();
    writeFileSync(finished, file.bytes);
    // The movie starts with the first picture shown; in the completed file, by its edit list.
    const start = video.samples[0]?.compositionOffset ?? 0;
    const audioStart = (start * audio.parameters.sampleRate) / 90_000;
    for (const path of [finished, progressive]) {
      assert.deepEqual(timesOf(path, 0), video.samples.map(expected(start)));
      assert.deepEqual(timesOf(path, 1), audio.samples.map(expected(audioStart)));
      assertDecodes(path);
      assert.equal(decodedFrames(path), video.samples.length);
      assert.match(execFileSync('mediainfo', [path], { encoding: 'utf8' }), /Duration +: 2 s/);
    }
  });
}

test('composition offsets may be negative', (t) => {
  const directory = workspace(t);
  const encoded = encodeVideo(directory, B_PYRAMID);
  const delay = encoded.samples[0]?.compositionOffset ?? 0;
  const samples = encoded.samples.map((sample) => ({ ...sample, compositionOffset: sample.compositionOffset - delay }));
  assert.ok(samples.some((sample) => sample.compositionOffset < 0));
  const file = RecordedFile.of({ ...encoded, samples }, undefined);
  file.finish();
  const path = join(directory, 'negative.mp4');
  writeFileSync(path, file.bytes);
  // ffprobe makes up its own decoding times if there are negative offsets.
  const shown = (times: readonly { pts: number; size: number }[]): unknown =>
    times.map(({ pts, size }) => ({ pts, size }));
  assert.deepEqual(
    shown(probePackets(path)),
    shown(samples.map((s) => ({ pts: s.dts + s.compositionOffset, size: s.size }))),
  );
  assertDecodes(path);
  assert.equal(decodedFrames(path), samples.length);
});

test('audio that begins late starts late in the finished file', (t) => {
  const directory = workspace(t);
  const audio = encodeAudio(directory, 'aac', 1);
  const late = { ...audio, samples: audio.samples.map((sample) => ({ ...sample, dts: sample.dts + 24_000 })) };
  const file = RecordedFile.of(encodeVideo(directory, BASELINE), late);
  file.finish();
  const path = join(directory, 'late.mp4');
  writeFileSync(path, file.bytes);
  assert.deepEqual(timesOf(path, 1), late.samples.map(expected(0)));
  assertDecodes(path);
});

test('leading pictures of an open GOP that begins a file are hidden', async (t) => {
  const directory = workspace(t);
  const encoded = encodeVideo(directory, {
    codec: 'h265',
    encoderParameters: 'keyint=10:bframes=3:open-gop=1:b-adapt=0',
  });
  const second = encoded.samples.findIndex((sample, i) => i > 0 && sample.sync);
  const zero = encoded.samples[second]?.dts ?? 0;
  const samples = encoded.samples.slice(second).map((sample) => ({ ...sample, dts: sample.dts - zero }));
  const start = samples[0]?.compositionOffset ?? 0;
  const leading = samples.filter((sample) => sample.dts + sample.compositionOffset < start).length;
  assert.ok(leading > 0, 'the encoder made no leading pictures');
  const file = RecordedFile.of({ ...encoded, samples }, undefined);
  file.finish();
  const path = join(directory, 'open-gop.mp4');
  writeFileSync(path, file.bytes);
  assert.equal(decodedFrames(path), samples.length - leading);
  const shown = execFileSync('ffprobe', ['-v', 'error', '-show_entries', 'frame=pts', '-of', 'csv=p=0', path], {
    encoding: 'utf8',
  });
  assert.equal(Number.parseInt(shown, 10), 0);
  const { tracks } = await readSampleIndex(...readFrom(file.bytes));
  assert.equal(tracks[0]?.dts[0], -start);
});

test('parameter sets that change in band play under the first sample entry, at the largest size', (t) => {
  const directory = workspace(t);
  // Repeated headers: each key frame has its own parameter sets.
  const small = encodeVideo(directory, { ...BASELINE, encoderParameters: 'keyint=25:repeat-headers=1', frames: 25 });
  const large = encodeVideo(directory, {
    ...BASELINE,
    encoderParameters: 'keyint=25:repeat-headers=1',
    frames: 25,
    size: '320x192',
  });
  const file = RecordedFile.of(small, undefined);
  file.writer.change(large.parameters);
  file.append(large.samples.map((sample) => ({ ...sample, dts: sample.dts + 25 * 3600 })));
  assert.equal(file.finish().meta.setsInEntry, undefined, 'readers look for them at the key frames');
  const path = join(directory, 'change.mp4');
  writeFileSync(path, file.bytes);
  assertDecodes(path);
  assert.equal(decodedFrames(path), 50);
  const tkhd = file.bytes.lastIndexOf('tkhd');
  assert.equal(file.bytes.readUInt32BE(tkhd + 80) / 0x10000, 320);
  assert.equal(file.bytes.readUInt32BE(tkhd + 84) / 0x10000, 192);
});

test('a pixel aspect that is not square stretches the picture', (t) => {
  const directory = workspace(t);
  const encoded = encodeVideo(directory, { ...BASELINE, frames: 2 });
  const parameters: VideoParameters = { ...encoded.parameters, pixelAspect: { horizontal: 4, vertical: 3 } };
  const file = RecordedFile.of({ ...encoded, parameters }, undefined);
  file.finish();
  const path = join(directory, 'aspect.mp4');
  writeFileSync(path, file.bytes);
  const probed = execFileSync(
    'ffprobe',
    ['-v', 'error', '-show_entries', 'stream=sample_aspect_ratio,display_aspect_ratio', '-of', 'csv=p=0', path],
    { encoding: 'utf8' },
  );
  assert.equal(probed.trim(), '4:3,20:9');
});

test('what a file says about itself is there when it is opened and complete when it is closed', async () => {
  const file = RecordedFile.of(fakeVideo(50), fakeAudio(90));
  const tracks = [
    { kind: 'video', codecString: 'avc1.42c00a', width: 160, height: 96, sampleRate: 0, channels: 0 },
    { kind: 'audio', codecString: 'mp4a.40.2', width: 0, height: 0, sampleRate: 48_000, channels: 1 },
  ];
  const opened = { ...meta, wallDurationMs: 1_000, mediaDurationMs: 1_000, lostPackets: 0, tracks };
  assert.deepEqual(await readMeta(...readFrom(file.bytes)), { kind: 'open', meta: opened });
  file.finish({ wallDurationMs: 2000.25, lostPackets: 3, clock: 'settled', wallStartMs: meta.wallStartMs + 1.5 });
  const closed = {
    ...opened,
    wallStartMs: meta.wallStartMs + 1.5,
    clock: 'settled',
    wallDurationMs: 2000.25,
    mediaDurationMs: 2000,
    lostPackets: 3,
    setsInEntry: true,
  };
  assert.deepEqual(await readMeta(...readFrom(file.bytes)), { kind: 'finalized', meta: closed });
});

test('a file that is completed by others has the pace with which it was opened', async () => {
  const { parameters, samples } = fakeVideo(50);
  const file = new RecordedFile([parameters], new SegmentWriter([parameters], { ...meta, pace: 1.02 }));
  file.append(samples);
  const opened = await readMeta(...readFrom(file.bytes));
  assert.ok(opened.kind === 'open' && opened.meta);
  assert.equal(paceOf(opened.meta), 1.02);
  assert.ok(Math.abs(file.finish().meta.wallDurationMs - 2_040) < 1e-3);
});

test('an audio track without samples is left out of the finished file', async () => {
  const file = new RecordedFile([fakeVideo(1).parameters, fakeAudio(1).parameters]);
  file.append(fakeVideo(25).samples);
  const { meta: closed } = file.finish();
  assert.deepEqual(
    closed.tracks.map((track) => track.kind),
    ['video'],
  );
  const index = await readSampleIndex(...readFrom(file.bytes));
  assert.deepEqual(
    index.tracks.map((track) => track.header.kind),
    ['video'],
  );
});

test('a hole between fragments becomes the duration of the sample before it', async () => {
  const file = RecordedFile.of(fakeVideo(25), undefined);
  file.append(fakeVideo(25).samples.map((sample) => ({ ...sample, dts: sample.dts + 180_000 })));
  file.finish();
  const { tracks } = await readSampleIndex(...readFrom(file.bytes));
  assert.deepEqual([...(tracks[0]?.dts.slice(23, 27) ?? [])], [23 * 3600, 24 * 3600, 180_000, 183_600]);
});

test('rollback forgets what a failed write did not bring to the disk', async () => {
  const whole = RecordedFile.of(fakeVideo(25), fakeAudio(40));
  const sizeBefore = whole.bytes.length;
  const failed = RecordedFile.of(fakeVideo(25), fakeAudio(40));
  const later = fakeVideo(25).samples.map((sample) => ({ ...sample, dts: sample.dts + 25 * 3600 }));
  failed.append(later.slice(0, 10));
  failed.append(later.slice(10));
  assert.equal(failed.writer.rollback(sizeBefore + 5), sizeBefore);
  failed.bytes = failed.bytes.subarray(0, sizeBefore);
  for (const file of [whole, failed]) {
    file.append(later);
    file.finish();
  }
  assert.deepEqual(await readSampleIndex(...readFrom(failed.bytes)), await readSampleIndex(...readFrom(whole.bytes)));
});

test('reset starts a file like the first', () => {
  const reused = RecordedFile.of(fakeVideo(75), fakeAudio(140));
  reused.writer.reset([fakeVideo(1).parameters, fakeAudio(1).parameters], meta);
  const again = new RecordedFile([fakeVideo(1).parameters, fakeAudio(1).parameters], reused.writer);
  again.appendAll(fakeVideo(50), fakeAudio(90));
  again.finish();
  const fresh = RecordedFile.of(fakeVideo(50), fakeAudio(90));
  fresh.finish();
  assert.deepEqual(again.bytes, fresh.bytes);
});

test('a file beyond 4 GiB lists its samples with 64-bit offsets', async () => {
  const writer = new SegmentWriter([fakeVideo(1).parameters], meta);
  const start = writer.header();
  const big = { size: 0x70000000, duration: 3600, compositionOffset: 0, sync: true };
  for (let i = 0; i < 4; i++) writer.append([{ trackId: 1, baseDecodeTime: i * 3600, samples: [big] }]);
  const fileSize = writer.size;
  const { tail, patch } = writer.finish();
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const head = Buffer.from(start);
    patch.bytes.copy(head, patch.offset);
    if (offset >= fileSize) return tail.subarray(offset - fileSize, offset - fileSize + length);
    return Buffer.concat([head, Buffer.alloc(4096)]).subarray(offset, offset + length);
  };
  const { tracks } = await readSampleIndex(read, fileSize + tail.length);
  const offsets = [...(tracks[0]?.offsets ?? [])];
  assert.equal(offsets.length, 4);
  assert.equal((offsets[3] as number) - (offsets[0] as number), 3 * (0x70000000 + 112));
});

const expected =
  (start: number) =>
  (sample: EncodedSample): unknown => ({
    dts: sample.dts - start,
    pts: sample.dts + sample.compositionOffset - start,
    size: sample.size,
    sync: sample.sync,
  });

const timesOf = (path: string, stream: number): unknown[] =>
  probePackets(path, stream).map(({ pts, dts, size, flags }) => ({ dts, pts, size, sync: flags.startsWith('K') }));

/** ffmpeg decodes the whole file without any message. */
function assertDecodes(path: string): void {
  const said = execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', path, '-f', 'null', '-'], { encoding: 'utf8' });
  assert.equal(said, '');
}

const decodedFrames = (path: string): number =>
  Number(
    execFileSync(
      'ffprobe',
      [
        '-v',
        'error',
        '-count_frames',
        '-select_streams',
        'v',
        '-show_entries',
        'stream=nb_read_frames',
        '-of',
        'csv=p=0',
        path,
      ],
      { encoding: 'utf8' },
    ),
  );

test('the headers of open files and streams keep no more memory than they are long', () => {
  const video = fakeVideo(1).parameters;
  for (const bytes of [new SegmentWriter([video], meta).header(), initSegment([video])]) {
    assert.equal(bytes.buffer.byteLength, bytes.length);
  }
});
