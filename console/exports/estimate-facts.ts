// Length, size and gaps of an export before it begins, as the recorder estimates them.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { sentence, wordsOf } from '../app/api.ts';
import { formatDuration, formatSize } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { causeWords } from '../playback/footage.ts';
import type { Span } from '../playback/spans.ts';
import { gapsText } from './job-item.ts';
import { estimate, type Estimate } from './jobs.ts';
import { splitExport } from './split.ts';

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
  const seconds = answer?.reduce((sum, one) => sum + one.duration_seconds, 0);
  const bytes = answer?.reduce((sum, one) => sum + one.size_bytes, 0);
  const gaps = answer?.flatMap((one) => one.gaps);
  const reason = answer?.find((one) => one.reason !== undefined)?.reason;
  const parts = window ? splitExport(window).length : 1;
  const row = (name: string, text: string | undefined, className = ''): VNode =>
    html`<div>
      <dt>${name}</dt>
      <dd class=${className}>${text ?? '…'}</dd>
    </div>`;
  return html`<dl class="export-facts" aria-live="polite">
      ${row('Length', seconds === undefined ? undefined : formatDuration(seconds))}
      ${row('Size', bytes === undefined ? undefined : `about ${formatSize(bytes)}`)}
      ${row('Gaps', gaps && gapsWords(gaps), gaps && gaps.length > 0 ? 'has-gaps' : '')}
    </dl>
    ${reason !== undefined && html`<p class="form-problem">${seconds === 0 ? 'Nothing is recorded in this time.' : sentence(reason)}</p>`}
    ${parts > 1 && html`<p class="quiet">Longer than 4 hours: split into ${parts} parts.</p>`}`;
}

/** The estimates of all cameras, or the text of a problem; undefined until there is an answer. */
function useEstimates({ ids, window, speed, onEmpty }: Props): readonly Estimate[] | string | undefined {
  const [answer, setAnswer] = useState<readonly Estimate[] | string | undefined>(undefined);
  const { startMs, endMs } = window ?? {};
  useEffect(() => {
    if (startMs === undefined || endMs === undefined) {
      setAnswer(undefined);
      return undefined;
    }
    const abort = new AbortController();
    const ask = (cameraId: string): Promise<Estimate> => estimate({ cameraId, startMs, endMs, speed }, abort.signal);
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

function gapsWords(gaps: Estimate['gaps']): string {
  if (gaps.length === 0) return 'none';
  const causes = new Set(gaps.flatMap(({ cause }) => (cause === undefined ? [] : [causeWords(cause)])));
  const words = causes.size === 0 ? '' : `: ${[...causes].slice(0, 2).join(', ')}${causes.size > 2 ? ' …' : ''}`;
  return `${gapsText(gaps.length)}${words}`;
}
