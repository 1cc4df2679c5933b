import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import { reportsOf, type Reports } from '../observe/views.ts';
import type { LoginSecret } from './camera-logins.ts';
import { statusOfCamera } from './camera-status.ts';

type Json = Readonly<Record<string, unknown>>;
type Shown = { readonly type: string; readonly status: string; readonly reason: string; readonly message: string };

const meta = (name: string) => ({ name, namespace: 'default', uid: `uid-${name}`, generation: 1 });
const camera = (assignment: Json | undefined, spec: Json = {}): Camera =>
  parseCamera({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: meta('gate'),
    spec: { source: 'rtsp://10.0.0.9/1', ...spec },
    status: { assignment },
  });
/** A node that reports the camera in the given state, or does not report it. */
const node = (name: string, state?: string, epoch = 2, reason?: string): RecorderNode =>
  parseRecorderNode({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: meta(name),
    spec: { nodeName: name, poolRef: { name: 'default' } },
    status: state === undefined ? {} : { cameras: [{ name: 'gate', epoch, state, ...(reason && { reason }) }] },
  });
const at = (name: string, more: Json = {}) => ({
  node: name,
  epoch: 2,
  handover: 'Complete',
  reason: 'Scheduled',
  time: '2026-11-21T10:00:00Z',
  ...more,
});
const ASSIGNED = { type: 'Assigned', status: 'True', reason: 'Assigned', message: '' } as const;

const byName = (nodes: readonly RecorderNode[]): ReadonlyMap<string, Reports> =>
  new Map(nodes.map((one) => [one.metadata.name, reportsOf(one)]));

/** The conditions `Recording` and `Ready` as kubectl shows them. */
function shown(of: Camera, nodes: readonly RecorderNode[], dead: readonly string[] = []): readonly string[] {
  const { status } = statusOfCamera({
    camera: of,
    assigned: ASSIGNED,
    labels: new Map(),
    nodes: byName(nodes),
    hasNode: () => true,
    isLive: (name) => !dead.includes(name),
    hasPool: true,
    secret: undefined,
    nowMs: 0,
  });
  const conditions = status['conditions'] as readonly Shown[];
  return ['Recording', 'Ready'].map((type) => {
    const found = conditions.find((condition) => condition.type === type);
    return `${found?.status} ${found?.reason}`;
  });
}

