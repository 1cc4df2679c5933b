// Visits: footage that is watched or downloaded over some time. Each has one line at its start and one at its end, however many
// requests and connections it takes: an HLS player requests a part every few seconds, and a viewer on a bad network reconnects
// again and again.

import type { Clock, Timer } from '../../base/clock.ts';
import { footageOf, type AuditSink, type Visit } from './entry.ts';

/** A visit ends after this long without a request and without an open response. */
const IDLE_MS = 60_000;
const LOOK_MS = 10_000;
/** Beyond this number, the visit that has been idle longest ends. About 500 bytes each. */
const MAX_OPEN = 4_096;
/**
 * Beyond this number, further visits of a caller share one without a camera, so that no caller can flood the audit with
 * visits.
 */
const MAX_OF_CALLER = 200;

export interface VisitFacts {
  readonly what: Visit;
  readonly caller: string;
  readonly role?: string | undefined;
  /** The node that says who the caller is. */
  readonly statedBy?: string | undefined;
  readonly address: string;
  /** Null in the shared visit of a caller that has too many. */
  readonly camera: string | null;
  /** Instead of `camera`, for visits of several cameras. */
  readonly cameras?: readonly string[] | undefined;
  /** For a download. */
  readonly job?: string | undefined;
  /** Limits of the footage, milliseconds since 1970. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly requestId?: string | undefined;
}

interface OpenVisit {
  readonly facts: VisitFacts;
  readonly startedMs: number;
  fromMs: number;
  toMs: number;
  bytes: number;
  requests: number;
  /** The number of open responses. */
  active: number;
  lastMs: number;
}

interface VisitsOptions {
  readonly audit: AuditSink;
  /** False: no lines for live streams, still images and playback; downloads and windows still have them. */
  readonly views: boolean;
  readonly clock: Clock;
}

const TAKING: ReadonlySet<Visit> = new Set<Visit>(['download', 'window']);

export class Visits {
  readonly #options: VisitsOptions;
  /** In the order of their last requests. */
  readonly #open = new Map<string, OpenVisit>();
  readonly #ofCaller = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(options: VisitsOptions) {
    this.#options = options;
  }

  /** Call when a response starts; call the returned function at its end, with the number of bytes sent. */
  begin(facts: VisitFacts): (bytes: number) => void {
    if (!this.#options.views && !TAKING.has(facts.what)) return () => {};
    const nowMs = this.#options.clock.monotonicMs();
    const visit = this.#visitOf(facts, nowMs);
    visit.requests++;
    visit.active++;
    visit.fromMs = Math.min(visit.fromMs, facts.fromMs ?? Infinity);
    visit.toMs = Math.max(visit.toMs, facts.toMs ?? -Infinity);
    let ended = false;
    return (bytes) => {
      if (ended) return;
      ended = true;
      visit.bytes += bytes;
      visit.active--;
      visit.lastMs = this.#options.clock.monotonicMs();
    };
  }

  /** Ends all visits. */
  close(): void {
    this.#timer?.cancel();
    for (const key of this.#open.keys()) this.#end(key);
  }

  #visitOf(given: VisitFacts, nowMs: number): OpenVisit {
    const ofCaller = this.#ofCaller.get(given.caller) ?? 0;
    const isTooMany = ofCaller >= MAX_OF_CALLER && !this.#open.has(keyOf(given));
    const facts = isTooMany ? { ...given, camera: null, cameras: undefined, job: undefined } : given;
    const key = keyOf(facts);
    const known = this.#open.get(key);
    if (known) {
      this.#open.delete(key);
      this.#open.set(key, known);
      return known;
    }
    if (this.#open.size >= MAX_OPEN) this.#end(this.#idlest());
    const visit = {
      facts,
      startedMs: nowMs,
      fromMs: Infinity,
      toMs: -Infinity,
      bytes: 0,
      requests: 0,
      active: 0,
      lastMs: nowMs,
    };
    this.#open.set(key, visit);
    this.#ofCaller.set(facts.caller, ofCaller + 1);
    this.#write(facts, { phase: 'start', ...footageOf(facts), requestId: facts.requestId });
    this.#timer ??= this.#options.clock.after(LOOK_MS, () => this.#look());
    return visit;
  }

  #idlest(): string {
    for (const [key, { active }] of this.#open) if (active === 0) return key;
    const [oldest] = this.#open.keys();
    return oldest as string;
  }

  #look(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [key, { active, lastMs }] of this.#open) if (active === 0 && nowMs - lastMs >= IDLE_MS) this.#end(key);
    this.#timer = this.#open.size > 0 ? this.#options.clock.after(LOOK_MS, () => this.#look()) : undefined;
  }

  #end(key: string): void {
    const visit = this.#open.get(key);
    if (!visit) return;
    this.#open.delete(key);
    const { caller } = visit.facts;
    const left = (this.#ofCaller.get(caller) ?? 0) - 1;
    if (left > 0) this.#ofCaller.set(caller, left);
    else this.#ofCaller.delete(caller);
    const { facts, startedMs, lastMs, active, bytes, requests, fromMs, toMs } = visit;
    const nowMs = this.#options.clock.monotonicMs();
    const seconds = Math.round(((active > 0 ? nowMs : lastMs) - startedMs) / 1000);
    this.#write(facts, { phase: 'end', ...footageOf({ fromMs, toMs }), seconds, requests, bytes });
  }

  #write(
    { what, caller, role, statedBy, address, camera, cameras, job }: VisitFacts,
    more: Record<string, unknown>,
  ): void {
    const of = cameras ? { cameras } : { camera };
    const vouched = statedBy === undefined ? {} : { statedBy };
    const about = {
      what,
      caller,
      role: role ?? null,
      ...vouched,
      address,
      ...of,
      ...(job === undefined ? {} : { job }),
    };
    this.#options.audit.write({ ...about, ...more });
  }
}

/** The same window requested twice is one visit; another window is another one. */
function keyOf({ what, caller, statedBy = '', address, camera, job = '', fromMs, toMs }: VisitFacts): string {
  if (camera === null) return `${what}\n${caller}`;
  const window = what === 'window' ? `${fromMs} ${toMs}` : '';
  return [what, caller, statedBy, address, camera, job, window].join('\n');
}
