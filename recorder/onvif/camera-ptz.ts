// Controls one PTZ camera: commands are sent one at a time, a newer one replaces the one that waits, and a move ends by itself.

import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Reach } from '../reach/reach.ts';
import { NO_MEMORY, type LoginMemory } from '../rtsp/login.ts';
import { OnvifClient, type Preset, type Velocity } from './client.ts';
import { OnvifError } from './error.ts';
import type { OnvifTarget } from './target.ts';
import { withLogin } from './with-login.ts';

/** Each from -1 to 1. */
interface Movement {
  readonly pan: number;
  readonly tilt: number;
  readonly zoom: number;
}

export type PtzCommand =
  | { readonly kind: 'move'; readonly movement: Movement }
  | { readonly kind: 'stop' }
  | { readonly kind: 'goto'; readonly preset: string; readonly speed: number | undefined };

/** `replaced`: a newer command came before this one was sent. */
export type PtzOutcome = 'done' | 'replaced';

interface PtzLimits {
  /** A move without a further command is stopped after this time. */
  readonly moveTimeoutMs: number;
  /** The time limit of one command, including the connection. */
  readonly answerTimeoutMs: number;
}

export interface CameraPtzDeps {
  readonly cameraId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly reach: Reach;
  readonly limits: PtzLimits;
}

interface PendingAnswer<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

type WaitingCommand = PendingAnswer<PtzOutcome> & { readonly command: PtzCommand };

/** If a stop fails, it is repeated after this time. */
const STOP_RETRY_MS = 2_000;
const MAX_STOP_RETRIES = 5;
/** The time limit of a stop when the recorder ends, which waits for it. */
const LAST_STOP_MS = 2_000;

export class CameraPtz {
  readonly #client: OnvifClient;
  readonly #memory: LoginMemory;
  readonly #deps: CameraPtzDeps;
  /** At most one command and one query wait. */
  #next: WaitingCommand | undefined;
  #listing: PendingAnswer<readonly Preset[]> | undefined;
  #current: AbortController | undefined;
  #work: Promise<void> = Promise.resolve();
  #working = false;
  #closed = false;
  /** What moves until it is stopped, as far as known; undefined: nothing. */
  #moving: { readonly panTilt: boolean; readonly zoom: boolean } | undefined;
  /** A move without a response may start late, even after a stop: a second stop is then sent. */
  #mayMoveLate = false;
  #stopTimer: Timer | undefined;
  #stopRetries = 0;

  constructor(target: OnvifTarget, deps: CameraPtzDeps) {
    this.#deps = deps;
    const { host, port, credentials } = target;
    this.#client = new OnvifClient(target, deps);
    this.#memory = credentials
      ? deps.reach.logins.at({ kind: 'onvif', host, port, cameraId: deps.cameraId }, credentials)
      : NO_MEMORY;
  }

