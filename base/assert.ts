// Assertions against bugs in this program. Errors of a camera or a user are never reported this way.

/** Throws when `condition` is false, which means a bug in this program. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}

/** Closes a `switch` over a union: the compiler rejects a missing case. */
export function assertNever(value: never): never {
  throw new Error(`bug: unexpected ${JSON.stringify(value)}`);
}
