// Three servers without Kubernetes, as their administrators make them: the commands of the recorder, and etcd on each.

import assert from 'node:assert/strict';
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';
import type { Camera } from '../../crds/camera.ts';
import { startCamera, type Camera as Source } from '../camera/camera.ts';
import { until as untilWithin } from '../support/until.ts';
import { PlainServers, plainServersMissing, type PlainServer } from './plain-servers.ts';

const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 120_000, 250);

interface Cluster {
  readonly leader: string | null;
  readonly voters: readonly string[];
  readonly nodes: readonly { readonly node_id: string; readonly role: string; readonly online: boolean }[];
}

suite('three servers with etcd', { skip: plainServersMissing() }, () => {
  let servers: PlainServers;
  let source: Source;
  let [first, second, third]: readonly PlainServer[] = [];

  const gate = async (by: PlainServer): Promise<Camera> =>
    JSON.parse(await by.run('get', 'camera', 'gate', '-o', 'json')) as Camera;

  /** The server that records the camera, by its status. */
  async function recorderBy(by: PlainServer): Promise<PlainServer | undefined> {
    const { status } = await gate(by);
    const isRecorded = status?.conditions?.some(({ type, status: is }) => type === 'Recording' && is === 'True');
    return isRecorded ? servers.all.find(({ name }) => name === status?.assignment?.node) : undefined;
  }

  const cluster = async (by: PlainServer): Promise<Cluster> =>
    (await by.call('GET', '/cluster/metrics')).json() as Promise<Cluster>;

  const inEtcd = (by: PlainServer, members: string): Promise<unknown> =>
    until(`etcd has ${members}`, async () => (await by.etcdMembers()).join(' ') === members);

  async function invite(server: PlainServer): Promise<void> {
    const token = /nvrjoin\.\S+/.exec(await first!.run('cluster', 'token', server.name))![0];
    await server.run('cluster', 'join', `${first!.address}:9995`, '--token', token, '--address', server.address);
  }

  /** Asks until the cluster agrees: one change may have to wait for another. */
  const change = (what: string, body: object): Promise<unknown> =>
    until(what, async () => {
      const answer = await first!.call('POST', `/cluster/${what}`, body);
      assert.ok(answer.ok, await answer.text());
      return true;
    });

  const apply = async (kind: string, name: string, spec: object): Promise<string> => {
    const manifest = join(servers.directory, `${name}.yaml`);
    writeFileSync(manifest, JSON.stringify({ apiVersion: 'kube-nvr.dev/v1alpha1', kind, metadata: { name }, spec }));
    return second!.run('apply', '-f', manifest);
  };

  before(async () => {
    servers = await PlainServers.make();
    source = await startCamera({ pace: 'realtime', host: servers.network.addresses.cameras });
    for (const name of ['rack-1', 'rack-2', 'rack-3']) await servers.add(name);
    [first, second, third] = servers.all;
  });

  afterEach((t) => {
    if ('passed' in t && !t.passed) for (const { name, output } of servers.all) console.log(name, output);
  });

  after(async () => {
    await source?.close();
    await servers?.[Symbol.asyncDispose]();
  });

  test('the first one makes the cluster, and others join with a token', async () => {
    await first!.run('cluster', 'init', '--address', first!.address);
    await first!.start();
    for (const server of [second!, third!]) {
      await invite(server);
      // The third one is ready although etcd has to wait: it takes one member without a vote at a time.
      await server.start();
    }
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
    const { voters, nodes } = await cluster(third!);
    assert.deepEqual(voters, ['rack-1', 'rack-2', 'rack-3']);
    assert.ok(nodes.every(({ online }) => online));
  });

  test('a vote that is taken and given is one of etcd, too', async () => {
    await apply('RecorderPool', 'default', { membership: { mode: 'Manual' } });
    await change('change-membership', { voters: ['rack-1', 'rack-2'] });
    await inEtcd(first!, '(rack-3) rack-1 rack-2');
    await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
  });

  test('a server that leaves has no data of etcd, keeps its certificate, and returns without a restart', async () => {
    const { pid } = third!.recorder.child;
    const left = await third!.call('POST', '/cluster/leave', {});
    assert.ok(left.ok, await left.text());
    assert.ok(!existsSync(join(third!.stateDirectory, 'etcd')));
    assert.ok(existsSync(join(third!.stateDirectory, 'tls/certificate.pem')));
    await inEtcd(first!, 'rack-1 rack-2');
    await change('add-learner', { node_id: 'rack-3' });
    await inEtcd(first!, '(rack-3) rack-1 rack-2');
    await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
    assert.equal(third!.recorder.child.pid, pid);
  });

  test('state from a backup is refused, and the server returns with a certificate of its own name', async () => {
    await third!.stop();
    const backup = join(servers.directory, 'backup');
    cpSync(third!.stateDirectory, backup, { recursive: true });
    await third!.start();
    await third!.stop();
    rmSync(third!.stateDirectory, { recursive: true });
    cpSync(backup, third!.stateDirectory, { recursive: true });
    await third!.start({ waitUntilReady: false });
    assert.equal((await third!.recorder.child.exit()).code, 1);
    assert.match(third!.output, /cluster.mode: etcd: the state of this node in .* is from a backup/);

    // Deleted by hand, key and certificate are gone as well.
    rmSync(third!.stateDirectory, { recursive: true });
    await third!.start({ waitUntilReady: false });
    assert.equal((await third!.recorder.child.exit()).code, 1);
    assert.match(third!.output, /cluster.mode: etcd: .*cluster.json is missing: run recorder cluster init/);
    await change('remove-node', { node_id: 'rack-3', force: true });
    await inEtcd(first!, 'rack-1 rack-2');
    await invite(third!);
    await third!.start();
    await change('add-learner', { node_id: 'rack-3' });
    await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
  });

  test('a camera that is applied is recorded, and by another one after its server was killed', async () => {
    assert.match(await apply('Camera', 'gate', { source: source.url }), /gate/);
    const before = await until('it is recorded', () => recorderBy(second!));
    await until('it has footage', async () => (await before.recorder.files()).length > 0);
    await before.kill();
    const others = servers.all.filter((server) => server !== before);
    const now = await until('another one records it', async () => {
      const found = await recorderBy(others[0]!);
      return found !== before && found;
    });
    await until('it has footage there', async () => (await now.recorder.files()).length > 0);
    await until('the leader accepts the removal', async () => {
      const answer = await others[0]!.call('POST', '/cluster/remove-node', { node_id: before.name, force: true });
      return answer.ok;
    });
    await inEtcd(now, others.map(({ name }) => name).join(' '));
  });

  test('without a majority a server leaves by force', async () => {
    const [last, other] = servers.all.filter(({ output, recorder }) => output !== '' && !recorder.child.ended);
    await other!.kill();
    await until('the majority is gone', async () => (await cluster(last!)).leader === null);
    const refused = await last!.call('POST', '/cluster/leave', {});
    assert.equal(refused.status, 503);
    assert.ok(existsSync(join(last!.stateDirectory, 'etcd')));
    const left = await last!.call('POST', '/cluster/leave', { force: true });
    assert.ok(left.ok, await left.text());
    assert.ok(!existsSync(join(last!.stateDirectory, 'etcd')));
  });
});
