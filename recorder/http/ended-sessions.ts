// Sessions that were ended before they expired. Their cookies are still out there, so every node has to know of them: each keeps
// those that were ended here in a file, reports them to the other nodes of a cluster, and keeps what those report.

import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { readPrivate, writePrivate } from '../../base/private-file.ts';
import { Turns } from '../../base/turns.ts';
import { DAY_MS } from '../../base/units.ts';

/** A session that is used ends then: the password is needed once more. */
export const LONGEST_MS = 30 * DAY_MS;

export interface Endable {
  /** What ends it when it is ended: its id, the holder, and the person at the issuer. */
  readonly endsWith: () => readonly string[];
  /** When it began, milliseconds since 1970; for a link, when the link was made. */
  readonly sinceMs: number;
}

/** Sessions with `of` in their `endsWith` that began before `atMs`, milliseconds since 1970, are ended. */
export interface Ended {
  readonly of: string;
  readonly atMs: number;
}

/** Beyond this, what was ended longest ago is forgotten. */
const MAX_ENDED = 10_000;
/** Of those that were ended here, the newest are told: the other nodes know the rest. */
const MAX_TOLD = 200;

const Kept = z.array(z.strictObject({ of: z.string(), atMs: z.number(), isOwn: z.boolean() }));
type Kept = z.output<typeof Kept>[number];

interface EndedOptions {
  /** Where they are kept; without it, they are forgotten with the process. */
  readonly workDir?: string | undefined;
  readonly log?: Log;
}

export class EndedSessions {
  readonly #clock: Pick<Clock, 'wallMs'>;
  readonly #file: string | undefined;
  readonly #log: Log;
  readonly #turns = new Turns(1);
  /** By `of`, the one that was ended longest ago first. */
  readonly #ended = new Map<string, Kept>();

  constructor(clock: Pick<Clock, 'wallMs'>, { workDir, log = silentLog }: EndedOptions = {}) {
    this.#clock = clock;
    this.#file = workDir === undefined ? undefined : join(workDir, 'ended-sessions.json');
    this.#log = log;
  }

  /** Reads the file. One that cannot be used is reported: recording does not depend on it. */
  async load(): Promise<void> {
    const file = this.#file;
    if (file === undefined) return;
    try {
      const text = await readPrivate(file, (problem) => new Error(`${file} ${problem}`));
      for (const kept of Kept.parse(JSON.parse(text ?? '[]'))) this.#ended.set(kept.of, kept);
    } catch (err) {
      this.#log.error(
        { problem: messageOf(err) },
        'the list of ended sessions cannot be read: they may be valid again',
      );
    }
  }

  has({ endsWith, sinceMs }: Endable): boolean {
    // Nearly always: then nothing is computed.
    if (this.#ended.size === 0) return false;
    return endsWith().some((of) => sinceMs <= (this.#ended.get(of)?.atMs ?? -Infinity));
  }

  /** Those with one of `endsWith` that began until now; `sinceMs`: or then, by the clock of another node. */
  end(endsWith: readonly string[], sinceMs = -Infinity): void {
    const atMs = Math.max(this.#clock.wallMs(), sinceMs);
    this.#add(endsWith.map((of) => ({ of, atMs, isOwn: true })));
  }

  /** Takes those that other nodes have ended. Returns whether one is new. */
  learn(others: readonly Ended[]): boolean {
    const nowMs = this.#clock.wallMs();
    // A node whose clock is wrong, or that was taken over, ends no session that begins later.
    const past = others.map(({ of, atMs }) => ({ of, atMs: Math.min(atMs, nowMs), isOwn: false }));
    const known = (of: string): number => this.#ended.get(of)?.atMs ?? -Infinity;
    return this.#add(past.filter(({ of, atMs }) => nowMs - atMs < LONGEST_MS && atMs > known(of)));
  }

  /** Those that were ended at this node, for the others. */
  get told(): readonly Ended[] {
    const own = [...this.#ended.values()].filter(({ isOwn }) => isOwn);
    return own.slice(-MAX_TOLD).map(({ of, atMs }) => ({ of, atMs }));
  }

  /** Resolves when everything is on the disk. */
  saved(): Promise<void> {
    return this.#turns.idle();
  }

  #add(ended: readonly Kept[]): boolean {
    for (const one of ended) {
      this.#ended.delete(one.of);
      this.#ended.set(one.of, one);
    }
    if (ended.length === 0) return false;
    const oldestMs = this.#clock.wallMs() - LONGEST_MS;
    for (const [of, { atMs }] of this.#ended) {
      if (atMs < oldestMs || this.#ended.size > MAX_ENDED) this.#ended.delete(of);
    }
    void this.#turns.take(() => this.#save());
    return true;
  }

  async #save(): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await mkdir(dirname(this.#file), { recursive: true });
      await writePrivate(this.#file, `${JSON.stringify([...this.#ended.values()])}\n`);
    } catch (err) {
      this.#log.warn({ problem: messageOf(err) }, 'the list of ended sessions cannot be written');
    }
  }
}
