// A place in object storage that has copies of footage: what it has, and how a file comes there and goes again.

import type { Readable } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { parseJson } from '../../base/parse-json.ts';
import { DAY_MS, MINUTE_MS } from '../../base/units.ts';
import { dayPath, dayStartMs } from '../archive/disk/names.ts';
import { Lru } from '../footage/lru.ts';
import {
  ACCOUNTS,
  IDENTITY,
  markOf,
  marksOf,
  parseAccount,
  parseMark,
  type AccountPlace,
  type Copy,
} from './layout.ts';
import { S3, S3Error, type Bucket } from './s3.ts';
import { sha256Hex } from './sign.ts';

export interface TargetConfig extends Bucket {
  readonly name: string;
  /** Ends with `/`, or is empty. */
  readonly prefix: string;
  readonly objectLock?: { readonly mode: 'governance' | 'compliance'; readonly forMs: number } | undefined;
  readonly encryption?: 'AES256' | 'aws:kms' | undefined;
}

/** The prefix has copies of another archive. */
export class ForeignPrefix extends Error {}

/** A file that is copied: its bytes are read when they are sent. */
interface Sent {
  readonly copy: Copy;
  readonly body: AsyncIterable<Buffer>;
  /** Nothing may be locked for longer. */
  readonly maxAgeMs: number | undefined;
  /** For playback: see `message.ts`. */
  readonly parts: string;
}

/** About ten bytes in a mark, as memory. */
const MAX_KEPT_COPIES = 100_000;
const MAX_KEPT_PARTS = 4_000;
/** Journals of other nodes: tens of kilobytes each. */
const MAX_KEPT_ACCOUNTS = 100;
const ACCOUNTS_FRESH_MS = MINUTE_MS;
/** What other nodes have copied since is not known for so long. */
const FRESH_MS = 10_000;
const OLD_FRESH_MS = 10 * MINUTE_MS;

/** A file of the account of a node. */
interface AccountFile extends AccountPlace {
  readonly key: string;
}

interface Kept {
  readonly copies: readonly Copy[];
  readonly untilMs: number;
}

export class Target {
  readonly name: string;
  readonly s3: S3;
  readonly #config: TargetConfig;
  readonly #clock: Clock;
  readonly #days: Lru<Kept>;
  readonly #parts: Lru<Promise<Buffer | undefined>>;
  readonly #accountFiles: Lru<Promise<Buffer | undefined>>;
  #accounts: { readonly found: Promise<readonly AccountFile[]>; readonly untilMs: number } | undefined;
  /** What the last `take` has found out; undefined: nothing yet. */
  #isOurs: boolean | undefined;

  constructor(config: TargetConfig, clock: Clock) {
    this.name = config.name;
    this.s3 = new S3(config, clock);
    this.#config = config;
    this.#clock = clock;
    this.#days = new Lru(clock, { capacity: MAX_KEPT_COPIES, weigh: ({ copies }) => 1 + copies.length });
    this.#parts = new Lru(clock, { capacity: MAX_KEPT_PARTS });
    this.#accountFiles = new Lru(clock, { capacity: MAX_KEPT_ACCOUNTS });
  }

  /** Whether the prefix is known to be that of this archive. */
  get isOurs(): boolean {
    return this.#isOurs === true;
  }

  /** Whether nothing of this archive is there, as far as is known: the prefix is another's, or there is no bucket. */
  get hasNothing(): boolean {
    return this.#isOurs === false;
  }

