import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { certificatesIn } from '../../base/authorities.ts';
import { VirtualClock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import { KubernetesClient } from '../../base/kubernetes/client.ts';
import { newKey, newRequest } from '../../base/x509.ts';
import { API_VERSION } from '../../crds/names.ts';
import { StoreConnection } from '../../store/connection.ts';
import { FakeEtcd, TestSeal } from '../../store/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { AuthorityRotation, type AuthorityStep } from './authority-rotation.ts';
import type { OwnPair } from './authority-copies.ts';
import { foundCluster } from './found-cluster.ts';
import { IssueError, Issuer } from './issuer.ts';
import { RotationError } from './key-rotation.ts';
import { nodeFiles, writeMember } from './node-files.ts';
import { Renewal } from './renewal.ts';
import { nodesPath } from './secrets.ts';

const ABOUT = { namespace: 'default', pool: 'default' };
const NAMES = ['rack-1', 'rack-2', 'rack-3'];

interface Server {
  readonly nodeId: string;
  readonly issuer: Issuer;
  readonly rotation: AuthorityRotation;
  readonly current: { certificate: string; authorities: string };
  /** Its etcd: the CAs that it trusts, and whether it is being started. */
  readonly etcd: { trusted: string; isStarting: boolean };
  isAway: boolean;
}

/** Three servers of a cluster, as far as certificates are concerned, on the store over etcd in memory. */
async function stage(t: TestContext) {
  const clock = new VirtualClock();
  clock.stepWall(Date.now() - clock.wallMs());
  const etcd = new FakeEtcd() as unknown as EtcdClient;
  const connection = new StoreConnection({ etcd, seal: new TestSeal(), clock });
  const api = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: 1_000 });
  const files = nodeFiles(workspace(t), 'rack-1');
  const founded = await foundCluster({ ...ABOUT, nodeId: 'rack-1', names: [], nowMs: clock.wallMs() });
  await writeMember(files, founded);
  const issuerOf = (nodeId: string, own: () => OwnPair): Issuer =>
    new Issuer({ ...ABOUT, nodeId, own, api, files, clock });
  const founder = issuerOf('rack-1', () => founded);
  await founder.adopt();
  const servers: Server[] = [];
  for (const nodeId of NAMES) {
    const spec = { nodeName: nodeId, poolRef: { name: 'default' }, role: 'Voter' };
    await api.call('POST', nodesPath('default'), {
      apiVersion: API_VERSION,
      kind: 'RecorderNode',
      metadata: { name: nodeId },
      spec,
    });
    const key = nodeId === 'rack-1' ? founded.key : newKey();
    const request = await newRequest(key);
    const current = { ...(await founder.issue({ nodeId, request, names: [] })) };
    const issuer = issuerOf(nodeId, () => ({ certificate: current.certificate, key }));
    const own = { trusted: current.authorities, isStarting: false };
    const renewal = new Renewal({
      issuer,
      issueElsewhere: () => Promise.reject(new Error('it has a vote')),
      nodeId,
      current: () => current,
      request: async () => request,
      names: () => [],
      take: async (issued) => void Object.assign(current, issued),
      clock,
    });
    const rotation = new AuthorityRotation({
      ...ABOUT,
      api,
      nodeId,
      issuer,
      renewal,
      current: () => current,
      etcd: { trusted: () => own.trusted, startAgain: () => void (own.isStarting = true) },
      waitMs: 5_000,
      clock,
    });
    servers.push({ nodeId, issuer, rotation, current, etcd: own, isAway: false });
  }
  // Each has said its certificate, and has a copy of the key then.
  for (let look = 0; look < 2; look++) for (const { rotation } of servers) await rotation.follow();
  const steps: AuthorityStep[] = [];

  /** Replaces the CA by the second server, while all look again and again. `looked` is called each time. */
  async function replace(force: boolean, looked: () => void = () => {}): Promise<readonly string[]> {
    const over = new AbortController();
    const [, second] = servers as [Server, Server, Server];
    const done = second.rotation.replace({ force, began: (step) => steps.push(step) }).finally(() => over.abort());
    void done.catch(() => {});
    while (!over.signal.aborted) {
      for (const { rotation, etcd: own, current, isAway } of servers) {
        if (isAway) continue;
        if (own.isStarting) Object.assign(own, { trusted: current.authorities, isStarting: false });
        else await rotation.follow();
        looked();
      }
      clock.advance(250);
      await setImmediate();
    }
    return done;
  }
  return { servers: servers as [Server, Server, Server], replace, steps, old: founded.certificate };
}

const isTrusted = (certificate: string, bundle: string): boolean =>
  certificatesIn(bundle).some((one) => new X509Certificate(certificate).verify(new X509Certificate(one).publicKey));

test('while the CA is replaced all members trust each other, and one etcd at most is started', async (t) => {
  const { servers, replace, steps, old } = await stage(t);
  let starts = 0;
  const away = await replace(false, () => {
    for (const { current } of servers) {
      for (const { nodeId, current: by, etcd } of servers) {
        assert.ok(isTrusted(current.certificate, by.authorities), nodeId);
        assert.ok(isTrusted(current.certificate, etcd.trusted), `etcd of ${nodeId}`);
      }
    }
    const starting = servers.filter(({ etcd }) => etcd.isStarting);
    assert.ok(starting.length <= 1, 'the others are a majority');
    starts += starting.length;
  });
  assert.deepEqual([away, steps], [[], ['trust', 'certificate', 'drop']]);
  assert.ok(starts >= 2 * servers.length);
  for (const { current, etcd } of servers) {
    assert.equal(certificatesIn(current.authorities).length, 1);
    assert.equal(etcd.trusted, current.authorities);
    assert.ok(!isTrusted(old, etcd.trusted), 'the old CA opens nothing');
  }
});

test('while a member is away the CA is replaced by force only, and the member is named', async (t) => {
  const { servers, replace, steps } = await stage(t);
  const [first, , third] = servers;
  third.isAway = true;
  const before = third.current.certificate;
  await assert.rejects(
    replace(false),
    (err) => err instanceof RotationError && /because rack-3 did not/.test(err.message),
  );
  assert.deepEqual(steps, ['trust']);
  assert.ok(isTrusted(before, first.etcd.trusted), 'it is a member as before');
  assert.deepEqual(await replace(true), ['rack-3']);
  assert.ok(!isTrusted(before, first.etcd.trusted));
});

test('a replacement that ended in the middle is completed by the next one', async (t) => {
  const { servers, replace, old } = await stage(t);
  const [first, , third] = servers;
  third.isAway = true;
  await assert.rejects(replace(false), RotationError);
  third.isAway = false;
  assert.deepEqual(await replace(false), []);
  for (const { current } of servers) assert.equal(current.authorities, first.current.authorities);
  assert.equal(certificatesIn(first.current.authorities).length, 1);
  assert.ok(!isTrusted(old, first.current.authorities));
});

test('of two replacements at the same time one has to be repeated, and the cluster is never without a CA', async (t) => {
  const { servers } = await stage(t);
  const [{ issuer }] = servers;
  const [first, second] = [await issuer.publishAnother(), await issuer.publishAnother()];
  await issuer.signWith(first);
  await issuer.trustOnly(first);
  for (const late of [issuer.signWith(second), issuer.trustOnly(second)]) {
    await assert.rejects(late, (err) => err instanceof IssueError && /meanwhile: repeat it/.test(err.message));
  }
  assert.equal(certificatesIn((await issuer.trust()).bundle).length, 1);
});
