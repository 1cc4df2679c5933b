// The footage of a camera in an interval, from this node and from all others that hold some; copies replace what is missing then. A
// holder that does not answer in time is listed with the time that is missing.

import type { Clock } from '../../base/clock.ts';
import type { Interval } from '../../base/interval.ts';
import { parsePath } from '../archive/disk/names.ts';
import { setOf } from './elsewhere.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { WholeAnswer } from '../peers/whole-answer.ts';
import type { PlayedFile } from './archive-file.ts';
import type { Footage } from './footage.ts';
import { holdersIn, silentAt, type Elsewhere } from './holders.ts';
import type { Holder } from './holder.ts';
import type { OwnFootage } from './own-footage.ts';
import { RemoteFile } from './remote-file.ts';
import { readRange } from './remote-run.ts';
import { inTurns } from './turns.ts';

export interface Collected {
  /** By time, each file once for each of its turns: where several holders have footage, one of them counts. */
  readonly footage: readonly Footage[];
  /** By holder. */
  readonly elsewhere: readonly Elsewhere[];
}

interface CollectorOptions {
  readonly own: OwnFootage;
  /** The others that may hold footage of a camera. Never rejects. */
  readonly holders: (cameraId: string) => Promise<readonly Holder[]>;
  readonly clock: Clock;
}

/** Players that follow a recording ask every few seconds: they share one answer of a holder, as long as it answers. */
const FRESH_MS = 2_000;
/** Times of requests are rounded, so that requests for nearly the same interval are shared. */
const ROUNDED_MS = 10_000;
/** A list without a file shows that a holder, which may have gone since its last list, still answers. */
const NO_TIME: Interval = { fromMs: 0, toMs: 1_000 };

/** The time without footage in these files. */
function holesIn(files: readonly Footage[], { fromMs, toMs }: Interval): Interval[] {
  const covered = files.map(({ isOpen, parts: { meta } }) => ({
    fromMs: meta.wallStartMs,
    toMs: isOpen ? Infinity : meta.wallStartMs + meta.wallDurationMs,
  }));
  return [...setOf(covered).holes(fromMs, toMs)].filter((hole) => hole.toMs - hole.fromMs >= MIN_GAP_MS);
}

export class Collector {
  readonly #options: CollectorOptions;
  readonly #kept = new Map<string, Promise<WholeAnswer<readonly Footage[]>>>();

  constructor(options: CollectorOptions) {
    this.#options = options;
  }

  get own(): OwnFootage {
    return this.#options.own;
  }

  /** The others that may have footage of the interval. Never rejects. */
  async others(cameraId: string, interval: Interval): Promise<readonly Holder[]> {
    return holdersIn(await this.#options.holders(cameraId), interval);
  }

  /** `withIndexes`: others send those of some of their files, too. Throws ArchiveError when this node's archive cannot be read. */
  async collect(cameraId: string, interval: Interval, caller: Asker, withIndexes = false): Promise<Collected> {
    const { own, clock } = this.#options;
    const past = { fromMs: interval.fromMs, toMs: Math.min(interval.toMs, clock.wallMs()) };
    const [here, holders] = await Promise.all([own.in(cameraId, interval), this.others(cameraId, past)]);
    if (holders.length === 0) return { footage: here, elsewhere: [] };
    const all = [...here];
    const silent: Elsewhere[] = [];
    const ask = async (asked: readonly Holder[]): Promise<void> => {
      const found = await Promise.all(
        asked.map(async (holder) => ({
          holder,
          answer: await (withIndexes
            ? holder.files(cameraId, interval, caller, true)
            : this.#filesOf(holder, cameraId, interval, caller)),
        })),
      );
      for (const { holder, answer } of found) {
        if (answer.kind !== 'answer') silent.push(silentAt(holder, past, answer));
        else if (holder.copiesAt === undefined) all.push(...answer.value);
        else {
          const known = new Set(all.map(({ path }) => path));
          all.push(...answer.value.filter(({ path }) => !known.has(path)));
        }
      }
    };
    await ask(holders.filter(({ copiesAt }) => copiesAt === undefined));
    const copies = holders.filter(({ copiesAt }) => copiesAt !== undefined);
    if (copies.length > 0 && holesIn(all, past).length > 0) await ask(copies);
    // What a silent node has counts as missing only where no copy replaces it.
    const elsewhere =
      copies.length === 0 ? silent : silent.flatMap((part) => holesIn(all, part).map((hole) => ({ ...part, ...hole })));
    return { footage: inTurns(all), elsewhere };
  }

  /**
   * Opens a file of `collect` for `work`, and closes it then. False when there is no such file any more. Reading a file of another
   * holder rejects with HolderLost when that holder stops sending. Retention leaves a file alone while it is read.
   */
  async use(file: Footage, caller: Asker, work: (opened: PlayedFile) => Promise<void>): Promise<boolean> {
    const { own, clock } = this.#options;
    const segment = parsePath(file.path);
    if (!segment) return false;
    if (file.nodeId === own.nodeId) return own.files.use(segment, work);
    const holder = await this.holderOf(file);
    if (!holder) return false;
    const read = (from: number, to: number): Promise<Buffer> =>
      readRange((range) => holder.stream(file, range, caller), { from, to }, clock);
    await work(new RemoteFile(file.sizeBytes, read));
    return true;
  }

  /** The other holder that has the file. Never rejects. */
  async holderOf({ nodeId, parts }: Footage): Promise<Holder | undefined> {
    return (await this.#options.holders(parts.meta.cameraId)).find((one) => one.nodeId === nodeId);
  }

  async #filesOf(
    holder: Holder,
    cameraId: string,
    { fromMs, toMs }: Interval,
    caller: Asker,
  ): Promise<WholeAnswer<readonly Footage[]>> {
    const rounded = {
      fromMs: Math.floor(fromMs / ROUNDED_MS) * ROUNDED_MS,
      toMs: Math.ceil(toMs / ROUNDED_MS) * ROUNDED_MS,
    };
    // Callers that may see the camera may see all of it.
    const key = `${holder.nodeId} ${cameraId} ${rounded.fromMs} ${rounded.toMs}`;
    const kept = this.#kept.get(key);
    if (kept) {
      const answer = await holder.files(cameraId, NO_TIME, caller);
      return answer.kind === 'answer' ? kept : answer;
    }
    const files = holder.files(cameraId, rounded, caller);
    this.#kept.set(key, files);
    this.#options.clock.after(FRESH_MS, () => this.#kept.delete(key));
    if ((await files).kind !== 'answer' && this.#kept.get(key) === files) this.#kept.delete(key);
    return files;
  }
}
