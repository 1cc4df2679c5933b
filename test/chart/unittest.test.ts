// The suites that stand beside the templates, charts/kube-nvr/tests, run by helm-unittest.

import { suite, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { needProgram } from '../cluster/programs.ts';
import { workspace } from '../support/workspace.ts';
import { CHART, helmMissing } from './helm.ts';

function unittest(chart: string, ...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(needProgram('helm-unittest'), ['--strict', ...args, chart], {
    encoding: 'utf8',
  });
  return { status, output: stdout + stderr };
}

suite('suites of the chart', { skip: helmMissing('helm-unittest') }, () => {
  /** A copy: helm-unittest makes a directory of snapshots beside the suites. */
  const copyChart = (t: TestContext): string => {
    const chart = join(workspace(t), 'kube-nvr');
    cpSync(CHART, chart, { recursive: true });
    return chart;
  };

  for (const file of readdirSync(join(CHART, 'tests'))) {
    test(`charts/kube-nvr/tests/${file}`, (t) => {
      const { status, output } = unittest(copyChart(t), '--file', `tests/${file}`);
      assert.equal(status, 0, output);
      const count = readFileSync(join(CHART, 'tests', file), 'utf8').match(/^ {2}- it: /gm)?.length ?? 0;
      assert.match(output, new RegExp(`^Tests: +${count} passed, ${count} total$`, 'm'));
    });
  }

  test('a template that makes something else fails', (t) => {
    const chart = copyChart(t);
    const template = join(chart, 'templates/_helpers.tpl');
    writeFileSync(template, readFileSync(template, 'utf8').replace('"runAsNonRoot" true', '"runAsNonRoot" false'));
    const { status, output } = unittest(chart, '--file', 'tests/operator_test.yaml');
    assert.equal(status, 1);
    assert.match(output, /Tests: +2 failed/);
  });
});
