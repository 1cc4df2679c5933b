import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { VideoFrame, VideoMedia } from '../../../test/camera/media.ts';
import { audioMedia, videoMedia } from '../../../test/camera/media.ts';
import { decodePictures } from '../../../test/camera/frame-numbers.ts';
import { Footage, lengthPrefixed } from '../../../test/support/footage.ts';
import { SlabPool, SlabWriter, type MediaData } from '../../codec/slab.ts';
import { readSampleIndex, type TrackIndex } from '../../mp4/sample-index.ts';
import { AUDIO, bench, readSegment, runOf, segmentPaths, temporaryDirectory, type Bench } from '../test-support.ts';
import { parsePath, type SegmentName } from '../disk/names.ts';
import type { SegmentStore } from '../disk/segment-store.ts';
import { extendSegment, type Continuation } from './extend.ts';

const PICTURE_TICKS = 3_600;
const ADDED = 15;
/** Where the longer file is written. */
const REWRITES = '.kube-nvr/rewrite';

const writer = new SlabWriter(new SlabPool());

function dataOf(unit: Buffer): MediaData {
  writer.append(unit, 0, unit.length);
  return writer.finish();
}

/** A slice that says its time, as those of the test camera. */
function unitAt(dts: number): MediaData {
  const unit = Buffer.alloc(100, 0x55);
  unit.writeUInt32BE(unit.length - 4, 0);
  unit.writeUInt8(0x41, 4);
  unit.writeUIntBE(dts, 5, 6);
  return dataOf(unit);
}

/** A file of four and a half seconds whose camera is lost, and the pictures and sound that follow. */
async function lost(
  root: string,
  { sound = false, format, soundFrom = 0 }: { sound?: boolean; format?: 'mp4'; soundFrom?: number } = {},
): Promise<{ readonly stage: Bench; readonly path: string; readonly continuation: Continuation }> {
  const stage = await bench({ root, ...(format && { format }) });
  const { camera, fs, clock } = stage;
  camera.begin(runOf(sound ? { audio: AUDIO } : {}));
  await camera.play(4.6, fs);
  camera.end('camera-lost');
  await fs.idle();
  const [path = ''] = segmentPaths(root);
  const lastDts = camera.videoDts - PICTURE_TICKS;
  const wallMs = clock.wallMs();
  const pictures = Array.from({ length: ADDED }, (_, i) => ({
    data: unitAt(camera.videoDts + i * PICTURE_TICKS),
    ticks: (i + 1) * PICTURE_TICKS,
    wallMs: wallMs + i * 40,
  }));
  const sounds = Array.from({ length: sound ? 28 : 0 }, (_, i) => {
    const dts = camera.audioDts + (i + soundFrom) * 1024;
    return { data: unitAt(dts), ticks: (dts * 90_000) / AUDIO.sampleRate - lastDts, duration: 1024 };
  });
  const endTicks = (ADDED + 1) * PICTURE_TICKS;
  const continuation = { pictures, sounds, endTicks, wallEndMs: wallMs + ADDED * 40, seam: 'bytes' as const };
  return { stage, path, continuation };
}

const steps = (times: readonly number[]): number[] => [...new Set(times.slice(1).map((time, i) => time - times[i]!))];

test('pictures and sound are added at their times, and the file says from when on they are from the memory', async (t) => {
  const root = temporaryDirectory(t);
  const { stage, path, continuation } = await lost(root, { sound: true });
  const before = await readSegment(root, path);
  assert.equal(await stage.archive.extend(path, continuation), true);
  // What is read checks that each sample is at the time that its bytes say.
  const after = await readSegment(root, path);
  assert.equal(after.video.dts.length, before.video.dts.length + ADDED);
  assert.deepEqual(steps(after.video.dts), [PICTURE_TICKS]);
  assert.equal(after.video.endDts - before.video.endDts, ADDED * PICTURE_TICKS);
  assert.equal(after.audio!.dts.length, before.audio!.dts.length + continuation.sounds.length);
  assert.deepEqual(steps(after.audio!.dts), [1024]);
  assert.deepEqual(after.meta.edge, { fromMs: before.meta.wallStartMs + before.meta.wallDurationMs, seam: 'bytes' });
  assert.equal(after.meta.wallStartMs + after.meta.wallDurationMs, continuation.wallEndMs);
  await stage.archive.close();
});

