// A reporter for node:test that says little while all is well: failures with all that their file printed, the reason
// of every skipped test, and, for hack/test, the counts of the run as one line in the file that KUBE_NVR_COUNTS names,
// with the files that failed beside it.

import { appendFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';
import type { TestEvent } from 'node:test/reporters';

/** Skips for want of something are failures here; those that somebody chose are not. */
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
  // What each file printed, kept until it is known whether the file failed.
  const printed = new Map<string, string[]>();
  const failedFiles = new Set<string>();
  // node:test counts skipped tests, and a skipped suite with all that is in it as none.
  let skippedSuites = 0;
  let notHere = 0;
  for await (const event of source) {
    switch (event.type) {
      case 'test:stdout':
      case 'test:stderr': {
        // As it was named to the runner; tests have whole paths.
        const file = resolve(event.data.file);
        const lines = printed.get(file) ?? [];
        lines.push(event.data.message);
        printed.set(file, lines);
        break;
      }
      case 'test:fail': {
        const { data } = event;
        failedFiles.add(data.file ?? '');
        // A suite fails because a test in it did, which is reported by itself.
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
        // One file's share; the run's own comes last.
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
