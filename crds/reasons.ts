// Why something is as it is, in two forms: the API's codes and the words of resources. Recorders write words, whoever lists
// cameras reads them back.

const MAX_LENGTH = 128;

/** `wrong-disk` to `WrongDisk`: a reason of a condition is a word (metav1.Condition). `Failed`, if there is none in it. */
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
