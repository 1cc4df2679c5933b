// The state of an archive with several disks: ledger, protections, events. It lies on one disk, and each other has a copy that is at most
// half a minute older, under the same paths: when the disk of the state is gone, the next process takes the newest copy.

import type { Log } from '../../../base/log.ts';
import { messageOf } from '../../../base/error.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { Clock } from '../../../base/clock.ts';
import { HANGS_MS, type Disk, type DiskSet } from './disk-set.ts';
import type { FileSystem } from './file-system.ts';
import type { ArchiveIdentity } from './identity.ts';
import { makeDirectories, readIfThere, replaceFile } from './state-file.ts';

const STATE = '.kube-nvr';
/** Written every few seconds, and after everything that it covers. */
const ALIVE = `${STATE}/gaps/alive`;
const FILES = [`${STATE}/protections.json`, `${STATE}/camera-limits.json`];
/** With files, and with a directory of files for each camera. */
const DIRECTORIES = [`${STATE}/gaps`, `${STATE}/events`, `${STATE}/alarms`];
const EVERY_MS = 30_000;
/** Files of older days do not change any more: their names begin with the day. */
const DAYS_THAT_CHANGE_MS = 3 * DAY_MS;

interface StateChoice {
  readonly fs: FileSystem;
  readonly clock: Clock;
  /** How many signs of life the file at an absolute path has seen. */
  readonly signs: (path: string) => Promise<number | undefined>;
}

/**
 * The root with the newest state, of disks of this archive; undefined if none has any. That of the disk which had the state last: a disk that was
 * away may have seen more signs of life before than that one altogether. If that disk is away, the one with the most signs. A copy has as many
 * signs of life as its source had, and was written later: with as many signs, the older file is the source, which may have what came
 * after the copy.
 */
export async function newestState(
  { fs, clock, signs }: StateChoice,
  disks: readonly (Pick<ArchiveIdentity, 'inspect' | 'hadState'> & { readonly root: string })[],
): Promise<string | undefined> {
  const hangs = Promise.withResolvers<undefined>();
  const timer = clock.after(HANGS_MS, () => hangs.resolve(undefined));
  const state = async (disk: (typeof disks)[number]) => {
    await disk.inspect();
    const hadState = await disk.hadState();
    const path = `${disk.root}/${ALIVE}`;
    const [count, facts] = await Promise.all([signs(path), fs.facts(path)]);
    return count === undefined ? undefined : { root: disk.root, hadState, count, atMs: facts.mtimeMs };
  };
  // One that is missing, another's, or does not answer has no state of ours.
  const asked = disks.map((disk) => Promise.race([state(disk).catch(() => undefined), hangs.promise]));
  const found = (await Promise.all(asked)).filter((one) => one !== undefined);
  timer.cancel();
  const last = found.filter(({ hadState }) => hadState);
  return (last.length > 0 ? last : found).toSorted((a, b) => b.count - a.count || a.atMs - b.atMs)[0]?.root;
}

interface StateCopiesDeps {
  readonly fs: FileSystem;
  readonly disks: DiskSet;
  readonly clock: Clock;
  readonly log: Log;
  /** Recording comes first. */
  readonly isBehind: () => boolean;
}

export class StateCopies {
  readonly #deps: StateCopiesDeps;
  /** When the files of all days were compared. */
  readonly #compared = new WeakMap<Disk, number>();
  readonly #failing = new WeakSet<Disk>();
  #copiedMs = -Infinity;
  #work: Promise<void> | undefined;

  constructor(deps: StateCopiesDeps) {
    this.#deps = deps;
  }

  /** Call it a few times a second. */
  tick(): void {
    const { clock, disks, isBehind } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (!disks.hasOthers || this.#work || isBehind() || nowMs - this.#copiedMs < EVERY_MS) return;
    this.#copiedMs = nowMs;
    this.#work = this.copy().finally(() => (this.#work = undefined));
  }

  async settled(): Promise<void> {
    await this.#work;
  }

  /** Never rejects. */
  async copy(): Promise<void> {
    const { disks, log } = this.#deps;
    const from = disks.state;
    if (!isUsable(from)) return;
    for (const to of disks.all) {
      if (to === from || !isUsable(to)) continue;
      try {
        await to.answers(this.#copyTo(from, to));
        this.#failing.delete(to);
      } catch (err) {
        const told = { path: to.root, problem: messageOf(err) };
        if (!this.#failing.has(to)) log.warn(told, 'the state of the archive cannot be copied to a disk');
        this.#failing.add(to);
      }
    }
  }

  async #copyTo(from: Disk, to: Disk): Promise<void> {
    await Promise.all([from.guard.check(), to.guard.check()]);
    const paths = [...FILES];
    const nowMs = this.#deps.clock.monotonicMs();
    const onlyNew = nowMs - (this.#compared.get(to) ?? -Infinity) < DAY_MS;
    for (const directory of DIRECTORIES) {
      const there = await this.#filesIn(from, directory, onlyNew);
      paths.push(...there);
      if (onlyNew) continue;
      // What was removed with its footage goes here, too.
      const gone = (await this.#filesIn(to, directory, false)).filter((path) => !there.includes(path));
      for (const path of gone) await this.#deps.fs.remove(`${to.root}/${path}`).catch(ignoreMissing);
    }
    // The sign of life last: the rest is there then.
    for (const path of [...paths.filter((path) => path !== ALIVE), ALIVE]) await this.#copyFile(from, to, path);
    if (!onlyNew) this.#compared.set(to, nowMs);
  }

  async #filesIn({ root }: Pick<Disk, 'root'>, directory: string, onlyNew: boolean): Promise<string[]> {
    const { fs, clock } = this.#deps;
    const found: string[] = [];
    for (const name of (await fs.list(`${root}/${directory}`).catch(ignoreMissing)) ?? []) {
      const path = `${directory}/${name}`;
      if (/\.(?:jsonl|new)$/.test(name) || path === ALIVE) {
        const dayMs = Date.parse(name.slice(0, 10));
        const isOld = dayMs < clock.wallMs() - DAYS_THAT_CHANGE_MS && directory !== `${STATE}/gaps`;
        if (!name.endsWith('.new') && !(onlyNew && isOld)) found.push(path);
      } else found.push(...(await this.#filesIn({ root }, path, onlyNew)));
    }
    return found;
  }

  /** A copy is the same if it is as long, and not older. */
  async #copyFile(from: Disk, to: Disk, path: string): Promise<void> {
    const { fs } = this.#deps;
    const [source, copy] = await Promise.all(
      [from, to].map(({ root }) => fs.facts(`${root}/${path}`).catch(ignoreMissing)),
    );
    if (!source || (copy?.sizeBytes === source.sizeBytes && copy.mtimeMs >= source.mtimeMs)) return;
    const text = await readIfThere(fs, `${from.root}/${path}`);
    if (text === undefined) return;
    const absolute = `${to.root}/${path}`;
    await makeDirectories(fs, absolute.slice(0, absolute.lastIndexOf('/')));
    await replaceFile(fs, absolute, text);
  }
}

const isUsable = ({ refused, fault, hangs, isRemoved }: Disk): boolean => !refused && !fault && !hangs && !isRemoved;
