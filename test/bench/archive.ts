// Makes large archives for the bench: complete files written by the recorder's own writer. Files with a short picture stand for
// hours of video (their duration is what their metadata says).

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatPath, type SegmentName } from '../../recorder/archive/disk/names.ts';
import type { AudioParameters, VideoParameters } from '../../recorder/codec/access-unit.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID, type FragmentSample } from '../../recorder/mp4/fragment.ts';
import { VIDEO_TIMESCALE } from '../../recorder/mp4/sample.ts';
import { SegmentWriter } from '../../recorder/mp4/segment.ts';
import type { Encoded, EncodedSample } from '../support/encoded-samples.ts';
import { cameraId } from './recorder.ts';

const SEGMENT_MS = 300_000;
export const SEGMENT_SECONDS = SEGMENT_MS / 1000;
const SAMPLE_BYTES = 64;

/** 1080p, main profile, like the bench's cameras. */
export const VIDEO: VideoParameters = {
  kind: 'video',
  codec: 'h264',
  width: 1920,
  height: 1080,
  vps: [],
  sps: [Buffer.from('674d40289a6280780227e5ffc3ffc3fd8088000003000800000301916800f424000f427bdf0501e30632c0', 'hex')],
  pps: [Buffer.from('68ee3c80', 'hex')],
  codecString: 'avc1.4d4028',
  reorderDepth: 0,
};

interface LargeArchive {
  readonly files: number;
  readonly cameras: number;
  /** The last whole UTC day of it, in epoch seconds. */
  readonly dayStart: number;
}

/** Fills `recordPath` with five-minute segments of `cameras` cameras that end at about `endMs`. */
export function writeArchive(recordPath: string, cameras: number, files: number, endMs: number): LargeArchive {
  const perCamera = Math.ceil(files / cameras);
  const last = Math.floor(endMs / SEGMENT_MS) * SEGMENT_MS;
  const made = new Set<string>();
  for (let i = 0; i < perCamera; i++) {
    const wallStartMs = last - (perCamera - i) * SEGMENT_MS;
    for (let camera = 0; camera < cameras; camera++) {
      const id = cameraId(camera);
      const path = join(recordPath, formatPath({ name: `Bench-${camera}`, cameraId: id, startMs: wallStartMs }));
      const directory = dirname(path);
      if (!made.has(directory)) mkdirSync(directory, { recursive: true });
      made.add(directory);
      writeFile(path, id, i, wallStartMs);
    }
  }
  const dayStart = Math.floor(last / 86_400_000) * 86_400 - 86_400;
  return { files: perCamera * cameras, cameras, dayStart };
}

function writeFile(path: string, id: string, sequence: number, wallStartMs: number): void {
  const meta = {
    cameraId: id,
    runId: '00000000000000aa',
    sequence,
    wallStartMs,
    clock: 'settled',
    gapBeforeMs: 0,
  } as const;
  const writer = new SegmentWriter([VIDEO], meta);
  const sample = {
    size: SAMPLE_BYTES,
    duration: (SEGMENT_MS / 1000) * VIDEO_TIMESCALE,
    compositionOffset: 0,
    sync: true,
  };
  const fragment = writer.append([{ trackId: VIDEO_TRACK_ID, baseDecodeTime: 0, samples: [sample] }]);
  const { tail, patch } = writer.finish({ wallDurationMs: SEGMENT_MS });
  const bytes = Buffer.concat([writer.header(), fragment, Buffer.alloc(SAMPLE_BYTES), tail]);
  patch.bytes.copy(bytes, patch.offset);
  const file = openSync(path, 'w');
  writeSync(file, bytes);
  closeSync(file);
}

const FRAGMENT_MS = 800;
const FRAME_MS = 40;
const AUDIO_SAMPLE_RATE = 48_000;
const AUDIO_FRAME_TICKS = 1_024;
const PICTURE_BYTES = 20_000;
const AUDIO_BYTES = 200;

const AUDIO: AudioParameters = {
  kind: 'audio',
  codec: 'aac',
  sampleRate: AUDIO_SAMPLE_RATE,
  channels: 1,
  config: Buffer.from('1188', 'hex'),
  codecString: 'mp4a.40.2',
};

/**
 * One day of a camera in files of ordinary length, with a picture every 40 ms and AAC. The samples are holes: the files have only
 * what a playlist needs.
 */
export function writeDay(recordPath: string, camera: number, startMs: number, files: number): void {
  for (let i = 0; i < files; i++) writeOrdinaryFile(recordPath, camera, i, startMs + i * SEGMENT_MS, undefined);
}

/** The same with samples that repeat `bytes`. Returns the paths relative to the record path. */
export function writeFullFiles(recordPath: string, camera: number, files: number, bytes: Buffer): string[] {
  const startMs = Date.UTC(2026, 0, 1);
  return Array.from({ length: files }, (_, i) =>
    writeOrdinaryFile(recordPath, camera, i, startMs + i * SEGMENT_MS, bytes),
  );
}

