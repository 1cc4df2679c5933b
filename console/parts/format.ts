// Formats times, sizes and streams for people: 24 hours, in the zone that the console shows.

import { now } from '../app/clock.ts';
import { zone } from '../app/shown-zone.ts';
import type { Camera } from '../app/camera.ts';

const CODECS: Readonly<Record<string, string>> = {
  h264: 'H.264',
  h265: 'H.265',
  av1: 'AV1',
  mjpeg: 'Motion JPEG',
  aac: 'AAC',
  opus: 'Opus',
  flac: 'FLAC',
  mp2: 'MP2',
  mp3: 'MP3',
};

export const codecName = (codec: string): string => CODECS[codec] ?? codec;

export function describeCodecs(
  { video, audio }: Pick<Camera['codecs'], 'video' | 'audio'>,
  transport: string | null,
): string {
  const parts: string[] = [];
  if (video) parts.push(`${codecName(video.codec)} ${video.width}×${video.height}`);
  if (audio) parts.push(`${codecName(audio.codec)} ${audio.sample_rate / 1000} kHz`);
  if (video && !audio) parts.push('no sound');
  if (audio && !video) parts.push('sound only');
  if (transport) parts.push(transport.toUpperCase());
  return parts.join(' · ');
}

export const formatBitrate = (bits: number): string =>
  bits >= 1_000_000 ? `${(bits / 1_000_000).toFixed(1)} Mbit/s` : `${Math.round(bits / 1000)} kbit/s`;

export const formatSize = (bytes: number): string =>
  bytes >= 1e9
    ? `${(bytes / 1e9).toFixed(1)} GB`
    : bytes >= 1e6
      ? `${(bytes / 1e6).toFixed(1)} MB`
      : `${Math.ceil(bytes / 1000)} kB`;

/** `48 s`, `3 min`, `2 h 05 min`, `4 d 3 h`. */
export function formatDuration(seconds: number): string {
  if (seconds < 60) return `${seconds < 10 && seconds % 1 !== 0 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${String(minutes % 60).padStart(2, '0')} min`;
  return hours % 24 === 0 ? `${hours / 24} d` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const cache = new Map<string, Intl.DateTimeFormat>();

function formatter(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const timeZone = zone.value;
  const key = `${timeZone} ${JSON.stringify(options)}`;
  let found = cache.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat('en-GB', { ...options, timeZone });
    cache.set(key, found);
  }
  return found;
}

const DAY = { year: 'numeric', month: 'short', day: 'numeric' } as const;

/** `02:13:00`. */
export const formatClock = (ms: number): string =>
  formatter({ hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(ms);

/** `22 Nov 2026`. */
export const formatDay = (ms: number): string => formatter(DAY).format(ms);

/** `02:13`; of another day than today `21 Nov 02:13`. */
export function formatTime(ms: number): string {
  const time = formatter({ hour: '2-digit', minute: '2-digit' }).format(ms);
  if (formatDay(ms) === formatDay(now())) return time;
  return `${formatter({ month: 'short', day: 'numeric' }).format(ms)} ${time}`;
}
