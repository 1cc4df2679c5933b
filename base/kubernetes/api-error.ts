// What a client of the API server is told when it cannot do what it was asked.

/** An answer that is no success, or none at all: `status` 0. */
export class ApiError extends Error {
  readonly status: number;
  /** `reason` of the Status object, as `NotFound`, or for no answer a code of ours: `UNREACHABLE`, `INVALID_ANSWER`. */
  readonly reason: string;
  /** What the server asks us to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    reason: string,
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = options.retryAfterMs;
  }
}
