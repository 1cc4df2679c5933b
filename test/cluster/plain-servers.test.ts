// Three servers without Kubernetes, as their administrators make them: the commands of the recorder, and etcd on each.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';
import type { Camera } from '../../crds/camera.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { startCamera, type Camera as Source } from '../camera/camera.ts';
import { Page } from '../operations/page.ts';
import { Postgres, postgresMissing } from '../support/postgres.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until as untilWithin } from '../support/until.ts';
import { CertificateAuthority } from './certificates.ts';
import { PlainServers, plainServersMissing, type ClusterMetrics, type PlainServer } from './plain-servers.ts';
import { Program } from './program.ts';
import { needProgram } from './programs.ts';

const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 240_000, 250);

const cluster = (by: PlainServer): Promise<ClusterMetrics> => by.metrics();

async function invite(by: PlainServer, server: PlainServer): Promise<void> {
  const token = /nvrjoin\.\S+/.exec(await by.run('cluster', 'token', server.name))![0];
  await server.run('cluster', 'join', `${by.address}:9995`, '--token', token, '--address', server.address);
}

interface Ready {
  readonly checks: { readonly cluster_store: { readonly reachable: boolean } };
  readonly failed?: readonly string[];
  readonly warnings: readonly { readonly code: string }[];
}