test('sound that the file has already is not added once more', async (t) => {
  const root = temporaryDirectory(t);
  const { stage, path, continuation } = await lost(root, { sound: true, soundFrom: -3 });
  const before = await readSegment(root, path);
  await stage.archive.extend(path, continuation);
  const after = await readSegment(root, path);
  assert.equal(after.audio!.dts.length, before.audio!.dts.length + continuation.sounds.length - 3);
  assert.deepEqual(steps(after.audio!.dts), [1024]);
  await stage.archive.close();
});

test('a file is extended again: its pictures are from the memory from the first addition on', async (t) => {
  const root = temporaryDirectory(t);
  const { stage, path, continuation } = await lost(root);
  await stage.archive.extend(path, continuation);
  const once = await readSegment(root, path);
  const dts = stage.camera.videoDts + ADDED * PICTURE_TICKS;
  const { wallEndMs } = continuation;
  await stage.archive.extend(path, {
    pictures: [{ data: unitAt(dts), ticks: PICTURE_TICKS, wallMs: wallEndMs }],
    sounds: [],
    endTicks: 2 * PICTURE_TICKS,
    wallEndMs: wallEndMs + 40,
    seam: 'time',
  });
  const twice = await readSegment(root, path);
  assert.equal(twice.video.dts.length, once.video.dts.length + 1);
  assert.deepEqual(twice.meta.edge, once.meta.edge);
  await stage.archive.close();
});

test('a crash at any moment leaves the file as it was, or the longer one, and nothing else', async (t) => {
  const ends = { shorter: 0, longer: 0 };
  for (let moment = 0, isOver = false; !isOver; moment++) {
    const root = temporaryDirectory(t);
    const { stage, path, continuation } = await lost(root, { sound: true });
    const before = await readSegment(root, path);
    stage.fs.killAfter(moment, 37);
    await stage.archive.extend(path, continuation).catch(() => {});
    await stage.fs.idle();
    isOver = !stage.fs.killed;
    await stage.archive.close().catch(() => {});
    const { archive } = await bench({ root });
    const after = await readSegment(root, path);
    const added = after.video.dts.length - before.video.dts.length;
    if (added === 0) assert.deepEqual(after, before);
    else assert.deepEqual([added, after.meta.edge?.seam], [ADDED, 'bytes']);
    ends[added === 0 ? 'shorter' : 'longer']++;
    assert.deepEqual(segmentPaths(root), [path]);
    assert.deepEqual(readdirSync(join(root, REWRITES)), []);
    await archive.close();
  }
  assert.ok(ends.shorter > 5 && ends.longer >= 2, JSON.stringify(ends));
});

test('a file with its index in front is left as it is', async (t) => {
  const root = temporaryDirectory(t);
  const { stage, path, continuation } = await lost(root, { format: 'mp4' });
  const before = readFileSync(join(root, path));
  assert.equal(await stage.archive.extend(path, continuation), false);
  assert.deepEqual(readFileSync(join(root, path)), before);
  await stage.archive.close();
});

test('a file of more than 1 GiB is left as it is', async (t) => {
  const root = temporaryDirectory(t);
  const { stage, path, continuation } = await lost(root);
  await stage.archive.close();
  const store = {
    fs: stage.fs,
    locate: async (name: string) => join(root, name),
    replace: () => Promise.reject(new Error('it is copied')),
  } as unknown as SegmentStore;
  const extend = () => extendSegment(store, parsePath(path) as SegmentName, continuation);
  growTo(join(root, path), 1024 ** 3);
  await assert.rejects(extend(), /it is copied/);
  growTo(join(root, path), 1024 ** 3 + 1);
  assert.equal(await extend(), undefined);
});

