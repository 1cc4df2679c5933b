// One webhook: delivers the journal's events in order, and repeats each one until it is accepted. Its position in the journal is
// stored on disk, so that it continues there after a restart. It delays no other follower, because it reads from the shared
// journal.

import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { parseEventId, type NodeEvent } from '../contract/event.ts';
import type { EventJournal } from './journal.ts';
import type { Delivery } from './webhook-post.ts';

interface WebhookOptions {
  readonly journal: EventJournal;
  /** For the positions of webhooks. */
  readonly directory: string;
  readonly url: string;
  readonly wants: (event: NodeEvent) => boolean;
  readonly post: (event: NodeEvent, signal: AbortSignal) => Promise<Delivery>;
  readonly clock: Clock;
  readonly log: Log;
}

const RETRY = { firstMs: 1_000, maxMs: 60_000 };
/** A position that moved this far over unwanted events is stored too; in units of ids: ten minutes. */
const MOVED = 600_000_000;

export class Webhook {
  readonly #options: WebhookOptions;
  readonly #file: string;
  readonly #stop = new AbortController();
  #position = 0;
  #keptPosition = 0;
  #running: Promise<void> | undefined;
  #wake = (): void => {};
  #unfollow = (): void => {};
  #problem: string | undefined;
  delivered = 0;
  failed = 0;

  constructor(options: WebhookOptions) {
    this.#options = options;
    const name = createHash('sha256').update(options.url).digest('hex').slice(0, 16);
    this.#file = join(options.directory, `webhook-${name}`);
  }

  /** Events up to this one were delivered or not wanted. */
  get position(): number {
    return this.#position;
  }

  /** Continues at the stored position; a new webhook starts after `beginId`. Never rejects. */
  async start(beginId: number): Promise<void> {
    const place = await this.#kept();
    this.#position = place ?? beginId;
    this.#keptPosition = this.#position;
    // Stored now and not with the first accepted event: otherwise a restart before that would skip events.
    if (place === undefined) await this.#keep();
    this.#unfollow = this.#options.journal.follow(() => this.#wake());
    this.#running = this.#run().catch((err: unknown) =>
      this.#options.log.bug({ err }, 'a webhook has stopped because of an internal error'),
    );
  }

  /** Milliseconds since the oldest event that was not accepted yet; 0 if there is none. */
  behindMs(): number {
    const next = this.#next();
    return next ? Math.max(0, this.#options.clock.wallMs() - next.timeMs) : 0;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#unfollow();
    this.#wake();
    await this.#running;
    if (this.#position !== this.#keptPosition) await this.#keep();
  }

  async #kept(): Promise<number | undefined> {
    try {
      return parseEventId((await readFile(this.#file, 'utf8')).trim());
    } catch (err) {
      if (errorCode(err) !== 'ENOENT') {
        this.#options.log.error({ err }, 'the position of a webhook cannot be read: it goes on from the newest event');
      }
      return undefined;
    }
  }

  async #run(): Promise<void> {
    const { clock, post } = this.#options;
    const { signal } = this.#stop;
    const backoff = new Backoff(RETRY);
    while (!signal.aborted) {
      const event = this.#next();
      if (!event) {
        if (this.#position - this.#keptPosition > MOVED) await this.#keep();
        await this.#woken();
        continue;
      }
      const delivery = await post(event, signal);
      if (signal.aborted && !delivery.taken) return;
      this.#tell(delivery);
      if (delivery.taken) {
        this.#position = event.id;
        await this.#keep();
        backoff.reset();
      } else await clock.sleep(backoff.next(), signal);
    }
  }

  /** The next wanted event; moves the position past unwanted ones. */
  #next(): NodeEvent | undefined {
    const { journal, wants } = this.#options;
    const missed = journal.missedSince(this.#position);
    if (missed) return missed;
    for (const event of journal.after(this.#position)) {
      if (wants(event)) return event;
      this.#position = event.id;
    }
    return undefined;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#stop.signal.aborted || this.#next()) resolve();
    });
  }

  /** Logs one line per change. */
  #tell(delivery: Delivery): void {
    if (delivery.taken) this.delivered++;
    else this.failed++;
    const problem = delivery.taken ? undefined : delivery.problem;
    const before = this.#problem;
    this.#problem = problem;
    if (before === problem) return;
    const host = new URL(this.#options.url).host;
    if (problem === undefined) this.#options.log.info({ webhook: host }, 'a webhook accepts events again');
    else this.#options.log.warn({ webhook: host, problem }, 'a webhook does not accept an event: it is sent again');
  }

  /** If the position cannot be stored, events are delivered again after a restart. */
  async #keep(): Promise<void> {
    const position = this.#position;
    try {
      await mkdir(this.#options.directory, { recursive: true, mode: 0o750 });
      await writeFile(`${this.#file}.new`, String(position), { mode: 0o640 });
      await rename(`${this.#file}.new`, this.#file);
      this.#keptPosition = position;
    } catch (err) {
      this.#options.log.debug({ file: this.#file, err }, 'the position of a webhook cannot be stored');
    }
  }
}
