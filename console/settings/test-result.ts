// Tests the address of a camera before it is saved, and says what the camera sends, or what is wrong and what to do.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, Problem, sentence, wordsOf } from '../app/api.ts';
import { codecName } from '../parts/format.ts';
import { html } from '../parts/html.ts';

interface Report {
  readonly state: string;
  readonly reason?: { readonly message: string; readonly todo?: string };
  readonly recorded: { readonly video?: { readonly width: number; readonly height: number } };
  readonly streams: readonly { readonly kind: string; readonly encoding: string }[];
}

const SECONDS = 5;

interface TestProps {
  /** What is tested, as the API expects it. */
  readonly wanted: () => Readonly<Record<string, unknown>>;
  /** Gets the wrong fields of the request. */
  readonly onProblem?: (problem: Problem) => void;
}

export function TestCamera({ wanted, onProblem }: TestProps): VNode {
  const [answer, setAnswer] = useState<{ readonly isGood: boolean; readonly text: string }>();
  const [isBusy, setBusy] = useState(false);
  const test = async (): Promise<void> => {
    setBusy(true);
    setAnswer(undefined);
    try {
      const report = await api<Report>('/api/cameras/test', {
        method: 'POST',
        body: { ...wanted(), seconds: SECONDS },
      });
      setAnswer({ isGood: report.state === 'recording', text: wordsOfReport(report) });
    } catch (error) {
      setAnswer({ isGood: false, text: wordsOf(error) });
      if (error instanceof Problem) onProblem?.(error);
    }
    setBusy(false);
  };
  return html`<div class="camera-test">
    <button type="button" disabled=${isBusy} onClick=${() => void test()}>
      ${isBusy ? 'Testing …' : 'Test the address'}
    </button>
    <p role="status" class=${answer?.isGood === false ? 'form-problem' : ''}>${answer?.text ?? ''}</p>
  </div>`;
}

function wordsOfReport({ state, reason, recorded, streams }: Report): string {
  if (state === 'recording') {
    const { video } = recorded;
    const encoding = streams.find(({ kind }) => kind === 'video')?.encoding;
    if (!video) return 'The camera answers and sends sound only.';
    return `The camera answers: ${codecName((encoding ?? '').toLowerCase())} ${video.width}×${video.height}.`;
  }
  if (!reason) return 'The camera sends no picture. Test it again.';
  return [reason.message, reason.todo ?? ''].map(sentence).filter(Boolean).join(' ');
}
