// Writes Events (events.k8s.io/v1), which `kubectl describe` shows. Repetitions within some minutes become one Event with a
// count.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { OPERATOR_MANAGER } from '../../crds/names.ts';
import { ApiError, isNotFound, type KubeApi, type KubeObject, type ObjectMetadata } from './api.ts';
import { callsUntil } from './calls-until.ts';
import { EVENT } from './resources.ts';
import { microTime } from './time.ts';

/** The object that an event is about. */
export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMetadata;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** The cause, as one specific CamelCase word: `NodeUnavailable`, not `Failed`. */
  readonly reason: string;
  /** What was done, such as `Assign`. */
  readonly action: string;
  readonly note: string;
}

interface EventRecorderOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Log;
  /** Identifies this replica: the name of its pod. */
  readonly instance: string;
}

interface Series {
  readonly key: string;
  readonly regarding: Regarding;
  readonly text: EventText;
  /** Name of the Event once it has been created. */
  name: { readonly namespace: string; readonly name: string } | undefined;
  count: number;
  lastMs: number;
  lastWallMs: number;
  /** The count that has been written. */
  written: number;
}

/** As in client-go: repetitions within this time belong to the same series. */
const SERIES_MS = 6 * MINUTE_MS;
/** An ongoing series is written this often, not at every repetition. */
const REFRESH_MS = 30_000;
/** Bounds memory: Events are best effort. */
const MAX_SERIES = 2_000;
/** Rate limit for different Events about one object: a burst of this many, then one per OBJECT_REFILL_MS. */
const OBJECT_BURST = 20;
const OBJECT_REFILL_MS = 60_000;
const MAX_NOTE = 1024;
const MAX_TRIES = 3;
const RETRY_MS = 2_000;
/** What is pending has this long when the operator stops. */
const CLOSE_MS = 1_000;

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, { readonly tokens: number; readonly atMs: number }>();
  /** Series that wait to be written, in order. */
  readonly #pending = new Set<Series>();
  readonly #refreshes = new Map<Series, Timer>();
  readonly #api: KubeApi;
  readonly #end = new AbortController();
  #sending: Promise<void> | undefined;
  #names = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#api = callsUntil(options.api, this.#end.signal);
  }

  /** Returns at once and never throws. */
  record(regarding: Regarding, text: EventText): void {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const { uid, name } = regarding.metadata;
    const key = [uid ?? name, text.type, text.reason, text.action, text.note].join('|');
    let series = this.#series.get(key);
    if (series && nowMs - series.lastMs > SERIES_MS) series = undefined;
    if (!series) {
      if (!this.#mayBegin(uid ?? name, nowMs)) return;
      series = {
        key,
        regarding,
        text,
        name: undefined,
        count: 0,
        lastMs: 0,
        lastWallMs: 0,
        written: 0,
      };
      setLimited(this.#series, key, series);
    }
    series.count++;
    series.lastMs = nowMs;
    series.lastWallMs = clock.wallMs();
    if (series.count <= 2) this.#send(series);
    else this.#refreshLater(series);
  }

  /** Writes what is pending; resolves when it is written, has failed, or has taken too long. */
  async close(): Promise<void> {
    const { clock } = this.#options;
    for (const [series, timer] of this.#refreshes) {
      timer.cancel();
      this.#pending.add(series);
    }
    this.#refreshes.clear();
    this.#sending ??= this.#sendAll();
    const timer = clock.after(CLOSE_MS, () => this.#end.abort());
    await this.#sending;
    timer.cancel();
  }

  /** Takes a token from the object's bucket; false if it is empty. */
  #mayBegin(object: string, nowMs: number): boolean {
    const before = this.#buckets.get(object) ?? { tokens: OBJECT_BURST, atMs: nowMs };
    const tokens = Math.min(OBJECT_BURST, before.tokens + (nowMs - before.atMs) / OBJECT_REFILL_MS);
    const isAllowed = tokens >= 1;
    setLimited(this.#buckets, object, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs });
    if (!isAllowed) this.#options.log.debug({ object }, 'too many Events about one object: an Event is dropped');
    return isAllowed;
  }

  #refreshLater(series: Series): void {
    if (this.#refreshes.has(series)) return;
    const timer = this.#options.clock.after(REFRESH_MS, () => {
      this.#refreshes.delete(series);
      this.#send(series);
    });
    this.#refreshes.set(series, timer);
  }

  #send(series: Series): void {
    if (this.#pending.size >= MAX_SERIES) return;
    this.#pending.add(series);
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    // Let the callers of `record` continue first, so that Events recorded together are sent together.
    await Promise.resolve();
    for (const series of this.#pending) {
      if (this.#end.signal.aborted) break;
      this.#pending.delete(series);
      if (series.written < series.count) await this.#write(series);
    }
    this.#sending = undefined;
  }

  async #write(series: Series): Promise<void> {
    const { log, clock } = this.#options;
    for (let tries = 1; ; tries++) {
      const { count } = series;
      try {
        if (series.name) await this.#api.mergePatch(EVENT, series.name, seriesOf(series));
        else series.name = await this.#create(series);
        series.written = series.written === 0 ? 1 : count;
        if (series.written >= count) return;
      } catch (err) {
        // The API server has deleted the Event meanwhile (after an hour by default): create it again.
        if (isNotFound(err) && series.name) Object.assign(series, { name: undefined, written: 0 });
        else if (tries >= MAX_TRIES || !isPassing(err) || this.#end.signal.aborted) {
          log.debug({ err, reason: series.text.reason }, 'an Event could not be written');
          return;
        } else await clock.sleep((err instanceof ApiError && err.retryAfterMs) || RETRY_MS, this.#end.signal);
      }
    }
  }

  async #create(series: Series): Promise<{ namespace: string; name: string }> {
    const { clock, instance } = this.#options;
    const { regarding, text, lastWallMs } = series;
    const { apiVersion, kind, metadata } = regarding;
    const { name, namespace, uid, resourceVersion } = metadata;
    const event: KubeObject = {
      metadata: {
        // Unique without the server's help, so that a retry after a lost response does not create a second Event.
        name: `${name.slice(0, 200)}.${Math.round(clock.wallMs()).toString(16)}${(this.#names++).toString(16)}`,
        namespace: namespace ?? 'default',
      },
      eventTime: microTime(lastWallMs),
      type: text.type,
      reason: text.reason,
      action: text.action,
      note: text.note.slice(0, MAX_NOTE),
      reportingController: OPERATOR_MANAGER,
      reportingInstance: instance.slice(0, 128),
      regarding: { apiVersion, kind, name, namespace, uid, resourceVersion },
    };
    await this.#api.create(EVENT, event);
    return { namespace: namespace ?? 'default', name: event.metadata.name };
  }
}

/** The only part of an Event that may be changed. */
const seriesOf = ({ count, lastWallMs }: Series): object => ({
  series: { count, lastObservedTime: microTime(lastWallMs) },
});

/** Sets an entry; beyond the limit the oldest one is removed. */
function setLimited<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_SERIES) map.delete(map.keys().next().value as string);
}

/** Whether a retry may succeed. */
const isPassing = (err: unknown): boolean =>
  err instanceof ApiError && (err.status === 0 || err.status === 429 || err.status >= 500);
