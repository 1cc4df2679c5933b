// What a node tells the operator about itself: the status of its RecorderNode. Written when something in it changes, at
// most once a second in the long run, and every five minutes for what changes all the time.

import { API_VERSION, RECORDER_MANAGER } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiServerError, type ApiServer } from './api-server.ts';

export interface ReportOptions {
  readonly api: Pick<ApiServer, 'apply'>;
  readonly namespace: string;
  readonly nodeID: string;
  /** The whole status, as of now. */
  readonly status: () => Promise<RecorderNodeStatus>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * In the long run one report a second, and some at once for cameras that are newly named: a failover waits for those,
 * and must not find the burst used up by cameras that change their states (docs/design/failover.md).
 */
export const LEAST_MS = 1_000;
export const BURST = 20;
/** Cameras that change together are told together. */
export const TOGETHER_MS = 100;
const REFRESH_MS = 300_000;
const RETRY_MS = 2_000;

export class Report {
  readonly #options: ReportOptions;
  readonly #path: string;
  /** What the API server has, without what changes all the time. */
  #told: string | undefined;
  #toldMs = -Infinity;
  /** The cameras and epochs of the last report. */
  #named: string | undefined;
  /** When all of the burst may be used again. */
  #fullMs = -Infinity;
  #timer: Timer | undefined;
  #later: Timer | undefined;
  #work: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(options: ReportOptions) {
    this.#options = options;
    this.#path = `/apis/${API_VERSION}/namespaces/${options.namespace}/recordernodes/${options.nodeID}/status`;
  }

  /** Something may have changed. Cheap: called for every tick. */
  touch(): void {
    if (this.#closed || this.#timer || this.#work) return;
    const { clock } = this.#options;
    const waitMs = this.#fullMs - (BURST - 1) * LEAST_MS - clock.monotonicMs();
    const delayMs = Math.max(this.#failed ? RETRY_MS : TOGETHER_MS, waitMs);
    this.#timer = clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#work = this.#tell().finally(() => (this.#work = undefined));
    });
  }

  /** Tells everything anew: the API server was away, and may have forgotten. */
  renew(): void {
    this.#told = undefined;
    this.touch();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#later?.cancel();
    await this.#work;
  }

  async #tell(): Promise<void> {
    const { api, clock, log, nodeID, namespace, status } = this.#options;
    const now = await status();
    const urgent = urgentPart(now);
    const nowMs = clock.monotonicMs();
    if (urgent === this.#told && nowMs - this.#toldMs < REFRESH_MS) return;
    const named = (now.cameras ?? []).map(({ name, epoch }) => `${name}@${epoch}`).join();
    const waitMs = this.#toldMs + LEAST_MS - nowMs;
    if (named === this.#named && this.#told !== undefined && waitMs > 0) {
      this.#later ??= clock.after(waitMs, () => {
        this.#later = undefined;
        this.touch();
      });
      return;
    }
    this.#fullMs = Math.max(nowMs, this.#fullMs) + LEAST_MS;
    try {
      await api.apply(this.#path, RECORDER_MANAGER, {
        apiVersion: API_VERSION,
        kind: 'RecorderNode',
        metadata: { name: nodeID, namespace },
        status: now,
      });
      this.#told = urgent;
      this.#named = named;
      this.#toldMs = nowMs;
      this.#failed = false;
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      if (!this.#failed) log.warn({ reason: err.reason, problem: err.message }, 'RecorderNode not reported');
      this.#failed = true;
    }
  }
}

/** Without what changes all the time. */
function urgentPart(status: RecorderNodeStatus): string {
  return JSON.stringify({
    ...status,
    freeBytes: undefined,
    archives: status.archives?.map(({ camera }) => camera),
    cameras: status.cameras?.map((camera) => ({ ...camera, lastWrittenTime: undefined })),
  });
}
