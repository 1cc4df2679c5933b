// A concise reporter for node:test: prints failures with all output of their file and the reason of every skipped test. For
// hack/test it writes the counts of the run as one line to the file KUBE_NVR_COUNTS, and the failed files to one beside it.

import { appendFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';
import type { TestEvent } from 'node:test/reporters';

/** Then a test that is skipped because something is missing fails; tests skipped on purpose do not. */
const REQUIRED = process.env['KUBE_NVR_REQUIRE'] === 'all';
const CHOSEN = /\bLONG=1\b|\bSEED\b/;
const SLOW_MS = 10_000;
const SLOW_FILE_MS = 30_000;

type Outcome = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>['data'];

const place = (data: { file?: string | undefined; line?: number }): string =>
  data.file === undefined ? '' : ` (${relative(process.cwd(), data.file)}${data.line ? `:${data.line}` : ''})`;

/** The cause is what the test threw; node:test wraps it. */
function errorText(outcome: Outcome): string {
  const error = 'error' in outcome.details ? outcome.details.error : undefined;
  const cause = error?.cause ?? error;
  return typeof cause === 'string' ? cause : inspect(cause, { depth: 6 });
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, '    ');

export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  // The output of each file, kept until it is known whether the file failed.
  const printed = new Map<string, string[]>();
  const failedFiles = new Set<string>();
  // node:test counts skipped tests, but counts a skipped suite with everything in it as none.
  let skippedSuites = 0;
  let notHere = 0;
  for await (const event of source) {
    switch (event.type) {
      case 'test:stdout':
      case 'test:stderr': {
        // As named on the command line; tests have absolute paths.
        const file = resolve(event.data.file);
        const lines = printed.get(file) ?? [];
        lines.push(event.data.message);
        printed.set(file, lines);
        break;
      }
      case 'test:fail': {
        const { data } = event;
        failedFiles.add(data.file ?? '');
        // A suite fails if a test in it did, which is reported itself.
        const code = (data.details.error as { failureType?: string }).failureType;
        if (code === 'subtestsFailed') break;
        yield `FAIL ${data.name}${place(data)}\n${indent(errorText(data))}\n`;
        break;
      }
      case 'test:pass': {
        const { data } = event;
        if (data.skip !== undefined) {
          const reason = typeof data.skip === 'string' ? data.skip : 'no reason given';
          const isFailure = REQUIRED && !CHOSEN.test(reason);
          if (isFailure) notHere++;
          if (data.details.type === 'suite') skippedSuites++;
          yield `${isFailure ? 'FAIL, it must not be skipped:' : 'skip'} ${data.name}${place(data)}: ${reason}\n`;
        } else if (data.details.duration_ms > SLOW_MS && data.details.type !== 'suite') {
          yield `slow ${data.name}${place(data)}: ${(data.details.duration_ms / 1000).toFixed(1)} s\n`;
        }
        break;
      }
      case 'test:summary': {
        const { data } = event;
        // The counts of one file; those of the whole run come last.
        if (data.file !== undefined) {
          if (data.duration_ms > SLOW_FILE_MS)
            yield `slow file${place(data)}: ${(data.duration_ms / 1000).toFixed(1)} s\n`;
          break;
        }
        const { passed, todo, tests } = data.counts;
        const failed = tests - passed - data.counts.skipped - todo + notHere;
        const skipped = data.counts.skipped + todo + skippedSuites - notHere;
        if (notHere > 0) process.exitCode = 1;
        for (const file of failedFiles) {
          const output = printed.get(file)?.join('');
          if (output) yield `output of ${relative(process.cwd(), file)}:\n${indent(output)}\n`;
        }
        const counts = process.env['KUBE_NVR_COUNTS'];
        if (counts !== undefined) {
          appendFileSync(counts, `${passed} ${failed} ${skipped}\n`);
          if (notHere === 0) appendFileSync(`${counts}.files`, [...failedFiles].map((file) => `${file}\n`).join(''));
        }
        yield `${passed} passed, ${failed} failed, ${skipped} skipped (${(data.duration_ms / 1000).toFixed(1)} s)\n`;
        break;
      }
      default:
    }
  }
}
