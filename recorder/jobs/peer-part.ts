// Fetches one part of an assembly: the result of a job of another recorder, into a file of this node. It waits while the
// peer is not ready or cannot be reached, resumes broken downloads, and checks every length.

import type { IncomingMessage } from 'node:http';
import { constants } from 'node:fs';
import { open, readFile, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { readBody } from '../../base/http-answer.ts';
import { parseJson } from '../../base/parse-json.ts';
import { HOUR_MS } from '../../base/units.ts';
import { JobError, diskError } from './error.ts';
import { findMember } from './members.ts';
import { PeerFailure, askMember, askPeer, unreachable, type PeerAccess } from './peer-request.ts';

/** The position of a part of an assembly. */
export interface AssemblyPart {
  /** `host:port`, as in the request. */
  readonly peerAddress: string;
  readonly peerJobId: string;
}

/** Time limits for peers. */
export interface PeerLimits {
  /** Longest time without data or an answer. */
  readonly silenceMs: number;
  /** Longest time with failures only. */
  readonly giveUpMs: number;
  /** Longest wait for the peer's job to be done. */
  readonly waitMs: number;
  /** Longest time between two requests for the state of the job. */
  readonly pollMs: number;
  /** Less than `bytes` in `ms` counts as a failure. */
  readonly slowest: { readonly bytes: number; readonly ms: number };
  /** For the whole part: results are not kept longer. */
  readonly partMs: number;
}

export const PEER_LIMITS: PeerLimits = {
  silenceMs: 15_000,
  giveUpMs: 60_000,
  waitMs: 600_000,
  pollMs: 1_000,
  slowest: { bytes: 1024 * 1024, ms: 60_000 },
  partMs: HOUR_MS,
};

export interface PartDeps {
  readonly access: PeerAccess;
  readonly limits: PeerLimits;
  readonly clock: Clock;
  /** Number of bytes that may be written now: free space that is not reserved for recording. */
  readonly spareBytes: () => Promise<number>;
}

/** A job in the answer of the peer's API. */
const PeerJob = z.object({
  camera_id: z.string(),
  from: z.number().optional(),
  to: z.number().optional(),
  /** The exact window; recorders before the first release had it in `from` and `to`, with fractions. */
  from_ms: z.number().optional(),
  to_ms: z.number().optional(),
  /** Replaces `to_ms` if the window was not over. */
  known_until_ms: z.number().optional(),
  kind: z.enum(['export', 'timelapse']),
  state: z.enum(['pending', 'running', 'done', 'failed']),
  size_bytes: z.number().int().positive().optional(),
  gaps: z
    .array(
      z.object({
        start: z.iso.datetime({ offset: true }),
        end: z.iso.datetime({ offset: true }),
        cause: z.string().optional(),
      }),
    )
    .optional(),
  /** Of a case. */
  cameras: z.array(z.unknown()).optional(),
  /** Set for a result that is a ZIP file of movies. */
  parts: z
    .array(
      z.object({
        offset: z.number().int().nonnegative(),
        size_bytes: z.number().int().positive(),
        from_ms: z.number(),
        to_ms: z.number(),
      }),
    )
    .optional(),
  reason: z.string().optional(),
});

const DonePart = PeerJob.extend({ size_bytes: z.number().int().positive() }).transform((job, context) => {
  const { from_ms = (job.from ?? NaN) * 1000 } = job;
  const to_ms = job.known_until_ms ?? job.to_ms ?? (job.to ?? NaN) * 1000;
  if (Number.isNaN(from_ms + to_ms)) context.addIssue({ code: 'custom', message: 'no window' });
  return { ...job, from_ms, to_ms };
});
/** A job of a peer that is done. */
export type DonePart = z.output<typeof DonePart>;

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** Bytes that are written between two checks of the free space. */
const CHECK_BYTES = 64 * 1024 * 1024;
const SYNC_BYTES = 32 * 1024 * 1024;
/** Time between the first two requests for the state of a job: most parts are copied within a fraction of a second. */
const FIRST_POLL_MS = 50;

export class PeerPart {
  readonly #part: AssemblyPart;
  readonly #ordinal: number;
  readonly #deps: PartDeps;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;
  readonly #untilMs: number;

  /** `credential`: the caller's `Authorization`, which is sent to the peer. */
  constructor(
    part: AssemblyPart,
    ordinal: number,
    deps: PartDeps,
    credential: string | undefined,
    signal: AbortSignal,
  ) {
    this.#part = part;
    this.#ordinal = ordinal;
    this.#deps = deps;
    this.#headers = {
      'accept-encoding': 'identity',
      ...(credential === undefined ? {} : { authorization: credential }),
    };
    this.#signal = signal;
    this.#untilMs = deps.clock.monotonicMs() + deps.limits.partMs;
  }

  /** Resolves when the peer's job is done. Throws JobError. */
  async finished(): Promise<DonePart> {
    const { clock, limits } = this.#deps;
    const waitUntilMs = clock.monotonicMs() + limits.waitMs;
    const polls = this.#polls();
    for (;;) {
      const job = await this.#persistently(() => this.#status());
      if (job.state === 'failed') throw this.#error(`its job failed: ${job.reason ?? 'no reason given'}`);
      if (job.state === 'done') {
        const done = DonePart.safeParse(job);
        if (!done.success) throw this.#error('its answer lacks the size or the window of the result');
        return done.data;
      }
      await this.#wait(polls, waitUntilMs, `its job is still ${job.state}`);
    }
  }

  /** Downloads the result to `path`, which appears when it is complete. Rejects with JobError. */
  async download({ size_bytes: size }: DonePart, path: string, progress: (bytes: number) => void): Promise<void> {
    const temporary = `${path}.part`;
    const target = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o640).catch(
      (err: unknown) => {
        throw diskError(err) ?? err;
      },
    );
    try {
      await this.#receive(new Arriving(target, size, this.#deps, this.#untilMs, progress));
      await target.sync();
      await rename(temporary, path);
    } catch (err) {
      await rm(temporary, { force: true });
      throw err;
    } finally {
      await target.close();
    }
  }

  /** Repeats requests until the result is complete; data received before a failure are kept. */
  async #receive(arriving: Arriving): Promise<void> {
    const waitUntilMs = this.#deps.clock.monotonicMs() + this.#deps.limits.waitMs;
    const polls = this.#polls();
    while (!arriving.isWhole) {
      const state = await this.#persistently(
        () => this.#receiveSome(arriving),
        () => arriving.bytes,
      );
      if (state === 'not-yet') await this.#wait(polls, waitUntilMs, 'its result is still not there');
    }
  }

  async #receiveSome(arriving: Arriving): Promise<'not-yet' | undefined> {
    const answer = await this.#ask('/download', arriving.rangeHeaders());
    try {
      if (answer.statusCode === 202) return 'not-yet';
      if (answer.statusCode === 416) arriving.restart();
      else {
        if (answer.statusCode !== 200 && answer.statusCode !== 206) throw refusal(answer.statusCode ?? 0);
        await arriving.take(answer);
      }
      return undefined;
    } finally {
      answer.destroy();
    }
  }

  async #status(): Promise<z.output<typeof PeerJob>> {
    const answer = await this.#ask('', {});
    try {
      if (answer.statusCode !== 200) throw refusal(answer.statusCode ?? 0);
      const job = PeerJob.safeParse(parseJson(await readAll(answer)));
      if (!job.success) throw new PeerFailure('its answer is not a job');
      return job.data;
    } finally {
      answer.destroy();
    }
  }

  async #ask(suffix: string, headers: Readonly<Record<string, string>>): Promise<IncomingMessage> {
    const { access } = this.#deps;
    const { peerAddress, peerJobId } = this.#part;
    // Membership may have changed since the job was accepted.
    const member = findMember(access.members(), peerAddress, access.scheme);
    if (!member) throw new PeerFailure('it is no longer a member of the cluster');
    const path = `/api/archive/jobs/${encodeURIComponent(peerJobId)}${suffix}`;
    const own = access.own?.();
    if (own && member.mutual) {
      const { address, identity } = member.mutual;
      const { authorization: _credential, ...others } = this.#headers;
      return askMember(access, own, { url: new URL(path, address), identity }, { ...others, ...headers }, this.#signal);
    }
    const url = new URL(path, member.url);
    return askPeer(access, url, { ...this.#headers, ...headers }, this.#signal);
  }

  /** Retries transient failures until there was no progress for too long. */
  async #persistently<T>(attempt: () => Promise<T>, achieved: () => number = () => 0): Promise<T> {
    const { clock, limits } = this.#deps;
    const backoff = new Backoff({ firstMs: Math.min(1_000, limits.pollMs), maxMs: 10_000 });
    let lastMs = clock.monotonicMs();
    for (;;) {
      const before = achieved();
      try {
        return await attempt();
      } catch (err) {
        this.#signal.throwIfAborted();
        if (!(err instanceof PeerFailure)) throw err;
        if (!err.passing) throw this.#error(err.message, err);
        const nowMs = clock.monotonicMs();
        if (achieved() > before) {
          lastMs = nowMs;
          backoff.reset();
        }
        if (nowMs - lastMs >= limits.giveUpMs || nowMs >= this.#untilMs) throw this.#error(err.message, err);
        await clock.sleep(backoff.next(), this.#signal);
        this.#signal.throwIfAborted();
      }
    }
  }

  #polls(): Backoff {
    const { pollMs } = this.#deps.limits;
    return new Backoff({ firstMs: Math.min(FIRST_POLL_MS, pollMs), maxMs: pollMs });
  }

  async #wait(polls: Backoff, untilMs: number, state: string): Promise<void> {
    const { clock, limits } = this.#deps;
    if (clock.monotonicMs() >= Math.min(untilMs, this.#untilMs)) {
      throw this.#error(`${state} after ${Math.round(limits.waitMs / 1000)} s`);
    }
    await clock.sleep(polls.next(), this.#signal);
    this.#signal.throwIfAborted();
  }

  #error(what: string, cause?: unknown): JobError {
    const { peerAddress } = this.#part;
    return new JobError('peer-failed', `part ${this.#ordinal} from ${peerAddress}: ${what}`, { cause });
  }
}

/** A file that is downloaded in one or more answers. */
class Arriving {
  readonly #target: FileHandle;
  readonly #size: number;
  readonly #deps: PartDeps;
  readonly #untilMs: number;
  readonly #progress: (bytes: number) => void;
  #etag: string | undefined;
  #checkAt = CHECK_BYTES;
  #syncAt = SYNC_BYTES;
  bytes = 0;

  constructor(target: FileHandle, size: number, deps: PartDeps, untilMs: number, progress: (bytes: number) => void) {
    this.#target = target;
    this.#size = size;
    this.#deps = deps;
    this.#untilMs = untilMs;
    this.#progress = progress;
  }

  get isWhole(): boolean {
    return this.bytes === this.#size;
  }

  /** A range of the same result only: without a validator, the whole file is requested again (RFC 9110 §13.1.5). */
  rangeHeaders(): Record<string, string> {
    if (this.bytes === 0 || this.#etag === undefined) return {};
    return { range: `bytes=${this.bytes}-`, 'if-range': this.#etag };
  }

  restart(): void {
    this.#etag = undefined;
    this.bytes = 0;
  }

  async take(answer: IncomingMessage): Promise<void> {
    const length = answer.headers['content-length'];
    const range = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.headers['content-range'] ?? '');
    if (answer.statusCode === 200) this.restart();
    else if (Number(range?.[1]) !== this.bytes) throw new PeerFailure('it sends another range than the requested one');
    const total = answer.statusCode === 206 ? Number(range?.[2]) : Number(length ?? this.#size);
    if (total !== this.#size) {
      throw new PeerFailure(`it reported a result of ${this.#size} bytes, but sends ${total}`);
    }
    const etag = answer.headers.etag;
    this.#etag = etag?.startsWith('"') ? etag : undefined;
    await this.#copy(answer);
    if (!this.isWhole) throw new PeerFailure(`it ends after ${this.bytes} of ${this.#size} bytes`, { passing: true });
  }

  async #copy(answer: IncomingMessage): Promise<void> {
    const { clock, limits } = this.#deps;
    let sinceMs = clock.monotonicMs();
    let sinceBytes = this.bytes;
    const chunks = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    for (;;) {
      const { value: chunk, done } = await chunks.next().catch((err: unknown) => {
        throw err instanceof PeerFailure ? err : unreachable(err);
      });
      if (done) return;
      if (this.bytes + chunk.length > this.#size) throw new PeerFailure(`it sends more than ${this.#size} bytes`);
      await this.#write(chunk);
      const nowMs = clock.monotonicMs();
      if (nowMs >= this.#untilMs) throw new PeerFailure(`it takes longer than ${limits.partMs / 1000} s`);
      if (nowMs - sinceMs < limits.slowest.ms) continue;
      if (this.bytes - sinceBytes < limits.slowest.bytes) {
        throw new PeerFailure(`it sends less than ${limits.slowest.bytes} bytes in ${limits.slowest.ms / 1000} s`);
      }
      sinceMs = nowMs;
      sinceBytes = this.bytes;
    }
  }

  async #write(chunk: Buffer): Promise<void> {
    try {
      for (let written = 0; written < chunk.length;) {
        const left = chunk.subarray(written);
        written += (await this.#target.write(left, 0, left.length, this.bytes + written)).bytesWritten;
      }
      this.bytes += chunk.length;
      this.#progress(this.bytes);
      // Synced in steps: one sync of gigabytes at the end would delay recording.
      if (this.bytes >= this.#syncAt) {
        this.#syncAt = this.bytes + SYNC_BYTES;
        await this.#target.datasync();
      }
    } catch (err) {
      throw diskError(err) ?? err;
    }
    if (this.bytes < this.#checkAt) return;
    this.#checkAt = this.bytes + CHECK_BYTES;
    if ((await this.#deps.spareBytes()) < this.#size - this.bytes) {
      throw new JobError('disk-full', 'the disk has filled up: the free space is reserved for recording');
    }
  }
}

const REFUSALS: Readonly<Record<number, string>> = {
  401: 'it does not accept the credential of the caller (401)',
  403: 'it does not let the caller see this job (403)',
  404: 'it has no such job (404)',
  409: 'its job failed (409)',
  410: 'its result has expired (410): request the export again',
};

/** The failure for an unexpected status. */
const refusal = (status: number): PeerFailure =>
  new PeerFailure(REFUSALS[status] ?? `it answers ${status}`, {
    passing: status >= 500 || status === 429 || status === 408,
  });

async function readAll(answer: IncomingMessage): Promise<string> {
  try {
    const body = await readBody(answer, MAX_ANSWER_BYTES, () => new PeerFailure('its answer is too long'));
    return body.toString('utf8');
  } catch (err) {
    throw err instanceof PeerFailure ? err : unreachable(err);
  }
}

/** The note next to a completely downloaded part; undefined when there is none. */
export async function readNote(path: string): Promise<DonePart | undefined> {
  try {
    const [text, { size }] = await Promise.all([readFile(notePath(path), 'utf8'), stat(path)]);
    const note = DonePart.safeParse(parseJson(text));
    return note.success && note.data.size_bytes === size ? note.data : undefined;
  } catch {
    // The part is not complete: it is fetched again.
    return undefined;
  }
}

/** Written before the part itself: what a later start needs to know about it. */
export async function writeNote(path: string, job: DonePart): Promise<void> {
  await writeFile(notePath(path), JSON.stringify(job), { mode: 0o640 });
}

const notePath = (path: string): string => `${path}.json`;
