import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { AdminError } from './admin-client.ts';
import type { Site } from './site.ts';
import { supportArchive, withoutSecrets } from './support-archive.ts';
import { commandContext } from './test-support.ts';

const SECRET = 'hunter2';
const PEM = `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----`;
const LEAKS = [
  `rtsp://admin:${SECRET}@10.0.0.9/stream1`,
  `https://nvr/hls?access_token=${SECRET}&x=1`,
  `authorization: Bearer ${SECRET}`,
  JSON.stringify({ password: SECRET, adminToken: `a\\"${SECRET}`, apiKey: SECRET }),
  JSON.stringify({ log: JSON.stringify({ client_secret: SECRET }) }),
  JSON.stringify({ log: JSON.stringify({ url: `rtsp://u:${SECRET}@h/` }) }),
  PEM,
  JSON.stringify({ key: PEM }),
  `PGPASSWORD=${SECRET}`,
];

for (const leak of LEAKS) {
  test(`an archive for support has no secret: ${leak.replaceAll(SECRET, '…').slice(0, 50)}`, () => {
    const left = withoutSecrets(leak);
    assert.ok(!left.includes(SECRET), left);
    assert.ok(left.includes('***'), left);
  });
}

test('an archive for support keeps what is no secret', () => {
  const text = JSON.stringify({ credentialsSecretRef: { name: 'gate-login' }, source: 'rtsp://10.0.0.9/a@b', n: 3 });
  assert.equal(withoutSecrets(text), text);
});

test('tar unpacks an archive for support, and what could not be read says why', async (t) => {
  const directory = workspace(t);
  const site: Site = {
    list: async () => [{ metadata: { name: 'gate' }, password: SECRET }],
    patch: async () => {},
    recorder: () => Promise.reject(new AdminError('no recorder is online')),
    more: async () => new Map([['logs/operator.txt', 'x'.repeat(700)]]),
  };
  const file = join(directory, 'report.tar.gz');
  writeFileSync(file, await supportArchive(site, commandContext().context));
  const unpacked = (name: string): string => execFileSync('tar', ['-xzOf', file, name], { encoding: 'utf8' });
  assert.deepEqual(JSON.parse(unpacked('objects/cameras.json')), [{ metadata: { name: 'gate' }, password: '***' }]);
  assert.deepEqual(JSON.parse(unpacked('cluster.json')), { notRead: 'no recorder is online' });
  assert.equal(unpacked('logs/operator.txt'), 'x'.repeat(700));
});
