import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { authoritiesData, authoritiesIn, certificatesIn, type KeptAuthority } from '../../base/authorities.ts';
import { VirtualClock } from '../../base/clock.ts';
import type { EtcdClient } from '../../base/etcd/client.ts';
import { KubernetesClient, mergePatch } from '../../base/kubernetes/client.ts';
import { DAY_MS } from '../../base/units.ts';
import { newKey, newRequest, selfSigned } from '../../base/x509.ts';
import { API_VERSION, AUTHORITIES_SECRET, nodeIdentity } from '../../crds/names.ts';
import { StoreConnection } from '../../store/connection.ts';
import { FakeEtcd, TestSeal } from '../../store/test-support.ts';
import { workspace } from '../../test/support/workspace.ts';
import { keyIn, type OwnPair, type StoredAuthority } from './authority-copies.ts';
import { foundCluster } from './found-cluster.ts';
import { CERTIFICATE_ANNOTATION, Issuer, NoKeyError } from './issuer.ts';
import { nodeFiles, writeMember } from './node-files.ts';
import { nodesPath, secretsPath } from './secrets.ts';

const ABOUT = { namespace: 'default', pool: 'default' };
const SECRET = `${secretsPath('default')}/${AUTHORITIES_SECRET}`;

interface Server {
  readonly nodeId: string;
  readonly own: OwnPair;
  readonly issuer: Issuer;
}

/** A cluster of rack-1, as it is after `recorder cluster init`; more servers join it. */
async function stage(t: TestContext) {
  const clock = new VirtualClock();
  clock.stepWall(Date.now() - clock.wallMs());
  const etcd = new FakeEtcd() as unknown as EtcdClient;
  const connection = new StoreConnection({ etcd, seal: new TestSeal(), clock });
  const store = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: 1_000 });
  const files = nodeFiles(workspace(t), 'rack-1');
  const founded = await foundCluster({ ...ABOUT, nodeId: 'rack-1', names: [], nowMs: clock.wallMs() });
  await writeMember(files, founded);
  const serverOf = (nodeId: string, own: OwnPair): Server => {
    const issuer = new Issuer({ ...ABOUT, nodeId, own: () => own, api: store, files, clock });
    return { nodeId, own, issuer };
  };
  const first = serverOf('rack-1', founded);
  await first.issuer.adopt();

  const path = (nodeId: string): string => `${nodesPath('default')}/${nodeId}`;
  const setRole = (nodeId: string, role: string) => mergePatch(store, path(nodeId), { spec: { role } });
  const say = ({ nodeId, own }: Server) =>
    mergePatch(store, path(nodeId), { metadata: { annotations: { [CERTIFICATE_ANNOTATION]: own.certificate } } });
  const add = async (nodeId: string, role: string): Promise<unknown> =>
    store.call('POST', nodesPath('default'), {
      apiVersion: API_VERSION,
      kind: 'RecorderNode',
      metadata: { name: nodeId },
      spec: { nodeName: nodeId, poolRef: { name: 'default' }, role },
    });
  const certified = async (nodeId: string): Promise<Server> => {
    const key = newKey();
    const request = await newRequest(key);
    return serverOf(nodeId, { ...(await first.issuer.issue({ nodeId, request, names: [] })), key });
  };
  /** A server that has joined, and says its certificate. */
  async function joined(nodeId: string, role: string): Promise<Server> {
    const server = await certified(nodeId);
    await add(nodeId, role);
    await say(server);
    return server;
  }
  const stored = async (): Promise<readonly StoredAuthority[]> =>
    [...authoritiesIn<StoredAuthority>((await store.get(SECRET))['data']).values()].flat();
  const keep = async (all: readonly StoredAuthority[] | readonly KeptAuthority[]): Promise<void> => {
    const data = authoritiesData(new Map([['default_default', all]]));
    await mergePatch(store, SECRET, { data });
  };
  /** Whether this server opens the key of each CA of the store. */
  const opens = async ({ own }: Server): Promise<boolean> =>
    (await stored()).every((one) => keyIn(one, own) !== undefined);
  /** For whom there are copies. */
  const having = async (): Promise<string> =>
    (await stored()).map(({ copies }) => (copies ?? []).map(({ nodeId }) => nodeId).join(' ')).join(', ');
  await add('rack-1', 'Voter');
  await say(first);
  const made = founded.authority as KeptAuthority;
  return { clock, store, first, made, joined, certified, setRole, say, stored, keep, opens, having };
}

test('the store has the key of the CA for its founder alone, until others have a vote', async (t) => {
  const { first, made, joined, stored, opens, having } = await stage(t);
  assert.deepEqual([await having(), await opens(first)], ['rack-1', true]);
  assert.ok(!JSON.stringify(await stored()).includes(made.key));
  const learner = await joined('rack-2', 'Learner');
  await first.issuer.keepCopies();
  assert.deepEqual([await having(), await opens(learner)], ['rack-1', false]);
  const request = { nodeId: 'rack-2', request: await newRequest(learner.own.key), names: [] };
  await assert.rejects(learner.issuer.issue(request), NoKeyError);
  await assert.rejects(learner.issuer.publishAnother(), /only a server with a vote .* one of rack-1/);
  assert.equal((await learner.issuer.trust()).bundle, made.certificate, 'it trusts what all trust');
});

