// The error that a client of the API server throws when a call fails.

/** The response was not a success, or there was no response (`status` 0). */
export class ApiError extends Error {
  readonly status: number;
  /** `reason` of the Status object, such as `NotFound`. Without a response, one of our codes: `UNREACHABLE`, `INVALID_ANSWER`. */
  readonly reason: string;
  /** How long the server asks us to wait before retrying. */
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

/** Whether the server answered with this status. */
export const hasStatus = (err: unknown, status: number): boolean => err instanceof ApiError && err.status === status;
