// Passes one camera's samples to all receivers: archive and live view. A receiver that fails affects neither the camera nor the
// others.

import type { Log } from '../../base/log.ts';
import type { Sample } from '../mp4/sample.ts';
import type { EndReason, Run, SampleSink } from '../contract/sink.ts';

export class FanOut implements SampleSink {
  #sinks: readonly SampleSink[];
  readonly #log: Log;
  readonly #count: ((sample: Sample) => void) | undefined;

  /** `count` gets each sample before the receivers do. */
  constructor(sinks: readonly SampleSink[], log: Log, count?: (sample: Sample) => void) {
    this.#sinks = sinks;
    this.#log = log;
    this.#count = count;
  }

  /** Gets everything from the next call on, until the returned function is called. */
  add(sink: SampleSink): () => void {
    this.#sinks = [...this.#sinks, sink];
    return () => {
      this.#sinks = this.#sinks.filter((one) => one !== sink);
    };
  }

  begin(run: Run): void {
    for (const sink of this.#sinks) this.#guard(() => sink.begin(run));
  }

  change(run: Run): void {
    for (const sink of this.#sinks) this.#guard(() => sink.change(run));
  }

  sample(sample: Sample): void {
    this.#count?.(sample);
    // No closure and no iterator here, because this runs for each frame.
    const sinks = this.#sinks;
    for (let i = 0; i < sinks.length; i++) {
      try {
        (sinks[i] as SampleSink).sample(sample);
      } catch (err) {
        this.#failed(err);
      }
    }
  }

  end(reason: EndReason): void {
    for (const sink of this.#sinks) this.#guard(() => sink.end(reason));
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (err) {
      this.#failed(err);
    }
  }

  #failed(err: unknown): void {
    this.#log.bug({ err }, 'a receiver of samples failed');
  }
}
