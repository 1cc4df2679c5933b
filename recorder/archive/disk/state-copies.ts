// The state of an archive with several disks: ledger, protections, events. It lies on one disk, and each other has a copy that is at most
// half a minute older, under the same paths: when the disk of the state is gone, the next process takes the newest copy.

import type { Log } from '../../../base/log.ts';
import { messageOf } from '../../../base/error.ts';
import { ignoreMissing } from '../../../base/file-calls.ts';
import { DAY_MS } from '../../../base/units.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Disk, DiskSet } from './disk-set.ts';
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

/** The root with the newest state, of disks of this archive; undefined if none has any. */
export async function newestState(
  fs: FileSystem,
  disks: readonly (Pick<ArchiveIdentity, 'inspect'> & { readonly root: string })[],
): Promise<string | undefined> {
  let newest: { readonly root: string; readonly atMs: number } | undefined;
  for (const disk of disks) {
    const facts = await disk
      .inspect()
      .then(() => fs.facts(`${disk.root}/${ALIVE}`))
      // One that is missing or another's has no state of ours.
      .catch(() => undefined);
    if (facts && facts.mtimeMs > (newest?.atMs ?? -Infinity)) newest = { root: disk.root, atMs: facts.mtimeMs };
  }
  return newest?.root;
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
