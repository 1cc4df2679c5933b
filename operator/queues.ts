// The queues of the leader: keys of cameras, of pools, and of nodes with their requests.

import type { Clock } from '../base/clock.ts';
import { WorkQueue } from './kube/workqueue.ts';
import type { OperatorMetrics } from './metrics.ts';

/**
 * Changes of a camera within this time become one write of its status: a camera is assigned, reported by its node and
 * recorded within a second, and there may be thousands. Writes of a status also conflict with assignments, which are
 * written by compare-and-swap.
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

  /** The current queue: see `renew`. */
  get camera(): WorkQueue {
    return this.#byName.camera;
  }

  get pool(): WorkQueue {
    return this.#byName.pool;
  }

  get request(): WorkQueue {
    return this.#byName.request;
  }

  /** To be called when the status of a camera may have changed. */
  showSoon(cameraKey: string): void {
    this.camera.addAfter(cameraKey, SHOW_MS);
  }

  /** Opens new queues: workers close theirs at the end of a term. */
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
