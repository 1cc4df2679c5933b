// Reports the state of a node to the operator in the status of its RecorderNode. Written when something changes, on average at
// most once a second, and every five minutes for fields that always change.

import { API_VERSION, RECORDER_MANAGER } from '../../crds/names.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { ApiServerError, type ApiServer } from './api-server.ts';

interface ReportOptions {
  readonly api: Pick<ApiServer, 'apply'>;
  readonly namespace: string;
  readonly nodeId: string;
  /** The complete current status. */
  readonly status: () => Promise<RecorderNodeStatus>;
  /** False while the RecorderNode may be that of another pool. */
  readonly mayTell: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * On average one report per second, with a burst for newly named cameras: a failover waits for those, and other changes of
 * cameras must not use up the burst (docs/design/failover.md).
 */
const LEAST_MS = 1_000;
export const BURST = 20;
/** Changes of cameras within this time are reported together. */
const TOGETHER_MS = 100;
const REFRESH_MS = 300_000;
const RETRY_MS = 2_000;

export class Report {
  readonly #options: ReportOptions;
  readonly #path: string;
  /** The last status written, without the fields that always change. */
  #told: string | undefined;
  #toldMs = -Infinity;
  /** The cameras and epochs in the last report. */
  #named: string | undefined;
  /** When the whole burst is available again. */
  #fullMs = -Infinity;
  #timer: Timer | undefined;
  #later: Timer | undefined;
  #work: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(options: ReportOptions) {
    this.#options = options;
    this.#path = `/apis/${API_VERSION}/namespaces/${options.namespace}/recordernodes/${options.nodeId}/status`;
  }

  /** Call when something may have changed; cheap enough for every tick. */
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

  /** Reports everything again: the API server was unreachable and may have lost data. */
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
    const { api, clock, log, nodeId, namespace, status, mayTell } = this.#options;
    if (!mayTell()) return;
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
        metadata: { name: nodeId, namespace },
        status: now,
      });
      this.#told = urgent;
      this.#named = named;
      this.#toldMs = nowMs;
      this.#failed = false;
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      if (!this.#failed)
        log.warn({ reason: err.reason, problem: err.message }, 'the status of the RecorderNode cannot be written');
      this.#failed = true;
    }
  }
}

/**
 * The status without the fields that always change. Footage of a camera that the node does not record grows only when the node bridges a
 * restart of the one that does: others have to know of it at once.
 */
function urgentPart(status: RecorderNodeStatus): string {
  const recorded = new Set(status.cameras?.map(({ name }) => name));
  return JSON.stringify({
    ...status,
    freeBytes: undefined,
    archives: status.archives?.map(({ camera, newestTime }) => [camera, recorded.has(camera) || newestTime]),
    cameras: status.cameras?.map((camera) => ({ ...camera, lastWrittenTime: undefined })),
  });
}
