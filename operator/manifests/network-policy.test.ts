import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { networkPolicyOf } from './network-policy.ts';

const CLUSTER = ['10.96.0.0/12', '10.0.0.7'];
const PORTS = { apiServer: [443, 6443], databases: [5432, 6379] };
const pool = (spec: object): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });
const cameraNetworks = ['10.20.0.0/16', 'fd00:20::/64'];
const specOf = (spec: object) =>
  networkPolicyOf(pool(spec), PORTS, CLUSTER)?.['spec'] as { readonly egress: readonly object[] } | undefined;
const egress = (spec: object): readonly object[] => specOf({ cameraNetworks, ...spec })?.egress ?? [];
const tcp = (...ports: readonly number[]) => ports.map((port) => ({ port, protocol: 'TCP' }));
const recorders = {
  'app.kubernetes.io/name': 'kube-nvr',
  'app.kubernetes.io/component': 'recorder',
  'kube-nvr.dev/pool': 'north',
};

test('recorders reach names, the API server, each other and cameras, and nothing else', () => {
  assert.deepEqual(specOf({ cameraNetworks }), {
    podSelector: { matchLabels: recorders },
    policyTypes: ['Egress'],
    egress: [
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
      { ports: tcp(443, 6443) },
      { ports: tcp(9995), to: [{ podSelector: { matchLabels: recorders } }] },
      { to: [{ ipBlock: { cidr: '10.20.0.0/16' } }, { ipBlock: { cidr: 'fd00:20::/64' } }] },
    ],
  });
});

test('database and Redis are reached where the pool has one', () => {
  for (const field of ['databaseSecretRef', 'redisSecretRef']) {
    assert.deepEqual(egress({ [field]: { name: 'a' } })[2], { ports: tcp(5432, 6379) });
  }
});

test('webhooks of a pool that has some are reached by HTTPS, wherever recorders send them', () => {
  const refused = [...NO_CAMERA_THERE, '10.96.0.0/12', '10.0.0.7/32'];
  const to = [
    { ipBlock: { cidr: '0.0.0.0/0', except: refused.filter((network) => !network.includes(':')) } },
    { ipBlock: { cidr: '::/0', except: refused.filter((network) => network.includes(':')) } },
  ];
  const more = egress({ webhooksSecretRef: { name: 'hooks' } });
  assert.deepEqual(more[3], { ports: tcp(443), to });
  assert.deepEqual(more.toSpliced(3, 1), egress({}));
});

test('collectors of the audit are reached by their ports, also in the cluster', () => {
  const audit = { syslog: { address: 'logs.example:6514' }, otlp: { url: 'https://otel.example/v1/logs' } };
  const more = egress({ audit });
  assert.deepEqual(more[2], { ports: tcp(6514, 443) });
  assert.deepEqual(more.toSpliced(2, 1), egress({}));
});

test('what recorders refuse within a network of cameras is not reached, unless it is named as narrowly', () => {
  const blocks = (...cameraNetworks: readonly string[]) => (egress({ cameraNetworks }).at(-1) as { to: object }).to;
  assert.deepEqual(blocks('10.0.0.0/8', 'fd00::/8'), [
    { ipBlock: { cidr: '10.0.0.0/8', except: ['10.96.0.0/12', '10.0.0.7/32'] } },
    { ipBlock: { cidr: 'fd00::/8', except: ['fd00:ec2::254/128', 'fd20:ce::254/128'] } },
  ]);
  assert.deepEqual(blocks('10.96.0.0/12', '10.96.7.0/24', '10.0.0.7/32'), [
    { ipBlock: { cidr: '10.96.0.0/12' } },
    { ipBlock: { cidr: '10.96.7.0/24' } },
    { ipBlock: { cidr: '10.0.0.7/32' } },
  ]);
});

test('without networks of cameras there is no policy: they may be anywhere', () => {
  assert.equal(networkPolicyOf(pool({}), PORTS, CLUSTER), undefined);
  assert.equal(networkPolicyOf(pool({ cameraNetworks: [] }), PORTS, CLUSTER), undefined);
});
