import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { changedSettings } from './changes.ts';
import { loadConfig } from './load.ts';
import type { Config } from './schema.ts';
import { CurrentConfig } from './current-config.ts';

async function configOf(t: TestContext, settings: object): Promise<Config> {
  const file = join(workspace(t), 'config.yaml');
  await writeFile(file, JSON.stringify({ record_path: '/mnt/archive', nodeName: 'node', ...settings }));
  return loadConfig(file);
}

test('a reload takes up cameras, limits, tokens, networks, webhooks, objectives and the level of the log', async (t) => {
  const current = new CurrentConfig(await configOf(t, {}));
  const next = await configOf(t, {
    cameras: [{ id: 'gate', source: 'rtsp://10.0.0.1/gate' }],
    log: { level: 'debug' },
    archive: { segmentDuration: '1m', retention: { maxAge: '3d' } },
    auth: { tokens: [{ name: 'anna', role: 'viewer', sha256: 'a'.repeat(64) }] },
    cameraNetworks: ['10.0.0.0/8'],
    cluster: { networks: ['10.96.0.0/12'] },
    webhooks: [{ url: 'https://a.example/', secretFile: '/a' }],
    webhooksFile: '/hooks.yaml',
    objectives: [{ name: 'insurance', target: 99.9 }],
  });
  current.takeUp(next);
  assert.deepEqual(current.value, next);
});

test('a reload leaves settings that need a restart as they are, and these are named as changed', async (t) => {
  const before = await configOf(t, {});
  const current = new CurrentConfig(before);
  const next = await configOf(t, {
    listen: '127.0.0.1:1234',
    log: { level: 'warn', maxFiles: 3 },
    archive: { syncInterval: '7s', retention: { maxAge: '3d' } },
    metrics: { requireToken: true, tokenSha256: 'b'.repeat(64) },
  });
  current.takeUp(next);
  const { listen, log, archive, metrics } = current.value;
  assert.deepEqual(listen, before.listen);
  assert.deepEqual(log, { ...before.log, level: 'warn' });
  assert.deepEqual(archive, { ...next.archive, syncIntervalMs: before.archive.syncIntervalMs });
  assert.deepEqual(metrics, { ...before.metrics, tokenSha256: 'b'.repeat(64) });
  assert.deepEqual(changedSettings(current.value, next).sort(), ['archive', 'listen', 'log', 'metrics']);
});
