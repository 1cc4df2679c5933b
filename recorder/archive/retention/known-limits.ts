// The limits of the node and of each camera. Footage keeps the limits of its camera after the camera has left the node
// or was deleted. The last known ones are stored with the footage, in `.kube-nvr/camera-limits.json`.

import { parseJson } from '../../../base/parse-json.ts';
import { z } from 'zod';
import type { FileSystem } from '../disk/file-system.ts';
import { readIfThere, replaceFile } from '../disk/state-file.ts';
import type { Limits, RetentionLimits } from './plan.ts';

const bytes = z.number().nonnegative();
const File = z.object({
  version: z.literal(1),
  cameras: z.record(
    z.string(),
    z.object({
      maxAgeMs: bytes.optional(),
      maxSizeBytes: bytes.optional(),
      minFree: z
        .discriminatedUnion('kind', [
          z.object({ kind: z.literal('percent'), percent: bytes }),
          z.object({ kind: z.literal('bytes'), bytes }),
        ])
        .optional(),
    }),
  ),
});

export class KnownLimits {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #now: () => Limits;
  /** The last known limits of every camera that was configured or has footage. */
  readonly #last = new Map<string, RetentionLimits>();
  #saved = '';

  /** `now`: the limits of the cameras that are configured. */
  constructor(fs: FileSystem, path: string, now: () => Limits) {
    this.#fs = fs;
    this.#path = path;
    this.#now = now;
  }

  get node(): RetentionLimits {
    return this.#now().node;
  }

  /** A camera's own limits, in addition to those of the node. */
  of(cameraId: string): RetentionLimits | undefined {
    return this.#now().cameras.get(cameraId) ?? this.#last.get(cameraId);
  }

  /** Reads what earlier runs stored. Throws the system's error, or that the file is damaged. */
  async load(): Promise<void> {
    const text = await readIfThere(this.#fs, this.#path);
    this.#last.clear();
    this.#saved = text ?? textOf({});
    if (text === undefined) return;
    const file = File.safeParse(parseJson(text));
    if (!file.success) throw new Error(`${this.#path} is damaged`);
    for (const [cameraId, limits] of Object.entries(file.data.cameras)) this.#last.set(cameraId, limits);
  }

  /** Also stores that a camera has no limits: they may have been lifted. */
  remember(): void {
    for (const [cameraId, limits] of this.#now().cameras) this.#last.set(cameraId, limits);
  }

  /** Call it only if all footage is known. */
  forgetOthers(withFootage: ReadonlySet<string>): void {
    const { cameras } = this.#now();
    for (const cameraId of this.#last.keys()) {
      if (!withFootage.has(cameraId) && !cameras.has(cameraId)) this.#last.delete(cameraId);
    }
  }

  /**
   * Writes what has changed; of the cameras that are configured, those with footage. Rejects with the system's error; the
   * next call tries again.
   */
  async save(withFootage: ReadonlySet<string>): Promise<void> {
    const { cameras } = this.#now();
    const kept = [...this.#last].filter(
      ([cameraId, limits]) => isLimit(limits) && (withFootage.has(cameraId) || !cameras.has(cameraId)),
    );
    const text = textOf(Object.fromEntries(kept.toSorted(([a], [b]) => (a < b ? -1 : 1))));
    if (text === this.#saved) return;
    await replaceFile(this.#fs, this.#path, text);
    this.#saved = text;
  }
}

const textOf = (cameras: z.input<typeof File>['cameras']): string => JSON.stringify({ version: 1, cameras });

const isLimit = (limits: RetentionLimits): boolean => Object.values(limits).some((limit) => limit !== undefined);