const isMemberDown = ({ code }: { readonly code: string }): boolean => code === 'etcd-member-down';

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

  const inEtcd = (by: PlainServer, members: string): Promise<unknown> =>
    until(`etcd has ${members}`, async () => (await by.etcdMembers()).join(' ') === members);

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

  afterEach(async (t) => {
    if ('passed' in t && t.passed) return servers.assertVotesAreTold();
    for (const { name, output } of servers.all) console.log(name, output);
  });

  after(async () => {
    await source?.close();
    await servers?.[Symbol.asyncDispose]();
  });

  test('the first one makes the cluster, and others join with a token', async () => {
    await first!.run('cluster', 'init', '--address', first!.address);
    await first!.start();
    for (const server of [second!, third!]) {
      await invite(first!, server);
      // The third one is ready although etcd has to wait: it takes one member without a vote at a time.
      await server.start();
    }
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
    const { voters, nodes } = await cluster(third!);
    assert.deepEqual(voters, ['rack-1', 'rack-2', 'rack-3']);
    assert.ok(nodes.every(({ online }) => online));
    await until('every server says the same of the leaders', async () => {
      const said = await Promise.all(servers.all.map(cluster));
      const [{ leader, etcd_leader: leads }] = said as [ClusterMetrics];
      return leader && leads && said.every((one) => one.leader === leader && one.etcd_leader === leads);
    });
    const metrics = await (await fetch(`http://${third!.address}:9998/metrics`)).text();
    assert.match(metrics, /^kube_nvr_operator_leader [01]$/m);
    assert.match(metrics, /^kube_nvr_certificate_expiry_timestamp_seconds\{use="nodes"\} \d+$/m);
  });

  test('one login opens every server: a token, a session, and a user who was made at one of them', async () => {
    const tokenOf = (server: PlainServer): string =>
      readFileSync(join(String(server.config['workDir']), 'admin.token'), 'utf8').trim();
    const ask = (server: PlainServer, path: string, headers: object, body?: object): Promise<Response> =>
      fetch(server.url + path, {
        method: body ? 'POST' : 'GET',
        headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
    for (const of of servers.all) {
      const headers = { authorization: `Bearer ${tokenOf(of)}` };
      for (const at of servers.all) {
        await until(
          `${at.name} takes the token of ${of.name}`,
          async () => (await ask(at, '/api/cameras', headers)).ok,
        );
        assert.ok((await ask(first!, `/node/${at.name}/api/cameras`, headers)).ok);
      }
    }
    const [, code = ''] = /[#?&](?:code|admin)=([^&\s]+)/.exec(await second!.run('admin-link')) ?? [];
    const password = 'correct horse battery';
    const made = await ask(second!, '/api/session', {}, { name: 'anna', password, code });
    assert.equal(made.status, 200, await made.text());
    const cookie = String(made.headers.get('set-cookie')).split(';', 1)[0] ?? '';
    for (const at of servers.all) {
      await until(
        `${at.name} knows the user`,
        async () => (await ask(at, '/api/session', {}, { name: 'anna', password })).ok,
      );
      assert.ok((await ask(at, '/api/session', { cookie })).ok, `the session at ${at.name}`);
    }
  });

  test('a vote that is taken and given is one of etcd, too', async () => {
    await apply('RecorderPool', 'default', { membership: { mode: 'Manual' } });
    for (const server of [third!, first!]) {
      const others = servers.all.filter((other) => other !== server).map(({ name }) => name);
      await change('change-membership', { voters: others });
      await inEtcd(second!, [`(${server.name})`, ...others].join(' '));
      await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
      await inEtcd(server, 'rack-1 rack-2 rack-3');
    }
  });

  test('a member of etcd that hangs is no voter, and its server is not ready until it answers again', async () => {
    const ready = async (by: PlainServer) => {
      const answer = await by.call('GET', '/api/health/ready');
      return { status: answer.status, body: (await answer.json()) as Ready };
    };
    const roleOf = async (by: PlainServer): Promise<string | undefined> =>
      (await cluster(by)).nodes.find(({ node_id }) => node_id === 'rack-2')?.role;
    await second!.freezeEtcd();
    assert.equal(await roleOf(first!), 'silent');
    const { has_majority, voters } = await cluster(third!);
    assert.deepEqual([has_majority, voters], [true, ['rack-1', 'rack-3']]);
    await until('every server warns', async () => {
      const bodies = await Promise.all([first!, third!].map(ready));
      return bodies.every(({ status, body }) => status === 200 && body.warnings.some(isMemberDown));
    });
    await until('the server itself is not ready', async () => {
      const { status, body } = await ready(second!);
      return status === 503 && body.failed?.includes('cluster_store') && !body.checks.cluster_store.reachable;
    });
    await until('the pool says so', async () => {
      const { status } = JSON.parse(await first!.run('get', 'recorderpool', 'default', '-o', 'json')) as RecorderPool;
      const shown = status?.conditions?.find(({ type }) => type === 'MembersAnswer');
      return (
        shown?.status === 'False' &&
        String(status?.voters?.toSorted()) === 'rack-1,rack-3' &&
        shown.message.includes('rack-2')
      );
    });
    second!.thawEtcd();
    await until('nothing is wrong', async () => {
      const all = await Promise.all(servers.all.map(ready));
      return all.every(({ status, body }) => status === 200 && !body.warnings.some(isMemberDown));
    });
    assert.equal(await roleOf(first!), 'voter');
  });

  test('a server that leaves has no data of etcd, keeps its certificate, and returns without a restart', async () => {
    const { pid } = third!.recorder.child;
    const signedIn = await fetch(`${third!.url}/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'anna', password: 'correct horse battery' }),
    });
    const cookie = String(signedIn.headers.get('set-cookie')).split(';', 1)[0] ?? '';
    const atFirst = async (): Promise<number> =>
      (await fetch(`${first!.url}/api/session`, { headers: { cookie } })).status;
    assert.equal(await atFirst(), 200);
    const left = await third!.call('POST', '/cluster/leave', {});
    assert.ok(left.ok, await left.text());
    assert.ok(!existsSync(join(third!.stateDirectory, 'etcd')));
    assert.ok(existsSync(join(third!.stateDirectory, 'tls/certificate.pem')));
    await inEtcd(first!, 'rack-1 rack-2');
    await until('its sessions have ended at the others', async () => (await atFirst()) === 401);
    const codes = async (): Promise<string> => {
      const { warnings } = (await (await third!.call('GET', '/api/health/ready')).json()) as Ready;
      // Nothing here is sent over TLS.
      return warnings.flatMap(({ code }) => (code === 'no-tls' ? [] : [code])).join();
    };
    await until('it says that it is no member, and nothing else', async () => (await codes()) === 'not-a-member');
    await change('add-learner', { node_id: 'rack-3' });
    await inEtcd(first!, '(rack-3) rack-1 rack-2');
    await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
    await until('it warns of nothing', async () => (await codes()) === '');
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
    await invite(first!, third!);
    await third!.start();
    await change('add-learner', { node_id: 'rack-3' });
    await change('change-membership', { voters: ['rack-1', 'rack-2', 'rack-3'] });
    await inEtcd(third!, 'rack-1 rack-2 rack-3');
  });

  /** Runs a line of a page on a server, whose files are in a directory here, and whose service manager is this test. */
  async function on(name: string, script: string): Promise<{ readonly code: number; readonly printed: string }> {
    const server = servers.all.find((one) => one.name === name)!;
    if (script.startsWith('recorder ')) {
      const { code, output } = await server.attempt(...script.split(' ').slice(1));
      return { code: code ?? 1, printed: output };
    }
    if (script === 'systemctl stop recorder') await server.stop();
    else if (script === 'systemctl start recorder') await server.start();
    else return shell(server, script);
    return { code: 0, printed: '' };
  }

  function shell(server: PlainServer, script: string): Promise<{ readonly code: number; readonly printed: string }> {
    const journal = join(server.directory, 'journal');
    writeFileSync(journal, server.output);
    const line = script
      .replaceAll('/var/lib/recorder/', `${String(server.config['workDir'])}/`)
      .replaceAll('https://127.0.0.1:9997', server.url);
    const args = ['-c', `exec 2>&1\njournalctl() { cat ${journal}; }\n${line}`];
    return new Promise((resolve) =>
      execFile('bash', args, (error, printed) => resolve({ code: error ? 1 : 0, printed })),
    );
  }

  test('the last of three servers makes a cluster of itself, and the lost ones are refused with their old state', async () => {
    await apply('RecorderPool', 'default', { membership: { mode: 'Automatic' } });
    await apply('Camera', 'gate', { source: source.url });
    const { epoch } = await until('the camera is assigned', async () => (await gate(second!)).status?.assignment);
    const page = new Page('lost-servers.md', { on });
    await page.follow('Two of three servers without Kubernetes are lost', {
      events: {
        'rack-2 and rack-3 are lost': async () => {
          const refused = async (words: RegExp): Promise<void> => {
            const { code, output } = await first!.attempt('cluster', 'recover', '--force');
            assert.equal(code, 1);
            assert.match(output, words);
          };
          await third!.kill();
          await refused(/^recorder: the recorder of this server runs: stop it first/);
          await first!.stop();
          await refused(/^recorder: the member of etcd at https:\/\/\S+:2379 answers/);
          const { output } = await first!.attempt('cluster', 'recover');
          assert.match(output, /expected --force/);
          await second!.kill();
        },
      },
      any: ['READY', 'REASON'],
    });
    assert.deepEqual(await first!.etcdMembers(), ['rack-1']);
    const { status } = await gate(first!);
    assert.ok(status!.assignment!.epoch > epoch + 500_000);
    await page.follow('A lost server without Kubernetes comes back after all', {
      events: {
        'rack-2 and rack-3 start with their old state': async () => {
          await Promise.all([second!.start(), third!.start()]);
          for (const server of [second!, third!]) {
            await until('its old state is gone', () => !existsSync(join(server.stateDirectory, 'etcd')));
          }
        },
      },
      any: ['READY', 'REASON'],
    });
    page.end();
    await inEtcd(second!, 'rack-1 rack-2 rack-3');
    await apply('RecorderPool', 'default', { membership: { mode: 'Manual' } });
  });

  test('the key of Secrets is replaced, and a server that was away gets it when it returns', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'gate-login' } };
    const manifest = join(servers.directory, 'login.yaml');
    const stringData = { username: 'viewer', password: 'swordfish' };
    writeFileSync(manifest, JSON.stringify({ ...secret, type: 'Opaque', stringData }));
    await first!.run('apply', '-f', manifest);
    const keysOf = (server: PlainServer): string => readFileSync(join(server.stateDirectory, 'tls/keys.json'), 'utf8');
    const before = keysOf(third!);
    const page = new Page('rotate-key.md', { on });
    await page.follow('On servers without Kubernetes', {
      events: { 'rack-3 is away': () => third!.stop(), 'rack-3 is back': () => third!.start() },
    });
    page.end();
    assert.notEqual(keysOf(first!), before);
    for (const server of [second!, third!]) assert.equal(keysOf(server), keysOf(first!));
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

    // It does not know yet what happened meanwhile.
    await before.start();
    await until('it has no data of etcd', () => !existsSync(join(before.stateDirectory, 'etcd')));
    await before.stop();
  });

  test('without a majority a server leaves by force', async () => {
    const [last, other] = servers.all.filter(({ output, recorder }) => output !== '' && !recorder.child.ended);
    await other!.kill();
    await until('the majority is gone', async () => (await cluster(last!)).leader === null);
    const refused = await last!.call('POST', '/cluster/leave', {});
    assert.equal(refused.status, 503);
    assert.ok(existsSync(join(last!.stateDirectory, 'etcd')));
    // Without its data nobody would ever lead again.
    const last409 = await last!.call('POST', '/cluster/leave', { force: true });
    assert.equal(last409.status, 409);
    assert.match(await last409.text(), /only that of this server answers/);
    assert.ok(existsSync(join(last!.stateDirectory, 'etcd')));
    const left = await last!.call('POST', '/cluster/leave', { force: true, even_last_vote: true });
    assert.ok(left.ok, await left.text());
    assert.ok(!existsSync(join(last!.stateDirectory, 'etcd')));
  });
});

/** An etcd of others, on the host. Resolves to what servers need to use it. */
async function startEtcd({ network, directory }: PlainServers) {
  const { api: host } = network.addresses;
  const authority = new CertificateAuthority(join(directory, 'pki'));
  const { cert, key } = authority.issue('etcd', { commonName: 'etcd', hosts: [host] });
  const client = authority.issue('recorder', { commonName: 'recorder' });
  const [url, peers] = [`https://${host}:2379`, `http://${host}:2380`];
  const etcd = new Program('etcd', {
    command: needProgram('etcd'),
    args: [
      `--data-dir=${join(directory, 'etcd')}`,
      `--listen-client-urls=${url}`,
      `--advertise-client-urls=${url}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=default=${peers}`,
      `--cert-file=${cert}`,
      `--key-file=${key}`,
      `--trusted-ca-file=${authority.certFile}`,
      '--client-cert-auth',
    ],
    logFile: join(directory, 'etcd.log'),
  });
  etcd.start();
  const tls = { ca: authority.certFile, certificate: client.cert, key: client.key };
  return { cluster: { etcd: { endpoints: [url] }, tls }, stop: () => etcd.stop() };
}

test('servers use an existing etcd, which holds one cluster', { skip: plainServersMissing() }, async () => {
  await using servers = await PlainServers.make();
  const { cluster: settings, stop } = await startEtcd(servers);
  try {
    const [first, second, stranger] = [
      await servers.add('rack-1', { cluster: settings }),
      await servers.add('rack-2', { cluster: settings }),
      await servers.add('rack-9', { cluster: settings }),
    ];
    await first.run('cluster', 'init', '--address', first.address);
    await first.start();
    await invite(first, second);
    await second.start();
    await until('both have a vote', async () => (await cluster(second)).voters.length === 2);
    for (const server of servers.all) assert.ok(!existsSync(join(server.stateDirectory, 'etcd')));
    assert.equal((await cluster(first)).etcd_leader, null);

    // Another cluster must not be made in it, and its members are not the recorder's.
    await stranger.run('cluster', 'init', '--address', stranger.address);
    await stranger.start({ waitUntilReady: false });
    assert.equal((await stranger.recorder.child.exit()).code, 1);
    assert.match(stranger.output, /cluster.etcd.endpoints: this etcd holds another cluster/);
    await second.stop();
    second.config = {
      ...second.config,
      cluster: { ...(second.config['cluster'] as object), etcd: undefined, tls: undefined },
    };
    await second.start({ waitUntilReady: false });
    assert.equal((await second.recorder.child.exit()).code, 1);
    assert.match(second.output, /cluster.etcd.endpoints: is missing: this server has no data of etcd/);
  } finally {
    await stop();
  }
});

/** Where each camera of the cluster is recorded, as a server says. */
async function places(by: PlainServer): Promise<string> {
  const { cameras } = (await (await by.call('GET', '/cluster/cameras')).json()) as {
    cameras: readonly { id: string; node_id: string | null; state: string }[];
  };
  return cameras.map(({ id, node_id, state }) => `${id}: ${state === 'recording' ? node_id : state}`).join(', ');
}

test(
  'cameras of one Postgres are cameras of the cluster, whether Postgres lives, is killed, hangs or is restored from a backup',
  { skip: plainServersMissing() || postgresMissing() },
  async (t) => {
    await using servers = await PlainServers.make();
    const { api, cameras: at } = servers.network.addresses;
    const source = await startCamera({ pace: 'realtime', host: at });
    t.after(() => source.close());
    const postgres = await Postgres.start(t);
    const proxy = await TcpProxy.to(postgres.port, '127.0.0.1', api);
    t.after(() => proxy.close());
    const database = { url: postgres.url('postgres', proxy.port).replace('127.0.0.1', api) };
    const { cluster: settings, stop } = await startEtcd(servers);
    try {
      const config = { cluster: settings, database, archive: { segmentDuration: '2s', syncInterval: '1s' } };
      for (const name of ['rack-1', 'rack-2', 'rack-3']) await servers.add(name, config);
      const [first, second, third] = servers.all as [PlainServer, PlainServer, PlainServer];
      await first.run('cluster', 'init', '--address', first.address);
      await first.start();
      for (const server of [second, third]) {
        await invite(first, server);
        await server.start();
      }
      const manifest = join(servers.directory, 'pool.json');
      const pool = { metadata: { name: 'default' }, spec: { failover: { failbackAfterSeconds: 5 } } };
      writeFileSync(manifest, JSON.stringify({ apiVersion: 'kube-nvr.dev/v1alpha1', kind: 'RecorderPool', ...pool }));
      await first.run('apply', '-f', manifest);
      await until('all have a vote', async () => (await cluster(first)).voters.length === 3);
      const untilAt = (wanted: RegExp, by: PlainServer): Promise<unknown> =>
        until('cameras are recorded as wanted', async () => {
          assert.match(await places(by), wanted);
          return true;
        });
      const insert = (id: string, node: string): Promise<unknown> =>
        postgres.query('INSERT INTO cameras (id, node_name, source) VALUES ($1, $2, $3)', [id, node, source.url]);
      for (const [id, node] of [
        ['gate', 'rack-1'],
        ['hall', 'rack-2'],
      ] as const)
        await insert(id, node);
      await untilAt(/^gate: rack-1, hall: rack-2$/, third);
      const token = readFileSync(join(String(third.config['workDir']), 'admin.token'), 'utf8');
      await until('the third one knows who records it', async () => {
        const headers = { authorization: `Bearer ${token}` };
        const asked = await fetch(`${third.url}/api/archive/hall/current`, { redirect: 'manual', headers });
        assert.equal(asked.status, 307);
        assert.match(asked.headers.get('location') ?? '', new RegExp(second.address));
        return true;
      });

      // Today: one camera has moved, one is new.
      await postgres.query('CREATE TABLE backup AS SELECT * FROM cameras');
      await postgres.query('CREATE TABLE backup_rows AS SELECT * FROM kube_nvr_rows');
      await postgres.query(`UPDATE cameras SET node_name = 'rack-3' WHERE id = 'gate'`);
      await insert('yard', 'rack-2');
      const today = /^gate: rack-3, hall: rack-2, yard: rack-2$/;
      await untilAt(today, first);

      // Postgres hangs while a server dies, and while it comes back.
      proxy.silence();
      await third.kill();
      await untilAt(/gate: rack-[12], hall: rack-2/, first);
      await third.start({ waitUntilReady: false });
      await untilAt(today, first);

      // Postgres is dead while another one dies.
      await postgres.stop('kill');
      proxy.heal();
      await second.kill();
      await untilAt(/hall: rack-[13], yard: rack-[13]/, first);
      await second.start({ waitUntilReady: false });
      await untilAt(today, first);

      // It comes back as it was yesterday.
      proxy.silence();
      await postgres.start();
      await postgres.query(`TRUNCATE cameras, kube_nvr_rows`);
      await postgres.query('INSERT INTO cameras SELECT * FROM backup');
      await postgres.query('INSERT INTO kube_nvr_rows SELECT * FROM backup_rows');
      proxy.heal();
      const warned = await until('a server warns', async () => {
        const bodies = await Promise.all(
          servers.all.map(async (one) => (await (await one.call('GET', '/api/health/ready')).json()) as Ready),
        );
        return bodies.flatMap(({ warnings }) => warnings).find(({ code }) => code === 'rows-restored');
      });
      assert.match(JSON.stringify(warned), /gate, yard are recorded as before/);
      assert.match(await places(first), today);
      await postgres.query(`UPDATE cameras SET enabled = false WHERE id = 'hall'`);
      await untilAt(/^gate: rack-3, hall: stopped, yard: rack-2$/, first);
      await first.run('delete', 'camera', 'yard');
      await untilAt(/^gate: rack-3, hall: stopped$/, first);
    } finally {
      await stop();
    }
  },
);
