// When and with which method a session is kept alive (RFC 2326 §12.37 and §10.8).

/** RFC 2326 §12.37: the timeout when the camera states none. Longer ones are not believed. */
const DEFAULT_TIMEOUT_SECONDS = 60;
const MIN_INTERVAL_MS = 500;

export class Keepalive {
  #intervalMs = (DEFAULT_TIMEOUT_SECONDS * 1_000) / 2;
  #dueMs = Number.POSITIVE_INFINITY;
  /**
   * GET_PARAMETER where `Public` lists it (VLC needs it), OPTIONS else (GW4089IP and Hipcam fail on the other); never
   * SET_PARAMETER, on which old MediaMTX closes.
   */
  #method: 'OPTIONS' | 'GET_PARAMETER' = 'OPTIONS';
  readonly #onlyOptions: boolean;

  constructor(onlyOptions: boolean) {
    this.#onlyOptions = onlyOptions;
  }

  get method(): 'OPTIONS' | 'GET_PARAMETER' {
    return this.#method;
  }

  cameraOffers(methods: readonly string[]): void {
    if (!this.#onlyOptions && methods.includes('GET_PARAMETER')) this.#method = 'GET_PARAMETER';
  }

  /** The timeout as the camera wrote it; 0 and absent mean 60 s. */
  sessionTimeout(timeoutSeconds: number | undefined): void {
    const seconds = Math.min(timeoutSeconds || DEFAULT_TIMEOUT_SECONDS, DEFAULT_TIMEOUT_SECONDS);
    this.#intervalMs = Math.max(MIN_INTERVAL_MS, (seconds * 1_000) / 2);
  }

  start(nowMs: number): void {
    this.#dueMs = nowMs + this.#intervalMs;
  }

  stop(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** True when one is to be sent now; it counts as sent then. */
  takeDue(nowMs: number): boolean {
    if (nowMs < this.#dueMs) return false;
    this.#dueMs = nowMs + this.#intervalMs;
    return true;
  }

  /** The camera answered with an error: thingino says 454 to GET_PARAMETER while it sends. */
  refused(): void {
    this.#method = 'OPTIONS';
  }
}
