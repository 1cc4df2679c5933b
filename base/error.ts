// Reads the message and the code of an error, and defines errors with a code.

export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The code of an error, as errors of the system have it; undefined without one. */
export const errorCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;

/** The first error if a host has several addresses and all of them failed; other values are returned unchanged. */
export const firstError = (thrown: unknown): unknown => (thrown instanceof AggregateError ? thrown.errors[0] : thrown);

type ErrorKind = abstract new (...parameters: never[]) => Error;

/**
 * Whether a border can meet this error: one of these kinds, or a failure of a network or a disk, which has the code of the system, or
 * a time limit. Any other error is a fault of this program, for `Log.bug`.
 */
export const isExpected = (thrown: unknown, ...kinds: readonly ErrorKind[]): boolean =>
  kinds.some((kind) => thrown instanceof kind) || isOfSystem(firstError(thrown));

/** Node's own errors for wrong arguments have a code, too. */
const isOfSystem = (thrown: unknown): boolean =>
  thrown instanceof DOMException ||
  (errorCode(thrown) !== undefined &&
    !(thrown instanceof CodedError || thrown instanceof TypeError || thrown instanceof RangeError) &&
    errorCode(thrown) !== 'ERR_ASSERTION');

/** Waits for what only cleans up, and closes or removes what nobody needs any more: its failure changes nothing for anybody. */
export const quietly = async (work: Promise<unknown> | undefined): Promise<void> => void (await work?.catch(() => {}));

/** Programs read `code`, people the message. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A certificate request that must not be signed. Not in x509.ts, because importing that file costs 20 MB. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
}
