// The footage of a camera in an interval, from all nodes that have some. A node that does not answer in time is listed
// with the time that is missing.

import type { Clock } from '../../base/clock.ts';
import { readBody } from '../../base/http-answer.ts';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import { holdersIn, silentAt, type Elsewhere, type FootageHolder } from '../peers/peer.ts';
import type { Asker, PeerSender } from '../peers/peer-requests.ts';
import { viewerOf, wholeAnswer, type WholeAnswer } from '../peers/whole-answer.ts';
import type { PlayedFile } from './archive-file.ts';
import type { Footage } from './footage.ts';
import { footageOf } from './footage-message.ts';
import { RemoteFile } from './remote-file.ts';
import { inTurns } from './turns.ts';

export interface Collected {
  readonly footage: readonly Footage[];
  /** By node. */
  readonly elsewhere: readonly Elsewhere[];
}

interface CollectorOptions {
  readonly nodeId: string;
  readonly holders: (cameraId: string) => Promise<readonly FootageHolder[]>;
  readonly peers: PeerSender;
  readonly clock: Clock;
  readonly log: Log;
}

/** Players that follow a recording ask every few seconds: they share one answer of a node, as long as it answers. */
const FRESH_MS = 2_000;
/** Times of requests to nodes are rounded, so that requests for nearly the same interval are shared. */
const ROUNDED_MS = 10_000;
/** A list without a file shows that a node, which may have died since its last list, still answers. */
const NO_TIME = 'from=0&to=1';
const LIST_MS = 4_000;
const RANGE_MS = 10_000;
/** A day of ten-second files. */
const MAX_LIST_BYTES = 32 * 1024 * 1024;

export class Collector {
  readonly #o: CollectorOptions;
  readonly #kept = new Map<string, Promise<WholeAnswer<readonly Footage[]>>>();

  constructor(options: CollectorOptions) {
    this.#o = options;
  }

  /** `own`: the footage of this node. */
  async collect(cameraId: string, interval: Interval, own: readonly Footage[], caller: Asker): Promise<Collected> {
    const { nodeId, clock } = this.#o;
    const { fromMs } = interval;
    const toMs = Math.min(interval.toMs, clock.wallMs());
    const holders = holdersIn(await this.#o.holders(cameraId), fromMs, toMs);
    if (holders.length === 0) return { footage: own, elsewhere: [] };
    const found = await Promise.all(
      holders.map(async (holder) => ({ holder, answer: await this.#footageOf(holder, cameraId, interval, caller) })),
    );
    const elsewhere: Elsewhere[] = [];
    const all: Footage[] = own.map((item) => ({ ...item, nodeId }));
    for (const { holder, answer } of found) {
      if (answer.kind === 'answer') all.push(...answer.value);
      else elsewhere.push(silentAt(holder, fromMs, toMs, answer));
    }
    return { footage: inTurns(all as (Footage & { nodeId: string })[]), elsewhere };
  }

  /** A file of another node, to be read with the rights of the caller. */
  open({ nodeId = '', path, sizeBytes, isOpen, parts }: Footage, caller: Asker): PlayedFile {
    // The state of a growing file that has these bytes stays the same after it is closed.
    const query = isOpen ? `?size=${sizeBytes}` : '';
    const as = viewerOf(caller, parts.meta.cameraId);
    return new RemoteFile(sizeBytes, async (from, to) => {
      const answer = await this.#o.peers.request(nodeId, {
        listener: 'playback',
        caller: as,
        path: `/${path}${query}`,
        headers: { range: `bytes=${from}-${to - 1}` },
        signal: AbortSignal.timeout(RANGE_MS),
      });
      const tooLong = (): Error => new Error('more than the range');
      const bytes = await readBody(answer.body, to - from, tooLong);
      if (answer.status !== 206 || bytes.length !== to - from) throw new Error(`status ${answer.status}`);
      return bytes;
    });
  }

  async #footageOf(
    { nodeId }: FootageHolder,
    cameraId: string,
    { fromMs, toMs }: Interval,
    caller: Asker,
  ): Promise<WholeAnswer<readonly Footage[]>> {
    const from = Math.floor(fromMs / ROUNDED_MS) * (ROUNDED_MS / 1000);
    const to = Math.ceil(toMs / ROUNDED_MS) * (ROUNDED_MS / 1000);
    // Callers that may see the camera may see all of it.
    const key = `${nodeId} ${cameraId} ${from} ${to}`;
    const kept = this.#kept.get(key);
    if (kept) {
      const answer = await this.#ask(nodeId, cameraId, NO_TIME, caller);
      return answer.kind === 'answer' ? kept : answer;
    }
    const footage = this.#ask(nodeId, cameraId, `from=${from}&to=${to}`, caller);
    this.#kept.set(key, footage);
    this.#o.clock.after(FRESH_MS, () => this.#kept.delete(key));
    if ((await footage).kind !== 'answer' && this.#kept.get(key) === footage) this.#kept.delete(key);
    return footage;
  }

  #ask(nodeId: string, cameraId: string, query: string, caller: Asker): Promise<WholeAnswer<readonly Footage[]>> {
    const request = {
      listener: 'playback',
      caller: viewerOf(caller, cameraId),
      path: `/footage/${encodeURIComponent(cameraId)}?${query}`,
      headMs: LIST_MS,
      signal: AbortSignal.timeout(2 * LIST_MS),
    } as const;
    return wholeAnswer(this.#o, nodeId, request, MAX_LIST_BYTES, footageOf(nodeId, cameraId));
  }
}
