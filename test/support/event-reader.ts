// Follows `GET /api/events` as a browser would (WHATWG HTML §9.2).

import assert from 'node:assert/strict';

export interface ReadEvent {
  readonly id: string;
  readonly type: string;
  readonly data: {
    readonly id: string;
    readonly type: string;
    readonly subject?: string;
    readonly source: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

export class EventReader {
  /** The events so far, in order. */
  readonly events: ReadEvent[] = [];
  /** What a browser would send when it reconnects. */
  lastEventId = '';
  /** Resolves when the response has ended, in whatever way. */
  readonly ended: Promise<void>;
  readonly #abort: AbortController;
  #arrived = Promise.withResolvers<void>();

  private constructor(answer: Response, abort: AbortController) {
    this.#abort = abort;
    this.ended = this.#read(answer).catch(() => {});
  }

  /** Resolves when the response has begun. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
    const abort = new AbortController();
    const answer = await fetch(url, { headers, signal: abort.signal });
    assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text());
    assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/);
    return new EventReader(answer, abort);
  }

  /** Resolves to the first event, past or future, that `wanted` accepts. Rejects if the response ends before. */
  async until(wanted: (event: ReadEvent) => boolean): Promise<ReadEvent> {
    for (;;) {
      const found = this.events.find(wanted);
      if (found) return found;
      const ended = this.ended.then(() => Promise.reject(new Error(`ended after ${this.events.length} events`)));
      await Promise.race([this.#arrived.promise, ended]);
    }
  }

  /** Resolves when an event or a position has arrived: from then on no event is missed. */
  async begun(): Promise<void> {
    while (this.lastEventId === '') await this.#arrived.promise;
  }

  async leave(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }

  async #read(answer: Response): Promise<void> {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(bytes, { stream: true });
      const blocks = rest.split('\n\n');
      rest = blocks.pop() as string;
      for (const block of blocks) this.#take(block.split('\n'));
      this.#arrived.resolve();
      this.#arrived = Promise.withResolvers();
    }
  }

  #take(lines: readonly string[]): void {
    const fields = new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(': ') + 2)]));
    const id = fields.get('id');
    if (id !== undefined) this.lastEventId = id;
    const data = fields.get('data');
    if (data === undefined) return;
    this.events.push({
      id: this.lastEventId,
      type: fields.get('event') ?? 'message',
      data: JSON.parse(data) as ReadEvent['data'],
    });
  }
}
