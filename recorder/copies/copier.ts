// Copies closed files to one target, the newest first, one at a time, and only while no write of a recording waits. What is missing
// there is the difference of two lists: no journal can be wrong, and another process continues where this one stopped. Removes
// copies that are too old.

import { createHash } from 'node:crypto';
import { Backoff } from '../../base/backoff.ts';
import { cameraOfFootage } from '../../base/camera-id.ts';
import type { Clock } from '../../base/clock.ts';
import { isExpected, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import { DAY_MS, MINUTE_MS } from '../../base/units.ts';
import type { ClosedSegment } from '../archive/catalogue/segment.ts';
import { dayStartMs, formatPath, type SegmentName } from '../archive/disk/names.ts';
import type { ArchiveFile, ArchiveFiles } from '../footage/archive-file.ts';
import { footageMessage } from '../footage/message.ts';
import { Mp4Error } from '../mp4/error.ts';
import { originOf } from '../mp4/meta.ts';
import { readParts } from '../mp4/parts.ts';
import { AccountCopier, protectedAt } from './account.ts';
import type { CopiedArchive } from './copied-archive.ts';
import { Fetcher } from './fetcher.ts';
import { isWithin, type Hours } from './hours.ts';
import type { Copy } from './layout.ts';
import { Pace, type Pacing } from './pace.ts';
import { S3Error } from './s3.ts';
import { ForeignPrefix, type Target } from './target.ts';

/** Which footage of a camera is copied. */
export interface CopyRule {
  /** Age of a file before it is copied. */
  readonly afterMs: number;
  /** How long a copy is kept; undefined: as long as footage may be. */
  readonly keepMs: number | undefined;
}

interface CopierOptions {
  readonly target: Target;
  readonly archive: CopiedArchive;
  readonly files: ArchiveFiles;
  /** Of a camera with this target; undefined: it is not copied there. */
  readonly ruleOf: (cameraId: string) => CopyRule | undefined;
  /** Bits a second. */
  readonly maxBitrate: number | undefined;
  /** When copying is allowed. */
  readonly hours: Hours | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Missing {
  readonly segment: SegmentName;
  /** Undefined for a file that was found in the catalogue: its name tells the start. */
  readonly endMs: number | undefined;
  notBeforeMs: number;
}

const LOOK_MS = 1_000;
const RETRY = { firstMs: 1_000, maxMs: MINUTE_MS };
/** A file that could not be copied, although others can. */
const FILE_RETRY_MS = 5 * MINUTE_MS;
const COMPARE_EVERY_MS = DAY_MS;
/** With so many files that wait, older days are compared later. */
const MAX_WAITING = 20_000;
const REMOVE_EVERY_MS = 30 * MINUTE_MS;
const ACCOUNT_EVERY_MS = 5 * MINUTE_MS;
const LAG_FRESH_MS = 5_000;
/** Larger ones cost less: half of the processor time of sending is per piece. */
const PIECE_BYTES = 1024 * 1024;
/** Of one request. */
const MAX_BYTES = 5 * 1024 ** 3;

/** One file cannot be copied now; the others can. */
class FileFailed extends Error {}

export class Copier {
  readonly #options: CopierOptions;
  readonly #log: Log;
  readonly #stop = new AbortController();
  readonly #pacing: Pacing;
  readonly #fetcher: Fetcher;
  /** By path, in any order. Those for which it is not time within a day are found when that day is near. */
  readonly #missing = new Map<string, Missing>();
  /** How many more the target lacks, for which it is not time yet. */
  #laterFiles = 0;
  /** Days before this were not compared yet; undefined: all were. */
  #restMs: number | undefined;
  #running: Promise<void> | undefined;
  #problem: Reason | undefined;
  /** Why a copy that is too old could not be removed. */
  #kept: string | undefined;
  #comparedMs = -Infinity;
  #lag = { atMs: -Infinity, ms: 0 };
  copiedFiles = 0;
  copiedBytes = 0;
  failures = 0;
  /** Files that retention removed before they were copied. */
  missedFiles = 0;

  constructor(options: CopierOptions) {
    this.#options = options;
    this.#log = options.log.child({ target: options.target.name });
    const { archive, clock, maxBitrate, target } = options;
    this.#pacing = { isBehind: () => archive.isBehind(), clock, maxBitrate };
    this.#fetcher = new Fetcher({ target, archive, pacing: this.#pacing, log: this.#log });
  }

  get name(): string {
    return this.#options.target.name;
  }

  /** Why nothing is copied, or a file was not, or a copy stays that is too old. */
  get problem(): Reason | undefined {
    return this.#problem ?? (this.#kept === undefined ? undefined : { code: 'old-copies-kept', message: this.#kept });
  }

  /** Other files may be wanted now. */
  compareAgain(): void {
    this.#comparedMs = -Infinity;
    for (const [path, { segment }] of this.#missing) if (!this.#isCopied(segment)) this.#missing.delete(path);
  }

  get waitingFiles(): number {
    return this.#missing.size;
  }

  /** Closed files of copied cameras that the target does not have; while a long backlog is compared, at least so many. */
  get lackingFiles(): number {
    return this.#missing.size + this.#laterFiles;
  }

  /** How long the oldest file has waited for which it was time, as of some seconds ago; 0 if none waits. */
  lagMs(): number {
    const { clock } = this.#options;
    // There may be hundreds of thousands at first, and warnings are asked for each second.
    if (clock.monotonicMs() - this.#lag.atMs >= LAG_FRESH_MS) {
      const nowMs = clock.wallMs();
      this.#lag = { atMs: clock.monotonicMs(), ms: 0 };
      for (const one of this.#missing.values()) this.#lag.ms = Math.max(this.#lag.ms, nowMs - this.#dueMs(one));
      if (this.#restMs !== undefined) this.#lag.ms = Math.max(this.#lag.ms, nowMs - this.#restMs);
    }
    return this.#lag.ms;
  }

  closed({ segment, endMs }: ClosedSegment): void {
    const missing = { segment, endMs, notBeforeMs: -Infinity };
    if (this.#isNear(missing)) this.#missing.set(formatPath(segment), missing);
    else if (this.#isCopied(segment)) this.#laterFiles++;
  }

  get fetchedFiles(): number {
    return this.#fetcher.fetchedFiles;
  }

  removed(segment: SegmentName): void {
    this.#fetcher.removed(segment);
    const isYoung = this.#isCopied(segment) && !this.#isNear({ segment, endMs: undefined, notBeforeMs: -Infinity });
    const isMissing = this.#missing.delete(formatPath(segment));
    if (isMissing || isYoung) this.missedFiles++;
    if (!isMissing && isYoung) this.#laterFiles = Math.max(0, this.#laterFiles - 1);
  }

  start(): void {
    this.#running = this.#run().catch((err: unknown) =>
      this.#log.bug({ err }, 'footage is not copied any more because of an internal error'),
    );
  }

  async close(): Promise<void> {
    this.#stop.abort();
    // Ends what is asked of a target that does not answer, too.
    await this.#options.target.s3.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, target, archive } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(RETRY);
    let isTaken = false;
    const account = new AccountCopier(target, archive.account);
    let [removedMs, accountMs] = [-Infinity, -Infinity];
    while (!signal.aborted) {
      const nowMs = clock.monotonicMs();
      try {
        const owner = archive.owner();
        if (owner === undefined) {
          await clock.sleep(LOOK_MS, signal);
          continue;
        }
        if (!isTaken) await target.take(owner);
        isTaken = true;
        if (nowMs - accountMs >= ACCOUNT_EVERY_MS) {
          await account.copy((cameraId) => this.#options.ruleOf(cameraId) !== undefined);
          accountMs = nowMs;
        }
        if (nowMs - this.#comparedMs >= COMPARE_EVERY_MS) {
          this.#comparedMs = nowMs;
          await this.#compare(Infinity).catch((err: unknown) => {
            this.#comparedMs = -Infinity;
            throw err;
          });
        } else if (this.#restMs !== undefined && this.#missing.size < MAX_WAITING / 2)
          await this.#compare(this.#restMs);
        if (nowMs - removedMs >= REMOVE_EVERY_MS) {
          await this.#removeOld();
          removedMs = nowMs;
        }
        const next = this.#next();
        if (next) await this.#copy(...next);
        else if (!this.#isTime() || !(await this.#fetcher.next(signal))) await clock.sleep(LOOK_MS, signal);
        backoff.reset();
        if (!this.#hasFailed()) this.#tell(undefined);
      } catch (err) {
        if (signal.aborted) return;
        if (!isExpected(err, S3Error, ForeignPrefix, FileFailed)) throw err;
        this.failures++;
        this.#tell({ code: codeOf(err), message: messageOf(err) });
        if (err instanceof FileFailed) continue;
        // The next request that fails says what is wrong: one for a large file may only be cut off.
        isTaken = false;
        await clock.sleep(backoff.next(), signal);
      }
    }
  }

  /** Finds out which files of the days before `beforeMs` the target lacks, the newest day first. */
  async #compare(beforeMs: number): Promise<void> {
    const { archive, target } = this.#options;
    const open = archive.openPaths();
    const days = Map.groupBy(archive.days(), ({ startMs }) => startMs);
    this.#restMs = undefined;
    // A new count takes the place of the old one when it is complete.
    const known = beforeMs === Infinity ? this.#laterFiles : 0;
    let later = 0;
    for (const [dayMs, cameras] of [...days].reverse()) {
      if (dayMs >= beforeMs) continue;
      if (this.#missing.size >= MAX_WAITING) {
        this.#restMs = dayMs + 1;
        break;
      }
      const copied = cameras.filter((day) => this.#isCopied(day));
      if (copied.length === 0) continue;
      const files = await target.filesOn(dayMs);
      for (const day of copied) {
        const marks = new Map((await target.copiesOn(day.cameraId, dayMs)).map((copy) => [copy.path, copy.sizeBytes]));
        for (const segment of day.segments()) {
          const path = formatPath(segment);
          const [marked, size] = [marks.get(path), files.get(path)];
          const isThere = marked !== undefined && marked === size && size === (day.sizeOf(segment) ?? size);
          const missing = { segment, endMs: undefined, notBeforeMs: -Infinity };
          if (isThere || open.has(path) || this.#missing.has(path)) continue;
          if (this.#isNear(missing)) this.#missing.set(path, missing);
          else later++;
        }
      }
      this.#stop.signal.throwIfAborted();
    }
    this.#laterFiles += later - known;
  }

  /** Whether a file waits because of its own failure. */
  #hasFailed(): boolean {
    for (const { notBeforeMs } of this.#missing.values()) if (notBeforeMs > -Infinity) return true;
    return false;
  }

  #dueMs({ segment, endMs }: Missing): number {
    const { afterMs = Infinity } = this.#options.ruleOf(cameraOfFootage(segment.cameraId)) ?? {};
    return (endMs ?? segment.startMs) + afterMs;
  }

  #isCopied({ cameraId }: Pick<SegmentName, 'cameraId'>): boolean {
    return this.#options.ruleOf(cameraOfFootage(cameraId)) !== undefined;
  }

  /** Whether it is time for it before all files are compared again. */
  #isNear(one: Missing): boolean {
    return this.#dueMs(one) < this.#options.clock.wallMs() + COMPARE_EVERY_MS;
  }

  #isTime(): boolean {
    const { clock, hours } = this.#options;
    return !hours || isWithin(hours, clock.wallMs());
  }

  /** The newest file for which it is time. */
  #next(): [path: string, Missing] | undefined {
    const { clock } = this.#options;
    const [nowMs, wallMs] = [clock.monotonicMs(), clock.wallMs()];
    if (!this.#isTime()) return undefined;
    let next: [string, Missing] | undefined;
    for (const [path, one] of this.#missing) {
      if (one.notBeforeMs > nowMs || one.segment.startMs <= (next?.[1].segment.startMs ?? -Infinity)) continue;
      if (this.#dueMs(one) <= wallMs) next = [path, one];
    }
    return next;
  }

  async #copy(path: string, missing: Missing): Promise<void> {
    const { files, archive, clock, target } = this.#options;
    if (archive.openPaths().has(path)) {
      // It is told again when it is closed.
      this.#missing.delete(path);
      return;
    }
    try {
      const isThere = await files.use(missing.segment, async (file) => {
        const [copy, parts] = await this.#described(file);
        // A client of HTTP asks for a piece when the system has taken the one before. It could have what follows only if that is not so: the
        // target refuses other bytes.
        const body = this.#pieces(file, 2);
        const maxAgeMs = archive.wantedMs(missing.segment.cameraId);
        await target.store({ copy, body, maxAgeMs, parts }, this.#stop.signal);
        this.copiedFiles++;
        this.copiedBytes += copy.sizeBytes;
      });
      if (!isThere) this.#log.debug({ file: path }, 'a file that was to be copied is gone');
    } catch (err) {
      if (this.#stop.signal.aborted || !isOfFile(err)) throw err;
      missing.notBeforeMs = clock.monotonicMs() + FILE_RETRY_MS;
      throw new FileFailed(`${path}: ${messageOf(err)}`, { cause: err });
    }
    // It may have been extended meanwhile.
    if (this.#missing.get(path) === missing) this.#missing.delete(path);
  }

  async #described(file: ArchiveFile): Promise<[Copy, parts: string]> {
    const { segment, path, sizeBytes, mtimeMs } = file;
    if (sizeBytes > MAX_BYTES) throw new FileFailed('it has more than 5 GiB: shorten archive.segmentDuration');
    const hash = createHash('sha256');
    for await (const piece of this.#pieces(file, 1)) hash.update(piece);
    const parts = await readParts(file.read, sizeBytes).catch((err: unknown) => {
      // A damaged file is copied as it is.
      if (!(err instanceof Mp4Error)) throw err;
      return undefined;
    });
    const { meta } = parts ?? {};
    const copy = {
      segment,
      path,
      sizeBytes,
      sha256: hash.digest('hex'),
      endMs: meta ? meta.wallStartMs + meta.wallDurationMs : Math.max(segment.startMs, mtimeMs),
      sequence: meta?.sequence ?? 0,
      origin: meta && originOf(meta),
    };
    const isPlayable = parts !== undefined && parts.starts.length > 0;
    const played = isPlayable ? [{ path, isOpen: false, sizeBytes, parts, nodeId: '' }] : [];
    return [copy, JSON.stringify(footageMessage(played))];
  }

  /**
   * The bytes of a file, at the rate that is allowed; they wait while recordings wait. A piece is valid until `atOnce` others were asked
   * for: to get new memory from the system for each would take as long as to send it.
   */
  async *#pieces(file: ArchiveFile, atOnce: number): AsyncGenerator<Buffer> {
    const pace = new Pace(this.#pacing, this.#stop.signal);
    const memory = Array.from({ length: atOnce }, () => Buffer.allocUnsafe(PIECE_BYTES));
    for (let at = 0, turn = 0; at < file.sizeBytes; turn++) {
      await pace.next(at);
      const into = memory[turn % atOnce] as Buffer;
      const piece = into.subarray(0, await file.readInto(into, at, Math.min(PIECE_BYTES, file.sizeBytes - at)));
      if (piece.length === 0) throw new FileFailed('it became shorter while it was copied');
      yield piece;
      at += piece.length;
    }
  }

  /** Removes copies that are older than they may be. By the clock that is behind: a wrong one must not remove footage. */
  async #removeOld(): Promise<void> {
    const { archive, clock, ruleOf, target } = this.#options;
    const nowMs = Math.min(clock.wallMs(), target.s3.serverMs());
    let kept: string | undefined;
    const elsewhere = await protectedAt(target, archive.account, archive.account);
    const isProtected = (cameraId: string, fromMs: number, toMs: number): boolean =>
      archive.isProtected(cameraId, fromMs, toMs) ||
      elsewhere.some((one) => one.cameraId === cameraOfFootage(cameraId) && one.fromMs < toMs && one.toMs > fromMs);
    for (const cameraId of await target.cameras()) {
      const limitMs = Math.min(
        ruleOf(cameraOfFootage(cameraId))?.keepMs ?? Infinity,
        archive.wantedMs(cameraId) ?? Infinity,
      );
      if (limitMs === Infinity) continue;
      for (const day of await target.days(cameraId)) {
        const dayMs = Date.parse(day);
        if (!(dayMs < dayStartMs(nowMs - limitMs) + 1)) break;
        for (const copy of await target.copiesOn(cameraId, dayMs)) {
          const { segment, endMs, path } = copy;
          if (endMs >= nowMs - limitMs || isProtected(cameraId, segment.startMs, endMs)) continue;
          try {
            await target.remove(copy);
            this.#log.debug({ file: path }, 'a copy was removed because of its age');
          } catch (err) {
            // It is locked, or the permission is missing: the others may be removed, and copying goes on.
            if (!(err instanceof S3Error && err.code === 'forbidden')) throw err;
            kept ??= `a copy that is too old cannot be removed: ${err.message}`;
          }
        }
      }
      this.#stop.signal.throwIfAborted();
    }
    if (kept !== undefined && kept !== this.#kept) this.#log.warn({ problem: kept }, 'old copies cannot be removed');
    this.#kept = kept;
  }

  /** Logs one line per change. */
  #tell(problem: Reason | undefined): void {
    const before = this.#problem;
    if (before?.message === problem?.message) return;
    this.#problem = problem;
    if (!problem) this.#log.info({}, 'footage is copied again');
    else this.#log.warn({ problem: problem.message }, 'footage cannot be copied: files wait on the disk');
  }
}

const codeOf = (err: unknown): string => {
  if (err instanceof S3Error) return err.code;
  return err instanceof ForeignPrefix ? 'foreign-prefix' : 'file-failed';
};

/** Whether others can still be copied. */
const isOfFile = (err: unknown): boolean =>
  err instanceof FileFailed ||
  (err instanceof S3Error && err.code === 'bad-digest') ||
  (!(err instanceof S3Error) && isExpected(err));
