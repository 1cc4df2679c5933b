// A large archive for the listing part: whole finished files by the recorder's own writer, each with a short picture
// where hours of video would be (their length is what the file says about itself, not what it holds).

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatPath } from '../../recorder/archive/names.ts';
import type { AudioParameters, VideoParameters } from '../../recorder/codec/access-unit.ts';
import { AUDIO_TRACK_ID, VIDEO_TRACK_ID } from '../../recorder/mp4/fragment.ts';
import { VIDEO_TIMESCALE } from '../../recorder/mp4/sample.ts';
import { SegmentWriter } from '../../recorder/mp4/segment.ts';
import { cameraId } from './recorder.ts';

const SEGMENT_MS = 300_000;
const SAMPLE_BYTES = 64;

/** 1080p, main profile; as the bench's cameras send. */
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

export interface LargeArchive {
  readonly files: number;
  readonly cameras: number;
  /** The last whole UTC day of it, in epoch seconds. */
  readonly dayStart: number;
}

/** Fills `recordPath` with five-minute segments of `cameras` cameras that end about `endMs`. */
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

const FRAGMENT_MS = 900;
const FRAME_TICKS = 3_600;
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
 * A day of one camera in files of ordinary length, with a picture each 40 ms and AAC, whose samples are holes: what a
 * playlist is made from is there.
 */
export function writeDay(recordPath: string, camera: number, startMs: number, files: number): void {
  const id = cameraId(camera);
  for (let i = 0; i < files; i++) {
    const wallStartMs = startMs + i * SEGMENT_MS;
    const path = join(recordPath, formatPath({ name: `Bench-${camera}`, cameraId: id, startMs: wallStartMs }));
    mkdirSync(dirname(path), { recursive: true });
    writeHollowFile(path, id, i, wallStartMs);
  }
}

function writeHollowFile(path: string, id: string, sequence: number, wallStartMs: number): void {
  const runId = '00000000000000aa';
  const meta = { cameraId: id, runId, sequence, wallStartMs, clock: 'settled', gapBeforeMs: 0 } as const;
  const writer = new SegmentWriter([VIDEO, AUDIO], meta);
  const file = openSync(path, 'w');
  writeSync(file, writer.header());
  let picture = 0;
  let sound = 0;
  for (let ms = 0; ms < SEGMENT_MS; ms += FRAGMENT_MS) {
    const pictures = Math.min(SEGMENT_MS, ms + FRAGMENT_MS) / 40 - picture;
    const sounds = Math.floor((Math.min(SEGMENT_MS, ms + FRAGMENT_MS) * 48) / AUDIO_FRAME_TICKS) - sound;
    const position = writer.size;
    const head = writer.append([
      {
        trackId: VIDEO_TRACK_ID,
        baseDecodeTime: picture * FRAME_TICKS,
        samples: Array.from({ length: Math.ceil(pictures) }, (_, i) => ({
          size: PICTURE_BYTES,
          duration: FRAME_TICKS,
          compositionOffset: 0,
          // Each fragment begins with a key frame about once a second.
          sync: i === 0,
        })),
      },
      {
        trackId: AUDIO_TRACK_ID,
        baseDecodeTime: sound * AUDIO_FRAME_TICKS,
        samples: Array.from({ length: sounds }, () => ({
          size: AUDIO_BYTES,
          duration: AUDIO_FRAME_TICKS,
          compositionOffset: 0,
          sync: true,
        })),
      },
    ]);
    writeSync(file, head, 0, head.length, position);
    picture += Math.ceil(pictures);
    sound += sounds;
  }
  const { tail, patch } = writer.finish({ wallDurationMs: SEGMENT_MS });
  writeSync(file, tail, 0, tail.length, writer.size);
  writeSync(file, patch.bytes, 0, patch.bytes.length, patch.offset);
  closeSync(file);
}
