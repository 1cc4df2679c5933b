// The account of a node at a target: its ledger, protections and audit, copied beside its footage, so that they survive the node. What
// is missing there is the difference of two lists, as for footage.

import { readFile, stat } from 'node:fs/promises';
import { ignoreMissing } from '../../base/file-calls.ts';
import type { Interval } from '../../base/interval.ts';
import type { GapCause } from '../contract/gap-cause.ts';
import { accountKey, ALIVE, cameraOfJournal, journalOf, PROTECTIONS, type AccountPlace } from './layout.ts';
import { S3Error } from './s3.ts';
import type { Target } from './target.ts';

/** The account of this node, as files. */
export interface OwnAccount {
  readonly node: string;
  /** Names the archive: a node with a new one has a new account. Undefined while that is not known. */
  archiveId(): string | undefined;
  /** Absolute paths, by name at the target. Rejects with the error of the system. */
  files(): Promise<ReadonlyMap<string, string>>;
}

/** Reads what other nodes have written. */
export interface AccountReader {
  /** The gaps in an interval according to a journal that was written until `untilMs`; `files`: footage that is known. */
  gapsIn(
    journal: string,
    untilMs: number,
    interval: Interval,
    files: readonly Interval[],
  ): readonly (Interval & { readonly cause: GapCause })[];
  /** The windows of a list of protections. Throws when the list is damaged. */
  protectedIn(protections: string): readonly (Interval & { readonly cameraId: string })[];
}

/** Copies what has changed since it was copied last. */
export class AccountCopier {
  readonly #target: Target;
  readonly #account: OwnAccount;
  /** Keys at the target, by name. */
  #there: Map<string, string> | undefined;
  #archive: string | undefined;

  constructor(target: Target, account: OwnAccount) {
    this.#target = target;
    this.#account = account;
  }

  /** `wants`: whether the camera of a journal is copied. Rejects with S3Error, and with the error of the system. */
  async copy(wants: (cameraId: string) => boolean): Promise<void> {
    const { node } = this.#account;
    const archive = this.#account.archiveId();
    if (archive === undefined) return;
    if (archive !== this.#archive) this.#there = undefined;
    this.#archive = archive;
    this.#there ??= new Map(
      (await this.#target.accounts(true)).filter((one) => isOf(one, node, archive)).map(({ name, key }) => [name, key]),
    );
    for (const [name, path] of await this.#account.files()) {
      const cameraId = cameraOfJournal(name);
      if (cameraId !== undefined && !wants(cameraId)) continue;
      const facts = await stat(path).catch(ignoreMissing);
      if (!facts) continue;
      const key = accountKey({ node, archive, name, atMs: Math.floor(facts.mtimeMs), sizeBytes: facts.size });
      const before = this.#there.get(name);
      if (key === before) continue;
      const body = await readFile(path).catch(ignoreMissing);
      if (!body) continue;
      await this.#target.storeAccount(key, body, before);
      this.#there.set(name, key);
    }
  }
}

/** The gaps of a camera according to all accounts but `own`. Rejects with S3Error. */
export async function gapsAt(
  target: Target,
  reader: AccountReader,
  own: Pick<OwnAccount, 'node' | 'archiveId'>,
  asked: { readonly cameraId: string; readonly interval: Interval; readonly files: readonly Interval[] },
) {
  const all = await othersAt(target, own);
  const gaps: (Interval & { readonly cause: GapCause })[] = [];
  for (const journal of all.filter(({ name }) => name === journalOf(asked.cameraId))) {
    // The sign of life is written after the journals, and copied after them.
    const alive = all.find((one) => one.name === ALIVE && isOf(one, journal.node, journal.archive));
    const text = await target.readAccount(journal.key);
    const untilMs = Math.max(alive?.atMs ?? 0, journal.atMs);
    if (text !== undefined) gaps.push(...reader.gapsIn(text, untilMs, asked.interval, asked.files));
  }
  return gaps.sort((a, b) => a.fromMs - b.fromMs);
}

/** What all accounts but `own` protect: it stays at the target after its node is gone. Rejects with S3Error. */
export async function protectedAt(
  target: Target,
  reader: AccountReader,
  own: Pick<OwnAccount, 'node' | 'archiveId'>,
): Promise<readonly (Interval & { readonly cameraId: string })[]> {
  const windows: (Interval & { readonly cameraId: string })[] = [];
  for (const { name, key } of await othersAt(target, own)) {
    if (name !== PROTECTIONS) continue;
    const text = await target.readAccount(key);
    try {
      if (text !== undefined) windows.push(...reader.protectedIn(text));
    } catch (err) {
      throw new S3Error('refused', `the protections in ${key} are damaged: old copies stay`, { cause: err });
    }
  }
  return windows;
}

/** Of each file of an account, the newest: the one before it could not be removed. */
async function othersAt(target: Target, { node, archiveId }: Pick<OwnAccount, 'node' | 'archiveId'>) {
  const archive = archiveId();
  const newest = new Map<string, Awaited<ReturnType<Target['accounts']>>[number]>();
  for (const one of await target.accounts()) {
    if (isOf(one, node, archive)) continue;
    const name = `${one.node}/${one.archive}/${one.name}`;
    if (one.atMs >= (newest.get(name)?.atMs ?? -Infinity)) newest.set(name, one);
  }
  return [...newest.values()];
}

const isOf = (one: Pick<AccountPlace, 'node' | 'archive'>, node: string, archive: string | undefined): boolean =>
  one.node === node && one.archive === archive;
