// A real Prometheus and a recorder that asks for the token for metrics.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newToken, sha256 } from '../../base/new-token.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { Prometheus } from './prometheus.ts';
import { prometheusMissing } from './rule-files.ts';

test('Prometheus reads metrics with their token, and not without', { skip: prometheusMissing() }, async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'metrics-token.sha256');
  const token = newToken();
  writeFileSync(file, sha256(token).toString('hex'));
  const env = { ...process.env, KUBE_NVR_METRICS_TOKEN_FILE: file };
  await using recorder = await RecorderProcess.start({ directory, config: {}, env });
  await using prometheus = await Prometheus.start();
  prometheus.scrape('kube-nvr-recorder', { 'rack-1': new URL(recorder.metricsUrl).host });
  await until('it is refused', async () => (await prometheus.numbersOf('up{node="rack-1"} == 0')) > 0, 60_000);
  assert.equal(await prometheus.numbersOf('kube_nvr_info'), 0);
  prometheus.authorize(token);
  await until('it is let in', async () => (await prometheus.numbersOf('up{node="rack-1"} == 1')) > 0, 60_000);
});
