// Takes what cameras tell of events over ONVIF. Cameras are independent of each other, and nothing that one does or does not
// answer reaches its recording.

import { isDeepStrictEqual } from 'node:util';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { Occurrence } from '../contract/occurrence.ts';
import type { Reach } from '../reach/reach.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import { OnvifDialogue } from './dialogue.ts';
import { NoEvents, OnvifError } from './error.ts';
import type { Notification } from './notification.ts';
import { Occurrences } from './occurrences.ts';
import { PullPoint } from './pull-point.ts';
import { onvifTarget, type CameraAddress, type OnvifTarget } from './target.ts';

/** The relevant part of a camera's configuration. */
export interface EventsCamera extends CameraAddress {
  readonly id: string;
  readonly enabled: boolean;
  /** `auto`: if `onvif` is set. */
  readonly events: 'auto' | 'always' | 'never';
}

interface CameraEventsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly reach: Reach;
  /** Keeps occurrences. Never rejects. */
  readonly tell: (cameraId: string, occurrences: readonly Occurrence[]) => Promise<void>;
}

const FIRST_RETRY_MS = 2_000;
const MAX_RETRY_MS = 60_000;
/** A camera that refuses the login, or has no such service, is seldom asked again. */
const SELDOM_MS = 600_000;
/** After an answer with messages; a camera that tells more than a hundred a second waits. */
const PAUSE_MS = 200;
const PAUSE_OF_MESSAGE_MS = 10;
/** After an answer without any that came at once. */
const IDLE_PAUSE_MS = 2_000;
/** A message may be so old, such as after a broken connection. Clocks that state another zone are further off. */
const MAX_AGE_MS = 600_000;
const DROPPED_LOG_MS = 3_600_000;
/** Profiles whose addresses are asked for, to know which input of a device is recorded. */
const MAX_PROFILES_ASKED = 64;

interface Wanted {
  readonly target: OnvifTarget;
  readonly source: string;
}

export class CameraEvents {
  readonly #deps: CameraEventsDeps;
  readonly #cameras = new Map<string, { readonly wanted: Wanted; readonly follower: Follower }>();

  constructor(deps: CameraEventsDeps) {
    this.#deps = deps;
  }

  configure(cameras: readonly EventsCamera[]): void {
    const wanted = new Map(
      cameras
        .filter(
          ({ enabled, events, onvif }) =>
            enabled && (events === 'always' || (events === 'auto' && onvif !== undefined)),
        )
        .map((camera) => [camera.id, { target: onvifTarget(camera), source: camera.source }] as const),
    );
    for (const [id, known] of this.#cameras) {
      if (isDeepStrictEqual(wanted.get(id), known.wanted)) continue;
      this.#cameras.delete(id);
      void known.follower.close();
    }
    for (const [id, one] of wanted) {
      if (!this.#cameras.has(id)) this.#cameras.set(id, { wanted: one, follower: new Follower(id, one, this.#deps) });
    }
  }

  /** To be called a few times a second: tells what has ended. */
  tick(): void {
    for (const { follower } of this.#cameras.values()) follower.tick();
  }

  /** Never rejects; takes a few seconds at most. */
  async close(): Promise<void> {
    const all = [...this.#cameras.values()];
    this.#cameras.clear();
    await Promise.all(all.map(({ follower }) => follower.close()));
  }
}

class Follower {
  readonly #cameraId: string;
  readonly #wanted: Wanted;
  readonly #deps: CameraEventsDeps;
  readonly #log: Log;
  readonly #device: OnvifDialogue;
  readonly #occurrences = new Occurrences();
  readonly #end = new AbortController();
  readonly #running: Promise<void>;
  /** Cameras of some makers answer 400: then a new pull point is made. */
  #refusesRenewal = false;
  #hasPulled = false;
  /** Tokens of inputs that are not recorded as this camera; undefined until the device was asked. */
  #others: ReadonlySet<string> | undefined;
  /** What is wrong, as it was logged; undefined while events come. */
  #problem: string | undefined;
  #dropped = { count: 0, loggedMs: -Infinity };

  constructor(cameraId: string, wanted: Wanted, deps: CameraEventsDeps) {
    this.#cameraId = cameraId;
    this.#wanted = wanted;
    this.#deps = deps;
    this.#log = deps.log.child({ camera: cameraId });
    this.#device = new OnvifDialogue(wanted.target, { ...deps, cameraId });
    this.#running = this.#run(this.#end.signal);
  }

  tick(): void {
    this.#tell(this.#occurrences.tick(this.#now()));
  }

  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
    await this.#deps.tell(this.#cameraId, this.#occurrences.end());
  }

  readonly #now = () => ({
    monotonicMs: this.#deps.clock.monotonicMs(),
    wallMs: Math.floor(this.#deps.clock.wallMs()),
  });

  #tell(told: readonly Occurrence[]): void {
    if (told.length > 0) void this.#deps.tell(this.#cameraId, told);
  }

