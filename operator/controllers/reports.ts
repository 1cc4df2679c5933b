// Finds reports of cameras with an epoch that the Camera never had. While the API server is unreachable, recorders believe the
// report with the highest epoch: with the stolen token of one node, an attacker could attract all cameras to it. Only the
// operator knows all Cameras, so it names false reports in the spec of the RecorderNode, and recorders ignore them.

import type { Clock } from '../../base/clock.ts';
import type { RecorderNode } from '../../crds/recorder-node.ts';
import type { KubeApi } from '../kube/api.ts';
import { RECORDER_NODE } from '../kube/resources.ts';
import type { Outcome } from '../kube/workqueue.ts';
import type { Caches } from '../observe/caches.ts';

/** The cache of Cameras may lag behind that of RecorderNodes: a report that is still ahead after this time is false. */
const JUDGED_AFTER_MS = 2_000;
const REMEMBERED_MS = 60_000;

export class ReportJudge {
  readonly #options: { readonly api: KubeApi; readonly caches: Pick<Caches, 'cameras'>; readonly clock: Clock };
  /** By node and camera: when the report was first and last seen to be ahead of the Camera; monotonic ms. */
  readonly #ahead = new Map<string, Map<string, { readonly sinceMs: number; seenMs: number }>>();

  constructor(options: { readonly api: KubeApi; readonly caches: Pick<Caches, 'cameras'>; readonly clock: Clock }) {
    this.#options = options;
  }

  forget(key: string): void {
    this.#ahead.delete(key);
  }

  /** Updates `spec.refusedReports`. Throws ApiError. */
  async judge(key: string, { metadata: { namespace, name }, spec, status }: RecorderNode): Promise<Outcome | void> {
    const { api, caches, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const seen = this.#ahead.get(key) ?? new Map<string, { readonly sinceMs: number; seenMs: number }>();
    // A node that reports correctly in between does not restart the wait.
    for (const [camera, { seenMs }] of seen) if (nowMs - seenMs > REMEMBERED_MS) seen.delete(camera);
    const ahead: string[] = [];
    for (const { name: camera, epoch } of status?.cameras ?? []) {
      const known = caches.cameras.get(`${namespace}/${camera}`)?.status?.assignment?.epoch ?? 0;
      if (epoch <= known) continue;
      ahead.push(camera);
      seen.set(camera, { sinceMs: seen.get(camera)?.sinceMs ?? nowMs, seenMs: nowMs });
    }
    if (seen.size > 0) this.#ahead.set(key, seen);
    else this.#ahead.delete(key);
    const shown = spec.refusedReports ?? [];
    const isFalse = (camera: string): boolean => nowMs - (seen.get(camera)?.sinceMs ?? nowMs) >= JUDGED_AFTER_MS;
    const refused = ahead.filter((camera) => shown.includes(camera) || isFalse(camera)).sort();
    if (JSON.stringify(refused) !== JSON.stringify([...shown].sort())) {
      const refusedReports = refused.length > 0 ? refused : null;
      await api.mergePatch(RECORDER_NODE, { namespace, name }, { spec: { refusedReports } });
    }
    return ahead.length > 0 ? { recheckMs: JUDGED_AFTER_MS } : undefined;
  }
}
