// Requests of this recorder to the operator: written to the status of its own RecorderNode, answered in its spec
// (docs/design/cluster.md). Only the operator may write what they change.

import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../base/clock.ts';
import { MAX_REQUESTS, type RecorderRequest, type RecorderResponse } from '../../crds/recorder-node.ts';

/** A request without the fields that this file adds. */
export type Question = Omit<RecorderRequest, 'id' | 'time'>;

/** An HTTP status, and a message for people. */
export interface RequestOutcome {
  readonly code: number;
  readonly message: string;
}

const ANSWER_MS = 15_000;

interface OpenRequest {
  readonly request: RecorderRequest;
  readonly answer: (answer: RequestOutcome) => void;
  readonly timer: Timer;
}

export class Requests {
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #open = new Map<string, OpenRequest>();

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock;
    this.#changed = changed;
  }

  list(): readonly RecorderRequest[] {
    return Array.from(this.#open.values(), ({ request }) => request);
  }

  /** Resolves with the operator's response, or 503 if there is none in time. */
  ask(question: Question): Promise<RequestOutcome> {
    if (this.#open.size >= MAX_REQUESTS) {
      return Promise.resolve({ code: 503, message: 'too many requests wait for the operator' });
    }
    return new Promise((resolve) => {
      const id = randomUUID();
      const request: RecorderRequest = { ...question, id, time: new Date(this.#clock.wallMs()).toISOString() };
      const answer = (said: RequestOutcome): void => {
        this.#open.get(id)?.timer.cancel();
        if (this.#open.delete(id)) this.#changed();
        resolve(said);
      };
      const timer = this.#clock.after(ANSWER_MS, () =>
        answer({ code: 503, message: 'the operator did not answer in time; it may still carry this out' }),
      );
      this.#open.set(id, { request, answer, timer });
      this.#changed();
    });
  }

  /** Call with the responses in the spec of our RecorderNode. */
  answered(responses: readonly RecorderResponse[]): void {
    for (const { id, code, message } of responses) this.#open.get(id)?.answer({ code, message: message ?? '' });
  }

  close(): void {
    for (const { answer } of this.#open.values()) answer({ code: 503, message: 'the recorder is stopping' });
  }
}
