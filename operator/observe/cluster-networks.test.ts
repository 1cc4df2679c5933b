import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { ApiError } from '../kube/api.ts';
import { ENDPOINT_SLICE, SERVICE_CIDR } from '../kube/resources.ts';
import { MemoryApi } from '../kube/test-support.ts';
import type { ClusterNode } from './caches.ts';
import { ClusterNetworks } from './cluster-networks.ts';

const node = (name: string, podCIDRs: readonly string[], ...addresses: readonly string[]): ClusterNode => ({
  metadata: { name },
  spec: { podCIDRs },
  status: {
    addresses: [
      ...addresses.map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: name },
      { type: 'InternalDNS', address: `${name}.internal` },
    ],
  },
});

function setting(told: readonly string[] = []) {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const nodes = [node('a', ['10.244.1.0/24', 'fd00:244:1::/64'], '10.0.0.7', 'fd00::7', 'none')];
  const networks = new ClusterNetworks({ api, nodes: () => nodes, told, clock, log: silentLog });
  return { api, clock, nodes, networks };
}

test('networks of Services and pods, and addresses of nodes and of the API server, are those of the cluster', async () => {
  const { api, nodes, networks } = setting(['10.244.0.0/16']);
  await api.create(SERVICE_CIDR, {
    metadata: { name: 'kubernetes' },
    spec: { cidrs: ['10.96.0.0/12', 'fd00:96::/112'] },
  });
  await api.create(ENDPOINT_SLICE, {
    metadata: { name: 'kubernetes', namespace: 'default' },
    endpoints: [{ addresses: ['10.0.0.2'] }, { addresses: ['10.0.0.3'] }],
  });
  const first = await networks.list();
  assert.deepEqual(first, [
    '10.0.0.2',
    '10.0.0.3',
    '10.0.0.7',
    '10.244.0.0/16',
    '10.244.1.0/24',
    '10.96.0.0/12',
    'fd00:244:1::/64',
    'fd00:96::/112',
    'fd00::7',
  ]);
  nodes.push(node('b', ['10.244.2.0/24'], '10.0.0.8'));
  assert.deepEqual(
    (await networks.list()).filter((network) => !first.includes(network)),
    ['10.0.0.8', '10.244.2.0/24'],
  );
});

test('the API server is asked again after 5 minutes, and at once when it did not answer', async () => {
  const { api, clock, networks } = setting();
  const looks = (): number => api.calls.filter((call) => call.startsWith('list servicecidrs')).length;
  api.before = (verb) => {
    if (verb === 'list') throw new ApiError(0, 'Timeout', 'no answer');
  };
  await assert.rejects(networks.list(), /no answer/);
  api.before = () => {};
  await networks.list();
  await networks.list();
  assert.equal(looks(), 2);
  await api.create(SERVICE_CIDR, { metadata: { name: 'more' }, spec: { cidrs: ['10.112.0.0/12'] } });
  clock.advance(300_000);
  assert.ok((await networks.list()).includes('10.112.0.0/12'));
});

test('where it does not tell, or may not be asked, what the cluster’s owner says and nodes show is known', async () => {
  const { api, networks } = setting(['10.96.0.0/12']);
  api.before = (verb) => {
    throw verb === 'list' ? new ApiError(404, 'NotFound', 'no such kind') : new ApiError(403, 'Forbidden', 'no');
  };
  assert.deepEqual(await networks.list(), ['10.0.0.7', '10.244.1.0/24', '10.96.0.0/12', 'fd00:244:1::/64', 'fd00::7']);
});
