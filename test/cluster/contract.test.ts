// The contract (crds/) as a real API server and the store over etcd keep it: what they take, what they refuse and with which words,
// what `kubectl get` shows. docs/design/cluster.md says what the rules are for.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { API_VERSION } from '../../crds/names.ts';
import { KINDS } from '../../crds/kinds.ts';
import { until } from '../support/until.ts';
import { ApiError, type KubeObject } from './api-client.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { apiServerMissing, etcdMissing } from './programs.ts';
import { StoreApi, type ContractApi } from './store-api.ts';

const ROOT = join(import.meta.dirname, '../..');
const NAMESPACE = 'contract';

type Json = Record<string, unknown>;

let controlPlane: ControlPlane;
/** Of the server that is tried. */
let api: ContractApi;

const collection = (plural: string): string => `/apis/${API_VERSION}/namespaces/${NAMESPACE}/${plural}`;

function object(kind: string, name: string, spec: Json): Json {
  return { apiVersion: API_VERSION, kind, metadata: { name }, spec };
}

const camera = (name: string, spec: Json = {}): Json =>
  object('Camera', name, { source: 'rtsp://10.0.0.9/1', ...spec });

const pool = (name: string, spec: Json = {}): Json =>
  object('RecorderPool', name, { archive: { hostPath: '/mnt/archive' }, ...spec });

const node = (name: string, spec: Json = {}): Json =>
  object('RecorderNode', name, { nodeName: name, poolRef: { name: 'default' }, ...spec });

const PLURALS: Readonly<Record<string, string>> = Object.fromEntries(KINDS.map(({ kind, plural }) => [kind, plural]));

const create = (body: Json, query = ''): Promise<KubeObject> =>
  api.create(`${collection(PLURALS[body['kind'] as string]!)}${query}`, body);

/** The object with another status; with the resourceVersion it was read at, so somebody else's write in between is noticed. */
function replaceStatus(read: KubeObject & Json, status: Json): Promise<KubeObject & Json> {
  const plural = PLURALS[read.kind!]!;
  return api.replace(`${collection(plural)}/${read.metadata.name}/status`, { ...read, status });
}

async function assertRefused(call: Promise<unknown>, field: string, words = ''): Promise<void> {
  await assert.rejects(call, (err) => {
    assert.ok(err instanceof ApiError, String(err));
    assert.equal(err.status, 422, err.message);
    assert.ok(err.message.includes(`${field}: `), `${field} is not named: ${err.message}`);
    assert.ok(err.message.includes(words), err.message);
    assert.doesNotMatch(err.message, /should match|regex/, 'a message is in words');
    return true;
  });
}

const many = (count: number, item: (i: number) => unknown): unknown[] =>
  Array.from({ length: count }, (_, i) => item(i));

suite('the contract on a real API server', { skip: apiServerMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    api = controlPlane.api;
    await controlPlane.kubectl(['create', 'namespace', NAMESPACE]);
    await controlPlane.installKinds();
    await until('the kinds are served', () =>
      api.list(collection('recordernodes')).then(
        () => true,
        () => false,
      ),
    );
  });

  after(() => controlPlane?.close());

  test('schemas are structural and their rules compile', async () => {
    const crds = await controlPlane.api.list<
      KubeObject & { status: { conditions: { type: string; status: string }[] } }
    >('/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
    for (const { metadata, status } of crds) {
      const conditions = Object.fromEntries(status.conditions.map(({ type, status }) => [type, status]));
      assert.deepEqual(conditions, { NamesAccepted: 'True', Established: 'True' }, metadata.name);
    }
    assert.equal(crds.length, KINDS.length);
  });

  test('the examples are taken: tried by the server, then for good, and again without a change', async () => {
    const files = readdirSync(join(ROOT, 'crds/examples'));
    assert.ok(files.length >= 5);
    const apply = (...args: string[]) =>
      controlPlane.kubectl(['apply', '-n', NAMESPACE, '-f', join(ROOT, 'crds/examples'), ...args]);
    await apply('--dry-run=server');
    await apply();
    const again = (await apply()).trim().split('\n');
    assert.deepEqual(
      again.filter((line) => !line.endsWith('unchanged') && !line.startsWith('secret/')),
      [],
    );
  });

  test('kubectl get shows the columns that matter, -o wide the rest; short names and the category work', async () => {
    await create(camera('shown'));
    const header = async (...args: string[]) =>
      (await controlPlane.kubectl(['get', '-n', NAMESPACE, ...args])).split('\n')[0]!.trim().split(/ {2,}/);
    assert.deepEqual(await header('cam'), ['NAME', 'NODE', 'RECORDING', 'READY', 'REASON', 'AGE']);
    assert.deepEqual((await header('cam', '-o', 'wide')).slice(6), [
      'POOL',
      'EPOCH',
      'PREVIOUS',
      'STANDBY',
      'ASSIGNED',
      'BECAUSE',
      'SOURCE',
    ]);
    assert.equal((await header('rpool')).length, 8);
    assert.equal((await header('rnode')).length, 8);
    const all = await controlPlane.kubectl(['get', 'kubenvr', '-n', NAMESPACE, '-o', 'name']);
    for (const { singular } of KINDS) assert.match(all, new RegExp(`^${singular}\\.kube-nvr\\.dev/`, 'm'));
    assert.doesNotMatch(await controlPlane.kubectl(['get', 'all', '-n', NAMESPACE, '-o', 'name']), /kube-nvr/);
  });

  test('kubectl explain describes a field', async () => {
    assert.match(await controlPlane.kubectl(['explain', 'camera.spec.source']), /Address of the stream/);
  });

  keepsTheContract();
});