suite('what a Camera shows', () => {
  test('it is recorded, not yet recorded, or unknown because its node is silent', () => {
    assert.deepEqual(shown(camera(at('a')), [node('a', 'Recording')]), ['True Recording', 'True Recording']);
    assert.deepEqual(shown(camera(at('a')), [node('a', 'Connecting')]), ['False Connecting', 'False Connecting']);
    assert.deepEqual(shown(camera(at('a')), [node('a')]), ['False NotTakenUp', 'False NotTakenUp']);
    assert.deepEqual(shown(camera(at('a')), [node('a', 'Recording')], ['a']), [
      'Unknown NodeUnavailable',
      'Unknown NodeUnavailable',
    ]);
  });

  test('a planned move is no interruption: until the new node has a picture, the old one’s counts', () => {
    const moving = camera(at('b', { previousNode: 'a', handover: 'Pending' }), {
      credentialsSecretRef: { name: 'login' },
    });
    const old = node('a', 'Recording', 1);
    const good = ['True Recording', 'True Recording'];
    assert.deepEqual(shown(moving, [old, node('b')]), good);
    assert.deepEqual(shown(moving, [old, node('b', 'Failed', 2, 'NoCredentials')]), good);
    assert.deepEqual(shown(moving, [node('a'), node('b', 'Recording')]), good);
    assert.deepEqual(shown(moving, [old, node('b', 'Connecting')], ['a']), ['False Connecting', 'False Connecting']);
  });

  test('when the move is complete, the old node counts no more', () => {
    const moved = camera(at('b', { previousNode: 'a' }));
    assert.deepEqual(shown(moved, [node('a', 'Recording', 1), node('b')]), ['False NotTakenUp', 'False NotTakenUp']);
  });

  test('a Secret that does not say which cameras it is for: refused, or used as before, and said either way', () => {
    const credentials = (login: Json | undefined, secret: LoginSecret | undefined) => {
      const named = camera(at('a'), { credentialsSecretRef: { name: 'gate-login' } });
      const { status } = statusOfCamera({
        camera: { ...named, status: { ...named.status, ...(login && { login }) } } as Camera,
        assigned: ASSIGNED,
        labels: new Map(),
        nodes: byName([node('a', 'Recording')]),
        hasNode: () => true,
        isLive: () => true,
        hasPool: true,
        secret,
        nowMs: 0,
      });
      const found = (status['conditions'] as readonly Shown[]).find(({ type }) => type === 'CredentialsResolved');
      return `${found?.status} ${found?.reason}: ${found?.message}`;
    };
    const before = { secretName: 'gate-login', hosts: ['10.0.0.9'] };
    const missing = 'it has no annotation kube-nvr.dev/camera-hosts that says for which hosts';
    assert.equal(credentials(undefined, 'NamesHosts'), 'True Found: Secret gate-login');
    assert.equal(
      credentials(undefined, 'NamesNone'),
      `False NoHosts: Secret gate-login is not read as the login of a camera: ${missing}`,
    );
    assert.equal(
      credentials(before, 'NamesNone'),
      `True FoundWithoutHosts: Secret gate-login is used for 10.0.0.9 as before: ${missing}`,
    );
    assert.match(credentials({ ...before, secretName: 'yard-login' }, 'NamesNone'), /^False NoHosts/);
  });

  test('a Secret that is gone: a camera that is recorded continues and reports it, one that needs it reports that it is missing', () => {
    const named = camera(at('a'), { credentialsSecretRef: { name: 'gate-login' } });
    const shownFor = (report: RecorderNode): readonly string[] => {
      const facts = {
        labels: new Map(),
        hasNode: () => true,
        isLive: () => true,
        hasPool: true,
        secret: 'Missing',
        nowMs: 0,
      } as const;
      const { status } = statusOfCamera({ camera: named, assigned: ASSIGNED, nodes: byName([report]), ...facts });
      const conditions = status['conditions'] as readonly Shown[];
      return ['CredentialsResolved', 'Recording', 'Ready'].map((wanted) => {
        const found = conditions.find(({ type }) => type === wanted);
        return `${found?.status} ${found?.reason}`;
      });
    };
    assert.deepEqual(shownFor(node('a', 'Recording')), ['False SecretGone', 'True Recording', 'False SecretGone']);
    assert.deepEqual(shownFor(node('a', 'Failed', 2, 'NoCredentials')), [
      'False NoCredentials',
      'False NoCredentials',
      'False NoCredentials',
    ]);
  });

  test('footage is where it was recorded, also of a node that is away; a node that came back without its disk has none', () => {
    const times = { oldestTime: '2026-11-21T10:00:00Z', newestTime: '2026-11-21T11:00:00Z' };
    const gate = { ...camera(at('b')), status: { ...camera(at('b')).status, archives: [{ node: 'a', ...times }] } };
    const told = (status: object) => ({ ...node('a'), status }) as RecorderNode;
    const archives = (nodes: readonly RecorderNode[]): unknown =>
      statusOfCamera({
        camera: gate,
        assigned: ASSIGNED,
        labels: new Map(),
        nodes: byName(nodes),
        hasNode: () => true,
        isLive: () => true,
        hasPool: true,
        secret: undefined,
        nowMs: 0,
      }).status['archives'];
    assert.deepEqual(archives([]), [{ node: 'a', ...times }]);
    assert.deepEqual(archives([told({})]), [{ node: 'a', ...times }]);
    const held = { archiveID: 'one', archives: [{ camera: 'gate', ...times }] };
    assert.deepEqual(archives([told(held)]), [{ node: 'a', ...times }]);
    assert.deepEqual(archives([told({ archiveID: 'another' })]), []);
  });

  const archivesOf = (archives: readonly Json[], nodes: readonly RecorderNode[], hasNode: (name: string) => boolean) =>
    statusOfCamera({
      camera: { ...camera(at('b')), status: { ...camera(at('b')).status, archives } } as Camera,
      assigned: ASSIGNED,
      labels: new Map(),
      nodes: byName(nodes),
      hasNode,
      isLive: () => true,
      hasPool: true,
      secret: undefined,
      nowMs: 0,
    }).status['archives'] as readonly { readonly node: string }[];

  test('footage of a node that has left for good is listed no more', () => {
    const archives = [{ node: 'a' }, { node: 'b' }, { node: 'other-pool' }];
    assert.deepEqual(
      archivesOf(archives, [], (name) => name !== 'a').map((archive) => archive.node),
      ['b', 'other-pool'],
    );
  });

  test('of more nodes than a status may list, those with the newest footage are listed, and the one that records', () => {
    const old = Array.from({ length: 300 }, (_, i) => ({
      node: `n${i}`,
      newestTime: new Date(i * 86_400_000).toISOString(),
    }));
    const held = { archiveID: 'one', archives: [{ camera: 'gate', newestTime: '1970-01-01T00:00:00Z' }] };
    const listed = archivesOf(old, [{ ...node('b'), status: held }], () => true).map((archive) => archive.node);
    assert.equal(listed.length, 256);
    assert.deepEqual([listed.includes('b'), listed.includes('n299'), listed.includes('n44')], [true, true, false]);
  });
});

