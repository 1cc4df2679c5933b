// Events (events.k8s.io/v1): what people see in `kubectl describe` when something changed. The same thing again within
// some minutes becomes one event that counts.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { MINUTE_MS } from '../../base/units.ts';
import { OPERATOR_MANAGER } from '../../crds/names.ts';
import { ApiError, isNotFound, type KubeApi, type KubeObject, type ObjectMetadata } from './api.ts';
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
  /** Why, as one specific CamelCase word: `NodeUnavailable`, not `Failed`. */
  readonly reason: string;
  /** What was done: `Assign`. */
  readonly action: string;
  readonly note: string;
}

export interface EventRecorderOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Log;
  /** Of this replica: the name of its pod. */
  readonly instance: string;
}

interface Series {
  readonly key: string;
  readonly regarding: Regarding;
  readonly text: EventText;
  /** Of the event that was created; undefined until it was. */
  name: { readonly namespace: string; readonly name: string } | undefined;
  count: number;
  lastMs: number;
  lastWallMs: number;
  /** What is written already. */
  written: number;
}

/** As client-go: what repeats within this time belongs to the same series. */
const SERIES_MS = 6 * MINUTE_MS;
/** A series that goes on is written now and then, not each time. */
const REFRESH_MS = 30_000;
/** Events are a courtesy: memory and the API server come first. */
const MAX_SERIES = 2_000;
/** Different events about one object: so many at once, then one in this time. */
const OBJECT_BURST = 20;
const OBJECT_REFILL_MS = 60_000;
const MAX_NOTE = 1024;
const MAX_TRIES = 3;
const RETRY_MS = 2_000;

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, { readonly tokens: number; readonly atMs: number }>();
  /** Waits to be written, in order. */
  readonly #pending = new Set<Series>();
  readonly #refreshes = new Map<Series, Timer>();
  #sending: Promise<void> | undefined;
  #names = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  /** Never throws, and waits for nothing. */
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

  /** Writes what waits, and resolves when that is done or has failed. */
  async close(): Promise<void> {
    for (const [series, timer] of this.#refreshes) {
      timer.cancel();
      this.#pending.add(series);
    }
    this.#refreshes.clear();
    this.#sending ??= this.#sendAll();
    await this.#sending;
  }

  /** Takes a token from the object's bucket. */
  #mayBegin(object: string, nowMs: number): boolean {
    const before = this.#buckets.get(object) ?? { tokens: OBJECT_BURST, atMs: nowMs };
    const tokens = Math.min(OBJECT_BURST, before.tokens + (nowMs - before.atMs) / OBJECT_REFILL_MS);
    const isAllowed = tokens >= 1;
    setLimited(this.#buckets, object, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs });
    if (!isAllowed) this.#options.log.debug({ object }, 'too many events about one object');
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
    // Callers of `record` go on first, so that what they record together is sent together.
    await Promise.resolve();
    for (const series of this.#pending) {
      this.#pending.delete(series);
      if (series.written < series.count) await this.#write(series);
    }
    this.#sending = undefined;
  }

  async #write(series: Series): Promise<void> {
    const { api, log, clock } = this.#options;
    for (let tries = 1; ; tries++) {
      const { count } = series;
      try {
        if (series.name) await api.mergePatch(EVENT, series.name, seriesOf(series));
        else series.name = await this.#create(series);
        series.written = series.written === 0 ? 1 : count;
        if (series.written >= count) return;
      } catch (err) {
        // It was forgotten by the API server meanwhile (an hour by default).
        if (isNotFound(err) && series.name) Object.assign(series, { name: undefined, written: 0 });
        else if (tries >= MAX_TRIES || !isPassing(err)) {
          log.debug({ err, reason: series.text.reason }, 'event not written');
          return;
        } else await clock.sleep((err instanceof ApiError && err.retryAfterMs) || RETRY_MS);
      }
    }
  }

  async #create(series: Series): Promise<{ namespace: string; name: string }> {
    const { api, clock, instance } = this.#options;
    const { regarding, text, lastWallMs } = series;
    const { apiVersion, kind, metadata } = regarding;
    const { name, namespace, uid, resourceVersion } = metadata;
    const event: KubeObject = {
      metadata: {
        // Unique without the server's help, so that a try whose answer was lost is not made twice.
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
    await api.create(EVENT, event);
    return { namespace: namespace ?? 'default', name: event.metadata.name };
  }
}

/** Only this may change in an event. */
const seriesOf = ({ count, lastWallMs }: Series): object => ({
  series: { count, lastObservedTime: microTime(lastWallMs) },
});

/** The oldest entry makes room. */
function setLimited<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_SERIES) map.delete(map.keys().next().value as string);
}

/** Whether it may succeed a little later. */
const isPassing = (err: unknown): boolean =>
  err instanceof ApiError && (err.status === 0 || err.status === 429 || err.status >= 500);
