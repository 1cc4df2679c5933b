// Fetches what a lost archive of this node had from a target, one file at a time, the newest first. That an archive was lost is seen by its
// account, which lies at the target beside that of the present one.

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { cameraOfFootage } from '../../base/camera-id.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { OpenFile } from '../archive/disk/file-system.ts';
import { formatPath, type SegmentName } from '../archive/disk/names.ts';
import type { CopiedArchive } from './copied-archive.ts';
import { cameraOfJournal, type Copy } from './layout.ts';
import { Pace, type Pacing } from './pace.ts';
import { S3Error } from './s3.ts';
import type { Target } from './target.ts';

interface FetcherOptions {
  readonly target: Target;
  readonly archive: CopiedArchive;
  readonly pacing: Pacing;
  readonly log: Log;
}

export class Fetcher {
  readonly #options: FetcherOptions;
  /** Start of the newest file of each camera that retention has removed: what is older would be removed again. */
  readonly #removedMs = new Map<string, number>();
  #wanted: AsyncGenerator<Copy> | undefined;
  #againMs = -Infinity;
  fetchedFiles = 0;

  constructor(options: FetcherOptions) {
    this.#options = options;
  }

  removed({ cameraId, startMs }: SegmentName): void {
    this.#removedMs.set(cameraId, Math.max(startMs, this.#removedMs.get(cameraId) ?? -Infinity));
  }

  /** Fetches a file; false if there is nothing more to fetch, or no space, as of the last hour. Rejects with S3Error, and with the error of the system. */
  async next(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options.pacing;
    if (clock.monotonicMs() < this.#againMs) return false;
    const wanted = this.#wanted ?? this.#find();
    this.#wanted = undefined;
    const { value: copy, done } = await wanted.next();
    if (done === true || !(await this.#fetch(copy, signal))) {
      this.#againMs = clock.monotonicMs() + HOUR_MS;
      return false;
    }
    this.#wanted = wanted;
    return true;
  }

  /** Copies of the cameras of lost archives which this node does not have, the newest first. */
  async *#find(): AsyncGenerator<Copy> {
    const { target, archive } = this.#options;
    const own = archive.account;
    const lost = (await target.accounts(true)).filter(
      (one) => one.node === own.node && one.archive !== own.archiveId(),
    );
    const ids = new Set(lost.flatMap(({ name }) => cameraOfJournal(name) ?? []));
    if (ids.size === 0) return;
    const byDay = new Map<number, string[]>();
    for (const footage of await target.cameras()) {
      if (!ids.has(cameraOfFootage(footage))) continue;
      for (const day of await target.days(footage)) {
        const dayMs = Date.parse(day);
        byDay.set(dayMs, [...(byDay.get(dayMs) ?? []), footage]);
      }
    }
    for (const [dayMs, footage] of [...byDay].sort(([a], [b]) => b - a)) {
      const lists = await Promise.all(footage.map((id) => target.copiesOn(id, dayMs)));
      const here = new Set<string>();
      for (const day of archive.days())
        if (day.startMs === dayMs) for (const segment of day.segments()) here.add(formatPath(segment));
      for (const copy of lists.flat().sort((a, b) => b.segment.startMs - a.segment.startMs))
        if (!here.has(copy.path) && this.#isKept(copy)) yield copy;
    }
  }

  /** Whether retention leaves it alone. */
  #isKept({ segment: { cameraId, startMs }, endMs }: Copy): boolean {
    const { archive, pacing } = this.#options;
    const keptFromMs = pacing.clock.wallMs() - (archive.wantedMs(cameraId) ?? Infinity);
    return endMs > keptFromMs && startMs > (this.#removedMs.get(cameraId) ?? -Infinity);
  }

  /** False if there is no space for it. */
  async #fetch(copy: Copy, signal: AbortSignal): Promise<boolean> {
    const { archive, log } = this.#options;
    const { segment, path, sizeBytes } = copy;
    try {
      const isStored = await archive.receive(segment, sizeBytes, (file) => this.#read(copy, file, signal));
      if (isStored) this.fetchedFiles++;
      else log.info({ file: path }, 'there is no space for the rest of the footage of a lost archive');
      return isStored;
    } catch (err) {
      // Others are not worse for it.
      if (!(err instanceof S3Error && (err.code === 'bad-digest' || err.code === 'not-found'))) throw err;
      log.warn({ file: path, problem: err.message }, 'a file of a lost archive cannot be fetched');
      return true;
    }
  }

  async #read({ path, sizeBytes, sha256 }: Copy, file: OpenFile, signal: AbortSignal): Promise<void> {
    const pace = new Pace(this.#options.pacing, signal);
    const hash = createHash('sha256');
    let at = 0;
    const pieces = await this.#options.target.stream(path, { from: 0, to: sizeBytes }, signal);
    for await (const piece of told(pieces)) {
      await pace.next(at);
      await file.write([piece], at);
      hash.update(piece);
      at += piece.length;
    }
    if (hash.digest('hex') !== sha256) throw new S3Error('bad-digest', 'it sends other bytes than were copied');
  }
}

/** The same pieces; an answer that ends early is an error of the target. */
async function* told(pieces: Readable): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (cause) {
    throw new S3Error('unreachable', `its answer ends early: ${messageOf(cause)}`, { cause });
  }
}
