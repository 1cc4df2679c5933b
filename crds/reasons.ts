// Converts reasons between the recorder's API (`wrong-disk`) and the conditions of resources (`WrongDisk`). Recorders write the
// latter, and the API converts it back when it lists cameras.

const MAX_LENGTH = 128;

/**
 * `wrong-disk` to `WrongDisk`, because the reason of a condition is one CamelCase word (metav1.Condition). `Failed` if the code
 * contains no letter to start with.
 */
export function reasonOf(code: string): string {
  const word = code
    .split(/[^A-Za-z0-9]+/)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('');
  return /^[A-Z]/.test(word) ? word.slice(0, MAX_LENGTH) : 'Failed';
}

/** `WrongDisk` to `wrong-disk`. */
export const codeOf = (reason: string): string =>
  reason.replaceAll(/[A-Z]/g, (letter, at: number) => `${at === 0 ? '' : '-'}${letter.toLowerCase()}`);
