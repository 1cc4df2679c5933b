// Keys of what the leader has to look at: cameras, pools, and nodes with their requests.

import type { Clock } from '../base/clock.ts';
import { WorkQueue } from './kube/workqueue.ts';
import type { OperatorMetrics } from './metrics.ts';

/**
 * What happens to a camera within this time is shown at once: it is assigned, named by its node and recorded within a
 * second, and thousands may be. Writes of a status also stand in the way of assignments, which are compare-and-swap.
 */
const SHOW_MS = 1_000;

const NAMES = ['camera', 'pool', 'request'] as const;
export type QueueName = (typeof NAMES)[number];

export class Queues {
  readonly #open: (name: QueueName) => WorkQueue;
  #byName: Readonly<Record<QueueName, WorkQueue>>;

  constructor(clock: Clock, metrics: Pick<OperatorMetrics, 'queue'>) {
    this.#open = (name) => new WorkQueue({ clock, observer: metrics.queue(name) });
    this.#byName = this.#openAll();
  }

  /** As they are now: see `renew`. */
  get camera(): WorkQueue {
    return this.#byName.camera;
  }

  get pool(): WorkQueue {
    return this.#byName.pool;
  }

  get request(): WorkQueue {
    return this.#byName.request;
  }

  /** The status of a camera may have changed. */
  showSoon(cameraKey: string): void {
    this.camera.addAfter(cameraKey, SHOW_MS);
  }

  /** Workers close their queue at the end of a term: the next term begins with new ones. */
  renew(): void {
    this.#byName = this.#openAll();
  }

  get unfinished(): readonly { readonly name: QueueName; readonly unfinishedMs: number }[] {
    return NAMES.map((name) => ({ name, unfinishedMs: this.#byName[name].unfinishedMs }));
  }

  #openAll(): Record<QueueName, WorkQueue> {
    return { camera: this.#open('camera'), pool: this.#open('pool'), request: this.#open('request') };
  }
}