  /** Never rejects. */
  async #run(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS });
    while (!signal.aborted) {
      this.#hasPulled = false;
      try {
        await this.#follow(signal);
        backoff.reset();
      } catch (err) {
        if (signal.aborted) return;
        if (this.#hasPulled) backoff.reset();
        this.#report(err);
        this.#device.forget();
        this.#others = undefined;
        await this.#deps.clock.sleep(isHopeless(err) && !this.#hasPulled ? SELDOM_MS : backoff.next(), signal);
      }
    }
  }

  /** Resolves when another pull point must be made. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const others = (this.#others ??= await this.#otherInputs(signal));
    const point = await PullPoint.open(this.#device, this.#now, signal);
    try {
      while (!point.mustRenew || (await this.#renewed(point, signal))) {
        const askedMs = clock.monotonicMs();
        const { notifications, count, clockOffsetMs = 0 } = await point.pull(signal);
        this.#works();
        await this.#take(
          notifications.filter(({ inputs }) => !inputs.some((input) => others.has(input))),
          clockOffsetMs,
        );
        if (this.#occurrences.isUnsure(this.#now())) await unlessRefused(point.synchronize(signal));
        const isQuick = count === 0 && clock.monotonicMs() - askedMs < IDLE_PAUSE_MS;
        await clock.sleep(isQuick ? IDLE_PAUSE_MS : PAUSE_MS + count * PAUSE_OF_MESSAGE_MS, signal);
        signal.throwIfAborted();
      }
    } finally {
      await point.close();
    }
  }

  async #renewed(point: PullPoint, signal: AbortSignal): Promise<boolean> {
    if (this.#refusesRenewal) return false;
    try {
      await point.renew(signal);
      return true;
    } catch (err) {
      if (!(err instanceof OnvifError) || (err.code !== 'fault' && err.code !== 'bad-answer')) throw err;
      this.#refusesRenewal = true;
      return false;
    }
  }

  async #take(notifications: readonly Notification[], clockOffsetMs: number): Promise<void> {
    const now = this.#now();
    const told: Occurrence[] = [];
    for (const notification of notifications) {
      const saidMs = (notification.cameraMs ?? NaN) - clockOffsetMs;
      const isLikely = saidMs <= now.wallMs && saidMs > now.wallMs - MAX_AGE_MS;
      told.push(...this.#occurrences.take(notification, isLikely ? saidMs : now.wallMs, now));
    }
    this.#logDropped(now.monotonicMs);
    // A disk that hangs holds the camera's events up, not this process.
    if (told.length > 0) await this.#deps.tell(this.#cameraId, told);
  }

  async #otherInputs(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const profiles = (await this.#device.tolerant((client, limited) => client.profiles(limited), signal)) ?? [];
    const inputs = new Map(profiles.map((profile) => [profile.sourceToken ?? '', profile]));
    if (inputs.size < 2) return new Set();
    const recorded = streamIn(this.#wanted.source);
    let own: string | undefined;
    for (const { token, sourceToken } of profiles.slice(0, MAX_PROFILES_ASKED)) {
      const uri = await this.#device.tolerant((client, limited) => client.streamUri(token, limited), signal);
      if (!isStream(recorded, streamIn(uri ?? ''))) continue;
      own = sourceToken ?? '';
      break;
    }
    const others = profiles.filter(({ sourceToken }) => own === undefined || (sourceToken ?? '') !== own);
    const tokens = others.flatMap(({ sourceToken, sourceConfiguration }) => [sourceToken, sourceConfiguration]);
    return new Set(tokens.filter((token) => token !== undefined));
  }

  #works(): void {
    if (!this.#hasPulled && this.#problem !== undefined) this.#log.info({}, 'events of the camera are taken again');
    this.#hasPulled = true;
    this.#problem = undefined;
  }

  #report(err: unknown): void {
    const problem = messageOf(err);
    if (!(err instanceof OnvifError)) this.#log.bug({ err }, 'events of a camera cannot be taken');
    else if (problem !== this.#problem) this.#log.info({ problem }, 'events of the camera cannot be taken');
    this.#problem = problem;
  }

  #logDropped(nowMs: number): void {
    const { dropped } = this.#occurrences;
    if (dropped === this.#dropped.count || nowMs - this.#dropped.loggedMs < DROPPED_LOG_MS) return;
    this.#log.warn({ events: dropped - this.#dropped.count }, 'the camera tells more events than are kept');
    this.#dropped = { count: dropped, loggedMs: nowMs };
  }
}

const isHopeless = (err: unknown): boolean =>
  err instanceof NoEvents ||
  (err instanceof OnvifError && (err.code === 'unauthorized' || err.code === 'address-refused'));

async function unlessRefused(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (err) {
    if (!(err instanceof OnvifError && err.code === 'fault')) throw err;
  }
}

/** Undefined for what is no address. */
function streamIn(address: string): URL | undefined {
  try {
    return new URL(parseRtspUrl(address).request.replace(/^rtsps?/, 'http'));
  } catch {
    // It is no stream of the device.
    return undefined;
  }
}

/** Devices add to the query what an address works without. */
function isStream(recorded: URL | undefined, stated: URL | undefined): boolean {
  if (!recorded || !stated || recorded.pathname !== stated.pathname) return false;
  if (recorded.search === '') return stated.search === '';
  return [...recorded.searchParams].every(([name, value]) => stated.searchParams.get(name) === value);
}