  /** Rejects with `OnvifError`. */
  run(command: PtzCommand): Promise<PtzOutcome> {
    if (this.#closed) return Promise.reject(closedError());
    this.#next?.resolve('replaced');
    this.#next = { ...Promise.withResolvers<PtzOutcome>(), command };
    const { promise } = this.#next;
    this.#wake();
    return promise;
  }

  /** One query for all callers that wait. Rejects with `OnvifError`. */
  presets(): Promise<readonly Preset[]> {
    if (this.#closed) return Promise.reject(closedError());
    this.#listing ??= Promise.withResolvers<readonly Preset[]>();
    const { promise } = this.#listing;
    this.#wake();
    return promise;
  }

  /** Ends the current command and stops the camera if it moves. Never rejects. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopTimer?.cancel();
    this.#next?.reject(closedError());
    this.#listing?.reject(closedError());
    this.#next = this.#listing = undefined;
    this.#current?.abort(closedError());
    await this.#work;
    if (!this.#moving) return;
    await this.#within(LAST_STOP_MS, (signal) => this.#client.stop(signal)).catch((err: unknown) => {
      this.#deps.log.warn({ err }, 'a moving camera could not be stopped');
    });
  }

  #wake(): void {
    if (this.#working) return;
    this.#working = true;
    this.#work = this.#workOff();
  }

  async #workOff(): Promise<void> {
    while (this.#next || this.#listing) {
      if (this.#next) {
        const { command, resolve, reject } = this.#next;
        this.#next = undefined;
        await this.#carryOut(command).then(() => resolve('done'), reject);
      } else if (this.#listing) {
        const { resolve, reject } = this.#listing;
        this.#listing = undefined;
        await this.#ask((signal) => this.#client.presets(signal)).then(resolve, reject);
      }
    }
    this.#working = false;
  }

  async #carryOut(command: PtzCommand): Promise<void> {
    const velocity = command.kind === 'move' ? this.#velocity(command.movement) : undefined;
    if (velocity) return this.#move(velocity);
    const { kind } = command;
    if (kind === 'goto') {
      await this.#ask((signal) => this.#client.gotoPreset(command.preset, command.speed, signal));
    } else {
      try {
        await this.#ask((signal) => this.#client.stop(signal));
      } catch (err) {
        if (this.#moving) this.#stopAfter(STOP_RETRY_MS);
        throw err;
      }
    }
    this.#stands();
  }

  async #move(velocity: Velocity): Promise<void> {
    const { moveTimeoutMs } = this.#deps.limits;
    const before = this.#moving;
    const sentBefore = this.#client.movesSent;
    this.#moving = { panTilt: velocity.panTilt !== undefined, zoom: velocity.zoom !== undefined };
    // Before the response: a camera that does not respond may still move.
    this.#stopAfter(moveTimeoutMs);
    try {
      await this.#ask((signal) => this.#client.move(velocity, moveTimeoutMs, signal));
    } catch (err) {
      // The camera may move unless it refused or never got the command; an earlier move continues until its time is over.
      const isRefusal = err instanceof OnvifError && err.code !== 'timeout' && err.code !== 'unreachable';
      if (isRefusal || this.#client.movesSent === sentBefore) this.#moving = before;
      else this.#mayMoveLate = true;
      if (!this.#moving) this.#stopTimer?.cancel();
      throw err;
    }
  }

  /**
   * Axes that stand still and never moved are left out, because some cameras refuse a zoom that they do not have. Undefined:
   * stop.
   */
  #velocity({ pan, tilt, zoom }: Movement): Velocity | undefined {
    if (pan === 0 && tilt === 0 && zoom === 0) return undefined;
    const withPanTilt = pan !== 0 || tilt !== 0 || this.#moving?.panTilt === true;
    const withZoom = zoom !== 0 || this.#moving?.zoom === true;
    return { panTilt: withPanTilt ? { x: pan, y: tilt } : undefined, zoom: withZoom ? zoom : undefined };
  }

  #stands(): void {
    if (this.#mayMoveLate) {
      this.#mayMoveLate = false;
      this.#stopAfter(this.#deps.limits.moveTimeoutMs);
      return;
    }
    this.#moving = undefined;
    this.#stopTimer?.cancel();
    this.#stopRetries = 0;
  }

  #stopAfter(delayMs: number): void {
    this.#stopTimer?.cancel();
    this.#stopTimer = this.#deps.clock.after(delayMs, () => void this.#stopByItself());
  }

  async #stopByItself(): Promise<void> {
    if (this.#closed) return;
    // The command that waits is newer than this stop; if it fails, the camera still has to be stopped.
    if (this.#next) return this.#stopAfter(STOP_RETRY_MS);
    try {
      await this.run({ kind: 'stop' });
    } catch (err) {
      if (this.#closed) return;
      this.#deps.log.warn({ err }, 'a move of a camera could not be ended');
      if (++this.#stopRetries > MAX_STOP_RETRIES) this.#stands();
    }
  }

  /**
   * Runs a query, and repeats it on a new connection if the old one may be the cause: the camera's clock was set, or it was
   * restarted.
   */
  async #ask<T>(question: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#within(this.#deps.limits.answerTimeoutMs, async (signal) => {
      const wasConnected = this.#client.connected;
      try {
        return await this.#logIn(question, signal, wasConnected);
      } catch (err) {
        if (!(err instanceof OnvifError) || err.code !== 'fault' || /profile/i.test(err.message)) this.#client.forget();
        if (!wasConnected || this.#client.connected || signal.aborted) throw err;
        return await this.#logIn(question, signal, false);
      }
    });
  }

  #logIn<T>(question: (signal: AbortSignal) => Promise<T>, signal: AbortSignal, mayBeClock: boolean): Promise<T> {
    return withLogin(this.#memory, () => question(signal), { mayBeClock });
  }

  async #within<T>(timeoutMs: number, task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const timer = this.#deps.clock.after(timeoutMs, () => {
      const words = `the camera did not answer within ${timeoutMs / 1000} seconds`;
      controller.abort(new OnvifError('timeout', words));
    });
    this.#current = controller;
    try {
      return await task(controller.signal);
    } finally {
      timer.cancel();
    }
  }
}

const closedError = () => new OnvifError('unreachable', 'the camera is being removed, or the recorder stops');
