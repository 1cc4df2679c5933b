// How much footage each camera has. The sums are kept beside the rows, because retention needs them at every removal.

/** One camera's segments of one UTC day. */
export interface UsedDay {
  readonly cameraId: string;
  /** Midnight UTC. */
  readonly startMs: number;
  /** Whether the sizes of all closed segments are known. */
  readonly isMeasured: boolean;
}

interface CameraUsage {
  days: number;
  bytes: number;
}

export class Usage {
  readonly #cameras = new Map<string, CameraUsage>();
  readonly #unmeasured = new Set<UsedDay>();
  /** Something has changed since this was last set to false. */
  dirty = false;

  cameras(): Iterable<string> {
    return this.#cameras.keys();
  }

  /** Size of a camera's closed segments. While not everything is measured, there may be more. */
  bytesOf(cameraId: string): number {
    return this.#cameras.get(cameraId)?.bytes ?? 0;
  }

  /** A day with segments of unknown size; undefined when every size is known. */
  get unmeasured(): UsedDay | undefined {
    return this.#unmeasured.values().next().value;
  }

  /** A camera has segments on a day. */
  began({ cameraId }: UsedDay): void {
    const usage = this.#cameras.get(cameraId);
    if (usage) usage.days++;
    else this.#cameras.set(cameraId, { days: 1, bytes: 0 });
  }

  /** A camera has no segments on a day any more. */
  ended({ cameraId }: UsedDay): void {
    const usage = this.#cameras.get(cameraId);
    if (usage && --usage.days === 0) this.#cameras.delete(cameraId);
  }

  changed(cameraId: string, bytes: number): void {
    const usage = this.#cameras.get(cameraId);
    if (!usage || bytes === 0) return;
    usage.bytes += bytes;
    this.dirty = true;
  }

  measured(day: UsedDay): void {
    if (day.isMeasured) this.#unmeasured.delete(day);
    else this.#unmeasured.add(day);
    this.dirty = true;
  }
}
