// Assertions for our own bugs. What a camera or a user does wrong never ends here.

/** Throws when `condition` is false: a bug of this program, not of a camera or a user. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}

/** Closes a `switch` over a union: the compiler refuses a case that was forgotten. */
export function assertNever(value: never): never {
  throw new Error(`bug: unexpected ${JSON.stringify(value)}`);
}
