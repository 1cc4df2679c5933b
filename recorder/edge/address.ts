// Addresses of cameras that take the times of a replay in the URL: a pattern with the places `{start}` and `{end}`, in the form that
// the camera expects.

import type { CameraWindow } from './memory.ts';
import { localWindow } from './times.ts';

/** A place for a time, with its form if it is not the usual one, such as `{start:yyyy_MM_dd_HH_mm_ss}`. */
const PLACE = /\{(start|end)(?::([^{}]*))?\}/g;
/** Hikvision's form. */
const USUAL_FORM = 'yyyyMMddTHHmmssZ';
const PART = /yyyy|MM|dd|HH|mm|ss/g;

/** Why a pattern is invalid; undefined if it is valid. */
export function addressFault(pattern: string): string | undefined {
  const places = [...pattern.matchAll(PLACE)];
  for (const name of ['start', 'end']) {
    if (!places.some((place) => place[1] === name)) return `expected {${name}} in the address`;
  }
  for (const [place, , form = USUAL_FORM] of places) {
    const parts = form.match(PART) ?? [];
    if (new Set(parts).size !== 6) return `expected yyyy, MM, dd, HH, mm and ss in ${place}`;
    if (!/^[\w.:+-]+$/.test(form)) return `expected letters, digits and . : + - _ in ${place}`;
  }
  return undefined;
}

/** The address of a window, and the moment at which its replay is asked to start, which is not after the window's begin. */
export function addressOf(
  pattern: string,
  window: CameraWindow,
  timeZone: string | undefined,
): { readonly url: string; readonly startMs: number } {
  const local = timeZone === undefined ? window : localWindow(window, timeZone);
  // Whole seconds around the window.
  const fromMs = Math.floor(local.fromMs / 1000) * 1000;
  const untilMs = Math.ceil(local.untilMs / 1000) * 1000;
  const url = pattern.replace(PLACE, (_, name: string, form = USUAL_FORM) =>
    formatTime(form, name === 'start' ? fromMs : untilMs),
  );
  const zoneMs =
    timeZone === undefined ? 0 : localWindow({ ...window, untilMs: window.fromMs }, timeZone).fromMs - window.fromMs;
  return { url, startMs: fromMs - zoneMs };
}

function formatTime(form: string, ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  const parts: Readonly<Record<string, string>> = {
    yyyy: String(date.getUTCFullYear()),
    MM: two(date.getUTCMonth() + 1),
    dd: two(date.getUTCDate()),
    HH: two(date.getUTCHours()),
    mm: two(date.getUTCMinutes()),
    ss: two(date.getUTCSeconds()),
  };
  return form.replace(PART, (part) => parts[part] as string);
}
