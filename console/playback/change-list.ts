// Searches the time that the timeline shows for changes in the picture of a camera, and lists them with a picture of each.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { useKeys } from '../app/keyboard.ts';
import { cameraName } from '../parts/camera-name.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { findChanges, unknownMs } from './changes.ts';
import { Moments } from './event-list.ts';
import type { Playback } from './playback.ts';
import type { Wanted } from './search.ts';

/** The timeline has stood still for so long. */
const SETTLE_MS = 250;
/** What is less is not worth a word. */
const LEAST_MS = 1_000;
/** The longest that the recorder searches at once. */
const MOST_MS = 31 * 86_400_000;

export function ChangeList({ playback, search }: { readonly playback: Playback; readonly search: Wanted }): VNode {
  const { cameraId, region } = search;
  const { fromMs, toMs } = playback.range.value;
  const [problem, setProblem] = useState('');
  useKeys({ Escape: () => playback.toggleSearch() });
  useEffect(() => () => void (playback.found.value = undefined), [cameraId, region]);
  useEffect(() => {
    const end = new AbortController();
    const range = { fromMs: Math.max(fromMs, toMs - MOST_MS), toMs };
    const timer = setTimeout(() => {
      findChanges(search, range, end.signal).then(
        (found) => {
          playback.found.value = found;
          setProblem('');
        },
        (error: unknown) => !end.signal.aborted && setProblem(wordsOf(error)),
      );
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [cameraId, region, fromMs, toMs]);
  const found = playback.found.value;
  const changes = (found?.changes ?? []).filter(({ startMs, endMs }) => endMs >= fromMs && startMs < toMs);
  const count = `${found?.isMore ? 'more than ' : ''}${changes.length}`;
  const title = !found
    ? 'Changes: looking …'
    : changes.length === 0
      ? 'No changes found'
      : `${count} ${changes.length === 1 ? 'change' : 'changes'} in view`;
  return html`<${Moments}
    title=${title}
    label="Changes"
    playback=${playback}
    moments=${changes.map(({ startMs, endMs }) => ({
      key: String(startMs),
      cameraId,
      startMs,
      words: formatDuration(Math.max(1, Math.round((endMs - startMs) / 1_000))),
    }))}
  >
    <p class="quiet">
      ${cameraName(cameraId)}${region ? ', in the rectangle' : ', in the whole picture: draw a rectangle on it'}.
      ${found && limits(playback, cameraId)}
    </p>
    ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
  <//>`;
}

/** What the list does not say. */
function limits(playback: Playback, cameraId: string): string {
  const footage = playback.seen.of(cameraId);
  if (!footage) return '';
  const { fromMs, toMs } = playback.range.value;
  const { unclear, unseen } = unknownMs(footage, { fromMs, toMs: Math.min(toMs, now()) });
  const words = [
    unclear >= LEAST_MS ? `Changes cannot be told in ${formatDuration(unclear / 1_000)}` : '',
    unseen >= LEAST_MS ? `${formatDuration(unseen / 1_000)} of the footage were not looked at` : '',
  ].filter((one) => one !== '');
  return words.length > 0 ? ` ${words.join('; ')}.` : '';
}
