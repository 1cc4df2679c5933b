// The page docs/design/specification.md: the sentences of the specification of the recording service, each with the tests that check it
// (build/generate-specification.ts).

import { format, resolveConfig } from 'prettier';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECTIONS, type Section, type Test } from './specification-rules.ts';

const ROOT = join(import.meta.dirname, '..');
export const PAGE = join(ROOT, 'docs/design/specification.md');

/** Rows without a test, or with one that is not there, and sections that lack sentences. */
export function unchecked(sections: readonly Section[] = SECTIONS): string[] {
  return sections.flatMap(({ title, sentences, rows, unchecked: rest = [] }) => {
    const listed = [...rows.map(({ at }) => at), ...rest.map(([at]) => at)];
    const places = new Set(listed).size;
    return [
      ...(places === sentences && listed.length === sentences ? [] : [`${title}: ${places} of ${sentences} sentences`]),
      ...rows.filter(({ tests }) => tests.length === 0).map(({ at }) => `${title}: ${at}: no test`),
      ...rows.flatMap(({ at, tests }) =>
        tests
          .filter(([file, name]) => !names(file).has(name))
          .map(([file, name]) => `${title}: ${at}: ${file} has no test "${name}"`),
      ),
    ];
  });
}

const known = new Map<string, ReadonlySet<string>>();

/** The names in a file of tests, as its source has them. */
function names(file: string): ReadonlySet<string> {
  const found =
    known.get(file) ??
    new Set(
      Array.from(
        readFileSync(join(ROOT, file), 'utf8').matchAll(/\btest\(\s*(['`])((?:(?!\1).)+)\1/g),
        ([, , name]) => name as string,
      ),
    );
  known.set(file, found);
  return found;
}

/** The name of a test as people read it: what differs from case to case stands between angle brackets. */
const shown = ([file, name]: Test): string =>
  `\`${file}\`: ${name.replaceAll(/\$\{(\w+)\}/g, (_, part: string) => `‹${part.toLowerCase()}›`).replaceAll(/[*_`[\]]/g, String.raw`\$&`)}`;

function sectionText({ title, sentences, rows, unchecked: rest = [] }: Section): string {
  const items = rows.map(
    ({ at, rule, how, tests }) =>
      `- **${at.replaceAll('_', String.raw`\_`)}**: ${rule}. Looked at: ${how}.\n${tests.map((test) => `  - ${shown(test)}`).join('\n')}`,
  );
  const without = rest.map(([at, why]) => `- **${at.replaceAll('_', String.raw`\_`)}**: no test, because it ${why}.`);
  return `## ${title}\n\nSentences: ${sentences}, with a test: ${rows.length}.\n\n${[...items, ...without].join('\n')}\n`;
}

/** The page. */
export async function specificationPage(): Promise<string> {
  const all = SECTIONS.reduce((sum, { sentences }) => sum + sentences, 0);
  const checked = SECTIONS.reduce((sum, { rows }) => sum + rows.length, 0);
  const text = `# The specification, sentence by sentence

Status: in force. Made by build/generate-specification.ts from build/specification-rules.ts; do not edit.

The specification of the recording service has ${all} sentences; rows of its tables and items of its lists count as sentences. ${checked} of them
can be checked by a test. Each has its place here: section and number, or the name of its row in a table; the rule in our words; what is
looked at; and the tests. \`2.1\` is the first sentence of rule 2. \`build/specification.test.ts\` fails for a rule without a test, for a
test that is not there, and for a section with fewer or more places than sentences.

${SECTIONS.map(sectionText).join('\n')}`;
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' });
}
