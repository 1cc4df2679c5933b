// Length, size and gaps of an export before it begins, as the recorder estimates them.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { sentence, wordsOf } from '../app/api.ts';
import { formatDuration, formatSize } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { causeWords } from '../playback/footage.ts';
import { LEAST_GAP_MS } from '../playback/gap-border.ts';
import { lostText } from '../playback/gap-words.ts';
import type { Range } from '../playback/scale.ts';
import type { Span } from '../playback/spans.ts';
import { isPreview } from '../playback/stream.ts';
import { readTimeline } from '../playback/timeline-store.ts';
import { gapsText } from './job-item.ts';
import { estimate, type Estimate } from './jobs.ts';
import { splitExport } from './split.ts';

/** What is lost at one or several places. */
interface Lost {
  readonly count: number;
  readonly missingMs: number;
  readonly cause?: string | undefined;
}

interface Answer extends Estimate {
  /** As the timeline shows it: the recorder's estimate also counts time in which a camera was not to be recorded. */
  readonly lost: readonly Lost[];
}

/** While a user drags a mark, only its last position is requested. */
const SETTLE_MS = 350;

interface Props {
  /** Ids of the footage. */
  readonly ids: readonly string[];
  /** Undefined while it moves: nothing is requested then. */
  readonly window: Span | undefined;
  /** Of a time-lapse. */
  readonly speed: number | undefined;
  /** Called with whether there is nothing to export. */
  readonly onEmpty: (isEmpty: boolean) => void;
}

export function EstimateFacts({ ids, window, speed, onEmpty }: Props): VNode {
  const answer = useEstimates({ ids, window, speed, onEmpty });
  if (typeof answer === 'string') return html`<p class="form-problem">${answer}</p>`;
  const seconds = answer && Math.max(...answer.map((one) => one.duration_seconds));
  const bytes = answer?.reduce((sum, one) => sum + one.size_bytes, 0);
  const gaps = answer?.flatMap((one) => one.lost);
  const reason = answer?.find((one) => one.reason !== undefined)?.reason;
  const parts = window ? splitExport(window).length : 1;
  const row = (name: string, text: string | undefined, className = ''): VNode =>
    html`<div>
      <dt>${name}</dt>
      <dd class=${className}>${text ?? '…'}</dd>
    </div>`;
  return html`<dl class="export-facts" aria-live="polite">
      ${row('Length', seconds === undefined ? undefined : ids.length > 1 ? `up to ${formatDuration(seconds)} each` : formatDuration(seconds))}
      ${row('Size', bytes === undefined ? undefined : `about ${formatSize(bytes)}`)}
      ${row('Gaps', gaps && gapsWords(gaps), gaps && gaps.length > 0 ? 'has-gaps' : '')}
    </dl>
    ${reason !== undefined && html`<p class="form-problem">${seconds === 0 ? 'Nothing is recorded in this time.' : sentence(reason)}</p>`}
    ${parts > 1 && html`<p class="quiet">Longer than 4 hours: split into ${parts} parts.</p>`}`;
}

/** The estimates of all cameras, or the text of a problem; undefined until there is an answer. */
function useEstimates({ ids, window, speed, onEmpty }: Props): readonly Answer[] | string | undefined {
  const [answer, setAnswer] = useState<readonly Answer[] | string | undefined>(undefined);
  const { startMs, endMs } = window ?? {};
  useEffect(() => {
    if (startMs === undefined || endMs === undefined) {
      setAnswer(undefined);
      return undefined;
    }
    const abort = new AbortController();
    const ask = async (cameraId: string): Promise<Answer> => {
      const [about, lost] = await Promise.all([
        estimate({ cameraId, startMs, endMs, speed }, abort.signal),
        gapsOf(cameraId, { fromMs: startMs, toMs: Math.ceil(endMs) }, abort.signal),
      ]);
      return { ...about, lost: lost ?? about.gaps.map(spanOf) };
    };
    const timer = setTimeout(() => {
      Promise.all(ids.map(ask)).then(
        (found) => {
          setAnswer(found);
          onEmpty(found.every((one) => one.duration_seconds === 0));
        },
        (error: unknown) => !abort.signal.aborted && setAnswer(wordsOf(error)),
      );
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
      onEmpty(false);
    };
  }, [ids.join(), startMs, endMs, speed]);
  return answer;
}

/** The gaps of the timeline; undefined for a preview, of which it has none. */
async function gapsOf(footageId: string, range: Range, signal: AbortSignal): Promise<readonly Lost[] | undefined> {
  if (isPreview(footageId)) return undefined;
  const found = await readTimeline({ cameras: [footageId], range, resolutionMs: 1_000 }, signal);
  return found.get(footageId)?.gaps.filter(({ missingMs }) => missingMs >= LEAST_GAP_MS) ?? [];
}

const spanOf = ({ start, end, cause }: Estimate['gaps'][number]): Lost => ({
  count: 1,
  missingMs: Date.parse(end) - Date.parse(start),
  cause,
});

function gapsWords(gaps: readonly Lost[]): string {
  if (gaps.length === 0) return 'none';
  const causes = new Set(gaps.flatMap(({ cause }) => (cause === undefined ? [] : [causeWords(cause)])));
  const words = causes.size === 0 ? '' : `: ${[...causes].slice(0, 2).join(', ')}${causes.size > 2 ? ' …' : ''}`;
  const count = gaps.reduce((sum, gap) => sum + gap.count, 0);
  const lostMs = gaps.reduce((sum, { missingMs }) => sum + missingMs, 0);
  return `${gapsText(count)}${count === 1 ? '' : `, ${lostText(lostMs)}`}${words}`;
}
