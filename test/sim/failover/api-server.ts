// An API server as its clients see it: objects with resource versions, compare-and-swap, requests that hang, fail, or
// are answered into nothing after they were carried out, watches that lag, stall and die unnoticed, lists out of an old
// cache, restarts.

import type { CameraView, NodeView, PoolView } from '../../../operator/plan/snapshot.ts';
import type { Process, Random, Timeline } from './world.ts';

export type LeaseView = {
  readonly name: string;
  readonly resourceVersion: string;
  readonly holder: string;
  /** Undefined before the first renewal. */
  readonly leaseDurationSeconds?: number | undefined;
  /** By the wall clock of its holder: nobody should read it. */
  readonly renewedWallMs: number;
};

export type VersionedPool = PoolView & { readonly resourceVersion: string };

type Objects = {
  readonly Camera: CameraView;
  readonly RecorderNode: NodeView;
  readonly RecorderPool: VersionedPool;
  readonly Lease: LeaseView;
};
export type Kind = keyof Objects;
export type ObjectOf<K extends Kind> = Objects[K];

export type Outcome<T> = { readonly ok: T } | { readonly conflict: true } | { readonly missing: true };

type Change = {
  readonly version: number;
  readonly kind: Kind;
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
};

export interface Watcher<K extends Kind> {
  readonly kind: K;
  readonly client: Process;
  readonly selects: (object: ObjectOf<K>) => boolean;
  /** Object undefined: it is not selected any more. */
  readonly onEvent: (name: string, object: ObjectOf<K> | undefined, version: number) => void;
  readonly onEnd: () => void;
}

type Stream = {
  readonly watcher: Watcher<Kind>;
  /** Changes after the list, as long as that is on its way; undefined: the watch is open. */
  backlog: Change[] | undefined;
  lastMs: number;
  stalledUntilMs: number;
  /** What could not be delivered while the client was cut off. */
  undelivered: (() => void)[];
  dead: boolean;
};

/** How many changes a list may be behind: the cache of an API server that lags. */
const MAX_LAG = 40;

