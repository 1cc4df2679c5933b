// Errors of a configuration: file, position, key, and what to do.

/** A position in a file; line and column count from 1. */
export interface FilePosition {
  readonly line: number;
  readonly column: number;
}

/** A configuration with errors. The message has one line for each error, and contains no secret. */
export class ConfigError extends Error {
  /** The file with the error; empty if it is not known, as for errors that are found at the start. */
  readonly file: string;
  /** Such as `cameras[2].source`; empty when the file as a whole is wrong. */
  readonly key: string;
  /** The message without file and key. */
  readonly problem: string;
  readonly place: FilePosition | undefined;
  /** All errors; only this one if there are no others. */
  readonly mistakes: readonly ConfigError[];

  constructor(file: string, key: string, problem: string, place?: FilePosition) {
    const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
    super([where, key, problem].filter((part) => part !== '').join(': '));
    this.name = 'ConfigError';
    this.file = file;
    this.key = key;
    this.problem = problem;
    this.place = place;
    this.mistakes = [this];
  }

  /** Combines one or more errors into one. */
  static all(mistakes: readonly ConfigError[]): ConfigError {
    const [first, ...others] = mistakes;
    if (!first) throw new Error('no mistake');
    return others.length === 0 ? first : new ConfigErrors(mistakes);
  }
}

class ConfigErrors extends ConfigError {
  override readonly mistakes: readonly ConfigError[];

  constructor(mistakes: readonly ConfigError[]) {
    const { file, key, problem, place } = mistakes[0] as ConfigError;
    super(file, key, problem, place);
    this.message = mistakes.map(({ message }) => message).join('\n');
    this.mistakes = mistakes;
  }
}

/** `['cameras', 2, 'source']` as `cameras[2].source`. */
export function formatKey(path: readonly PropertyKey[]): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}

/** The inverse of `formatKey`. */
export const parseKey = (key: string): PropertyKey[] =>
  [...key.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
