// Mutants of a source: the same text with one guard, one awaited call or one release removed, or with one comparison turned into its
// opposite. They are found line by line, because the formatter puts each statement that is looked for on lines of its own.

export interface Mutant {
  /** From 1 on. */
  readonly line: number;
  /** The line that is changed, without its indentation. */
  readonly code: string;
  readonly kind: 'guard' | 'await' | 'release' | 'comparison';
  /** The whole source. */
  readonly text: string;
}

const GUARD = /^\s*if \(.*\) (return\b.*|throw\b.*|continue|break);$/;
const AWAIT = /^\s*await (?!new Promise\b)[\w.#?!]+\(.*\);$/;
const RELEASE =
  /^\s*(void |await )?[\w.#?![\]()]*(\.(delete|release|close|clear|cancel|destroy|abort|giveBack|remove)|release|close)\(.*\);$/;
const COMMENT = /^\s*(\/\/|\*|\/\*)/;
/** The formatter puts spaces on both sides of an operator, and none inside of the brackets of types. */
const COMPARISON = / (===|!==|<=|>=|<|>) /;
const OPPOSITE: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '>=',
  '>=': '<',
  '>': '<=',
  '<=': '>',
};

/** In the order of the lines. */
export function mutantsOf(source: string): Mutant[] {
  const lines = source.split('\n');
  return lines.flatMap((line, i): Mutant[] => {
    if (COMMENT.test(line)) return [];
    const mutant = (kind: Mutant['kind'], changed: string): Mutant => ({
      line: i + 1,
      code: line.trim(),
      kind,
      text: lines.with(i, changed).join('\n'),
    });
    const kind = kindOf(line, lines[i + 1] ?? '');
    const comparison = outsideOfText(line).search(COMPARISON);
    return [
      ...(kind ? [mutant(kind, '')] : []),
      ...(comparison < 0 ? [] : [mutant('comparison', turned(line, comparison))]),
    ];
  });
}

function kindOf(line: string, next: string): Mutant['kind'] | undefined {
  // What an `else` follows cannot be removed alone.
  if (/^\s*else\b/.test(next)) return undefined;
  if (GUARD.test(line)) return 'guard';
  if (RELEASE.test(line)) return 'release';
  return AWAIT.test(line) ? 'await' : undefined;
}

/** The line with the same length, and without what stands in quotes. */
const outsideOfText = (line: string): string =>
  line.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\/ .*$/g, (text) => '_'.repeat(text.length));

const turned = (line: string, at: number): string =>
  line.slice(0, at) + line.slice(at).replace(COMPARISON, (_, operator: string) => ` ${OPPOSITE[operator]} `);

/** A survivor as it is reported. */
export const sentenceOf = (file: string, { line, code, kind }: Mutant): string =>
  kind === 'comparison'
    ? `${file}:${line}: may compare the other way round without a failing test: ${code}`
    : `${file}:${line}: may be removed without a failing test: ${code}`;
