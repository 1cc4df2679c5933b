// Three servers without Kubernetes, as their administrators make them: the commands of the recorder, and etcd on each.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
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
      const token = /nvrjoin\.\S+/.exec(await first!.run('cluster', 'token', server.name))![0];
      await server.run('cluster', 'join', `${first!.address}:9995`, '--token', token, '--address', server.address);
      // The third one is ready although etcd has to wait: it takes one member without a vote at a time.
      await server.start();
    }
    await until('all have a vote', async () => String(await third!.etcdMembers()) === 'rack-1,rack-2,rack-3');
    const { voters, nodes } = await cluster(third!);
    assert.deepEqual(voters, ['rack-1', 'rack-2', 'rack-3']);
    assert.ok(nodes.every(({ online }) => online));
  });

  test('a camera that is applied is recorded, and by another one after its server was killed', async () => {
    const manifest = join(servers.directory, 'gate.yaml');
    const camera = {
      apiVersion: 'kube-nvr.dev/v1alpha1',
      kind: 'Camera',
      metadata: { name: 'gate' },
      spec: { source: source.url },
    };
    writeFileSync(manifest, JSON.stringify(camera));
    assert.match(await second!.run('apply', '-f', manifest), /gate/);
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
    const names = others.map(({ name }) => name);
    await until('etcd goes on without it', async () => String(await now.etcdMembers()) === String(names));
  });
});
