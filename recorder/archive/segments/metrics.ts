// Metrics of the disk for Prometheus; those of single cameras are computed from their status.

import { Counter, Histogram, type Registry } from 'prom-client';
import { scraped } from '../../../base/scraped.ts';
import type { DiskFaultCode, WrongDiskCode } from '../disk/faults.ts';

/** Read at each scrape. */
interface ArchiveSources {
  /** Why the record path is not our archive now; undefined if it is. */
  readonly wrongDisk?: () => WrongDiskCode | undefined;
  readonly disks?: () => readonly { readonly path: string; readonly fault: unknown }[];
  readonly oldest?: () => Iterable<{ readonly camera: string; readonly oldestMs: number }>;
}

export class ArchiveMetrics {
  readonly #failures: Counter<'cause'>;
  readonly #recovered: Counter<'outcome'>;
  readonly #syncs: Histogram;
  readonly #probes: Histogram<'disk'>;

  constructor(
    registry: Registry,
    { wrongDisk = () => undefined, disks = () => [], oldest = () => [] }: ArchiveSources = {},
  ) {
    const registers = [registry];
    const { gauge } = scraped(registry);
    gauge(
      'archive_oldest_footage_timestamp_seconds',
      'When the oldest footage of a camera on this node begins.',
      ['camera'],
      () => Array.from(oldest(), ({ camera, oldestMs }) => [{ camera }, oldestMs / 1000]),
    );
    gauge(
      'archive_wrong_disk',
      '1 while the record path is not the archive of this node, so that nothing is recorded; by cause.',
      ['cause'],
      () => {
        const cause = wrongDisk();
        return cause === undefined ? [] : [[{ cause }, 1]];
      },
    );
    gauge(
      'archive_disk_failing',
      'Of several disks, 1 for each that is missing, foreign or fails, so that its cameras record to the others; else 0.',
      ['disk'],
      () => {
        const all = disks();
        return all.length > 1 ? all.map(({ path, fault }) => [{ disk: path }, fault ? 1 : 0]) : [];
      },
    );
    this.#probes = new Histogram({
      name: 'kube_nvr_archive_disk_probe_seconds',
      help: 'Of several disks: how long each takes to create, sync and remove a small file, every 5 seconds.',
      labelNames: ['disk'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    });
    this.#failures = new Counter({
      name: 'kube_nvr_archive_file_failures_total',
      help: 'Segment files that ended because of a disk failure, by cause.',
      labelNames: ['cause'],
      registers,
    });
    this.#recovered = new Counter({
      name: 'kube_nvr_archive_recovered_files_total',
      help: 'Files that a crash left open and the start found, by outcome.',
      labelNames: ['outcome'],
      registers,
    });
    this.#syncs = new Histogram({
      name: 'kube_nvr_archive_sync_seconds',
      help: 'Duration of a sync of an open segment file.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    });
  }

  failed(cause: DiskFaultCode): void {
    this.#failures.inc({ cause });
  }

  recovered(outcome: string): void {
    this.#recovered.inc({ outcome });
  }

  probed(path: string, durationMs: number): void {
    this.#probes.observe({ disk: path }, durationMs / 1000);
  }

  synced(durationMs: number): void {
    this.#syncs.observe(durationMs / 1000);
  }
}
