// Questions for images in, one image for all who ask while it is made and for some time after out.

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { FetchedImage } from './fetch-image.ts';

export interface StillImage extends FetchedImage {
  /** Names these bytes, in quotes as in an ETag (RFC 9110 §8.8.3). */
  readonly etag: string;
  /** For how much longer it is handed out. */
  readonly remainingMs: number;
}

export interface SharedImagesOptions {
  /** From the moment at which it is there. */
  readonly goodForMs: number;
  /** A failure, so that whoever asks again and again does not wear out what fails. */
  readonly failureGoodForMs: number;
  readonly clock: Clock;
  /** For images that are kept; one that has no room there is handed out to the callers that wait for it, and not kept. */
  readonly memory: MemoryAccount;
}

interface Entry {
  /** What it was made from; another one makes another image. */
  readonly from: string;
  readonly image: Promise<FetchedImage & { readonly etag: string }>;
  /** Undefined while it is made. */
  goodUntilMs: number | undefined;
}

export class SharedImages {
  readonly #o: SharedImagesOptions;
  readonly #entries = new Map<string, Entry>();

  constructor(options: SharedImagesOptions) {
    this.#o = options;
  }

  /** The image called `key`, made by `make` when there is none made `from` the same. Rejects with what `make` throws. */
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

  /** Images that nobody asks for any more take no memory. */
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
