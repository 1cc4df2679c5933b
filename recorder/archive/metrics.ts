// Counters of what the archive writes, for Prometheus. Moved once a fragment, never once a frame.

import { Counter, Histogram, type Registry } from 'prom-client';

export class ArchiveMetrics {
  readonly #bytes: Counter<'camera'>;
  readonly #frames: Counter<'camera'>;
  readonly #dropped: Counter<'camera' | 'cause'>;
  readonly #segments: Counter<'camera'>;
  readonly #failures: Counter<'camera' | 'cause'>;
  readonly #recovered: Counter<'outcome'>;
  readonly #syncs: Histogram;
  readonly #causes = new Map<string, Set<string>>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#bytes = new Counter({
      name: 'kube_nvr_archive_written_bytes_total',
      help: 'Bytes written to segment files.',
      labelNames: ['camera'],
      registers,
    });
    this.#frames = new Counter({
      name: 'kube_nvr_archive_written_frames_total',
      help: 'Pictures written to segment files.',
      labelNames: ['camera'],
      registers,
    });
    this.#dropped = new Counter({
      name: 'kube_nvr_archive_dropped_frames_total',
      help: 'Pictures that arrived and are in no file, by cause.',
      labelNames: ['camera', 'cause'],
      registers,
    });
    this.#segments = new Counter({
      name: 'kube_nvr_archive_segments_closed_total',
      help: 'Segments that were completed.',
      labelNames: ['camera'],
      registers,
    });
    this.#failures = new Counter({
      name: 'kube_nvr_archive_file_failures_total',
      help: 'Segment files that the disk stopped, by cause.',
      labelNames: ['camera', 'cause'],
      registers,
    });
    this.#recovered = new Counter({
      name: 'kube_nvr_archive_recovered_files_total',
      help: 'Files left open by a crash and found at start, by what became of them.',
      labelNames: ['outcome'],
      registers,
    });
    this.#syncs = new Histogram({
      name: 'kube_nvr_archive_sync_seconds',
      help: 'Time that bringing a segment file to the disk took.',
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    });
  }

  written(camera: string, bytes: number, frames: number): void {
    this.#bytes.inc({ camera }, bytes);
    this.#frames.inc({ camera }, frames);
  }

  dropped(camera: string, cause: string, frames: number): void {
    this.#remember(camera, cause);
    this.#dropped.inc({ camera, cause }, frames);
  }

  closed(camera: string): void {
    this.#segments.inc({ camera });
  }

  failed(camera: string, cause: string): void {
    this.#remember(camera, cause);
    this.#failures.inc({ camera, cause });
  }

  recovered(outcome: string): void {
    this.#recovered.inc({ outcome });
  }

  synced(durationMs: number): void {
    this.#syncs.observe(durationMs / 1000);
  }

  /** A camera that is gone leaves no series behind. */
  forget(camera: string): void {
    for (const counter of [this.#bytes, this.#frames, this.#segments]) counter.remove({ camera });
    for (const cause of this.#causes.get(camera) ?? []) {
      this.#dropped.remove({ camera, cause });
      this.#failures.remove({ camera, cause });
    }
    this.#causes.delete(camera);
  }

  #remember(camera: string, cause: string): void {
    const causes = this.#causes.get(camera) ?? new Set();
    this.#causes.set(camera, causes.add(cause));
  }
}
