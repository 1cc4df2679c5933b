// File names of results. With the names and the zone of the site: `Corner shop - Camera 4 (cam4) - 2026-11-26 02.13.00 CET.mp4`,
// without them `cam4_20261126T011300Z.mp4`. Those of one camera sort by time.

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

/** What people at the site call it and its cameras, and the zone of its clocks. */
export interface LocalNames {
  /** May be empty. */
  readonly site: string;
  /** IANA name; undefined: that of the machine. */
  readonly timeZone: string | undefined;
  readonly nameOf: (cameraId: string) => string;
}

/** `Camera 4 (cam4)`: several cameras may have one name. */
export const cameraTitle = (id: string, { nameOf }: Pick<LocalNames, 'nameOf'>): string =>
  nameOf(id) === id ? id : `${nameOf(id)} (${id})`;

/** `2026-11-26 02:13:00 CET`, to the second. */
export function localTime(ms: number, { timeZone }: Pick<LocalNames, 'timeZone'>): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    ...(timeZone === undefined ? {} : { timeZone }),
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  });
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
  const { year = '', month = '', day = '', hour = '', minute = '', second = '', timeZoneName = '' } = parts;
  return `${year}-${month}-${day} ${hour}:${minute}:${second} ${timeZoneName}`;
}

interface NameOptions {
  /** Number of the movie, from 1, if the result has several. */
  readonly number?: number;
  readonly codec?: string;
  /** Set for a time-lapse. */
  readonly speed?: number | undefined;
  readonly extension?: 'mp4' | 'zip';
  readonly local?: LocalNames | undefined;
}

export function movieName(cameraId: string, fromMs: number, options: NameOptions = {}): string {
  const { number, codec, speed, extension = 'mp4', local } = options;
  const details: string[] = [];
  if (number !== undefined) details.push(String(number));
  if (codec !== undefined) details.push(codecName(codec));
  if (speed !== undefined) details.push(`x${speed}`);
  if (local) {
    // Each with its id: cameras of one name are two files.
    const camera = cameraTitle(cameraId, { nameOf: (id) => cut(local.nameOf(id)) });
    return fileName([cut(local.site), camera, localTime(fromMs, local), ...details], extension);
  }
  const time = new Date(fromMs).toISOString().replace(/[-:]|\.\d+/g, '');
  return `${[cameraId.replace(/[^A-Za-z0-9.-]/g, '-'), time, ...details].join('_')}.${extension}`;
}

/** The file name under which a browser saves the result of a job. */
export function resultName({ cameraId, fromMs, speed, outcome, case: of }: Job, local?: LocalNames): string {
  if (of && local) {
    const what = ['Case', of.number, of.name].filter((word) => word !== undefined).join(' ');
    return fileName([cut(local.site), cut(what), localTime(fromMs, local)], 'zip');
  }
  if (of) return movieName('case', fromMs, { extension: 'zip' });
  return movieName(cameraId, fromMs, { speed, extension: outcome?.parts ? 'zip' : 'mp4', local });
}

/** Of a name, in bytes: a file name has at most 255, of which an id takes 63. */
const NAME_BYTES = 60;

/** As many whole characters as fit. */
const cut = (name: string): string =>
  new TextDecoder().decode(Buffer.from(name).subarray(0, NAME_BYTES), { stream: true });

/** Any script, without what file systems refuse. */
const fileName = (words: readonly string[], extension: string): string =>
  `${words
    .map((word) =>
      word
        .replaceAll(':', '.')
        .replace(/[\\/*?"<>|\p{C}]/gu, '-')
        .trim(),
    )
    .filter((word) => word !== '')
    .join(' - ')}.${extension}`;
