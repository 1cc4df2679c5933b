// Formats and parses the times that cameras use: RTSP ranges, and addresses that contain times.

import { localClockOf } from '../../base/local-time.ts';
import type { CameraWindow } from './memory.ts';

/** `clock=19961108T142300Z-19961108T143520Z`, RFC 2326 §3.7, with milliseconds. */
export function clockRange(fromMs: number, untilMs: number): string {
  return `clock=${utcTime(fromMs)}-${utcTime(untilMs)}`;
}

const utcTime = (ms: number): string => new Date(ms).toISOString().replace(/[-:]/g, '');

/** Where a Range header with absolute times starts, in milliseconds since 1970; undefined for other headers. */
export function startOfRange(text: string | undefined): number | undefined {
  const match = /^\s*clock\s*=\s*(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\.\d{1,9})?Z/i.exec(text ?? '');
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(match[7] ?? 0) * 1000;
}

/**
 * The window by the wall clock of a time zone, for cameras that count in local time; as if that were UTC. If the clock is set back
 * inside the window (end of summer time), its local end may lie before its begin: the result then holds both, and more.
 */
export function localWindow({ fromMs, untilMs }: CameraWindow, timeZone: string): CameraWindow {
  const localSecond = localClockOf(timeZone);
  const local = (ms: number): number => localSecond(ms) + (((ms % 1000) + 1000) % 1000);
  const from = local(fromMs);
  const until = local(untilMs);
  const setBackMs = Math.max(0, from - fromMs - (until - untilMs));
  return { fromMs: from - setBackMs, untilMs: until + setBackMs };
}
