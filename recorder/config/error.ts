// What is wrong with a configuration: which file, where in it, which key, and what to do.

/** A place in a file, both counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A configuration that the recorder refuses to start with. The message holds no secret, and a line for each mistake. */
export class ConfigError extends Error {
  /** The file with the mistake; empty where it is not known yet, as for what only the start finds. */
  readonly file: string;
  /** As `cameras[2].source`; empty when the file as a whole is wrong. */
  readonly key: string;
  /** The message without file and key. */
  readonly problem: string;
  readonly place: Place | undefined;
  /** All mistakes; this one alone where there are no others. */
  readonly mistakes: readonly ConfigError[];

  constructor(file: string, key: string, problem: string, place?: Place) {
    const where = place === undefined ? file : `${file}:${place.line}:${place.column}`;
    super([where, key, problem].filter((part) => part !== '').join(': '));
    this.name = 'ConfigError';
    this.file = file;
    this.key = key;
    this.problem = problem;
    this.place = place;
    this.mistakes = [this];
  }

  /** Several mistakes as one error. There is at least one. */
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

/** The other way round. */
export const parseKey = (key: string): PropertyKey[] =>
  [...key.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