test('a server that gets a vote gets its copy from one that has it, and signs; without the vote the copy goes', async (t) => {
  const { first, joined, setRole, opens, having } = await stage(t);
  const second = await joined('rack-2', 'Learner');
  const third = await joined('rack-3', 'Voter');
  await setRole('rack-2', 'Voter');
  await second.issuer.keepCopies();
  assert.equal(await having(), 'rack-1', 'it cannot give itself one');
  await first.issuer.keepCopies();
  assert.deepEqual([await having(), await opens(second), await opens(third)], ['rack-1 rack-2 rack-3', true, true]);
  await second.issuer.issue({ nodeId: 'rack-2', request: await newRequest(second.own.key), names: [] });
  await setRole('rack-1', 'Learner');
  await setRole('rack-3', 'Removed');
  await second.issuer.keepCopies();
  assert.deepEqual(
    [await having(), await opens(first), await opens(second), await opens(third)],
    ['rack-2', false, true, false],
  );
});

test('what does not change is not written again', async (t) => {
  const { store, first, joined } = await stage(t);
  const second = await joined('rack-2', 'Voter');
  await first.issuer.keepCopies();
  const version = async (): Promise<string> => (await store.get(SECRET)).metadata.resourceVersion;
  const before = await version();
  for (const { issuer } of [first, second]) await issuer.keepCopies();
  assert.equal(await version(), before);
});

test('a member that writes a certificate of its own at a server with a vote gets no copy', async (t) => {
  const { clock, first, joined, say, opens, having } = await stage(t);
  const voter = await joined('rack-2', 'Voter');
  await first.issuer.keepCopies();
  const thief = await joined('rack-3', 'Learner');
  const times = { fromMs: clock.wallMs() - DAY_MS, toMs: clock.wallMs() + DAY_MS };
  const names = ['rack-2', nodeIdentity('default', 'default', 'rack-2')];
  const forged = await selfSigned(thief.own.key, { commonName: 'rack-2', names, ...times });
  for (const certificate of [forged, thief.own.certificate, 'none', first.own.certificate]) {
    await say({ ...voter, own: { ...thief.own, certificate } });
    await first.issuer.keepCopies();
    assert.deepEqual([await having(), await opens(thief), await opens(voter)], ['rack-1 rack-2', false, true]);
  }
});

test('a server that joined again with another key gets a copy for that one', async (t) => {
  const { first, joined, certified, say, opens } = await stage(t);
  const before = await joined('rack-2', 'Voter');
  await first.issuer.keepCopies();
  const now = await certified('rack-2');
  await say(now);
  await first.issuer.keepCopies();
  assert.deepEqual([await opens(before), await opens(now)], [false, true]);
});

test('a key that is stored as before for all members is taken over when all servers with a vote can open a copy', async (t) => {
  const { first, made, joined, keep, say, stored, opens, having, certified, setRole } = await stage(t);
  await keep([made]);
  const second = await certified('rack-2');
  const learner = await joined('rack-3', 'Learner');
  await joined('rack-2', 'Voter');
  // Of an older version: it says no certificate.
  await say({ ...second, own: { ...second.own, certificate: '' } });
  await first.issuer.keepCopies();
  assert.equal((await stored())[0]?.key, made.key);
  await first.issuer.issue({ nodeId: 'rack-1', request: await newRequest(first.own.key), names: [] });
  await say(second);
  await first.issuer.keepCopies();
  assert.deepEqual(
    [await having(), await opens(first), await opens(second), await opens(learner)],
    ['rack-1 rack-2', true, true, false],
  );
  assert.ok(!JSON.stringify(await stored()).includes(made.key));
  await setRole('rack-1', 'Removed');
  await second.issuer.issue({ nodeId: 'rack-2', request: await newRequest(second.own.key), names: [] });
});

test('a CA that replaces another is sealed for servers with a vote, and for no other one', async (t) => {
  const { first, joined, stored, opens, having } = await stage(t);
  const [second, learner] = [await joined('rack-2', 'Voter'), await joined('rack-3', 'Learner')];
  await first.issuer.keepCopies();
  const id = await second.issuer.publishAnother();
  await second.issuer.signWith(id);
  await second.issuer.trustOnly(id);
  assert.equal((await stored()).length, 1);
  assert.deepEqual(
    [await having(), await opens(first), await opens(second), await opens(learner)],
    ['rack-1 rack-2', true, true, false],
  );
});

test('after the last server with the key was lost, one that gets the vote makes another CA, which signs at once', async (t) => {
  const { made, joined, setRole, opens, stored } = await stage(t);
  const survivor = await joined('rack-2', 'Learner');
  await setRole('rack-2', 'Voter');
  await survivor.issuer.keepCopies();
  assert.equal((await stored()).length, 1, 'rack-1 has it, and may return');
  await setRole('rack-1', 'Removed');
  for (let look = 0; look < 2; look++) await survivor.issuer.keepCopies();
  const { signer, bundle } = await survivor.issuer.trust();
  assert.notEqual(signer, made.certificate);
  assert.equal(certificatesIn(bundle).length, 2, 'members with certificates of the old one stay members');
  assert.ok(!(await opens(survivor)), 'the old key is lost');
  await survivor.issuer.issue({ nodeId: 'rack-2', request: await newRequest(survivor.own.key), names: [] });
});

test('a copy opens for its CA alone', async (t) => {
  const { first, stored } = await stage(t);
  await first.issuer.publishAnother();
  const [one, other] = (await stored()) as [StoredAuthority, StoredAuthority];
  assert.notEqual(keyIn(one, first.own), undefined);
  assert.equal(keyIn({ ...one, copies: other.copies ?? [] }, first.own), undefined);
});
