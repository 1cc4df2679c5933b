// hack/test mutants [--base=REVISION] [FILE...]: breaks the product one line at a time, and says which lines no test of their room holds.
// Without files it breaks those that differ from the revision, by default from where this branch left main.
//   MINUTES=15        after these no mutant is begun
//   TEST_SEED=...     tries them in the order of an earlier run

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { seeded } from '../support/random.ts';
import { sentenceOf } from './mutants.ts';
import { tryMutants } from './run.ts';

const ROOT = join(import.meta.dirname, '../..');
const PRODUCT = /^(base|console|crds|operator|recorder|store)\//;
const IS_TEST = /\.test\.ts$|\.support\.ts$|(^|\/)test-support(\.ts$|\/)/;
/** The least share of mutants that a test catches, in per cent. */
const FLOOR = 85;
/** Tests of real programs share the machine with other work. */
const AT_A_TIME = 2;

const git = (...words: readonly string[]): string[] =>
  execFileSync('git', words, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    .split('\n')
    .filter(Boolean);

function changedSince(base: string | undefined): string[] {
  const [from = 'HEAD~1'] = base === undefined ? git('merge-base', 'HEAD', 'main') : [base];
  const [head] = git('rev-parse', 'HEAD');
  // On main itself: what the last commit changed.
  return git('diff', '--name-only', '--diff-filter=d', base === undefined && from === head ? 'HEAD~1' : from);
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { base: { type: 'string' } } });
const asked = positionals.length > 0 ? positionals : changedSince(values.base);
const unknown = positionals.filter((file) => !existsSync(join(ROOT, file)) || !PRODUCT.test(file));
if (unknown.length > 0) {
  console.error(`no file of the product: ${unknown.join(', ')}`);
  process.exit(2);
}
const files = asked.filter((file) => PRODUCT.test(file) && file.endsWith('.ts') && !IS_TEST.test(file));
const { caught, survivors, failing, untested, untried } = await tryMutants({
  root: ROOT,
  tree: git('ls-files', '--cached', '--others', '--exclude-standard').filter((file) => existsSync(join(ROOT, file))),
  files,
  nodeArguments: ['--import', './test/support/preload.ts'],
  atATime: AT_A_TIME,
  limitMs: Number(process.env['MINUTES'] ?? 15) * 60_000,
  chance: seeded(),
});
for (const file of untested) console.log(`${file}: no test is beside it`);
for (const file of failing) console.log(`${file}: the tests of its room fail without a mutant`);
for (const { file, mutant } of survivors.toSorted(
  (a, b) => a.file.localeCompare(b.file) || a.mutant.line - b.mutant.line,
)) {
  console.log(sentenceOf(file, mutant));
}
if (untried > 0) console.log(`${untried} mutants were not tried: MINUTES were over`);
const tried = caught + survivors.length;
const share = tried === 0 ? 100 : (caught / tried) * 100;
console.log(`${caught} of ${tried} mutants caught (${share.toFixed(0)} %), in ${files.length} files`);
if (share < FLOOR || failing.length > 0) process.exitCode = 1;
