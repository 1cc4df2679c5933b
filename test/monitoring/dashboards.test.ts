// The dashboards as files: that they ask only for what is there, and can be read by somebody who is in a hurry. That
// every question has an answer is seen on a real Prometheus, in the other tests of this directory; the files are those of
// their source, says test/chart/generated.test.ts.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { DASHBOARDS, panelsOf, readDashboard, type Panel } from './dashboard-files.ts';
import { knownSeries, labelsOf, problemsOf } from './promql.ts';

const KNOWN = knownSeries();

for (const name of DASHBOARDS) {
  const dashboard = readDashboard(name);
  const panels = panelsOf(dashboard);

  test(`${name}: panels ask for metrics and labels that there are`, () => {
    assert.ok(panels.length > 10);
    for (const { title, targets } of panels) {
      assert.ok(targets.length > 0, title);
      for (const { expr } of targets) assert.deepEqual(problemsOf(expr, KNOWN), [], title);
    }
  });

  test(`${name}: panels ask for the chosen clusters only`, () => {
    for (const { title, targets } of panels) {
      const asked = targets.flatMap(
        ({ expr }) => expr.match(/\b(?:kube_nvr_\w+|up|ALERTS|process_\w+|nodejs_\w+)\b(?:\{[^}]*\})?/g) ?? [],
      );
      assert.deepEqual(
        asked.filter((selector) => !selector.includes('cluster=~"$cluster"')),
        [],
        title,
      );
    }
  });

  test(`${name}: legends, columns and variables name labels that there are`, () => {
    for (const panel of panels) {
      for (const { expr, legendFormat = '' } of panel.targets) {
        const labels = labelsOf(expr, KNOWN);
        const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
        assert.deepEqual(
          named.filter((label) => !labels.has(label)),
          [],
          panel.title,
        );
      }
      assert.deepEqual(missingColumns(panel), [], panel.title);
    }
    for (const { name: variable, type, query } of dashboard.templating.list) {
      if (type !== 'query' || typeof query === 'string') continue;
      const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query.query) ?? [];
      assert.deepEqual(problemsOf(selector, KNOWN), [], variable);
      assert.ok(labelsOf(selector, KNOWN).has(label), variable);
    }
  });

  test(`${name}: each panel says what it answers, in a unit, and asks the chosen Prometheus; none hides another`, () => {
    const ids = panels.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length);
    const taken = new Set<string>();
    for (const panel of panels) {
      assert.ok(panel.description.length > 15, panel.title);
      assert.equal(panel.datasource.uid, '${datasource}');
      assert.ok(panel.type === 'table' || panel.fieldConfig.defaults.unit, panel.title);
      const { x, y, w, h } = panel.gridPos;
      assert.ok(x + w <= 24, panel.title);
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          assert.ok(!taken.has(`${column} ${line}`), `${panel.title} lies on another`);
          taken.add(`${column} ${line}`);
        }
      }
    }
    assert.deepEqual(
      dashboard.templating.list.map(({ name }) => name),
      ['datasource', 'cluster', 'namespace', 'node', 'camera'],
    );
  });
}

test('the fleet leads to a camera, and a camera back to the fleet', () => {
  const [fleet, camera] = DASHBOARDS.map(readDashboard);
  const links = JSON.stringify(fleet!.panels).match(/\/d\/[a-z-]+/g);
  assert.deepEqual(new Set(links), new Set([`/d/${camera!.uid}`]));
  assert.ok(camera!.links[0]?.url.startsWith(`/d/${fleet!.uid}?`));
});

/** Columns that are neither a label nor the value of a query. */
function missingColumns({ type, targets, transformations = [] }: Panel): readonly string[] {
  if (type !== 'table') return [];
  const labels = new Set(targets.flatMap(({ expr }) => [...labelsOf(expr, KNOWN)]));
  const values = targets.length === 1 ? ['Value'] : targets.map(({ refId }) => `Value #${refId}`);
  const organized = transformations.find(({ id }) => id === 'organize')?.options.renameByName ?? {};
  return Object.keys(organized).filter((field) => !labels.has(field) && !values.includes(field));
}
