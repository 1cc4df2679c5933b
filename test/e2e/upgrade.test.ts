// An upgrade from the last release: what that version left on a disk when it was killed is listed and answered as by the
// version itself (test/upgrade/save.ts writes it).

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readBootId } from '../../recorder/archive/gaps/alive.ts';
import { workspace } from '../support/workspace.ts';
import { answersOf, overState, questions, type Released } from '../upgrade/released.ts';

const KEPT = join(import.meta.dirname, '../testdata/released');
const released = JSON.parse(readFileSync(join(KEPT, 'answers.json'), 'utf8')) as Released;
const skip = globSync('/usr/lib/*/faketime/libfaketime.so.1').length === 0 ? 'faketime is not installed' : false;

/** `value` without the fields that `sample` does not have: a newer version may say more. */
function asFarAs(sample: unknown, value: unknown): unknown {
  if (Array.isArray(sample) && Array.isArray(value)) return value.map((item, i) => asFarAs(sample[i], item));
  if (typeof sample !== 'object' || sample === null || typeof value !== 'object' || value === null) return value;
  const known = Object.keys(sample);
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) =>
      known.includes(key) ? [[key, asFarAs((sample as Record<string, unknown>)[key], item)]] : [],
    ),
  );
}

test(
  `what version ${released.version} left is answered as by that version, twice: segments, gaps, protections, jobs`,
  { skip },
  async (t) => {
    const directory = workspace(t);
    execFileSync('tar', ['-xzf', join(KEPT, 'state.tar.gz'), '-C', directory]);
    // Or the gap would have another cause: the version was ended, its machine was not restarted.
    const alive = join(directory, 'recordings/.kube-nvr/gaps/alive');
    const bootId = await readBootId();
    writeFileSync(alive, readFileSync(alive, 'latin1').replaceAll(/"boot":"[^"]*"/g, `"boot":"${bootId}"`), 'latin1');
    const paths = questions(released);
    // The second start reads what the first one wrote.
    for (const start of ['first', 'second']) {
      const recorder = await overState(directory, released.nowMs);
      t.after(() => recorder.child[Symbol.asyncDispose]());
      const answers = await answersOf(recorder, paths);
      for (const path of paths) {
        const before = released.answers[path];
        assert.deepEqual(asFarAs(before, answers[path]), before, `${start} start, ${path}`);
      }
      const { jobs } = answers['/api/archive/jobs'] as { jobs: readonly { job_id: string }[] };
      const [job] = jobs;
      assert.ok(job);
      const movie = await fetch(`${recorder.url}/api/archive/jobs/${job.job_id}/download`);
      assert.equal(movie.status, 200, await movie.clone().text());
      assert.ok((await movie.arrayBuffer()).byteLength > 10_000);
      await recorder.stop();
    }
  },
);
