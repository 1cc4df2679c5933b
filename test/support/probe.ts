// What independent programs report about a recorded file.

import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

interface ProbedStream {
  readonly codec_name: string;
  readonly codec_type: 'video' | 'audio';
  readonly width?: number;
  readonly height?: number;
  readonly sample_rate?: string;
  readonly has_b_frames?: number;
  readonly nb_read_packets: string;
  readonly duration: string;
  readonly start_time: string;
}

interface Probe {
  readonly streams: readonly ProbedStream[];
  readonly durationSeconds: number;
}

export async function probe(file: string): Promise<Probe> {
  const args = ['-v', 'error', '-count_packets', '-show_streams', '-show_format', '-of', 'json', file];
  const { stdout } = await run('ffprobe', args, { maxBuffer: 1 << 24 });
  const parsed = JSON.parse(stdout) as { streams: ProbedStream[]; format: { duration: string } };
  return { streams: parsed.streams, durationSeconds: Number(parsed.format.duration) };
}

/** As many as one ffmpeg decodes: its start takes longer than most files. */
const FILES_AT_A_TIME = 16;

/** Decodes the whole files; returns ffmpeg's messages: none for good files. */
export async function decodingErrors(...files: readonly string[]): Promise<string> {
  let errors = '';
  for (let first = 0; first < files.length; first += FILES_AT_A_TIME) {
    const some = files.slice(first, first + FILES_AT_A_TIME);
    const inputs = some.flatMap((file) => ['-i', file]);
    const streams = some.flatMap((_, i) => ['-map', `${i}`]);
    errors += (await run('ffmpeg', ['-nostdin', '-v', 'error', ...inputs, ...streams, '-f', 'null', '-'])).stderr;
  }
  return errors;
}

/** The four-character types of a file's top-level boxes (ISO/IEC 14496-12 §4.2), in order. */
export async function topLevelBoxes(file: string): Promise<string[]> {
  const handle = await open(file);
  try {
    const { size: fileSize } = await handle.stat();
    const types: string[] = [];
    const header = Buffer.alloc(16);
    for (let at = 0; at < fileSize;) {
      const { bytesRead } = await handle.read(header, 0, 16, at);
      if (bytesRead < 8) throw new Error(`${file}: ${fileSize - at} bytes after the last box`);
      const size = header.readUInt32BE(0) === 1 ? Number(header.readBigUInt64BE(8)) : header.readUInt32BE(0);
      if (size < 8 || at + size > fileSize) throw new Error(`${file}: a box of ${size} bytes at ${at} of ${fileSize}`);
      types.push(header.toString('latin1', 4, 8));
      at += size;
    }
    return types;
  } finally {
    await handle.close();
  }
}
