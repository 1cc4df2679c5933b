// The token for metrics as a pod of a pool has it: its digest in a file that Kubernetes changes.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { newToken, sha256 } from '../../base/new-token.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

test('metrics need their token, which is replaced without a restart and opens nothing else', async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'metrics-token.sha256');
  const [first, second, admin] = [newToken(), newToken(), newToken()];
  const write = (token: string): void => writeFileSync(file, sha256(token).toString('hex'));
  const tokens = [{ name: 'admin', role: 'admin', sha256: sha256(admin).toString('hex') }];
  const env = { ...process.env, KUBE_NVR_METRICS_TOKEN_FILE: file };
  const config = { auth: { mode: 'token', tokens } };
  await using recorder = await RecorderProcess.start({ directory, config, env });
  const ask = async (url: string, token?: string): Promise<number> => {
    const answer = await fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
    await answer.arrayBuffer();
    return answer.status;
  };
  const { metricsUrl, url } = recorder;
  assert.deepEqual([await ask(metricsUrl), await ask(metricsUrl, admin)], [401, 200], 'before there is one');
  write(first);
  await until('the token is taken', async () => (await ask(metricsUrl, first)) === 200);
  assert.equal(await ask(metricsUrl), 401);
  assert.equal(await ask(`${url}/api/cameras`, first), 401, 'it is for metrics alone');
  write(second);
  await until('the next token is taken', async () => (await ask(metricsUrl, second)) === 200);
  assert.equal(await ask(metricsUrl, first), 401, 'a token that was replaced');
});