suite('what tools that wait for a Camera see (kstatus)', () => {
  const progress = (of: Camera, nodes: readonly RecorderNode[], assigned = true, hasPool = true) => {
    const { status } = statusOfCamera({
      camera: of,
      assigned: assigned ? ASSIGNED : { type: 'Assigned', status: 'False', reason: 'NoEligibleNode', message: 'none' },
      labels: new Map(),
      nodes: byName(nodes),
      hasNode: () => true,
      isLive: () => true,
      hasPool,
      secret: undefined,
      nowMs: 0,
    });
    const conditions = status['conditions'] as readonly Shown[];
    assert.equal(status['observedGeneration'], 1);
    return conditions
      .filter(({ type }) => ['Reconciling', 'Stalled'].includes(type))
      .map(({ type, status: is, reason }) => `${type} ${is} ${reason}`);
  };

  test('a camera that is recorded has neither condition, which counts as current', () => {
    assert.deepEqual(progress(camera(at('a')), [node('a', 'Recording')]), []);
  });

  test('a camera on its way to be recorded is reconciling', () => {
    assert.deepEqual(progress(camera(at('a')), [node('a')]), ['Reconciling True NotTakenUp']);
    const connecting = node('a', 'Connecting', 2, 'Connecting');
    assert.deepEqual(progress(camera(at('a')), [connecting]), ['Reconciling True Connecting']);
  });

  test('a camera that needs a person is stalled: without a node, without a pool, with a wrong login', () => {
    assert.deepEqual(progress(camera(undefined), [], false), ['Stalled True NoEligibleNode']);
    assert.deepEqual(progress(camera(undefined), [], true, false), ['Stalled True NoPool']);
    const refused = node('a', 'Failed', 2, 'RefusedLogin');
    assert.deepEqual(progress(camera(at('a')), [refused]), ['Stalled True RefusedLogin']);
  });

  test('a camera that cannot be reached, or that was stopped, is neither', () => {
    assert.deepEqual(progress(camera(at('a')), [node('a', 'Failed', 2, 'Unreachable')]), []);
    assert.deepEqual(progress(camera(at('a'), { suspend: true }), [node('a', 'Stopped')]), []);
  });
});
