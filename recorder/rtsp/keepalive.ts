// When and with which method a session is kept alive (RFC 2326 §12.37 and §10.8), and what can be learnt from sessions that a
// camera ended.

/** The timeout if the camera states none (RFC 2326 §12.37). Longer ones are not trusted. */
const DEFAULT_TIMEOUT_SECONDS = 60;
const MIN_INTERVAL_MS = 500;
/** A session that ends this soon after a keepalive is assumed to have ended because of it. */
const BLAME_MS = 2_000;
/** Sessions ended at the same age if the ages differ by at most this, or by a tenth. */
const SAME_AGE_MS = 1_500;
/** Sessions that end sooner than this did not end for lack of keepalives. */
const MIN_LEARNT_TIMEOUT_MS = 5_000;

type KeepaliveMethod = 'OPTIONS' | 'GET_PARAMETER' | 'SET_PARAMETER';

/** What was learnt from the sessions of one camera. Modified in place. */
export interface KeepaliveMemory {
  /** Methods that ended a session or did not keep it alive. */
  readonly failed: Set<KeepaliveMethod>;
  /** How long the last session that the camera ended had played. */
  endedAfterMs?: number;
  /** The camera's real timeout, if it ended two sessions at the same age. */
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
  /** Methods that were answered with an error in this session: thingino sends 454 for GET_PARAMETER even while it streams. */
  readonly #refused = new Set<KeepaliveMethod>();

  constructor(memory: KeepaliveMemory) {
    this.#memory = memory;
  }

  /**
   * GET_PARAMETER if `Public` lists it (VLC needs it), else OPTIONS (GW4089IP and Hipcam fail on the former). If a method failed,
   * the next one is used. SET_PARAMETER, on which old versions of MediaMTX close the connection, is used only after another
   * method ended a session.
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

  /** Sets the timeout that the camera stated; 0 and absent mean 60 s. */
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

  /** This process stood still, and so kept nothing alive: how the camera ends the session teaches nothing. */
  stoodStill(): void {
    this.#startedMs = undefined;
  }

  stop(): void {
    this.#startedMs = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** Whether a keepalive is due now; true counts it as sent. */
  takeDue(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#sentMs = nowMs;
    this.#dueMs = nowMs + this.#intervalMs;
    return true;
  }

  /** The camera answered the keepalive with an error. */
  refused(): void {
    this.#refused.add(this.method);
  }

  /**
   * Call when the camera ended the session, with the time it was last heard. The next session uses another method if this one
   * ended right after a keepalive, or at the same age as the one before, as if the method did not reset the camera's timeout. If
   * that happened before the first keepalive, the camera's real timeout is shorter than stated.
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
    // All methods failed, so something else ends the sessions.
    if (memory.failed.size === 3) memory.failed.clear();
  }
}
