// Runs the test files of a part of hack/test, each in a process of its own: node test/support/run.ts AT_A_TIME TIMEOUT_MS FILE...
// With KUBE_NVR_SLOTS (`NAME:COUNT`), each also waits for one of the slots that the parts of a run share. Files that took longest in an
// earlier run, as the file KUBE_NVR_EARLIER says, come first, so that no long one is left for the end.

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { run } from 'node:test';
import { concurrently } from '../../base/concurrently.ts';
import report from './reporter.ts';
import { Slots } from './slots.ts';

const { KUBE_NVR_SLOTS: shared, KUBE_NVR_EARLIER: earlier } = process.env;
delete process.env['KUBE_NVR_SLOTS'];
const [atATime = '1', timeoutMs = '0', ...paths] = process.argv.slice(2);

/** How long files took, from lines `SECONDS PROCESSOR PATH`. */
function durations(): ReadonlyMap<string, number> {
  if (earlier === undefined || !existsSync(earlier)) return new Map();
  const lines = readFileSync(earlier, 'utf8').split('\n');
  return new Map(lines.map((line) => line.split(' ')).map(([seconds, , path = '']) => [path, Number(seconds)]));
}

const last = durations();
const secondsOf = (path: string): number => last.get(path) ?? Infinity;
const files = paths.toSorted((a, b) => Math.sign(secondsOf(b) - secondsOf(a)) || a.localeCompare(b));
const [name = '', count] = shared?.split(':') ?? [];
const slots = shared === undefined ? undefined : new Slots(name, Number(count));
const startMs = performance.now();
const events = new PassThrough({ objectMode: true });
const printed = Readable.from(report(events)).pipe(process.stdout);

await concurrently(files, Number(atATime), async (path) => {
  const free = await slots?.take();
  try {
    const stream = run({ files: [resolve(path)], concurrency: 1, execArgv: [`--test-timeout=${timeoutMs}`] });
    for await (const event of stream) {
      // The second summary is that of a whole run, which this is not.
      if (event.type !== 'test:summary' || event.data.file !== undefined) events.write(event);
    }
  } finally {
    free?.();
  }
});
events.end({ type: 'test:summary', data: { file: undefined, duration_ms: performance.now() - startMs } });
await once(printed, 'unpipe');