/** Moves the index of a complete file further from its fragments, without writing what is between. */
function growTo(path: string, sizeBytes: number): void {
  const file = openSync(path, 'r+');
  const { size } = fstatSync(file);
  const head = Buffer.alloc(16);
  const read = (position: number, bytes: Buffer): Buffer => (readSync(file, bytes, 0, bytes.length, position), bytes);
  // The box behind `ftyp` covers everything up to the index.
  const mediaAt = read(0, head).readUInt32BE(0);
  read(mediaAt, head);
  const isLong = head.readUInt32BE(0) === 1;
  const mediaBytes = isLong ? Number(head.readBigUInt64BE(8)) : head.readUInt32BE(0);
  const index = read(mediaAt + mediaBytes, Buffer.alloc(size - mediaAt - mediaBytes));
  const grownBytes = sizeBytes - index.length - mediaAt;
  if (isLong) head.writeBigUInt64BE(BigInt(grownBytes), 8);
  else head.writeUInt32BE(grownBytes, 0);
  writeSync(file, head, 0, 16, mediaAt);
  writeSync(file, index, 0, index.length, mediaAt + grownBytes);
  closeSync(file);
}

/** Records pictures that end within a group, and adds the rest of it. */
async function completedGroup(t: TestContext, video: VideoMedia, hasSound: boolean): Promise<[string, number]> {
  const footage = await Footage.open(t);
  const audio = hasSound ? await audioMedia('aac') : undefined;
  const startMs = footage.clock.wallMs();
  const camera = footage.camera({ video, ...(audio ? { audio } : {}) });
  camera.begin();
  await camera.play(2.4);
  camera.end('camera-lost');
  await footage.fs.idle();
  const [path = ''] = segmentPaths(footage.root);
  const recorded = 60;
  const end = video.frames.findIndex(({ key }, i) => key && i >= recorded);
  const last = video.frames[recorded - 1] as VideoFrame;
  const ticksTo = ({ pts90k }: VideoFrame): number => pts90k - last.pts90k;
  const wallOf = ({ pts90k }: VideoFrame): number => startMs + pts90k / 90;
  const next = video.frames[end] as VideoFrame;
  const firstSound = Math.ceil((2.4 * 16_000) / 1024);
  const lastSound = Math.floor((next.pts90k / 90_000) * 16) * (1000 / 1024);
  const sounds = (audio?.frames ?? []).slice(firstSound, lastSound).map(({ data, pts }) => ({
    data: dataOf(data),
    ticks: (pts * 90_000) / 16_000 - last.pts90k,
    duration: 1024,
  }));
  const isExtended = await footage.archive.extend(path, {
    pictures: video.frames.slice(recorded, end).map((frame) => ({
      data: dataOf(lengthPrefixed(frame.nals)),
      ticks: ticksTo(frame),
      wallMs: wallOf(frame),
    })),
    sounds,
    endTicks: ticksTo(next),
    wallEndMs: wallOf(next),
    seam: 'bytes',
  });
  assert.equal(isExtended, true);
  return [join(footage.root, path), end];
}

async function tracksOf(path: string): Promise<readonly TrackIndex[]> {
  const bytes = readFileSync(path);
  const read = async (offset: number, length: number): Promise<Buffer> => bytes.subarray(offset, offset + length);
  return (await readSampleIndex(read, bytes.length)).tracks;
}

for (const [name, hasSound] of [
  ['h264', false],
  ['h264-bframes', false],
  ['h265', true],
  ['h265-layers', false],
] as const) {
  test(`${name}${hasSound ? ' with sound' : ''}: the group of pictures that was cut can be decoded to its end`, async (t) => {
    const [path, end] = await completedGroup(t, await videoMedia(name), hasSound);
    const { numbers, complaints } = await decodePictures(path);
    assert.equal(complaints, '');
    assert.deepEqual(
      numbers,
      Array.from({ length: end }, (_, i) => i),
    );
    const audio = (await tracksOf(path)).find(({ header }) => header.kind === 'audio');
    if (audio) assert.deepEqual(steps([...audio.dts]), [1024]);
    assert.equal(audio !== undefined, hasSound);
  });
}
