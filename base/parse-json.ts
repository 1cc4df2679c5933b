// Reads JSON of which nobody knows whether it is any.

/** The value of a JSON text; undefined when it is not valid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // The caller checks the value anyway, and says what is wrong with it.
    return undefined;
  }
}
