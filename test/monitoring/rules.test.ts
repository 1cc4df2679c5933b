// The alerts: that Prometheus understands them, that each fires in its fault and clears after, that they ask only for
// what is there, and that each has its page.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { knownSeries, labelsOf, problemsOf } from './promql.ts';
import { alertsOf, prometheusMissing, ROOT, RULE_FILES, RULES } from './rule-files.ts';

const skip = prometheusMissing();
const RUNBOOKS = join(ROOT, 'docs/runbooks');
const KNOWN = knownSeries();
const ALERTS = RULE_FILES.flatMap(alertsOf);
const UNIT_TESTS = readdirSync(join(import.meta.dirname, 'rules'));

interface UnitTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly {
      readonly alertname: string;
      readonly exp_alerts: readonly unknown[];
    }[];
  }[];
}

function promtool(...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
  return stdout;
}

/** When each alert of a file of unit tests fires, as `off on off`. */
function coursesIn(file: string): readonly { readonly alert: string | undefined; readonly course: string }[] {
  const { tests } = parse(readFileSync(join(import.meta.dirname, 'rules', file), 'utf8')) as UnitTests;
  return tests.map(({ alert_rule_test: moments }) => ({
    alert: moments[0]?.alertname,
    course: moments.map(({ exp_alerts: firing }) => (firing.length > 0 ? 'on' : 'off')).join(' '),
  }));
}

for (const name of RULE_FILES) {
  test(`Prometheus understands the rules of the ${name}`, { skip }, () => {
    const said = promtool('check', 'rules', join(RULES, `${name}.yaml`));
    assert.match(said, new RegExp(`SUCCESS: ${alertsOf(name).length} rules found`));
  });

  test(`each alert of the ${name} has a unit test in which it fires, and clears after`, () => {
    const seen = UNIT_TESTS.filter((file) => file.startsWith(name)).flatMap(coursesIn);
    const without = alertsOf(name).filter(
      ({ alert }) => !seen.some((one) => one.alert === alert && /off on off/.test(one.course)),
    );
    assert.deepEqual(without, []);
  });
}

for (const file of UNIT_TESTS) {
  test(
    `promtool's unit tests ${file}: the rules as they are, with names of cameras and nodes in their texts`,
    { skip },
    () => {
      promtool('test', 'rules', join(import.meta.dirname, 'rules', file));
    },
  );
}

test('alerts ask for metrics and labels that there are, and their texts name labels that they have', () => {
  assert.ok(ALERTS.length > 20);
  for (const { alert, expr, annotations } of ALERTS) {
    assert.deepEqual(problemsOf(expr, KNOWN), [], alert);
    const labels = labelsOf(expr, KNOWN);
    const named = Object.values(annotations).flatMap((text) =>
      [...text.matchAll(/\$labels\.(\w+)/g)].map(([, name]) => name!),
    );
    assert.deepEqual(
      named.filter((label) => !labels.has(label)),
      [],
      alert,
    );
  }
});

test('no alert puts clusters together: what one has would hide what another one lacks', () => {
  for (const { alert, expr } of ALERTS) assert.doesNotMatch(expr, /\b(?:by|on) \((?!cluster)/, alert);
});

test('a metric, a label or a grouping label that does not exist is found, and so is invalid PromQL', () => {
  for (const [expr, problem] of [
    ['kube_nvr_camera_silence == 1', 'there is no metric kube_nvr_camera_silence'],
    ['rate(kube_nvr_camera_frames_total{type="video"}[5m])', 'kube_nvr_camera_frames_total has no label type'],
    ['sum by (cause) (kube_nvr_camera_silent)', 'kube_nvr_camera_silent has no label cause to group by'],
    ['sum by (camera) (kube_nvr_camera_silent', 'is no PromQL at 39: sum by (camera) (kube_nvr_camera_silent'],
  ] as const) {
    assert.deepEqual(problemsOf(expr, KNOWN), [problem]);
  }
  assert.deepEqual([...labelsOf('topk(3, max by (node) (kube_nvr_camera_silent))', KNOWN)], ['node']);
});

test('an alert states its severity, its audience and its runbook', () => {
  for (const { alert, labels, annotations } of ALERTS) {
    assert.match(alert, /^KubeNvr[A-Z]/);
    assert.ok(['critical', 'warning'].includes(labels.severity), alert);
    assert.equal(annotations.runbook_url, `docs/runbooks/${alert}.md`);
    assert.match(annotations.description, /\.$/);
  }
  assert.equal(new Set(ALERTS.map(({ alert }) => alert)).size, ALERTS.length);
});

test('each alert has a page that answers the five questions, and each page its alert', () => {
  const pages = readdirSync(RUNBOOKS).filter((name) => name !== 'README.md');
  assert.deepEqual(pages.sort(), ALERTS.map(({ alert }) => `${alert}.md`).sort());
  for (const { alert, labels } of ALERTS) {
    const text = readFileSync(join(RUNBOOKS, `${alert}.md`), 'utf8');
    const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    assert.deepEqual(
      headings,
      ['What it means', 'What is lost', 'What to look at', 'What to do', 'How it clears'],
      alert,
    );
    assert.ok(text.startsWith(`# ${alert}\n\nSeverity: ${labels.severity}.`), alert);
    assert.match(text, /```sh\n/, `${alert}: nothing to type`);
  }
});

test('the list of alerts has all of them, with their severity', () => {
  const listed = [
    ...readFileSync(join(RUNBOOKS, 'README.md'), 'utf8').matchAll(/^\| \[(\w+)\]\(\1\.md\) +\| (\w+) +\| \S.* \|$/gm),
  ].map(([, alert, severity]) => `${alert} ${severity}`);
  assert.deepEqual(
    listed,
    ALERTS.map(({ alert, labels }) => `${alert} ${labels.severity}`),
  );
});

test('pages name metrics that there are, or how they begin', () => {
  const names = [...KNOWN.keys()];
  for (const page of readdirSync(RUNBOOKS)) {
    const text = readFileSync(join(RUNBOOKS, page), 'utf8');
    const unknown = [...text.matchAll(/\bkube_nvr_\w+/g)]
      .map(([name]) => name)
      .filter((begin) => !names.some((name) => name.startsWith(begin)));
    assert.deepEqual(unknown, [], page);
  }
});
