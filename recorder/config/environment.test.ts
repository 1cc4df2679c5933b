import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError } from './load.ts';
import { workspace } from '../../test/support/workspace.ts';
import { inEnvironment, withMetricsToken } from './environment.ts';
import { ConfigFile, toConfig } from './schema.ts';

const config = toConfig(
  ConfigFile.parse({
    database: { url: 'postgres://file/recorder' },
    redis: { url: 'redis://file', ca: '/etc/ca.pem' },
    cluster: { advertise: 'file:9997' },
  }),
  'file',
);

test('an empty environment changes nothing', () => {
  assert.deepEqual(inEnvironment(config, {}), config);
  assert.deepEqual(inEnvironment(config, { KUBE_NVR_NODE_NAME: '', KUBE_NVR_DATABASE_URL: '' }), config);
});

test('what the environment says is instead of what the file says', () => {
  const changed = inEnvironment(config, {
    KUBE_NVR_NODE_NAME: 'rack-1',
    KUBE_NVR_ADVERTISE: '10.0.0.1:9997',
    KUBE_NVR_PLAYBACK_ADVERTISE: '10.0.0.1:9996',
    KUBE_NVR_DATABASE_URL: 'postgresql://nvr:s3cret@db/recorder\n',
    KUBE_NVR_REDIS_URL: 'rediss://:s3cret@cache',
    KUBE_NVR_SESSION_KEY_FILE: '/etc/session.key',
  });
  assert.deepEqual(changed, {
    ...config,
    nodeName: 'rack-1',
    database: { url: 'postgresql://nvr:s3cret@db/recorder' },
    redis: { url: 'rediss://:s3cret@cache', ca: '/etc/ca.pem' },
    auth: { ...config.auth, sessionKeyFile: '/etc/session.key' },
    cluster: { ...config.cluster, advertise: '10.0.0.1:9997' },
    playback: { ...config.playback, advertise: '10.0.0.1:9996' },
  });
  const bare = toConfig(ConfigFile.parse({}), 'file');
  const { database } = inEnvironment(bare, { KUBE_NVR_DATABASE_URL: 'postgres://db/recorder' });
  assert.deepEqual(database, { url: 'postgres://db/recorder' });
});

for (const [name, value, expected] of [
  ['KUBE_NVR_DATABASE_URL', 'mysql://nvr:s3cret@db', 'postgres:// or postgresql://'],
  ['KUBE_NVR_DATABASE_URL', 's3cret', 'postgres:// or postgresql://'],
  ['KUBE_NVR_REDIS_URL', 'http://:s3cret@cache', 'redis:// or rediss:// or unix://'],
] as const) {
  test(`${name} as ${value.split(':', 1)[0]} is refused by its name, and its value is not shown`, () => {
    assert.throws(
      () => inEnvironment(config, { [name]: value }),
      (err) => {
        assert.ok(err instanceof ConfigError);
        assert.equal(err.message, `environment: ${name}: expected an address that begins with ${expected}`);
        return true;
      },
    );
  });
}

test('the token for metrics comes from a file of the pod; without its digest a token is asked for anyway', async (t) => {
  const file = join(workspace(t), 'metrics-token.sha256');
  const env = { KUBE_NVR_METRICS_TOKEN_FILE: file };
  const read = async (): Promise<unknown> => {
    const { requireToken, tokenSha256 } = (await withMetricsToken(config, env)).metrics;
    return { requireToken, tokenSha256 };
  };
  assert.deepEqual(await withMetricsToken(config, {}), config);
  const nobody = { requireToken: true, tokenSha256: '0'.repeat(64) };
  assert.deepEqual(await read(), nobody, 'no camera waits for a file of Prometheus');
  writeFileSync(file, '');
  assert.deepEqual(await read(), nobody);
  writeFileSync(file, `${'AB'.repeat(32)}\n`);
  assert.deepEqual(await read(), { requireToken: true, tokenSha256: 'ab'.repeat(32) });
  writeFileSync(file, 'nvr_secret');
  await assert.rejects(read(), (err) => {
    assert.ok(err instanceof ConfigError);
    const expected = 'expected the 64 hexadecimal digits of the SHA-256 of the token';
    assert.equal(err.message, `environment: KUBE_NVR_METRICS_TOKEN_FILE: ${file}: ${expected}`);
    return true;
  });
});

test('the address of an IPv6 pod, which Kubernetes inserts without brackets, becomes an address', () => {
  const advertised = (address: string): string =>
    inEnvironment(config, { KUBE_NVR_ADVERTISE: address }).cluster.advertise;
  assert.equal(advertised('fd00::5:9997'), '[fd00::5]:9997');
  for (const same of ['10.0.0.1:9997', '[fd00::5]:9997', 'https://node-1.example.com', 'node-1:9997']) {
    assert.equal(advertised(same), same);
  }
});
