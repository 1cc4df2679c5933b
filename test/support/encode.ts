// Small real streams for tests, made by ffmpeg at run time: numbered moving pictures and a tone.

import { spawnSync } from 'node:child_process';

export function ffmpeg(args: readonly string[], input?: Buffer): Buffer {
  const result = spawnSync('ffmpeg', ['-hide_banner', '-v', 'error', '-nostdin', '-y', ...args], {
    ...(input ? { input } : {}),
    maxBuffer: 64 * 1024 * 1024,
  });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`ffmpeg failed: ${result.stderr.toString()}`);
  return result.stdout;
}

interface VideoEncode {
  readonly codec: 'h264' | 'h265';
  readonly frames?: number;
  readonly size?: string;
  /** Such as `bframes=2:slices=4`, for x264 or x265. */
  readonly parameters?: string;
  readonly options?: readonly string[];
}

/** An Annex B stream. */
export function encodeVideo({ codec, frames = 12, size = '160x120', parameters, options = [] }: VideoEncode): Buffer {
  const encoder = codec === 'h264' ? 'libx264' : 'libx265';
  const x26x = [codec === 'h265' ? 'log-level=error' : '', parameters ?? ''].filter(Boolean).join(':');
  const source = `-f lavfi -i testsrc2=size=${size}:rate=25 -frames:v ${frames} -pix_fmt yuv420p`.split(' ');
  const tuning = x26x ? [codec === 'h264' ? '-x264-params' : '-x265-params', x26x] : [];
  const encoding = ['-c:v', encoder, '-preset', 'ultrafast', ...options, ...tuning];
  return ffmpeg([...source, ...encoding, '-f', codec === 'h264' ? 'h264' : 'hevc', '-']);
}

/** A tone in a raw stream of `format`, such as `adts`, `mulaw`, `alaw`, `s16le`. */
export function encodeAudio(format: string, seconds: number, options: readonly string[]): Buffer {
  return ffmpeg(['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`, ...options, '-f', format, '-']);
}

/** A FLAC file with these frames (RFC 9639 §6, §8.1). */
export function flacFile(streamInfo: Buffer, frames: readonly Buffer[]): Buffer {
  const header = Buffer.from([0x80, 0, 0, streamInfo.length]);
  return Buffer.concat([Buffer.from('fLaC'), header, streamInfo, ...frames]);
}
