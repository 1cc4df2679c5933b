// The calendar: shows which days of a month are recorded, and whether something is missing.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import {
  dayStates,
  monthAfter,
  monthKey,
  weeksOf,
  type CalendarDay,
  type DayItem,
  type DayState,
  type MonthName,
} from './calendar-month.ts';
import type { Playback } from './playback.ts';
import { MONTHS } from './zone.ts';

const WEEKDAYS = ['Mo', 'Tu', 'We', 'Th', 'Fr', 'Sa', 'Su'];
const WORDS: Readonly<Record<DayState, string>> = {
  complete: 'recorded',
  gaps: 'recorded, with gaps',
  missing: 'nothing recorded, although it should be',
  none: 'no recording',
};

export function Calendar({ playback }: { readonly playback: Playback }): VNode {
  const zone = playback.zone.value;
  const { fromMs: shownMs } = playback.dayRange.value;
  const { year, month } = zone.local(shownMs);
  const [chosen, choose] = useState<MonthName | undefined>(undefined);
  const shown = chosen ?? { year, month };
  const key = monthKey(shown);
  const cameras = playback.cameras.value.join(',');
  const [states, setStates] = useState<ReadonlyMap<string, DayState>>(new Map());
  useEffect(() => choose(undefined), [shownMs]);
  useEffect(() => {
    const abort = new AbortController();
    setStates(new Map());
    void readDays(cameras.split(','), key, zone.name, abort.signal).then((days) => {
      if (!abort.signal.aborted) setStates(dayStates(days));
    });
    return () => abort.abort();
  }, [cameras, key, zone.name]);

  const goTo = ({ date, startMs }: CalendarDay): void => {
    const [year = 0, month = 1, day = 1] = date.split('-').map(Number);
    const [atMs] = zone.instants({ ...zone.local(playback.atMs.peek()), year, month, day });
    playback.seek(atMs ?? startMs);
  };
  const cell = (day: CalendarDay | undefined): VNode => {
    if (!day) return html`<td></td>`;
    const state = states.get(day.date) ?? 'none';
    const isShown = day.startMs === shownMs;
    return html`<td>
      <button
        type="button"
        class=${`day day-${state}`}
        aria-current=${isShown ? 'date' : undefined}
        aria-label=${`${zone.date(day.startMs)}, ${WORDS[state]}`}
        disabled=${day.startMs > now()}
        onClick=${() => goTo(day)}
      >
        ${day.day}
      </button>
    </td>`;
  };
  const turn = (months: number): void => choose(monthAfter(shown, months));
  return html`<section class="calendar" aria-label="Calendar">
    <div class="calendar-bar">
      <h2>${MONTHS[shown.month - 1]} ${shown.year}</h2>
      <button type="button" class="plain" aria-label="Previous month" onClick=${() => turn(-1)}>${icon('left')}</button>
      <button type="button" class="plain" aria-label="Next month" onClick=${() => turn(1)}>${icon('right')}</button>
    </div>
    <table>
      <thead>
        <tr>
          ${WEEKDAYS.map((name) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${weeksOf(shown, zone).map(
          (week) =>
            html`<tr>
              ${week.map(cell)}
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`;
}

/** The days of each camera; none for a camera whose days cannot be read. */
function readDays(cameras: readonly string[], month: string, timeZone: string, signal: AbortSignal) {
  const query = new URLSearchParams({ month, tz: timeZone, scope: 'cluster' });
  return Promise.all(
    cameras
      .filter((id) => id !== '')
      .map((id) =>
        api<{ days: readonly DayItem[] }>(`/api/archive/${encodeURIComponent(id)}/days?${query}`, { signal }).then(
          ({ days }) => days,
          () => [],
        ),
      ),
  );
}
