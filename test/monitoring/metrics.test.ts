// docs/metrics.md is what the code registers, and names follow Prometheus's conventions.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { metricsOf } from '../../monitoring/metrics.ts';
import { metricsPage } from '../../monitoring/metrics-page.ts';
import { ROOT } from './rule-files.ts';

const OURS = (['recorder', 'operator'] as const)
  .flatMap(metricsOf)
  .filter(({ name }) => !/^(process|nodejs)_/.test(name));

test('docs/metrics.md is that of the code: else run node build/generate-metrics-docs.ts', async () => {
  const file = join(ROOT, 'docs/metrics.md');
  const page = await format(metricsPage(), { ...(await resolveConfig(file)), parser: 'markdown' });
  assert.equal(readFileSync(file, 'utf8'), page);
});

test('metrics are named as Prometheus wants them: counters end in _total, units are base units', () => {
  assert.ok(OURS.length > 60);
  for (const { name, type, help } of OURS) {
    assert.match(name, /^(kube_nvr|workqueue)_[a-z0-9_]+$/);
    assert.equal(name.endsWith('_total'), type === 'counter', name);
    assert.doesNotMatch(name, /_(ms|milliseconds|minutes|kb|mb|percent)(_|$)/);
    assert.match(help, /^[A-Z0-9].*[^ ]$/, name);
  }
});

test('no label has values of which there may be thousands: ids of jobs, files, addresses of clients', () => {
  const allowed = new Set(
    (
      'camera name transport video resolution audio state kind reason cause rule change outcome queue scope version ' +
      'node namespace pool resource type verb controller listener webhook peer result use to target by disk objective window site'
    ).split(' '),
  );
  const labels = OURS.flatMap((metric) => metric.labels.map((label) => `${metric.name} ${label}`));
  assert.deepEqual(
    labels.filter((text) => !allowed.has(text.split(' ')[1]!)),
    [],
  );
});
