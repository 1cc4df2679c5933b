// File names of results. They sort by camera and time: `gate_20261121T100000Z.mp4`.

import type { Job } from './job.ts';

/** Codecs by the type of their sample entry (ISO/IEC 14496-15, and the specifications of other codecs). */
const CODECS: Readonly<Record<string, string>> = {
  avc1: 'h264',
  avc3: 'h264',
  hvc1: 'h265',
  hev1: 'h265',
  av01: 'av1',
  jpeg: 'mjpeg',
  mp4v: 'mjpeg',
  mp4a: 'aac',
  Opus: 'opus',
  fLaC: 'flac',
};

/** `entry`: the four-letter code of a sample entry. */
export const codecName = (entry: string): string => CODECS[entry] ?? entry.replace(/[^A-Za-z0-9]/g, '-');

interface NameOptions {
  /** Number of the movie, from 1, if the result has several. */
  readonly number?: number;
  readonly codec?: string;
  /** Set for a time-lapse. */
  readonly speed?: number | undefined;
  readonly extension?: 'mp4' | 'zip';
}

export function movieName(cameraId: string, fromMs: number, options: NameOptions = {}): string {
  const { number, codec, speed, extension = 'mp4' } = options;
  const time = new Date(fromMs).toISOString().replace(/[-:]|\.\d+/g, '');
  const words = [cameraId.replace(/[^A-Za-z0-9.-]/g, '-'), time];
  if (number !== undefined) words.push(String(number));
  if (codec !== undefined) words.push(codecName(codec));
  if (speed !== undefined) words.push(`x${speed}`);
  return `${words.join('_')}.${extension}`;
}

/** The file name under which a browser saves the result of a job. */
export function resultName({ cameraId, fromMs, speed, outcome, case: ofCameras }: Job): string {
  if (ofCameras) return movieName('case', fromMs, { extension: 'zip' });
  return movieName(cameraId, fromMs, { speed, extension: outcome?.parts ? 'zip' : 'mp4' });
}