function writeOrdinaryFile(
  recordPath: string,
  camera: number,
  sequence: number,
  wallStartMs: number,
  bytes: Buffer | undefined,
): string {
  const id = cameraId(camera);
  const path = formatPath({ name: `Bench-${camera}`, cameraId: id, startMs: wallStartMs });
  mkdirSync(dirname(join(recordPath, path)), { recursive: true });
  const runId = '00000000000000aa';
  const meta = { cameraId: id, runId, sequence, wallStartMs, clock: 'settled', gapBeforeMs: 0 } as const;
  const writer = new SegmentWriter([VIDEO, AUDIO], meta);
  const file = openSync(join(recordPath, path), 'w');
  const write = (data: Buffer, position: number): void => void writeSync(file, data, 0, data.length, position);
  write(writer.header(), 0);
  let pictures = 0;
  let sounds = 0;
  for (let ms = FRAGMENT_MS; ms <= SEGMENT_MS; ms += FRAGMENT_MS) {
    const head = writer.size;
    const video = samples(Math.floor(ms / FRAME_MS) - pictures, PICTURE_BYTES, FRAME_MS * 90, (i) => i === 0);
    const audio = samples(
      Math.floor((ms * 48) / AUDIO_FRAME_TICKS) - sounds,
      AUDIO_BYTES,
      AUDIO_FRAME_TICKS,
      () => true,
    );
    const bytesOfHead = writer.append([
      { trackId: VIDEO_TRACK_ID, baseDecodeTime: pictures * FRAME_MS * 90, samples: video },
      { trackId: AUDIO_TRACK_ID, baseDecodeTime: sounds * AUDIO_FRAME_TICKS, samples: audio },
    ]);
    write(bytesOfHead, head);
    pictures += video.length;
    sounds += audio.length;
    if (bytes) fill(head + bytesOfHead.length, writer.size, bytes, write);
  }
  const { tail, patch } = writer.finish({ wallDurationMs: SEGMENT_MS });
  write(tail, writer.size);
  write(patch.bytes, patch.offset);
  closeSync(file);
  return path;
}

/** Writes `bytes` repeatedly from `from` to `to`. */
function fill(from: number, to: number, bytes: Buffer, write: (data: Buffer, position: number) => void): void {
  for (let at = from; at < to; at += bytes.length) write(bytes.subarray(0, to - at), at);
}

const samples = (count: number, size: number, duration: number, sync: (i: number) => boolean): FragmentSample[] =>
  Array.from({ length: count }, (_, i) => ({ size, duration, compositionOffset: 0, sync: sync(i) }));

/** Decodable files of ordinary length: a clip of whole groups of pictures, repeated; one run; fragments of one second. */
export function writeFootage(
  recordPath: string,
  camera: number,
  files: number,
  startMs: number,
  { parameters, samples: clip }: Encoded<VideoParameters>,
): void {
  const id = cameraId(camera);
  const perFragment = 1000 / FRAME_MS;
  for (let sequence = 0; sequence < files; sequence++) {
    const wallStartMs = startMs + sequence * SEGMENT_MS;
    const path = join(recordPath, formatPath({ name: `Bench-${camera}`, cameraId: id, startMs: wallStartMs }));
    mkdirSync(dirname(path), { recursive: true });
    const runId = '00000000000000aa';
    const meta = { cameraId: id, runId, sequence, wallStartMs, clock: 'settled', gapBeforeMs: 0 } as const;
    const writer = new SegmentWriter([parameters], meta);
    const file = openSync(path, 'w');
    writeSync(file, writer.header());
    for (let at = 0; at * FRAME_MS < SEGMENT_MS; at += perFragment) {
      const pictures = Array.from({ length: perFragment }, (_, i) => clip[(at + i) % clip.length] as EncodedSample);
      const track = { trackId: VIDEO_TRACK_ID, baseDecodeTime: at * FRAME_MS * 90, samples: pictures };
      writeSync(file, Buffer.concat([writer.append([track]), ...pictures.map(({ bytes }) => bytes)]));
    }
    const { tail, patch } = writer.finish({ wallDurationMs: SEGMENT_MS });
    writeSync(file, tail);
    writeSync(file, patch.bytes, 0, patch.bytes.length, patch.offset);
    closeSync(file);
  }
}

/** Files of `bytes` that are no recordings, named as segments of five minutes up to `endMs`; their paths, oldest first. */
export function writeSegments(
  root: string,
  cameras: number,
  files: number,
  endMs: number,
  bytes: number,
  made: (segment: SegmentName) => void = () => {},
): string[] {
  const block = Buffer.alloc(bytes, 1);
  const paths: string[] = [];
  const days = new Set<string>();
  const perCamera = Math.ceil(files / cameras);
  const last = Math.floor(endMs / SEGMENT_MS) * SEGMENT_MS;
  for (let i = 0; i < perCamera; i++) {
    const startMs = last - (perCamera - i) * SEGMENT_MS;
    for (let camera = 0; camera < cameras; camera++) {
      const segment = { name: `Bench-${camera}`, cameraId: cameraId(camera), startMs };
      const path = join(root, formatPath(segment));
      const day = dirname(path);
      if (!days.has(day)) mkdirSync(day, { recursive: true });
      days.add(day);
      const fd = openSync(path, 'w');
      if (bytes > 0) writeSync(fd, block);
      closeSync(fd);
      paths.push(path);
      made(segment);
    }
  }
  return paths;
}
