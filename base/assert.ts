// Assertions against bugs in this program. Errors of a camera or a user are never reported this way.

class Bug extends Error {
  override readonly name = 'Bug';
}

/** Throws when `condition` is false, which means a bug in this program. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(`bug: ${message}`);
}

/** Closes a `switch` over a union: the compiler rejects a missing case. */
export function assertNever(value: never): never {
  throw new Bug(`bug: unexpected ${JSON.stringify(value)}`);
}
