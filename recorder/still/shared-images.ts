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
  /** For the cached images; one that finds no room is returned to its callers but not cached. */
  readonly memory: MemoryAccount;
}

interface Entry {
  /** What the image was made from; if it differs, a new image is made. */
  readonly from: string;
  readonly image: Promise<FetchedImage & { readonly etag: string }>;
  /** Undefined while it is being made. */
  goodUntilMs: number | undefined;
}

export class SharedImages {
  readonly #o: SharedImagesOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: SharedImagesOptions) {
    this.#o = options;
  }

  /** Returns the image `key`, made by `make` unless there is one with the same `from`. Rejects with what `make` throws. */
  async get(key: string, from: string, make: () => Promise<FetchedImage>): Promise<StillImage> {
    const { clock } = this.#o;
    let entry = this.#entries.get(key);
    if (!entry || entry.from !== from || (entry.goodUntilMs ?? Infinity) <= clock.monotonicMs()) {
      entry = this.#make(key, from, make);
    }
    const image = await entry.image;
    return { ...image, remainingMs: Math.max(0, (entry.goodUntilMs ?? 0) - clock.monotonicMs()) };
  }

  #make(key: string, from: string, make: () => Promise<FetchedImage>): Entry {
    const { goodForMs, failureGoodForMs } = this.#o;
    const image = make().then((made) => ({ ...made, etag: etagOf(made.body) }));
    const entry: Entry = { from, image, goodUntilMs: undefined };
    this.#entries.set(key, entry);
    image.then(
      ({ body }) => this.#keep(key, entry, goodForMs, body.length),
      () => this.#keep(key, entry, failureGoodForMs, 0),
    );
    return entry;
  }

  /** Releases images that are no longer requested. */
  #keep(key: string, entry: Entry, forMs: number, bytes: number): void {
    const { clock, memory } = this.#o;
    const forget = (): void => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
    };
    if (!memory.take(bytes)) return forget();
    entry.goodUntilMs = clock.monotonicMs() + forMs;
    clock.after(forMs, () => {
      memory.giveBack(bytes);
      forget();
    });
    return undefined;
  }
}

const etagOf = (body: Buffer): string => `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
