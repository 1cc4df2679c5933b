// A large archive for the listing part: whole finished files by the recorder's own writer, each with a short picture
// where hours of video would be (their length is what the file says about itself, not what it holds).

import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatPath } from '../../recorder/archive/names.ts';
import type { VideoParameters } from '../../recorder/codec/access-unit.ts';
import { VIDEO_TRACK_ID } from '../../recorder/mp4/fragment.ts';
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
