import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError } from './load.ts';
import { inEnvironment } from './environment.ts';
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
  });
  assert.deepEqual(changed, {
    ...config,
    nodeName: 'rack-1',
    database: { url: 'postgresql://nvr:s3cret@db/recorder' },
    redis: { url: 'rediss://:s3cret@cache', ca: '/etc/ca.pem' },
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