  /** Takes the prefix for the archive `owner`. Rejects with ForeignPrefix if it is another's, and with S3Error. */
  async take(owner: string): Promise<void> {
    const key = this.#key(IDENTITY);
    const read = async (): Promise<string | undefined> => {
      const text = await this.s3.read(key);
      return text && ownerIn(parseJson(text.toString()));
    };
    let found = await read().catch((err: unknown) => {
      if (err instanceof S3Error && err.code === 'no-bucket') this.#isOurs = false;
      throw err;
    });
    if (found === undefined) {
      const body = Buffer.from(`${JSON.stringify({ archive: owner })}\n`);
      await this.#put(key, body, { 'if-none-match': '*' }).catch((err: unknown) => {
        // Another node was faster.
        if (!(err instanceof S3Error && err.code === 'exists')) throw err;
      });
      found = await read();
    }
    this.#isOurs = found === owner;
    if (!this.#isOurs) {
      throw new ForeignPrefix(`the prefix holds copies of the archive ${found ?? 'without a name'}, not of ${owner}`);
    }
  }

  /** Lets the prefix, with all copies in it, belong to the archive `owner` from now on. Rejects with S3Error. */
  async adopt(owner: string): Promise<void> {
    await this.#put(this.#key(IDENTITY), Buffer.from(`${JSON.stringify({ archive: owner })}\n`), {});
  }

  /** Copies of a camera that begin on a UTC day, by start. Rejects with S3Error. */
  async copiesOn(cameraId: string, dayMs: number): Promise<readonly Copy[]> {
    const key = `${cameraId} ${dayMs}`;
    const nowMs = this.#clock.monotonicMs();
    const kept = this.#days.get(key);
    if (kept && nowMs < kept.untilMs) return kept.copies;
    const copies = new Map<string, Copy>();
    for (const name of await this.#names(marksOf(cameraId, dayMs))) {
      const copy = parseMark(name);
      // Of a file that was copied again after it had become longer, the longest counts.
      if (copy && copy.sizeBytes > (copies.get(copy.path)?.sizeBytes ?? 0)) copies.set(copy.path, copy);
    }
    const sorted = [...copies.values()].sort((a, b) => a.segment.startMs - b.segment.startMs);
    const isOld = this.#clock.wallMs() - dayMs > 2 * DAY_MS;
    this.#days.set(key, { copies: sorted, untilMs: nowMs + (isOld ? OLD_FRESH_MS : FRESH_MS) });
    return sorted;
  }

  /** Sizes of the files of a UTC day, by path. Rejects with S3Error. */
  async filesOn(dayMs: number): Promise<ReadonlyMap<string, number>> {
    const files = new Map<string, number>();
    for await (const { objects } of this.s3.list(this.#key(`${dayPath(dayMs)}/`))) {
      for (const { key, sizeBytes } of objects) files.set(this.#relative(key), sizeBytes);
    }
    return files;
  }

  /** Cameras with copies. Rejects with S3Error. */
  cameras(): Promise<string[]> {
    return this.#folders(marksOf());
  }

  /** The UTC days, `YYYY-MM-DD`, of a camera with copies, ascending. Rejects with S3Error. */
  days(cameraId: string): Promise<string[]> {
    return this.#folders(marksOf(cameraId));
  }

  /** Resolves when the target has the file and has confirmed its digest. Rejects with S3Error, and with what `body` rejects with. */
  async store({ copy, body, maxAgeMs = Infinity, parts }: Sent, signal: AbortSignal): Promise<void> {
    const key = this.#key(copy.path);
    const { sizeBytes, sha256 } = copy;
    const lock = this.#lockUntil(copy.endMs, maxAgeMs);
    const headers = { ...lock, 'content-type': 'video/mp4' };
    const told = await this.s3.put(key, body, { sizeBytes, sha256, headers: this.#encrypted(headers), signal });
    const checksum = told ?? (await this.s3.head(key))?.checksum;
    if (checksum !== Buffer.from(sha256, 'hex').toString('base64')) {
      const what = checksum === undefined ? 'does not tell the SHA-256 of what it stores' : 'stored other bytes';
      throw new S3Error('bad-digest', `it ${what}`);
    }
    const { cameraId, startMs } = copy.segment;
    // However old the list is: this node alone copies the file, and a mark that is overlooked does not count.
    const known = this.#days.get(`${cameraId} ${dayStartMs(startMs)}`)?.copies;
    const before = (known ?? (await this.copiesOn(cameraId, dayStartMs(startMs)))).filter(
      (one) => one.path === copy.path && one.sha256 !== sha256,
    );
    await this.#put(this.#key(markOf(copy)), Buffer.from(parts), lock);
    // Another form of the file that was copied before. It does not count any more: its size is another.
    for (const one of before) if (!this.#config.objectLock) await this.s3.remove(this.#key(markOf(one)));
    this.#add(copy);
  }

  /** Removes a copy. Rejects with S3Error. */
  async remove(copy: Copy): Promise<void> {
    await this.s3.remove(this.#key(copy.path));
    await this.s3.remove(this.#key(markOf(copy)));
    this.#forget(copy);
  }

  /** What was stored as `parts`. Undefined when the copy is gone. Rejects with S3Error. */
  partsOf(copy: Copy): Promise<Buffer | undefined> {
    return this.#readOnce(this.#parts, markOf(copy));
  }

  /** The files of the accounts of all nodes, as of the last minute; `isNow`: as they are now. Rejects with S3Error. */
  accounts(isNow = false): Promise<readonly AccountFile[]> {
    const nowMs = this.#clock.monotonicMs();
    if (!isNow && this.#accounts && nowMs < this.#accounts.untilMs) return this.#accounts.found;
    const found = this.#names(ACCOUNTS).then((keys) =>
      keys.flatMap((key) => {
        const place = parseAccount(key);
        return place ? [{ ...place, key }] : [];
      }),
    );
    const kept = (this.#accounts = { found, untilMs: nowMs + ACCOUNTS_FRESH_MS });
    // Who asked gets the error; the next one asks again.
    found.catch(() => {
      if (this.#accounts === kept) this.#accounts = undefined;
    });
    return found;
  }

  /** Stores a file of an account instead of the one at `before`. Rejects with S3Error. */
  async storeAccount(key: string, body: Buffer, before: string | undefined): Promise<void> {
    await this.#put(this.#key(key), body, {});
    if (before !== undefined) await this.removeAccount(before);
  }

  /** Rejects with S3Error. */
  async removeAccount(key: string): Promise<void> {
    await this.s3.remove(this.#key(key)).catch((err: unknown) => {
      // A bucket may lock everything for a time: the newest counts.
      if (!(err instanceof S3Error && err.code === 'forbidden')) throw err;
    });
  }

  /** Undefined when it is gone. Rejects with S3Error. */
  async readAccount(key: string): Promise<string | undefined> {
    return (await this.#readOnce(this.#accountFiles, key))?.toString();
  }

  async #readOnce(kept: Lru<Promise<Buffer | undefined>>, path: string): Promise<Buffer | undefined> {
    const key = this.#key(path);
    const read = kept.get(key) ?? this.s3.read(key);
    kept.set(key, read);
    try {
      return await read;
    } catch (err) {
      kept.delete(key);
      throw err;
    }
  }

  stream(path: string, range: { readonly from: number; readonly to: number }, signal?: AbortSignal): Promise<Readable> {
    return this.s3.get(this.#key(path), range, signal);
  }

  /** Tries what copying needs, and removes what it made. Rejects with S3Error. */
  async check(): Promise<void> {
    const key = this.#key('.kube-nvr/check');
    const body = Buffer.from('written by recorder archive check\n');
    // Not locked for long: the test must end.
    const lock = this.#config.objectLock && this.#lock(this.s3.serverMs() + 1_000, 'governance');
    const told = await this.#put(key, body, lock ?? {});
    if ((told ?? (await this.s3.head(key))?.checksum) !== Buffer.from(sha256Hex(body), 'hex').toString('base64'))
      throw new S3Error('bad-digest', 'it does not tell the SHA-256 of what it stores');
    if (lock) await this.#clock.sleep(2_000);
    await this.s3.remove(key);
    for await (const page of this.s3.list(this.#key(IDENTITY))) void page;
  }

  #lockUntil(endMs: number, maxAgeMs: number): Record<string, string> {
    const { objectLock } = this.#config;
    return objectLock ? this.#lock(endMs + Math.min(objectLock.forMs, maxAgeMs), objectLock.mode) : {};
  }

  #lock(untilMs: number, mode: 'governance' | 'compliance'): Record<string, string> {
    // The file is older than its lock lasts.
    if (untilMs <= this.s3.serverMs()) return {};
    return {
      'x-amz-object-lock-mode': mode.toUpperCase(),
      'x-amz-object-lock-retain-until-date': new Date(untilMs).toISOString(),
    };
  }

  #encrypted(headers: Record<string, string>): Record<string, string> {
    const { encryption } = this.#config;
    return encryption ? { ...headers, 'x-amz-server-side-encryption': encryption } : headers;
  }

  #put(key: string, body: Buffer, headers: Record<string, string>): Promise<string | undefined> {
    const [sizeBytes, sha256] = [body.length, sha256Hex(body)];
    return this.s3.put(key, body, { sizeBytes, sha256, headers: this.#encrypted(headers) });
  }

  async #names(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { objects } of this.s3.list(this.#key(prefix))) {
      for (const { key } of objects) names.push(this.#relative(key));
    }
    return names;
  }

  async #folders(prefix: string): Promise<string[]> {
    const names: string[] = [];
    for await (const { folders } of this.s3.list(this.#key(prefix), '/')) {
      for (const folder of folders) names.push(this.#relative(folder).slice(prefix.length, -1));
    }
    return names;
  }

  /** Lists of its day that are kept have it from now on, until they are read again. */
  #add(copy: Copy): void {
    const key = `${copy.segment.cameraId} ${dayStartMs(copy.segment.startMs)}`;
    const kept = this.#days.get(key);
    if (!kept) return;
    const others = kept.copies.filter(({ path }) => path !== copy.path);
    const copies = [...others, copy].sort((a, b) => a.segment.startMs - b.segment.startMs);
    this.#days.set(key, { ...kept, copies });
  }

  #forget({ segment: { cameraId, startMs } }: Copy): void {
    this.#days.delete(`${cameraId} ${dayStartMs(startMs)}`);
  }

  #key(path: string): string {
    return this.#config.prefix + path;
  }

  #relative(key: string): string {
    return key.slice(this.#config.prefix.length);
  }
}

function ownerIn(value: unknown): string {
  const archive = (value as { readonly archive?: unknown } | null | undefined)?.archive;
  return typeof archive === 'string' ? archive : '';
}
