// Caches images: one image is shared by all callers while it is made and for some time afterwards.

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { FetchedImage } from './fetch-image.ts';

export interface StillImage extends FetchedImage {
  /** Identifies these bytes, in quotes as in an ETag (RFC 9110 §8.8.3). */
  readonly etag: string;
  /** How much longer it will be returned. */
  readonly remainingMs: number;
}

interface SharedImagesOptions {
  /** From the moment the image is made. */
  readonly goodForMs: number;
  /** For a failure, so that repeated requests do not overload what fails. */
  readonly failureGoodForMs: number;
  readonly clock: Clock;
  /** For the cached images; one that finds no space is returned to its callers but not cached. */
  readonly memory: MemoryAccount;
}

interface Entry {
  /** What the image was made from; if it differs, a new image is made. */
  readonly from: string;
  readonly image: Promise<FetchedImage & { readonly etag: string }>;
  /** Undefined while it is being made. */
  kept: KeptImage | undefined;
}

interface KeptImage {
  readonly madeMs: number;
  readonly goodForMs: number;
  /** To be called once. */
  readonly release: () => void;
}

export class SharedImages {
  readonly #options: SharedImagesOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: SharedImagesOptions) {
    this.#options = options;
  }

  /**
   * Returns the image `key`, made by `make` unless there is one with the same `from` that is younger than `maxAgeMs`. Rejects
   * with what `make` throws.
   */
  async get(
    key: string,
    from: string,
    make: () => Promise<FetchedImage>,
    maxAgeMs = this.#options.goodForMs,
  ): Promise<StillImage> {
    let entry = this.#entries.get(key);
    if (!entry || entry.from !== from || (entry.kept && this.#remainingMs(entry.kept, maxAgeMs) <= 0)) {
      entry = this.#make(key, from, make);
    }
    const image = await entry.image;
    return { ...image, remainingMs: entry.kept ? Math.max(0, this.#remainingMs(entry.kept, maxAgeMs)) : 0 };
  }

  /** Makes the image `key` anew for the next caller. */
  forget(key: string): void {
    this.#entries.get(key)?.kept?.release();
    this.#entries.delete(key);
  }

  #remainingMs({ madeMs, goodForMs }: KeptImage, maxAgeMs: number): number {
    return madeMs + Math.min(goodForMs, maxAgeMs) - this.#options.clock.monotonicMs();
  }

  #make(key: string, from: string, make: () => Promise<FetchedImage>): Entry {
    const { goodForMs, failureGoodForMs } = this.#options;
    const image = make().then((made) => ({ ...made, etag: etagOf(made.body) }));
    const entry: Entry = { from, image, kept: undefined };
    this.#entries.get(key)?.kept?.release();
    this.#entries.set(key, entry);
    image.then(
      ({ body }) => this.#keep(key, entry, goodForMs, body.length),
      () => this.#keep(key, entry, failureGoodForMs, 0),
    );
    return entry;
  }

  /** Releases images that are no longer requested. */
  #keep(key: string, entry: Entry, goodForMs: number, bytes: number): void {
    const { clock, memory } = this.#options;
    const isCurrent = this.#entries.get(key) === entry;
    if (!isCurrent || !memory.take(bytes)) {
      if (isCurrent) this.#entries.delete(key);
      return;
    }
    const timer = clock.after(goodForMs, () => release());
    const release = (): void => {
      timer.cancel();
      memory.giveBack(bytes);
      this.#entries.delete(key);
    };
    entry.kept = { madeMs: clock.monotonicMs(), goodForMs, release };
  }
}

const etagOf = (body: Buffer): string => `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
