// Who reaches whom where the NetworkPolicies of chart and operator are in force: connections that must be made, and those
// that must not. No network plug-in runs here; the policies are read as the API defines them (network-policy.ts), in
// both ways in which plug-ins read an ipBlock.

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { NO_CAMERA_THERE } from '../../base/networks.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { networkPolicyOf } from '../../operator/manifests/network-policy.ts';
import { daemonSetOf } from '../../operator/manifests/recorder.ts';
import { CameraNetworks } from '../../recorder/reach/networks.ts';
import { letsThrough, type End, type Flow, type NetworkPolicy } from '../support/network-policy.ts';
import { Helm, helmMissing, ofKind, one, type Manifest } from './helm.ts';

const CLUSTER_NETWORKS = ['10.96.0.0/12', '10.42.0.0/16', '10.0.0.1', '10.0.0.11', '10.0.0.12'];
const PORTS = { apiServer: [443, 6443], databases: [5432, 6379] };

const poolOf = (namespace: string, name: string, spec: object = {}) =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name, namespace, uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });
/** As wide as somebody may write them, the cluster within. */
const cameraNetworks = ['10.0.0.0/8', '192.168.7.0/24', 'fd00::/8'];
const database = { databaseSecretRef: { name: 'db' }, redisSecretRef: { name: 'redis' } };
const LIMITED = poolOf('video', 'north', { cameraNetworks, ...database });
const PLAIN = poolOf('video', 'plain', { cameraNetworks });
const FREE = poolOf('shop', 'free');
/** Reached by a name that a proxy answers for. */
const BY_NAME = poolOf('shop', 'named', {
  cameraNetworks,
  advertise: { type: 'Template', template: 'http://{node}.nvr.example' },
});

const NODES: readonly [End, End] = [{ ip: '10.0.0.11' }, { ip: '10.0.0.12' }];

/** A pod as a DaemonSet or Deployment makes it: its labels, and the names of its ports. */
function podOf(namespace: string, ip: string, node: End, { spec }: Manifest): End {
  const { metadata, spec: pod } = spec.template;
  const ports = pod.containers[0].ports.map(({ name, containerPort }: Manifest) => [name, containerPort]);
  return { ip, namespace, labels: metadata.labels, ports: Object.fromEntries(ports), node };
}

const recorderOf = (pool: typeof LIMITED, ip: string, node = NODES[0]): End =>
  podOf(pool.metadata.namespace, ip, node, daemonSetOf(pool, 'recorder', ''));

const NORTH = [recorderOf(LIMITED, '10.42.0.2'), recorderOf(LIMITED, '10.42.1.2', NODES[1])] as const;
const RECORDERS = {
  plain: recorderOf(PLAIN, '10.42.0.3'),
  free: [recorderOf(FREE, '10.42.0.4'), recorderOf(FREE, '10.42.1.4', NODES[1])],
  named: [recorderOf(BY_NAME, '10.42.0.5'), recorderOf(BY_NAME, '10.42.1.5', NODES[1])],
} as const;
const [north, otherNorth] = NORTH;
const { plain, free, named } = RECORDERS;

const pod = (namespace: string, ip: string, labels = {}): End => ({ ip, namespace, labels, node: NODES[1] });
const DNS = pod('kube-system', '10.42.1.53', { 'k8s-app': 'kube-dns' });
const PROMETHEUS = pod('monitoring', '10.42.1.90');
const POSTGRES = pod('data', '10.42.1.54');
const WEB = pod('shop', '10.42.1.80');
const NEIGHBOUR = pod('video', '10.42.1.81');
/** Somebody who knows our labels, in a namespace of his own. */
const DRESSED = pod('evil', '10.42.1.66', north.labels);
const API_SERVER = { ip: '10.0.0.1' };
const API_SERVICE = { ip: '10.96.0.1' };
const CAMERA = { ip: '10.20.0.9' };
const VIEWER = { ip: '203.0.113.5' };
const METADATA = [{ ip: '169.254.169.254' }, { ip: 'fd00:ec2::254' }, { ip: '100.100.100.200' }] as const;

type Named = readonly [name: string, from: End, to: End, port: number, protocol?: Flow['protocol']];

