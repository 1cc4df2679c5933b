// What is common to errors: their text, and a code for programs.

/** The message of whatever was thrown. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The code of an error that has one, as those of the system have; else undefined. */
export const errorCode = (thrown: unknown): string | undefined =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined;

/** A host with several addresses, none of which answers, fails with all their errors at once: the first of them. */
export const firstError = (thrown: unknown): unknown => (thrown instanceof AggregateError ? thrown.errors[0] : thrown);

/** Programs read `code`, people the message. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
