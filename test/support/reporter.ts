// A concise reporter for node:test: prints failures with all output of their file and the reason of every skipped test. A test
// file of which something did not run fails. For hack/test it appends a line for each file to the file KUBE_NVR_COUNTS: how
// many tests passed, failed and were skipped, and the path of the file.

import { appendFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';
import type { TestEvent } from 'node:test/reporters';
import { LONG } from './variant.ts';

/** Then a test that is skipped because something is missing fails, and so does one that is still to be written (`todo`). */
const REQUIRED = process.env['KUBE_NVR_REQUIRE'] === 'all';
/** Why a test may be skipped even then. */
const ALLOWED_SKIPS: readonly RegExp[] = [
  ...(LONG ? [] : [/\bLONG=1 runs (it|them)$/]),
  process.env['SEED'] === undefined ? /^no SEED is given$/ : /^SEED names one world$/,
];
const SLOW_MS = 10_000;
const SLOW_FILE_MS = 30_000;

type Outcome = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>['data'];
/** `entryFile` is the test file, `file` may be one that it imports, whose function made the test. Older versions of Node 24 have only
 * `file`. */
type Place = { file?: string | undefined; entryFile?: string | undefined; line?: number };

interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  /** What it printed, kept until it is known whether it failed. */
  output: string;
  /** How many tests its process says that it ran, once it has told all of their results. */
  ran?: number;
}

const fileOf = (data: Place): string => data.entryFile ?? data.file ?? '';

const place = (data: Place): string =>
  data.file === undefined ? '' : ` (${relative(process.cwd(), data.file)}${data.line ? `:${data.line}` : ''})`;

/** node:test reports the process of each test file as a test, named after the file. */
const isProcess = (data: { name: string; file?: string | undefined }): boolean => resolve(data.name) === data.file;

/** The cause is what the test threw; node:test wraps it. */
function errorText(outcome: Outcome): string {
  const error = 'error' in outcome.details ? outcome.details.error : undefined;
  const cause = error?.cause ?? error;
  return typeof cause === 'string' ? cause : inspect(cause, { depth: 6 });
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, '    ');

/** Why this test was not run, or undefined if it was. */
function leftOut(outcome: Outcome): string | undefined {
  for (const [word, reason] of [
    ['skip', outcome.skip],
    ['todo', outcome.todo],
  ] as const)
    if (reason !== undefined) return typeof reason === 'string' ? reason : `no reason given (${word})`;
  return undefined;
}

/** What did not run in a file although none of its tests failed. */
function hole(tally: Tally): string | undefined {
  const { failed, skipped, ran } = tally;
  if (failed > 0) return undefined;
  if (ran === undefined)
    return 'it ended without the results of its tests: it has none, or something in it called process.exit()';
  return ran + skipped === 0 ? 'it has no test' : undefined;
}

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const files = new Map<string, Tally>();
  const processes = new Set<string>();
  const tallyOf = (file: string): Tally => {
    const tally = files.get(file) ?? { passed: 0, failed: 0, skipped: 0, output: '' };
    files.set(file, tally);
    return tally;
  };
  for await (const event of source) {
    switch (event.type) {
      case 'test:enqueue':
        if (!isProcess(event.data)) break;
        processes.add(event.data.file ?? '');
        tallyOf(event.data.file ?? '');
        break;
      case 'test:stdout':
      case 'test:stderr':
        // As named on the command line; tests have absolute paths.
        tallyOf(resolve(event.data.file)).output += event.data.message;
        break;
      case 'test:pass':
      case 'test:fail': {
        const { data } = event;
        const tally = tallyOf(fileOf(data));
        const reason = leftOut(data);
        const isSuite = data.details.type === 'suite';
        if (reason !== undefined) {
          // A skipped suite counts as one, whatever is in it.
          const isFailure =
            REQUIRED && (data.todo !== undefined || !ALLOWED_SKIPS.some((allowed) => allowed.test(reason)));
          if (isFailure) tally.failed++;
          else tally.skipped++;
          yield `${isFailure ? 'FAIL, it must not be skipped:' : 'skip'} ${data.name}${place(data)}: ${reason}\n`;
        } else if (event.type === 'test:fail') {
          // Of a test or suite in which others failed, these are reported themselves.
          const { failureType } = event.data.details.error as { failureType?: string };
          // Of one that was not run, the suite says why.
          const why = failureType === 'cancelledByParent' ? 'it was not run' : errorText(data);
          if (failureType !== 'subtestsFailed') yield `FAIL ${data.name}${place(data)}\n${indent(why)}\n`;
          if (failureType !== 'subtestsFailed' || !isSuite) tally.failed++;
        } else if (!isSuite && !isProcess(data)) {
          tally.passed++;
          const ms = data.details.duration_ms;
          if (ms > SLOW_MS) yield `slow ${data.name}${place(data)}: ${(ms / 1000).toFixed(1)} s\n`;
        }
        break;
      }
      case 'test:summary': {
        const { data } = event;
        const seconds = (data.duration_ms / 1000).toFixed(1);
        // The summary of one file; that of the whole run comes last.
        if (data.file !== undefined) {
          tallyOf(fileOf(data)).ran = data.counts.tests;
          if (data.duration_ms > SLOW_FILE_MS) yield `slow file${place(data)}: ${seconds} s\n`;
          break;
        }
        const sum = { passed: 0, failed: 0, skipped: 0 };
        for (const [file, tally] of files) {
          const path = relative(process.cwd(), file);
          const missing = processes.has(file) ? hole(tally) : undefined;
          if (missing !== undefined) {
            tally.failed++;
            yield `FAIL ${path}: ${missing}\n`;
          }
          if (tally.failed > 0 && tally.output !== '') yield `output of ${path}:\n${indent(tally.output)}\n`;
          sum.passed += tally.passed;
          sum.failed += tally.failed;
          sum.skipped += tally.skipped;
          const counts = process.env['KUBE_NVR_COUNTS'];
          if (counts !== undefined)
            appendFileSync(counts, `${tally.passed} ${tally.failed} ${tally.skipped} ${path}\n`);
        }
        if (sum.failed > 0) process.exitCode = 1;
        yield `${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped (${seconds} s)\n`;
        break;
      }
      default:
    }
  }
}