suite('NetworkPolicies of chart and operator', { skip: helmMissing() }, () => {
  const helm = new Helm();
  let policies: readonly NetworkPolicy[];
  let guarded: readonly NetworkPolicy[];
  let operator: End;
  let tester: End;

  before(async () => {
    const watch = { allNamespaces: true, namespaces: ['shop'] };
    const metricsFrom = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    const clientsFrom = [{ ipBlock: { cidr: '198.51.100.0/24' } }];
    const own = [LIMITED, PLAIN, FREE, BY_NAME].flatMap((pool) => {
      const policy = networkPolicyOf(pool, PORTS, CLUSTER_NETWORKS);
      return policy ? [policy as Manifest] : [];
    });
    const objects = await helm.template({ watch, networkPolicy: { metricsFrom } });
    policies = [...ofKind(objects, 'NetworkPolicy'), ...own];
    guarded = [...ofKind(await helm.template({ watch, networkPolicy: { clientsFrom } }), 'NetworkPolicy'), ...own];
    operator = podOf('video', '10.42.0.9', NODES[0], one(objects, 'Deployment'));
    tester = { ...pod('video', '10.42.1.7'), labels: one(objects, 'Pod').metadata.labels };
  });
  after(() => helm.close());

  const check = (flows: readonly Named[], expected: boolean, where = policies): void => {
    for (const [name, from, to, port, protocol = 'TCP'] of flows) {
      for (const blocksHoldPods of [true, false]) {
        const made = letsThrough(where, { from, to, port, protocol }, blocksHoldPods);
        assert.equal(made, expected, `${name}: ${from.ip} to ${to.ip}:${port}, blocksHoldPods ${blocksHoldPods}`);
      }
    }
  };

  test('recorders and operator reach what they need', () => {
    const everywhere: readonly Named[] = [north, plain, ...free, ...named, operator].flatMap((from): Named[] => [
      ['names', from, DNS, 53, 'UDP'],
      ['names, long answers', from, DNS, 53, 'TCP'],
      ['names, by the cache of the node', from, { ip: '169.254.20.10' }, 53, 'UDP'],
      ['API server', from, API_SERVER, 6443],
      ['API server, by its Service', from, API_SERVICE, 443],
    ]);
    const cameras: readonly Named[] = [north, plain, ...free, ...named].flatMap((from): Named[] => [
      ['RTSP', from, CAMERA, 554],
      ['RTP, and what opens the way for it', from, CAMERA, 40_000, 'UDP'],
      ['ONVIF', from, { ip: '192.168.7.200' }, 80],
      ['RTSPS', from, { ip: 'fd00:20::9' }, 322],
    ]);
    check([...everywhere, ...cameras], true);
    check(
      [
        ['Postgres', north, POSTGRES, 5432],
        ['Redis', north, POSTGRES, 6379],
        ['Postgres elsewhere', north, VIEWER, 5432],
        ['a member', north, otherNorth, 9995],
        ['a member', free[0], free[1], 9995],
        ['a member of a pool that is reached by name', named[0], named[1], 9995],
        ['a camera on the Internet, of a pool that has no networks', free[0], VIEWER, 554],
      ],
      true,
    );
  });

  test('webhooks are reached by HTTPS where the pool has some, and nothing of cloud or cluster is', () => {
    // Not 443, by which the API server would be reached at any address.
    const ports = { ...PORTS, apiServer: [6443] };
    const policyOf = (spec: object) =>
      networkPolicyOf(poolOf('video', 'north', { cameraNetworks, ...spec }), ports, CLUSTER_NETWORKS) as Manifest;
    const receivers: readonly Named[] = [
      ['a receiver', north, VIEWER, 443],
      ['a receiver, by IPv6', north, { ip: '2001:db8::7' }, 443],
    ];
    const policies = [policyOf({ webhooksSecretRef: { name: 'hooks' } })];
    check(receivers, true, policies);
    check(receivers, false, [policyOf({})]);
    check(
      [
        ...METADATA.map((to): Named => ['metadata', north, to, 443]),
        ['another node', north, NODES[1], 443],
        ['a Service', north, API_SERVICE, 443],
        ['a pod', north, WEB, 443],
        ['another port', north, VIEWER, 80],
      ],
      false,
      policies,
    );
  });

  test('collectors of the audit are reached where the pool names some, in the cluster too, and nothing else of them is', () => {
    const policyOf = (spec: object) =>
      networkPolicyOf(poolOf('video', 'north', { cameraNetworks, ...spec }), PORTS, CLUSTER_NETWORKS) as Manifest;
    const collectors: readonly Named[] = [
      ['a collector in the cluster', north, WEB, 6514],
      ['a collector elsewhere', north, VIEWER, 6514],
    ];
    const policies = [policyOf({ audit: { syslog: { address: 'logs.example:6514' } } })];
    check(collectors, true, policies);
    check(collectors, false, [policyOf({})]);
    check([['another port', north, WEB, 4318]], false, policies);
  });

  test('recorders and operator are reached by those that should', () => {
    const recorders = [north, plain, free[0], named[0]];
    check(
      recorders.flatMap((to): Named[] => [
        ['a viewer', VIEWER, to, 9997],
        ['a viewer of recordings', VIEWER, to, 9996],
        ['a proxy in the cluster', WEB, to, 9997],
        ['Prometheus', PROMETHEUS, to, 9998],
        ['helm test', tester, to, 9997],
        ['probes', NODES[0], to, 9994],
      ]),
      true,
    );
    check(
      [
        ['Prometheus', PROMETHEUS, operator, 8080],
        ['helm test', tester, operator, 8080],
        ['probes', NODES[0], operator, 8080],
      ],
      true,
    );
  });

  test('a recorder that was taken over reaches no service of cloud or cluster, and nobody else', () => {
    for (const from of [north, plain, named[0]]) {
      const flows = METADATA.flatMap((to): Named[] => [80, 8080, 9997].map((port) => ['metadata', from, to, port]));
      check(
        [
          ...flows,
          ['a kubelet', from, NODES[1], 10_250],
          ['etcd', from, API_SERVER, 2379],
          ['SSH of a node', from, NODES[1], 22],
          ['a Service', from, { ip: '10.96.44.5' }, 80],
          ['a pod of another namespace', from, WEB, 8080],
          ['a pod of its namespace', from, NEIGHBOUR, 8080],
          ['the operator', from, operator, 8080],
          ['the Internet', from, VIEWER, 80],
          ['mail', from, VIEWER, 25],
          ['a broadcast', from, { ip: '255.255.255.255' }, 9, 'UDP'],
        ],
        false,
      );
    }
    check(
      [
        ['a database, of a pool without one', plain, POSTGRES, 5432],
        ['the API of a member', north, otherNorth, 9997],
        ['the API of another pool', north, plain, 9997],
        ['another pool', north, plain, 9995],
        ['another namespace', north, free[0], 9995],
        ['the operator: cameras', operator, CAMERA, 554],
        ['the operator: recorders', operator, north, 9997],
        ...METADATA.map((to): Named => ['the operator: metadata', operator, to, 80]),
      ],
      false,
    );
  });

  test('nothing else reaches the listeners of recorders for members, metrics and probes, nor the operator', () => {
    const strangers = [VIEWER, WEB, NEIGHBOUR, DRESSED, NODES[1]];
    const flows = [north, free[0], named[0]].flatMap((to) =>
      strangers.flatMap((from): Named[] => [9994, 9995, 9998].map((port) => ['a stranger', from, to, port])),
    );
    check(flows, false);
    check(
      strangers.map((from): Named => ['a stranger', from, operator, 8080]),
      false,
    );
    check(
      [
        ['Prometheus, as member', PROMETHEUS, north, 9995],
        ['Prometheus, as prober', PROMETHEUS, north, 9994],
        ['a recorder of another tenant', free[0], north, 9995],
        ['a recorder, metrics', otherNorth, north, 9998],
      ],
      false,
    );
  });

  test('where clients are named, no other client reaches API and playback', () => {
    const client = { ip: '198.51.100.7' };
    for (const to of [north, free[0], named[0]]) {
      for (const port of [9997, 9996]) {
        check(
          [
            ['a client', client, to, port],
            ['helm test', tester, to, port],
          ],
          true,
          guarded,
        );
        const others = [VIEWER, WEB, NEIGHBOUR, DRESSED, otherNorth];
        check(
          others.map((from): Named => ['no client', from, to, port]),
          false,
          guarded,
        );
      }
      check([['probes', NODES[0], to, 9994]], true, guarded);
      check([['metrics', PROMETHEUS, to, 9998]], false, guarded);
    }
  });

  test('the policy of a pool and its recorders judge addresses of cameras alike', () => {
    const addresses = [
      ...CLUSTER_NETWORKS,
      ...NO_CAMERA_THERE,
      ...cameraNetworks,
      '203.0.113.0/24',
      '10.20.0.0/16',
    ].map((network) => network.replace(/\/.*/, ''));
    for (const only of [cameraNetworks, ['0.0.0.0/0', '::/0'], ['10.96.7.0/24', '10.96.0.0/12', '127.0.0.0/8']]) {
      const own = new CameraNetworks({ only, refused: [...NO_CAMERA_THERE, ...CLUSTER_NETWORKS] });
      const pool = poolOf('video', 'north', { cameraNetworks: only });
      const policy = networkPolicyOf(pool, PORTS, CLUSTER_NETWORKS) as Manifest;
      for (const ip of addresses) {
        const made = letsThrough([policy], { from: north, to: { ip }, port: 554 }, true);
        assert.equal(made, own.allows(ip), `${ip} of ${only.join()}`);
      }
    }
  });
});
