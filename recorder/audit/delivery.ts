// Delivers the lines of the audit to one collector: in order, each until the collector has it. The files of the audit are the queue,
// and the last line that was delivered is kept beside them, so a collector that does not answer delays nothing else and costs
// no memory.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { firstError, messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { parseJson } from '../../base/parse-json.ts';
import { hashOf, type ChainEnd } from './files.ts';
import { Follower, type NextLines } from './follow.ts';
import type { SentLine } from './sent-line.ts';

/** Lines are collected for this long, so that few connections have many lines. */
const LOOK_MS = 2_000;
const RETRY = { firstMs: 1_000, maxMs: 60_000 };

/** Lines that a collector refused for ever, and why. */
export interface Refusal {
  readonly lines: number;
  readonly message: string;
}

/** Resolves when the collector has the lines. */
export type Send = (lines: readonly SentLine[], signal: AbortSignal) => Promise<Refusal | undefined | void>;

interface DeliveryOptions {
  readonly directory: string;
  readonly to: 'syslog' | 'otlp';
  /** Of the collector, for the log and for the name of the file. */
  readonly address: string;
  readonly send: Send;
  /** The last line of the audit. */
  readonly end: () => ChainEnd;
  readonly clock: Clock;
  readonly log: Log;
}

interface Delivered extends ChainEnd {
  /** When the line was written. */
  readonly timeMs: number;
}

export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #file: string;
  readonly #log: Log;
  readonly #stop = new AbortController();
  readonly #startedMs: number;
  #delivered: Delivered | undefined;
  #running: Promise<void> | undefined;
  #problem: string | undefined;
  /** Lines that the collector has accepted, and those that it refused for ever. */
  accepted = 0;
  refused = 0;

  constructor(options: DeliveryOptions) {
    const { directory, to, address, clock, log } = options;
    this.#options = options;
    this.#startedMs = clock.wallMs();
    this.#log = log.child({ collector: address });
    this.#file = join(directory, `sent-${to}-${hashOf(address).slice(0, 16)}`);
  }

  get to(): 'syslog' | 'otlp' {
    return this.#options.to;
  }

  /** Why the last delivery failed. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /**
   * The time since the newest line that the collector has was written; without one, since the start. It grows whatever the cause is:
   * the collector is away, or no lines are written.
   */
  behindMs(): number {
    return Math.max(0, this.#options.clock.wallMs() - (this.#delivered?.timeMs ?? this.#startedMs));
  }

  start(): void {
    this.#running = this.#run().catch((err: unknown) =>
      this.#log.bug({ err }, 'the audit is not sent any more because of an internal error'),
    );
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { directory, end, clock } = this.#options;
    const { signal } = this.#stop;
    this.#delivered = await this.#kept();
    const follower = new Follower(directory, this.#delivered, this.#log);
    const backoff = new Backoff(RETRY);
    let waiting: NextLines = { lines: [], more: false };
    /** The end of the audit before `waiting` was read. */
    let n = 0;
    while (!signal.aborted) {
      try {
        if (waiting.lines.length === 0) {
          ({ n } = end());
          waiting = await follower.next();
        }
        if (waiting.lines.length > 0) await this.#deliver(waiting.lines);
        waiting = { ...waiting, lines: [] };
        backoff.reset();
        this.#tell(undefined);
      } catch (err) {
        if (signal.aborted) return;
        this.#tell(messageOf(firstError(err)));
        await clock.sleep(backoff.next(), signal);
        continue;
      }
      if (!waiting.more) await this.#further(n);
    }
  }

  /** Resolves when the audit has more lines than up to `n`. Until then not even its directory is read. */
  async #further(n: number): Promise<void> {
    const { clock, end } = this.#options;
    const { signal } = this.#stop;
    do await clock.sleep(LOOK_MS, signal);
    while (end().n === n && !signal.aborted);
  }

  async #deliver(lines: readonly SentLine[]): Promise<void> {
    const refusal = await this.#options.send(lines, this.#stop.signal);
    const { n, id: sha256 } = lines.at(-1) as SentLine;
    const timeMs =
      lines.findLast((line) => line.timeMs !== undefined)?.timeMs ?? this.#delivered?.timeMs ?? this.#startedMs;
    this.#delivered = { n, sha256, timeMs };
    this.refused += refusal?.lines ?? 0;
    this.accepted += lines.length - (refusal?.lines ?? 0);
    if (refusal)
      this.#log.error({ ...refusal, from: lines[0]?.n, to: n }, 'a collector refused lines of the audit for ever');
    await this.#keep(this.#delivered);
  }

  /** Logs one line per change. */
  #tell(problem: string | undefined): void {
    const before = this.#problem;
    this.#problem = problem;
    if (before === problem) return;
    if (problem === undefined) this.#log.info({}, 'the audit is sent again');
    else this.#log.warn({ problem }, 'the audit cannot be sent: its lines wait in the files');
  }

  async #kept(): Promise<Delivered | undefined> {
    // There is none yet, or it cannot be read: then every line is sent.
    const kept = parseJson(await readFile(this.#file, 'utf8').catch(() => '')) as Partial<Delivered> | null | undefined;
    const isWhole =
      Number.isSafeInteger(kept?.n) && typeof kept?.sha256 === 'string' && Number.isSafeInteger(kept.timeMs);
    return isWhole ? (kept as Delivered) : undefined;
  }

  /** If it cannot be kept, lines are sent twice after a restart. */
  async #keep(delivered: Delivered): Promise<void> {
    try {
      await writeFile(`${this.#file}.new`, JSON.stringify(delivered), { mode: 0o640 });
      await rename(`${this.#file}.new`, this.#file);
    } catch (err) {
      this.#log.debug({ file: this.#file, err }, 'how far the audit was sent cannot be kept');
    }
  }
}