suite('the contract in the store over etcd', { skip: etcdMissing() }, () => {
  let store: StoreApi;

  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd'] });
    api = store = new StoreApi(controlPlane.etcd);
  });

  after(async () => {
    await store?.close();
    await controlPlane?.close();
  });

  test('the examples are taken: tried by the server, then for good, and again without a change', async () => {
    const examples = readdirSync(join(ROOT, 'crds/examples')).flatMap((file) =>
      parseAllDocuments(readFileSync(join(ROOT, 'crds/examples', file), 'utf8')).map((one) => one.toJS() as KubeObject),
    );
    const apply = async (query: string): Promise<string[]> => {
      const versions: string[] = [];
      for (const example of examples) {
        const plural = PLURALS[example.kind!];
        const path = plural === undefined ? `/api/v1/namespaces/${NAMESPACE}/secrets` : collection(plural);
        const applied = await api.patch(`${path}/${example.metadata.name}?fieldManager=me${query}`, 'apply', example);
        versions.push(applied.metadata.resourceVersion);
      }
      return versions;
    };
    await apply('&dryRun=All');
    assert.deepEqual(await apply(''), await apply(''));
  });

  keepsTheContract();
});

/** What is the same on both. */
function keepsTheContract(): void {
  test('no camera is called jobs, which is part of an address of the API', async () => {
    await assert.rejects(create(camera('jobs')), (err) => {
      assert.ok(
        err instanceof ApiError && err.status === 422 && err.message.includes('metadata.name: jobs'),
        String(err),
      );
      return true;
    });
  });

  test('what is left out of a spec has its default', async () => {
    const { spec } = (await create(camera('defaults'))) as KubeObject & { spec: Json };
    assert.deepEqual(spec, {
      source: 'rtsp://10.0.0.9/1',
      allowPlaintextLogin: false,
      transport: 'Auto',
      ptz: false,
      events: 'Auto',
      activity: false,
      suspend: false,
      record: { format: 'fmp4', segmentSeconds: 300 },
      maxBitrate: 100,
      poolRef: { name: 'default' },
      placement: { failover: 'Automatic', priority: 0 },
    });
  });

  const refused: { readonly what: string; readonly body: Json; readonly field: string; readonly words?: string }[] = [
    {
      what: 'a login in source',
      body: camera('x', { source: 'rtsp://user:secret@10.0.0.9/1' }),
      field: 'spec.source',
      words: 'credentialsSecretRef',
    },
    { what: 'a user alone in source', body: camera('x', { source: 'rtsps://user@10.0.0.9/1' }), field: 'spec.source' },
    {
      what: 'a login in snapshot',
      body: camera('x', { snapshot: 'http://u:p@10.0.0.9/s.jpg' }),
      field: 'spec.snapshot',
    },
    {
      what: 'a login in a preview',
      body: camera('x', { preview: { source: 'rtsp://u:p@10.0.0.9/2' } }),
      field: 'spec.preview.source',
    },
    { what: 'a preview without an address', body: camera('x', { preview: {} }), field: 'spec.preview.source' },
    { what: 'a login in onvif', body: camera('x', { onvif: 'https://u:p@10.0.0.9/onvif' }), field: 'spec.onvif' },
    { what: 'a source that is no RTSP', body: camera('x', { source: 'http://10.0.0.9/1' }), field: 'spec.source' },
    {
      what: 'a fingerprint that is none',
      body: camera('x', { tls: { fingerprint: 'ab' } }),
      field: 'spec.tls.fingerprint',
    },
    { what: 'an authority that is none', body: camera('x', { tls: { ca: 'x' } }), field: 'spec.tls.ca' },
    ...[
      ['rtsp://10.0.0.9:99999/1', 'must have a port from 1 to 65535, or none'],
      ['rtsp://10.0.0.9:65536', 'must have a port from 1 to 65535, or none'],
      ['rtsp://10.0.0.9:0/1', 'must have a port from 1 to 65535, or none'],
      ['rtsp://[fd00::5]:99999/1', 'must have a port from 1 to 65535, or none'],
      ['rtsp://user:pa/ss@10.0.0.9/1', 'must have a port from 1 to 65535, or none'],
      ['rtsp://fd00::5/stream', 'must have brackets around an IPv6 address: rtsp://[fd00::5]/stream'],
      ['rtsps://fd00::5:322/stream', 'must have brackets around an IPv6 address: rtsp://[fd00::5]/stream'],
      ['10.0.0.9/stream', 'must be an address that begins with rtsp://, rtsps://, '],
      ['http://10.0.0.9/1', ' or rtsp+wss://, such as rtsp://10.0.0.5/stream'],
      ['rtsp://10.0.0.9/1 2', 'must have no spaces, as in rtsp://10.0.0.5/stream'],
      ['rtsp://:554/1', 'must name a host, as in rtsp://10.0.0.5/stream'],
    ].map(([source, words]) => ({
      what: `${source} as source`,
      body: camera('x', { source }),
      field: 'spec.source',
      words: words as string,
    })),
    {
      what: 'a port of a snapshot that does not exist',
      body: camera('x', { snapshot: 'http://10.0.0.9:99999/s.jpg' }),
      field: 'spec.snapshot',
      words: 'must have a port from 1 to 65535, or none',
    },
    {
      what: 'an IPv6 address of a snapshot without brackets',
      body: camera('x', { snapshot: 'http://fd00::5/s.jpg' }),
      field: 'spec.snapshot',
      words: 'must have brackets around an IPv6 address: http://[fd00::5]/snapshot.jpg',
    },
    {
      what: 'a port of ONVIF that does not exist',
      body: camera('x', { onvif: 'http://10.0.0.9:99999' }),
      field: 'spec.onvif',
      words: 'must have a port from 1 to 65535, or none',
    },
    { what: 'a source without a host', body: camera('x', { source: 'rtsp:///1' }), field: 'spec.source' },
    { what: 'no source', body: object('Camera', 'x', {}), field: 'spec.source' },
    {
      what: 'a source that never ends',
      body: camera('x', { source: `rtsp://a/${'x'.repeat(2_100)}` }),
      field: 'spec.source',
    },
    { what: 'a snapshot that is no HTTP', body: camera('x', { snapshot: 'ftp://a/b' }), field: 'spec.snapshot' },
    { what: 'another transport', body: camera('x', { transport: 'tcp' }), field: 'spec.transport' },
    { what: 'another format', body: camera('x', { record: { format: 'avi' } }), field: 'spec.record.format' },
    {
      what: 'no time for a segment',
      body: camera('x', { record: { segmentSeconds: 0 } }),
      field: 'spec.record.segmentSeconds',
    },
    {
      what: 'a size in words',
      body: camera('x', { record: { retention: { maxSize: 'much' } } }),
      field: 'spec.record.retention.maxSize',
    },
    {
      what: 'a share of the disk that leaves nothing',
      body: camera('x', { record: { retention: { minFree: '95%' } } }),
      field: 'spec.record.retention.minFree',
    },
    {
      what: 'a control character in a name',
      body: camera('x', { displayName: 'a\u0007b' }),
      field: 'spec.displayName',
    },
    { what: 'a long name', body: camera('x', { displayName: 'x'.repeat(101) }), field: 'spec.displayName' },
    { what: 'a camera id that fits into no file name', body: camera('x'.repeat(64)), field: 'metadata.name' },
    {
      what: 'a reference that is no name',
      body: camera('x', { credentialsSecretRef: { name: 'A/B' } }),
      field: 'spec.credentialsSecretRef.name',
    },
    {
      what: 'another failover',
      body: camera('x', { placement: { failover: 'Maybe' } }),
      field: 'spec.placement.failover',
    },
    {
      what: 'a priority out of bounds',
      body: camera('x', { placement: { priority: 1001 } }),
      field: 'spec.placement.priority',
    },
    {
      what: 'too many labels',
      body: camera('x', {
        placement: { nodeSelector: Object.fromEntries(many(33, (i) => [`l${i}`, '']) as [string, string][]) },
      }),
      field: 'spec.placement.nodeSelector',
    },
    ...['10.0.0.0', '10.0.0.0/33', 'cameras.example/8', 'fd00::/129', '10.0.0/8', '::ffff:10.0.0.0/104'].map(
      (network) => ({
        what: `${network} as a network of cameras`,
        body: pool('x', { cameraNetworks: ['10.20.0.0/16', network] }),
        field: 'spec.cameraNetworks[1]',
      }),
    ),
    { what: 'a pool without an archive', body: object('RecorderPool', 'x', {}), field: 'spec.archive' },
    {
      what: 'a relative archive',
      body: pool('x', { archive: { hostPath: 'archive' } }),
      field: 'spec.archive.hostPath',
    },
    { what: 'no archive', body: pool('x', { archive: {} }), field: 'spec.archive' },
    {
      what: 'a directory and a claim',
      body: pool('x', { archive: { hostPath: '/mnt/archive', volumeClaimTemplate: { spec: { resources: {} } } } }),
      field: 'spec.archive',
    },
    {
      what: 'a variable of the operator',
      body: pool('x', {
        podTemplate: {
          spec: { containers: [{ name: 'recorder', env: [{ name: 'KUBE_NVR_NODE_NAME', value: 'b' }] }] },
        },
      }),
      field: 'spec.podTemplate.spec.containers[0].env[0].name',
    },
    {
      what: 'a volume of the operator',
      body: pool('x', { podTemplate: { spec: { volumes: [{ name: 'token', emptyDir: {} }] } } }),
      field: 'spec.podTemplate.spec.volumes[0].name',
    },
    {
      what: 'a volume of nothing',
      body: pool('x', { podTemplate: { spec: { volumes: [{ name: 'a' }] } } }),
      field: 'spec.podTemplate.spec.volumes[0]',
      words: 'needs one of configMap, emptyDir',
    },
    {
      what: 'a Secret as a volume',
      body: pool('x', { podTemplate: { spec: { volumes: [{ name: 'a', secret: { secretName: 'b' } }] } } }),
      field: 'spec.podTemplate.spec.volumes[0]',
    },
    { what: 'the root as archive', body: pool('x', { archive: { hostPath: '/' } }), field: 'spec.archive.hostPath' },
    {
      what: 'an archive that climbs',
      body: pool('x', { archive: { hostPath: '/mnt/../etc' } }),
      field: 'spec.archive.hostPath',
      words: '..',
    },
    {
      what: 'a protection that ends at once',
      body: pool('x', { archive: { hostPath: '/mnt/archive', protectForSeconds: 60 } }),
      field: 'spec.archive.protectForSeconds',
    },
    {
      what: 'a protection in words',
      body: pool('x', { archive: { hostPath: '/mnt/archive', protectForSeconds: '90d' } }),
      field: 'spec.archive.protectForSeconds',
    },
    { what: 'another way to metrics', body: pool('x', { metrics: { mode: 'Basic' } }), field: 'spec.metrics.mode' },
    {
      what: 'state in the archive',
      body: pool('x', { stateHostPath: '/mnt/archive/state' }),
      field: 'spec.stateHostPath',
    },
    { what: 'the archive as state', body: pool('x', { stateHostPath: '/mnt/archive' }), field: 'spec.stateHostPath' },
    {
      what: 'a Secret of tokens that nobody uses',
      body: pool('x', { auth: { mode: 'None', tokensSecretRef: { name: 'a' } } }),
      field: 'spec.auth.tokensSecretRef',
    },
    {
      what: 'a proxy that is a name',
      body: pool('x', { trustedProxies: ['10.0.0.1', 'proxy.example'] }),
      field: 'spec.trustedProxies[1]',
      words: 'must be an address or a network',
    },
    {
      what: 'a proxy whose network is too long',
      body: pool('x', { trustedProxies: ['10.0.0.0/33'] }),
      field: 'spec.trustedProxies[0]',
    },
    { what: 'an audience of nobody', body: pool('x', { auth: { audiences: [''] } }), field: 'spec.auth.audiences[0]' },
    {
      what: 'a host with a port',
      body: pool('x', { auth: { mode: 'None', allowedHosts: ['nvr.example:9997'] } }),
      field: 'spec.auth.allowedHosts[0]',
    },
    {
      what: 'certificates of the CA and a Secret at once',
      body: pool('x', { tls: { mode: 'Auto', secretRef: { name: 'tls' } } }),
      field: 'spec.tls.secretRef',
    },
    {
      what: 'TLS by a Secret without one',
      body: pool('x', { tls: {} }),
      field: 'spec.tls.secretRef',
    },
    {
      what: 'names for a certificate of a Secret',
      body: pool('x', { tls: { secretRef: { name: 'tls' }, names: ['nvr.example'] } }),
      field: 'spec.tls.names',
    },
    {
      what: 'an address by template without one',
      body: pool('x', { advertise: { type: 'Template' } }),
      field: 'spec.advertise.template',
    },
    { what: 'every page', body: pool('x', { origins: ['*'] }), field: 'spec.origins[0]' },
    {
      what: 'a page and not its origin',
      body: pool('x', { origins: ['https://nvr.example/'] }),
      field: 'spec.origins[0]',
    },
    {
      what: 'a template that is not used',
      body: pool('x', { advertise: { template: 'https://{node}.example.com' } }),
      field: 'spec.advertise.template',
    },
    {
      what: 'a template that is the same for all nodes',
      body: pool('x', { advertise: { type: 'Template', template: 'https://nvr.example.com' } }),
      field: 'spec.advertise.template',
      words: '{node}',
    },
    {
      what: 'a time to failover that one lost renewal exceeds',
      body: pool('x', { failover: { unavailableAfterSeconds: 15, renewSeconds: 6 } }),
      field: 'spec.failover.unavailableAfterSeconds',
    },
    {
      what: 'no moves',
      body: pool('x', { failover: { maxConcurrentMoves: 0 } }),
      field: 'spec.failover.maxConcurrentMoves',
    },
    {
      what: 'more cameras than a report holds',
      body: pool('x', { limits: { maxCamerasPerNode: 501 } }),
      field: 'spec.limits.maxCamerasPerNode',
    },
    { what: 'another membership', body: pool('x', { membership: { mode: 'auto' } }), field: 'spec.membership.mode' },
    { what: 'another update', body: pool('x', { update: { type: 'Recreate' } }), field: 'spec.update.type' },
    {
      what: 'a memory in words',
      body: pool('x', { resources: { limits: { memory: 'lots' } } }),
      field: 'spec.resources.limits[memory]',
      words: 'must be a quantity such as 500m or 1Gi',
    },
    {
      what: 'a pool whose Service could have no name',
      body: pool('a.b'),
      field: 'metadata.name',
      words: 'it becomes part of the name of a Service',
    },
    { what: 'a long name of a pool', body: pool('x'.repeat(41)), field: 'metadata.name' },
    {
      what: 'the same Secret twice',
      body: pool('x', { imagePullSecretRefs: [{ name: 'a' }, { name: 'a' }] }),
      field: 'spec.imagePullSecretRefs[1]',
    },
    { what: 'too many tolerations', body: pool('x', { tolerations: many(33, () => ({})) }), field: 'spec.tolerations' },
    { what: 'a node of another name', body: node('x', { nodeName: 'y' }), field: 'spec.nodeName' },
    { what: 'a node of no pool', body: object('RecorderNode', 'x', { nodeName: 'x' }), field: 'spec.poolRef' },
    { what: 'another role', body: node('x', { role: 'Leader' }), field: 'spec.role' },
    {
      what: 'no HTTP status',
      body: node('x', { responses: [{ id: 'a', code: 700 }] }),
      field: 'spec.responses[0].code',
    },
    {
      what: 'two answers to one request',
      body: node('x', {
        responses: [
          { id: 'a', code: 200 },
          { id: 'a', code: 409 },
        ],
      }),
      field: 'spec.responses[1]',
    },
    {
      what: 'too many answers',
      body: node('x', { responses: many(33, (i) => ({ id: `r${i}`, code: 200 })) }),
      field: 'spec.responses',
    },
    {
      what: 'cameras by name and by label',
      body: object('RecordingObjective', 'x', { targetPercent: 99, cameras: ['gate'], cameraSelector: { area: 'a' } }),
      field: 'spec.cameraSelector',
      words: 'together with cameras',
    },
    {
      what: 'a target of more than everything',
      body: object('RecordingObjective', 'x', { targetPercent: 100.1 }),
      field: 'spec.targetPercent',
    },
    {
      what: 'a cause that there is not',
      body: object('RecordingObjective', 'x', { targetPercent: 99, excused: ['Bored'] }),
      field: 'spec.excused[0]',
    },
  ];

  for (const { what, body, field, words } of refused) {
    test(`${body['kind'] as string}: ${what} is refused, and ${field} named`, () =>
      assertRefused(create(body, '?dryRun=All'), field, words));
  }

  test('a wrong address has one message, and addresses of every kind are taken', async () => {
    const causes = async (source: string): Promise<number> =>
      create(camera('x', { source }), '?dryRun=All').then(
        () => 0,
        (err: Error) => err.message.split('spec.source: ').length - 1,
      );
    const wrong = ['x', 'rtsp://', 'rtsp://a b/', 'rtsp://a:b/', 'rtsp://fd00::5', 'rtsp://a:70000', 'rtsp://u@a/'];
    for (const source of wrong) assert.equal(await causes(source), 1, source);
    for (const source of [
      'rtsp://gate/1',
      'rtsp://gate:/1',
      'rtsp://gate.example:554?a=b:c:d',
      'rtsp://10.0.0.9:65535/x@y:z:1',
      'rtsps://[fd00::5]',
      'rtsp://[fe80::5%25eth0]:8554/1',
      'rtsp+ws://10.0.0.9/rtsp-over-ws#/stream1',
      'rtsp://camera_1/',
    ]) {
      assert.equal(await causes(source), 0, source);
    }
  });

  const TIME = '2026-01-01T12:00:00Z';
  const request = (parts: Json): Json => ({ requests: [{ id: 'r', time: TIME, ...parts }] });
  const condition = { type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: TIME };

  const refusedStatus: { readonly what: string; readonly status: Json; readonly field: string }[] = [
    {
      what: 'a request to suspend no camera',
      status: request({ kind: 'Suspend', suspend: true }),
      field: 'status.requests[0].camera',
    },
    {
      what: 'a request to suspend or not',
      status: request({ kind: 'Suspend', camera: 'a' }),
      field: 'status.requests[0].suspend',
    },
    { what: 'a learner without a name', status: request({ kind: 'AddLearner' }), field: 'status.requests[0].nodeID' },
    {
      what: 'a name where none belongs',
      status: request({ kind: 'Leave', nodeID: 'a' }),
      field: 'status.requests[0].nodeID',
    },
    {
      what: 'a membership without members',
      status: request({ kind: 'ChangeMembership' }),
      field: 'status.requests[0].voters',
    },
    {
      what: 'a voter twice',
      status: request({ kind: 'ChangeMembership', voters: ['a', 'a'] }),
      field: 'status.requests[0].voters[1]',
    },
    { what: 'another request', status: request({ kind: 'Reboot' }), field: 'status.requests[0].kind' },
    {
      what: 'more requests than are answered',
      status: { requests: many(33, (i) => ({ id: `r${i}`, kind: 'Leave', time: TIME })) },
      field: 'status.requests',
    },
    {
      what: 'epoch zero',
      status: { cameras: [{ name: 'a', epoch: 0, state: 'Recording' }] },
      field: 'status.cameras[0].epoch',
    },
    {
      what: 'another state',
      status: { cameras: [{ name: 'a', epoch: 1, state: 'Fine' }] },
      field: 'status.cameras[0].state',
    },
    {
      what: 'a camera twice',
      status: { cameras: many(2, () => ({ name: 'a', epoch: 1, state: 'Recording' })) },
      field: 'status.cameras[1]',
    },
    {
      what: 'more cameras than a node may have',
      status: { cameras: many(501, (i) => ({ name: `c${i}`, epoch: 1, state: 'Stopped' })) },
      field: 'status.cameras',
    },
    {
      what: 'a condition without a reason',
      status: { conditions: [{ ...condition, reason: '' }] },
      field: 'status.conditions[0].reason',
    },
    {
      what: 'a reason in words',
      status: { conditions: [{ ...condition, reason: 'it failed' }] },
      field: 'status.conditions[0].reason',
    },
    {
      what: 'a condition that is maybe so',
      status: { conditions: [{ ...condition, status: 'Maybe' }] },
      field: 'status.conditions[0].status',
    },
    { what: 'a condition twice', status: { conditions: [condition, condition] }, field: 'status.conditions[1]' },
    {
      what: 'a time that is none',
      status: { conditions: [{ ...condition, lastTransitionTime: 'noon' }] },
      field: 'status.conditions[0].lastTransitionTime',
    },
  ];

  test('RecorderNode: what its recorder may not report is refused, and the field named', async (t) => {
    const read = (await create(node('reporter'))) as KubeObject & Json;
    for (const { what, status, field } of refusedStatus) {
      await t.test(what, () => assertRefused(replaceStatus(read, status), field));
    }
    const kinds = [
      { kind: 'Suspend', camera: 'a', suspend: false },
      { kind: 'AddLearner', nodeID: 'b' },
      { kind: 'ChangeMembership', voters: ['a', 'b'] },
      { kind: 'RemoveNode', nodeID: 'b', force: true },
      { kind: 'Leave' },
    ];
    await replaceStatus(read, {
      requests: kinds.map((parts, i) => ({ id: `r${i}`, time: TIME, ...parts })),
      cameras: many(500, (i) => ({ name: `c${i}`, epoch: 1, state: 'Recording', lastWrittenTime: TIME })),
      conditions: [condition],
    });
  });

  test('RecorderPool: a Secret of tokens counts with mode Token, which needs none, and beside the API server', async () => {
    await create(pool('tokens', { auth: { mode: 'Token' } }), '?dryRun=All');
    for (const mode of ['Token', 'Kubernetes']) {
      const body = pool('tokens', { auth: { mode, tokensSecretRef: { name: 'a' } } });
      await create(body, '?dryRun=All');
    }
  });

  test('RecorderPool: tokens are meant for us unless it says otherwise, also for the API server itself', async () => {
    const audiences = async (auth: Json | undefined): Promise<unknown> => {
      const made = await create(pool('audience', auth && { auth }), '?dryRun=All');
      return (made as KubeObject & { spec: { auth: Json } }).spec.auth['audiences'];
    };
    assert.deepEqual(await audiences(undefined), ['kube-nvr.dev']);
    assert.deepEqual(await audiences({ mode: 'Kubernetes', audiences: [] }), []);
    await create(pool('proxies', { trustedProxies: ['10.0.0.1', '10.0.0.0/8', 'fd00::/8', '::1'] }), '?dryRun=All');
  });

  test('RecorderPool: where footage and state lie cannot be changed', async () => {
    const read = (await create(pool('fixed'))) as KubeObject & { spec: Json };
    const replace = (spec: Json) =>
      api.replace(`${collection('recorderpools')}/fixed`, { ...read, spec: { ...read.spec, ...spec } });
    await assertRefused(replace({ archive: { hostPath: '/mnt/other' } }), 'spec.archive.hostPath', 'immutable');
    await assertRefused(replace({ stateHostPath: '/var/other' }), 'spec.stateHostPath', 'immutable');
    await replace({ archive: { hostPath: '/mnt/archive', retention: { maxSize: '1Ti' } } });
  });

  test('RecorderNode: its node cannot be changed', async () => {
    const read = (await create(node('here'))) as KubeObject & { spec: Json };
    const body = { ...read, spec: { ...read.spec, nodeName: 'there' } };
    await assertRefused(api.replace(`${collection('recordernodes')}/here`, body), 'spec.nodeName');
  });

  const assignment = (node: string | undefined, epoch: number, more: Json = {}): Json => ({
    assignment: { ...(node !== undefined && { node }), epoch, reason: 'Scheduled', time: TIME, ...more },
  });

  test('Camera: an epoch never gets less, and a camera goes to another node only with a greater one', async () => {
    let read = (await create(camera('moved'))) as KubeObject & Json;
    const set = async (status: Json): Promise<void> => {
      read = await replaceStatus(read, status);
    };
    const EPOCH = 'status.assignment.epoch';
    await assertRefused(set(assignment('a', 0)), EPOCH);
    await set(assignment('a', 5));
    await assertRefused(set(assignment('a', 4)), EPOCH, 'must not become less');
    await assertRefused(set(assignment('b', 5)), EPOCH, 'must grow');
    await assertRefused(set({}), EPOCH, 'must not become less');
    await set(assignment('a', 5, { reason: 'Drain', handover: 'Complete' }));
    await set(assignment(undefined, 5, { previousNode: 'a', reason: 'Suspended' }));
    await assertRefused(set(assignment('b', 5)), EPOCH, 'must grow');
    await assertRefused(set(assignment('a', 5)), EPOCH, 'must grow');
    await set(assignment('b', 6, { previousNode: 'a' }));
    const clear = api.patch(`${collection('cameras')}/moved/status`, 'merge', { status: null });
    await assertRefused(clear, EPOCH, 'must not become less');
  });

  test('Camera: of two that write an assignment at once, one is told that it came too late', async () => {
    const read = (await create(camera('raced'))) as KubeObject & Json;
    await replaceStatus(read, assignment('a', 1));
    await assert.rejects(replaceStatus(read, assignment('b', 2)), { status: 409, reason: 'Conflict' });
  });

  test('a user who writes the spec does not write the status, and vice versa', async () => {
    const created = (await create({ ...camera('split'), status: assignment('a', 1) })) as KubeObject & Json;
    assert.equal(created['status'], undefined);
    const read = await replaceStatus(created, assignment('a', 3));
    const path = `${collection('cameras')}/split`;
    const spec = { ...(read['spec'] as Json), ptz: true };
    const afterSpec = await api.replace<KubeObject & Json>(path, {
      ...read,
      spec,
      status: assignment('b', 9),
    });
    assert.deepEqual([(afterSpec['spec'] as Json)['ptz'], afterSpec['status']], [true, assignment('a', 3)]);
    const afterStatus = await api.replace<KubeObject & Json>(`${path}/status`, {
      ...afterSpec,
      spec: { ...spec, ptz: false },
      status: assignment('a', 4),
    });
    assert.deepEqual([(afterStatus['spec'] as Json)['ptz'], afterStatus['status']], [true, assignment('a', 4)]);
    assert.equal(afterStatus.metadata.generation, afterSpec.metadata.generation, 'a status is no new generation');
  });

  test('conditions of two writers merge by type', async () => {
    await create(camera('merged'));
    const path = `${collection('cameras')}/merged/status`;
    for (const [manager, type] of [
      ['one', 'Ready'],
      ['two', 'Assigned'],
      ['one', 'Ready'],
    ]) {
      const body = {
        apiVersion: API_VERSION,
        kind: 'Camera',
        metadata: { name: 'merged' },
        status: { conditions: [{ ...condition, type }] },
      };
      await api.patch(`${path}?fieldManager=${manager}`, 'apply', body);
    }
    const { status } = await api.get<KubeObject & { status: { conditions: { type: string }[] } }>(path);
    assert.deepEqual(
      status.conditions.map(({ type }) => type),
      ['Ready', 'Assigned'],
    );
  });

  test('a recorder selects its own cameras: those it has, and those it gives away', async () => {
    const put = async (name: string, status: Json) =>
      replaceStatus((await create(camera(name))) as KubeObject & Json, status);
    await put('mine', assignment('node-7', 1));
    await put('given', assignment('node-8', 2, { previousNode: 'node-7', handover: 'Pending' }));
    await put('theirs', assignment('node-9', 1));
    const names = async (selector: string): Promise<string[]> =>
      (await api.list(`${collection('cameras')}?fieldSelector=${selector}`)).map(({ metadata }) => metadata.name);
    assert.deepEqual(await names('status.assignment.node%3Dnode-7'), ['mine']);
    assert.deepEqual(await names('status.assignment.previousNode%3Dnode-7'), ['given']);
  });
}
