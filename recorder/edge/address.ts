// The addresses of cameras that take the times of a replay in the URL.

import { PART, PLACE, USUAL_FORM } from '../contract/edge-source.ts';
import type { CameraWindow } from './memory.ts';
import { localWindow } from './times.ts';

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
