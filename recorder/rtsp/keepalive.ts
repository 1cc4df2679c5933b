// When and with which method a session is kept alive (RFC 2326 §12.37 and §10.8), and what sessions that a camera ended
// teach about it.

/** RFC 2326 §12.37: the timeout when the camera states none. Longer ones are not believed. */
const DEFAULT_TIMEOUT_SECONDS = 60;
const MIN_INTERVAL_MS = 500;
/** A session that ends so soon after a keepalive ended because of it. */
const BLAME_MS = 2_000;
/** Two ages at which sessions ended are the same within this much, or a tenth. */
const SAME_AGE_MS = 1_500;
/** Cameras that end their sessions sooner than this do not do so for want of keepalives. */
const MIN_LEARNT_TIMEOUT_MS = 5_000;

export type KeepaliveMethod = 'OPTIONS' | 'GET_PARAMETER' | 'SET_PARAMETER';

/** What a camera's sessions taught about keepalives. One object a camera: it is changed in place. */
export interface KeepaliveMemory {
  /** Methods that ended a session, or did not keep it alive. */
  readonly failed: Set<KeepaliveMethod>;
  /** How long the last session played that the camera ended. */
  endedAfterMs?: number;
  /** The timeout that the camera goes by, where it ended two sessions at the same age. */
  timeoutMs?: number;
}

export function newKeepaliveMemory(): KeepaliveMemory {
  return { failed: new Set() };
}

export class Keepalive {
  readonly #memory: KeepaliveMemory;
  #intervalMs = (DEFAULT_TIMEOUT_SECONDS * 1_000) / 2;
  #dueMs = Number.POSITIVE_INFINITY;
  #startedMs: number | undefined;
  #sentMs: number | undefined;
  #cameraOffersGetParameter = false;
  /** Answered with an error in this session: thingino says 454 to GET_PARAMETER while it sends. */
  readonly #refused = new Set<KeepaliveMethod>();

  constructor(memory: KeepaliveMemory) {
    this.#memory = memory;
  }

  /**
   * GET_PARAMETER where `Public` lists it (VLC needs it), else OPTIONS (GW4089IP and Hipcam fail on the other). The
   * next method follows when one failed; SET_PARAMETER, on which old MediaMTX closes, only when another ended a session.
   */
  get method(): KeepaliveMethod {
    const { failed } = this.#memory;
    const usual: readonly KeepaliveMethod[] = ['OPTIONS', 'GET_PARAMETER'];
    const order = [...(this.#cameraOffersGetParameter ? usual.toReversed() : usual), 'SET_PARAMETER'] as const;
    const method = order.find((each) => !failed.has(each) && !this.#refused.has(each));
    return method === undefined || (method === 'SET_PARAMETER' && failed.size === 0) ? 'OPTIONS' : method;
  }

  cameraOffers(methods: readonly string[]): void {
    if (methods.includes('GET_PARAMETER')) this.#cameraOffersGetParameter = true;
  }

  /** The timeout as the camera wrote it; 0 and absent mean 60 s. */
  sessionTimeout(timeoutSeconds: number | undefined): void {
    const seconds = Math.min(timeoutSeconds || DEFAULT_TIMEOUT_SECONDS, DEFAULT_TIMEOUT_SECONDS);
    this.#intervalMs = Math.max(MIN_INTERVAL_MS, (seconds * 1_000) / 2);
  }

  start(nowMs: number): void {
    this.#startedMs = nowMs;
    this.#sentMs = undefined;
    const { timeoutMs = Number.POSITIVE_INFINITY } = this.#memory;
    this.#intervalMs = Math.min(this.#intervalMs, timeoutMs / 2);
    this.#dueMs = nowMs + this.#intervalMs;
  }

  stop(): void {
    this.#startedMs = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** True when one is to be sent now; it counts as sent then. */
  takeDue(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#sentMs = nowMs;
    this.#dueMs = nowMs + this.#intervalMs;
    return true;
  }

  /** The camera answered with an error. */
  refused(): void {
    this.#refused.add(this.method);
  }

  /**
   * The camera ended the session: the next one uses another method when this one ended right after a keepalive, or at
   * the same age as the one before, as at a timeout that the method does not put off. A camera that does so before the
   * first keepalive goes by a shorter timeout than it says. `atMs`: when the last of it was heard.
   */
  ended(atMs: number): void {
    if (this.#startedMs === undefined) return;
    const memory = this.#memory;
    const ageMs = atMs - this.#startedMs;
    const beforeMs = memory.endedAfterMs;
    const isSameAge = beforeMs !== undefined && Math.abs(ageMs - beforeMs) <= Math.max(SAME_AGE_MS, beforeMs / 10);
    if (isSameAge && ageMs >= MIN_LEARNT_TIMEOUT_MS) memory.timeoutMs = Math.min(ageMs, beforeMs);
    memory.endedAfterMs = ageMs;
    if (this.#sentMs === undefined) return;
    const sinceKeepaliveMs = atMs - this.#sentMs;
    if (!isSameAge && !(sinceKeepaliveMs >= 0 && sinceKeepaliveMs < BLAME_MS)) return;
    delete memory.endedAfterMs;
    memory.failed.add(this.method);
    // All of them failed: something else ends the sessions.
    if (memory.failed.size === 3) memory.failed.clear();
  }
}