export class ApiServer {
  readonly #timeline: Timeline;
  readonly #random: Random;
  readonly #objects = {
    Camera: new Map<string, CameraView>(),
    RecorderNode: new Map<string, NodeView>(),
    RecorderPool: new Map<string, VersionedPool>(),
    Lease: new Map<string, LeaseView>(),
  };
  #state: 'up' | 'paused' | 'down' = 'up';
  /** Requests that wait for etcd. */
  #waiting: (() => void)[] = [];
  #streams = new Set<Stream>();
  /** Ended while their clients were cut off for a moment: those will be told. */
  #untold: Stream[] = [];
  #changes: Change[] = [];
  #version = 0;
  /** Changes up to this version are not kept. */
  #forgottenVersion = 0;
  /** Faults that are in the air at present. */
  weather = { lostReplies: 0, lostRequests: 0, slowMs: 0, staleLists: 0, stalls: 0 };
  onChange: (kind: Kind, before: unknown, after: unknown, client: Process | undefined) => void = () => {};

  constructor(timeline: Timeline, random: Random) {
    this.#timeline = timeline;
    this.#random = random;
  }

  /** For the test itself: what is true. */
  all<K extends Kind>(kind: K): ReadonlyMap<string, ObjectOf<K>> {
    return this.#objects[kind] as unknown as ReadonlyMap<string, ObjectOf<K>>;
  }

  // ── what happens to it ──

  pause(): void {
    if (this.#state === 'up') this.#state = 'paused';
  }

  goDown(): void {
    this.#state = 'down';
    this.#waiting = [];
    for (const stream of this.#streams) {
      const { client, onEnd } = stream.watcher;
      if (!stream.dead) this.#later(client, () => (client.isCut ? void this.#untold.push(stream) : onEnd()));
    }
    this.#streams.clear();
  }

  comeUp(): void {
    this.#state = 'up';
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const run of waiting) run();
  }

  /** Connections of a client that was cut off for long are dead, and the client is not told. */
  forget(client: Process): void {
    for (const stream of this.#streams) if (stream.watcher.client === client) stream.dead = true;
    this.#untold = this.#untold.filter(({ watcher }) => watcher.client !== client);
  }

  /** After a short cut, connections deliver what they hold. */
  reconnect(client: Process): void {
    for (const stream of this.#streams) {
      if (stream.watcher.client !== client) continue;
      for (const deliver of stream.undelivered.splice(0)) deliver();
    }
    for (const { watcher } of this.#untold) if (watcher.client === client) this.#later(client, watcher.onEnd);
    this.#untold = this.#untold.filter(({ watcher }) => watcher.client !== client);
  }

  // ── requests ──

  /**
   * `done` gets what `work` returned, or undefined when there was no answer in time. `lost` is called at once when the weather
   * takes the request or its reply.
   */
  call<T>(
    client: Process,
    timeoutMs: number,
    work: () => T,
    done: (result: T | undefined) => void,
    lost: () => void = () => {},
  ): void {
    const sentMs = this.#timeline.nowMs;
    const answer = client.inThisLife(() => done(undefined));
    const fail = (): void => this.#timeline.at(sentMs + timeoutMs, answer);
    const execute = (): void => {
      const result = work();
      if (this.#random.chance(this.weather.lostReplies)) {
        lost();
        return fail();
      }
      // One that was frozen meanwhile: its time limit is over before it reads what came.
      const reply = client.inThisLife(() => done(this.#timeline.nowMs > sentMs + timeoutMs ? undefined : result));
      const atMs = this.#timeline.nowMs + this.#latencyMs();
      this.#timeline.at(atMs, () => (client.isCut || atMs > sentMs + timeoutMs ? fail() : reply()));
    };
    this.#timeline.at(sentMs + this.#latencyMs(), () => {
      if (client.isCut) return fail();
      if (this.#random.chance(this.weather.lostRequests)) {
        lost();
        return fail();
      }
      if (this.#state === 'down') return this.#timeline.at(this.#timeline.nowMs + 2, answer);
      if (this.#state === 'up') return execute();
      // Whoever gives up waiting does not stop what is on its way to the disk.
      this.#waiting.push(() => {
        if (this.#timeline.nowMs > sentMs + timeoutMs) work();
        else execute();
      });
      fail();
    });
  }

  get<K extends Kind>(kind: K, name: string): Outcome<ObjectOf<K>> {
    const object = this.all(kind).get(name);
    return object ? { ok: object } : { missing: true };
  }

  /** Undefined as version: whatever it is now. */
  replace<K extends Kind>(
    kind: K,
    name: string,
    resourceVersion: string | undefined,
    change: (object: ObjectOf<K>) => Omit<ObjectOf<K>, 'resourceVersion'>,
    client?: Process,
  ): Outcome<ObjectOf<K>> {
    const before = this.all(kind).get(name);
    if (!before) return { missing: true };
    if (resourceVersion !== undefined && before.resourceVersion !== resourceVersion) return { conflict: true };
    return { ok: this.put(kind, { ...change(before), resourceVersion: '' } as ObjectOf<K>, client) };
  }

  put<K extends Kind>(kind: K, object: ObjectOf<K>, client?: Process): ObjectOf<K> {
    const after = { ...object, resourceVersion: String(++this.#version) };
    this.#commit(kind, object.name, after, client);
    return after;
  }

  remove(kind: Kind, name: string): void {
    this.#commit(kind, name, undefined, undefined);
  }

  // ── lists and watches ──

  /** `done` gets the objects and the version to watch from. */
  list<K extends Kind>(
    { kind, client, selects }: Pick<Watcher<K>, 'kind' | 'client' | 'selects'>,
    timeoutMs: number,
    done: (listed: { readonly objects: readonly ObjectOf<K>[]; readonly version: number } | undefined) => void,
  ): void {
    const work = () => {
      const { objects, missed } = this.#cached(kind);
      const version = missed[0] ? missed[0].version - 1 : this.#version;
      return { objects: [...objects.values()].filter(selects), version };
    };
    this.call(client, timeoutMs, work, done);
  }

  /** Tells what happened after `version`, and what happens. `done`: whether the watch is open; `Expired`: list again. */
  watch<K extends Kind>(
    watcher: Watcher<K>,
    version: number,
    timeoutMs: number,
    done: (opened: 'open' | 'Expired' | undefined, stop: () => void) => void,
  ): void {
    let stream: Stream | undefined;
    const stop = (): void => void (stream && this.#streams.delete(stream));
    const work = (): 'open' | 'Expired' => {
      if (version < this.#forgottenVersion) return 'Expired';
      stream = this.#open(
        watcher,
        this.#changes.filter((change) => change.version > version),
      );
      return 'open';
    };
    this.call(watcher.client, timeoutMs, work, (opened) => {
      if (!opened) stop();
      done(opened, stop);
      this.#deliver(stream);
    });
  }

  /** Lists, and watches from there on: what `done` gets is followed by events. Undefined: no answer. */
  listAndWatch<K extends Kind>(
    watcher: Watcher<K>,
    timeoutMs: number,
    done: (objects: readonly ObjectOf<K>[] | undefined, stop: () => void) => void,
  ): void {
    let stream: Stream | undefined;
    const stop = (): void => void (stream && this.#streams.delete(stream));
    const work = (): ObjectOf<K>[] => {
      const { objects, missed } = this.#cached(watcher.kind);
      stream = this.#open(watcher, missed);
      return [...objects.values()].filter(watcher.selects);
    };
    this.call(watcher.client, timeoutMs, work, (objects) => {
      if (!objects) stop();
      done(objects, stop);
      this.#deliver(stream);
    });
  }

  /** What a list shows: the objects as they are, or as an old cache has them, and the changes that it missed. */
  #cached<K extends Kind>(of: K): { readonly objects: Map<string, ObjectOf<K>>; readonly missed: Change[] } {
    const objects = new Map(this.all(of));
    const lag = this.#random.chance(this.weather.staleLists) ? Math.floor(this.#random.between(0, MAX_LAG)) : 0;
    const missed = this.#changes.slice(Math.max(0, this.#changes.length - lag));
    for (const { kind, name, before } of missed.toReversed()) {
      if (kind !== of) continue;
      if (before === undefined) objects.delete(name);
      else objects.set(name, before as ObjectOf<K>);
    }
    return { objects, missed };
  }

  #open<K extends Kind>(watcher: Watcher<K>, backlog: Change[]): Stream {
    const stream: Stream = {
      watcher: watcher as unknown as Watcher<Kind>,
      backlog,
      lastMs: this.#timeline.nowMs,
      stalledUntilMs: 0,
      undelivered: [],
      dead: false,
    };
    this.#streams.add(stream);
    return stream;
  }

  #deliver(stream: Stream | undefined): void {
    if (!stream) return;
    const backlog = stream.backlog ?? [];
    stream.backlog = undefined;
    for (const change of backlog) this.#tell(stream, change);
  }

  #commit(kind: Kind, name: string, after: unknown, client: Process | undefined): void {
    const objects = this.#objects[kind] as Map<string, unknown>;
    const version =
      after === undefined ? ++this.#version : Number((after as { readonly resourceVersion: string }).resourceVersion);
    const change = { version, kind, name, before: objects.get(name), after };
    if (after === undefined) objects.delete(name);
    else objects.set(name, after);
    if (kind !== 'Lease') {
      this.#changes.push(change);
      if (this.#changes.length > 4 * MAX_LAG)
        this.#forgottenVersion = this.#changes.splice(0, 2 * MAX_LAG).at(-1)?.version ?? 0;
    }
    this.onChange(kind, change.before, after, client);
    for (const stream of this.#streams) this.#tell(stream, change);
  }

  #tell(stream: Stream, change: Change): void {
    const { version, kind, name, before, after } = change;
    const { watcher, backlog } = stream;
    if (stream.dead || kind !== watcher.kind) return;
    if (backlog) return void backlog.push(change);
    const isSelected = after !== undefined && watcher.selects(after as ObjectOf<Kind>);
    if (!isSelected && (before === undefined || !watcher.selects(before as ObjectOf<Kind>))) return;
    if (this.weather.stalls > 0 && this.#random.chance(this.weather.stalls)) {
      stream.stalledUntilMs = this.#timeline.nowMs + this.#random.between(100, 4_000);
    }
    stream.lastMs = Math.max(this.#timeline.nowMs + this.#latencyMs(), stream.stalledUntilMs, stream.lastMs);
    const deliver = watcher.client.inThisLife(() => {
      if (!stream.dead && this.#streams.has(stream))
        watcher.onEvent(name, isSelected ? (after as ObjectOf<Kind>) : undefined, version);
    });
    this.#timeline.at(stream.lastMs, () => {
      if (watcher.client.isCut) stream.undelivered.push(deliver);
      else if (watcher.client.isUp) deliver();
      else this.#streams.delete(stream);
    });
  }

  #later(client: Process, run: () => void): void {
    this.#timeline.at(this.#timeline.nowMs + this.#latencyMs(), client.inThisLife(run));
  }

  #latencyMs(): number {
    return 1 + this.#random.next() * (10 + this.weather.slowMs);
  }
}
