// Metrics of the disk space for footage.

import { Counter, type Registry } from 'prom-client';
import { scraped } from '../../../base/scraped.ts';
import type { RetentionRule } from './plan.ts';

/** Values that are read at each scrape. */
export interface RetentionFigures {
  readonly freeBytes: number | undefined;
  /** Of the file system. */
  readonly totalBytes: number | undefined;
  readonly exhausted: boolean;
  /** Bytes by camera. */
  readonly used: Iterable<readonly [cameraId: string, bytes: number]>;
  readonly protected: Iterable<readonly [cameraId: string, bytes: number]>;
  /** The limits that protected footage alone exceeds. */
  readonly overQuota: readonly { readonly scope: 'node' | 'camera'; readonly cameraId: string }[];
  /** Whether the sizes of all files are known. */
  readonly measured: boolean;
}

export class RetentionMetrics {
  readonly #segments: Counter<'rule'>;
  readonly #bytes: Counter<'rule'>;
  readonly #failures: Counter;
  readonly #pauses: Counter;

  constructor(registry: Registry, figures: () => RetentionFigures) {
    const registers = [registry];
    this.#segments = new Counter({
      name: 'kube_nvr_retention_removed_segments_total',
      help: 'Segments removed, by the rule that removed them.',
      labelNames: ['rule'],
      registers,
    });
    this.#bytes = new Counter({
      name: 'kube_nvr_retention_removed_bytes_total',
      help: 'Bytes of removed segments, by the rule that removed them.',
      labelNames: ['rule'],
      registers,
    });
    this.#failures = new Counter({
      name: 'kube_nvr_retention_failures_total',
      help: 'Segments that could not be removed.',
      registers,
    });
    this.#pauses = new Counter({
      name: 'kube_nvr_retention_write_waits_total',
      help: 'How often a write found the disk full and waited until old footage was removed.',
      registers,
    });
    const { gauge } = scraped(registry);
    gauge(
      'retention_free_bytes',
      'Free space on the file system of the archive, at the last check.',
      [],
      () => figures().freeBytes ?? 0,
    );
    gauge(
      'retention_disk_bytes',
      'Size of the file system of the archive, at the last check.',
      [],
      () => figures().totalBytes ?? 0,
    );
    gauge(
      'retention_room_bytes',
      'Space for new footage: free space, and footage that may be removed for it. It stays the same while a disk fills with footage; protected footage and files of other programs reduce it.',
      [],
      () => {
        const { freeBytes, used, protected: kept, measured } = figures();
        return freeBytes === undefined || !measured ? 0 : freeBytes + Math.max(0, sumOf(used) - sumOf(kept));
      },
    );
    gauge(
      'retention_exhausted',
      '1 while the disk is full and no footage may be removed: new footage is lost.',
      [],
      () => (figures().exhausted ? 1 : 0),
    );
    gauge('retention_measured', '1 when the sizes of all files are known; maxSize applies from then on.', [], () =>
      figures().measured ? 1 : 0,
    );
    const perCamera = (bytes: RetentionFigures['used']) =>
      Array.from(bytes, ([camera, value]) => [{ camera }, value] as const);
    gauge('retention_used_bytes', 'Footage of a camera.', ['camera'], () => perCamera(figures().used));
    gauge('retention_protected_bytes', 'Protected footage of a camera.', ['camera'], () =>
      perCamera(figures().protected),
    );
    gauge(
      'protected_over_quota',
      '1 if protected footage alone exceeds maxSize, of the node or of a camera.',
      ['scope', 'camera'],
      () => figures().overQuota.map(({ scope, cameraId }) => [{ scope, camera: cameraId }, 1]),
    );
  }

  removed(rule: RetentionRule, bytes: number): void {
    this.#segments.inc({ rule });
    this.#bytes.inc({ rule }, bytes);
  }

  failed(): void {
    this.#failures.inc();
  }

  waited(): void {
    this.#pauses.inc();
  }
}

function sumOf(bytes: Iterable<readonly [cameraId: string, bytes: number]>): number {
  let sum = 0;
  for (const [, one] of bytes) sum += one;
  return sum;
}
