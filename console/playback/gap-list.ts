// The gaps that the timeline shows, as text: for screen readers, and to step through them.

import type { VNode } from 'preact';
import { cameraName } from '../parts/camera-name.ts';
import { now } from '../app/clock.ts';
import { html } from '../parts/html.ts';
import { filledWords, gapWords, lostIn, lostText } from './gap-words.ts';
import type { Playback } from './playback.ts';
import type { Span } from './spans.ts';
import { isCovered } from './timeline-store.ts';

const MAX_LISTED = 50;
/** Shorter ones are one entry: a recorder that starts has one for each camera. */
const LEAST_MS = 1_000;

export function GapList({ playback }: { readonly playback: Playback }): VNode {
  const zone = playback.zone.value;
  const seen = playback.seen.loaded.value;
  const range = playback.range.value;
  const { fromMs, toMs } = range;
  const nowMs = now();
  const isKnown = isCovered(seen, { cameras: playback.cameras.value, range }, nowMs);
  const isSingle = playback.cameras.value.length === 1;
  const inView = <T extends Span>(spans: readonly T[]): T[] =>
    spans.filter(({ startMs, endMs }) => endMs > fromMs && startMs < toMs);
  const found = playback.cameras.value.flatMap((cameraId) => {
    const { gaps = [], filled = [] } = seen?.byCamera.get(cameraId) ?? {};
    return [
      ...inView(gaps).map((gap) => ({ ...gap, cameraId, isFilled: false, words: gapWords(gap) })),
      ...inView(filled).map((part) => ({
        ...part,
        cameraId,
        isOpen: false,
        isFilled: true,
        count: 1,
        missingMs: part.endMs - part.startMs,
        words: filledWords(part, zone),
      })),
    ];
  });
  const listed = found.filter(({ missingMs }) => missingMs >= LEAST_MS).sort((a, b) => b.startMs - a.startMs);
  const short = found.filter(({ missingMs, isFilled }) => missingMs < LEAST_MS && !isFilled);
  const shortMs = short.reduce((sum, { missingMs }) => sum + missingMs, 0);
  const open = (gap: (typeof found)[number]): number => (gap.isOpen ? nowMs - gap.startMs : gap.missingMs);
  const gaps = [...listed.filter(({ isFilled }) => !isFilled), ...(shortMs >= LEAST_MS ? short : [])];
  const count = gaps.reduce((sum, gap) => sum + gap.count, 0);
  const lostMs = lostIn(gaps, { startMs: fromMs, endMs: toMs }, nowMs);
  const filled = listed.filter(({ isFilled }) => isFilled).length;
  const rest = listed.slice(MAX_LISTED);
  const whenOf = ({ startMs, endMs, isOpen }: (typeof found)[number]): string =>
    `${zone.date(startMs, false)} ${zone.time(startMs)}${isOpen ? ' until now' : `–${zone.time(endMs)}`}`;
  return html`<section class="gap-list" aria-label="Gaps">
    <h2>
      ${!isKnown ? 'Gaps in view: loading …' : count === 0 ? 'No gaps in view' : count === 1 ? '1 gap in view' : `${count} gaps in view, ${lostText(lostMs)}`}${filled > 0 ? `, ${filled} filled` : ''}
    </h2>
    <ul>
      ${listed.slice(0, MAX_LISTED).map(
        (gap) =>
          html`<li key=${`${gap.cameraId} ${gap.startMs}`}>
            <button type="button" class="plain" onClick=${() => playback.seek(gap.startMs - 1_000)}>
              <b>${whenOf(gap)}</b>
              <span
                >${`${isSingle ? '' : `${cameraName(gap.cameraId)}: `}${gap.words}${gap.count > 1 ? '' : ` (${lostText(open(gap))})`}`}</span
              >
            </button>
          </li>`,
      )}
      ${rest.length > 0 && html`<li>${`${rest.length} older ones (${lostText(rest.reduce((sum, gap) => sum + open(gap), 0))})`}</li>`}
      ${shortMs >= LEAST_MS && html`<li>${`${short.length} shorter than a second (${lostText(shortMs)})`}</li>`}
    </ul>
  </section>`;
}
