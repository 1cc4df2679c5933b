// `recorder apply`, `recorder get` and `recorder delete` over the API of a recorder and the store over a real etcd.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, suite, test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { KubernetesClient } from '../../base/kubernetes/client.ts';
import type { AuditEntry } from '../../recorder/audit/entry.ts';
import { build } from '../../recorder/api/test-support.ts';
import { Admission } from '../../recorder/certificates/admission.ts';
import { foundCluster } from '../../recorder/certificates/found-cluster.ts';
import { Issuer } from '../../recorder/certificates/issuer.ts';
import { JoinTokens } from '../../recorder/certificates/join-tokens.ts';
import { KeyRing } from '../../recorder/certificates/key-ring.ts';
import { RotationError } from '../../recorder/certificates/key-rotation.ts';
import { nodeFiles, readKeys, writeMember } from '../../recorder/certificates/node-files.ts';
import { run as runCluster } from '../../recorder/commands/cluster.ts';
import { runCommand, type Command } from '../../recorder/commands/command.ts';
import { ClusterObjects } from '../../recorder/cluster/objects.ts';
import { APPLY, DELETE, GET } from '../../recorder/commands/objects.ts';
import { siteCommand } from '../../recorder/commands/site-command.ts';
import { SITE_COMMANDS } from '../../recorder/commands/site-commands.ts';
import { commandContext } from '../../recorder/commands/test-support.ts';
import { StoreConnection } from '../../store/connection.ts';
import { STORE_NAMESPACE } from '../../store/names.ts';
import { workspace } from '../support/workspace.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import { etcdMissing } from './programs.ts';

const SECRET = `apiVersion: v1
kind: Secret
metadata:
  name: gate-login
  namespace: video
  annotations: { kube-nvr.dev/camera-hosts: 10.0.0.9, kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"swordfish"}}' }
stringData: { username: viewer, password: swordfish }
`;
const CAMERA = `apiVersion: kube-nvr.dev/v1alpha1
kind: Camera
metadata: { name: gate, namespace: video, labels: { site: north } }
spec: { source: 'rtsp://10.0.0.9/stream1', credentialsSecretRef: { name: gate-login } }
`;

let controlPlane: ControlPlane;

suite('objects of a cluster by commands', { skip: etcdMissing() }, () => {
  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd'] });
  });
  after(() => controlPlane?.close());

  test('manifests of Kubernetes are applied, printed and deleted', async (t) => {
    const { run, apply } = await stage(t);
    assert.deepEqual(await apply(`${SECRET}---\n${CAMERA}`), {
      code: 0,
      out: 'secret/gate-login created\ncamera/gate created\n',
      err: '',
    });
    assert.equal((await apply(CAMERA)).out, 'camera/gate unchanged\n');
    assert.equal((await apply(CAMERA.replace('stream1', 'stream2'))).out, 'camera/gate configured\n');
    const table = await run(GET.run, ['cameras']);
    assert.match(table.out, /^NAME +NODE +RECORDING +READY +REASON +AGE\ngate +\d+s\n$/);
    const { spec, metadata } = JSON.parse((await run(GET.run, ['cam', 'gate', '-o', 'json'])).out) as {
      spec: Record<string, unknown>;
      metadata: Record<string, unknown>;
    };
    assert.deepEqual(
      [spec['source'], spec['transport'], metadata['labels']],
      ['rtsp://10.0.0.9/stream2', 'Auto', { site: 'north' }],
    );
    const exported = await run(GET.run, ['camera', 'gate', '-o', 'yaml']);
    assert.equal((await apply(exported.out)).out, 'camera/gate unchanged\n', 'what get prints can be applied');
    assert.equal((await run(GET.run, ['cameras', '-o', 'name'])).out, 'camera/gate\n');
    assert.deepEqual(await run(DELETE.run, ['camera', 'gate']), { code: 0, out: 'camera/gate deleted\n', err: '' });
    assert.deepEqual(await run(GET.run, ['cameras']), { code: 0, out: '', err: 'no cameras in the cluster\n' });
    const gone = await run(DELETE.run, ['camera', 'gate']);
    assert.equal(gone.code, 1);
    assert.match(gone.err, /^recorder: camera\/gate: .*"gate" not found\n$/);
  });

  test('a label that the manifest no longer has is removed, and the status stays', async (t) => {
    const { client, run, apply } = await stage(t);
    await apply(CAMERA);
    const path = '/apis/kube-nvr.dev/v1alpha1/namespaces/default/cameras/gate';
    await client.call(
      'PATCH',
      `${path}/status`,
      { status: { assignment: { node: 'rack-1', epoch: 1, reason: 'Scheduled', time: '2026-11-25T12:00:00Z' } } },
      { contentType: 'application/merge-patch+json' },
    );
    await apply(CAMERA.replace(', labels: { site: north }', ''));
    const { metadata, status } = JSON.parse((await run(GET.run, ['camera', 'gate', '-o', 'json'])).out) as {
      metadata: { labels?: object };
      status: { assignment: { node: string } };
    };
    assert.deepEqual([metadata.labels ?? {}, status.assignment.node], [{}, 'rack-1']);
    assert.match(
      (await run(GET.run, ['cameras', '-o', 'wide'])).out,
      /\ngate +rack-1 .* default +1 .*Scheduled +rtsp:/,
    );
    await run(DELETE.run, ['camera', 'gate']);
  });

  test('what is wrong in a manifest is named as Kubernetes names it, and other objects are applied', async (t) => {
    const { run, apply } = await stage(t);
    const wrong = CAMERA.replace('rtsp://10.0.0.9/stream1', 'http://admin:hunter2@10.0.0.9/').replace(
      'name: gate,',
      'name: yard,',
    );
    const done = await apply(`${wrong}---\n${CAMERA}`);
    assert.deepEqual([done.code, done.out], [1, 'camera/gate created\n']);
    assert.match(done.err, /^recorder: camera\/yard: .*spec\.source: .*\n$/);
    assert.ok(!done.err.includes('hunter2'), done.err);
    const misspelt = await apply(CAMERA.replace('source:', 'sourec:'));
    assert.match(misspelt.err, /spec\.(source|sourec)/);
    await run(DELETE.run, ['camera', 'gate']);
  });

  test('a dry run checks and changes nothing', async (t) => {
    const { run, apply } = await stage(t);
    assert.equal((await apply(CAMERA, ['--dry-run'])).out, 'camera/gate created (dry run)\n');
    assert.equal((await run(GET.run, ['cameras'])).out, '');
  });

  test('a secret is encrypted in etcd, and no answer, table or audit has it', async (t) => {
    const { run, apply, audited, etcd } = await stage(t);
    const applied = await apply(SECRET);
    const shown = [applied];
    for (const format of ['json', 'yaml', 'wide', 'name']) shown.push(await run(GET.run, ['secrets', '-o', format]));
    shown.push(await run(GET.run, ['secret', 'gate-login', '-o', 'yaml']));
    const { kvs } = await etcd.range({ key: '/', rangeEnd: '0' });
    const everywhere = [
      JSON.stringify(shown),
      JSON.stringify(audited),
      ...kvs.map(({ value }) => value.toString('latin1')),
    ];
    const encoded = Buffer.from('swordfish').toString('base64');
    for (const text of everywhere) assert.ok(!text.includes('swordfish') && !text.includes(encoded));
    assert.match(shown[1]?.out ?? '', /"password": null/);
    assert.ok(
      kvs.some(({ key }) => key.includes('/secrets/default/gate-login')),
      'it is there',
    );
    assert.deepEqual(
      audited.map(({ what, kind, object }) => [what, kind, object]),
      [['apply-object', 'secrets', 'gate-login']],
    );
    await run(DELETE.run, ['secret', 'gate-login']);
  });

  test('Secrets of the cluster itself are neither shown nor changed', async (t) => {
    const { run, apply } = await stage(t);
    assert.equal((await run(GET.run, ['secrets'])).err, 'no secrets in the cluster\n');
    for (const done of [
      await run(GET.run, ['secret', 'kube-nvr-authorities', '-o', 'json']),
      await run(DELETE.run, ['secret', 'kube-nvr-authorities']),
      await apply(SECRET.replace('gate-login', 'kube-nvr-authorities')),
    ]) {
      assert.equal(done.code, 1);
      assert.match(done.err, /the Secret kube-nvr-authorities belongs to the cluster/);
    }
    assert.match((await apply(`${SECRET}type: kube-nvr.dev/join-token\n`)).err, /type: must be Opaque or/);
  });

  test('the commands for a site read and change objects: status, move, drain, rebalance', async (t) => {
    const { client, run, apply, audited } = await stage(t);
    const of = (name: keyof typeof SITE_COMMANDS, ...args: string[]): Promise<Done> =>
      run(siteCommand(SITE_COMMANDS[name], false).run, args);
    await apply(CAMERA);
    await apply(`apiVersion: kube-nvr.dev/v1alpha1
kind: RecorderPool
metadata: { name: default }
spec: { archive: { hostPath: /mnt/archive } }
`);
    const paths = '/apis/kube-nvr.dev/v1alpha1/namespaces/default';
    await client.call('POST', `${paths}/recordernodes`, {
      apiVersion: 'kube-nvr.dev/v1alpha1',
      kind: 'RecorderNode',
      metadata: { name: 'rack-1' },
      spec: { nodeName: 'rack-1', poolRef: { name: 'default' }, address: 'https://192.0.2.1:9997' },
    });
    const condition = (type: string, reason: string, message: string): object => ({
      type,
      status: 'False',
      reason,
      message,
      lastTransitionTime: '2026-11-25T12:00:00Z',
    });
    const conditions = [
      condition('Ready', 'NoMajority', 'one of three nodes votes'),
      condition(
        'Balanced',
        'Uneven',
        'would move gate; to approve, annotate the pool: kube-nvr.dev/rebalance=0c81f3a2',
      ),
    ];
    await client.call(
      'PATCH',
      `${paths}/recorderpools/default/status`,
      { status: { conditions } },
      {
        contentType: 'application/merge-patch+json',
      },
    );
    const status = await of('status');
    assert.equal(status.code, 1, status.err);
    for (const text of ['\nrack-1 ', '\ngate ', '\nrecorderpools/default: NoMajority: one of three nodes votes\n']) {
      assert.ok(status.out.includes(text), status.out);
    }
    const moved = await of('move', 'gate', 'rack-1');
    assert.deepEqual([moved.code, moved.err], [0, '']);
    assert.match(
      moved.out,
      /^gate moves to rack-1: spec\.placement\.preferredNode is rack-1 now\. If the Camera is kept in Git/,
    );
    assert.match((await of('move', 'gate', 'rack-9')).err, /there is no node rack-9: expected rack-1\n$/);
    assert.match((await of('move', 'yard', 'rack-1')).err, /"yard" not found/);
    assert.equal((await of('drain', 'rack-1')).code, 0);
    assert.match((await of('rebalance')).out, /would move gate/);
    assert.match((await of('rebalance', '--approve', '1')).err, /there is no proposal 1: would move gate/);
    assert.equal((await of('rebalance', '--approve', '0c81f3a2')).out, 'default: approved\n');
    const got = async (plural: string, name: string) =>
      (await client.get(`${paths}/${plural}/${name}`)) as unknown as {
        metadata: { annotations?: Record<string, string> };
        spec: Record<string, unknown>;
      };
    const camera = await got('cameras', 'gate');
    assert.deepEqual((camera.spec['placement'] as { preferredNode: string }).preferredNode, 'rack-1');
    assert.equal(camera.spec['source'], 'rtsp://10.0.0.9/stream1', 'what was not given stays');
    const node = await got('recordernodes', 'rack-1');
    assert.deepEqual([node.spec['drain'], node.spec['address']], [true, 'https://192.0.2.1:9997']);
    assert.equal((await of('drain', 'rack-1', '--undo')).code, 0);
    assert.equal((await got('recordernodes', 'rack-1')).spec['drain'], false);
    assert.equal((await got('recorderpools', 'default')).metadata.annotations?.['kube-nvr.dev/rebalance'], '0c81f3a2');
    assert.deepEqual(
      audited.filter(({ what }) => what === 'apply-object').map(({ object }) => object),
      ['gate', 'default', 'gate', 'yard', 'rack-1', 'default', 'rack-1'],
    );
    for (const path of ['cameras/gate', 'recordernodes/rack-1', 'recorderpools/default']) {
      await client.call('DELETE', `${paths}/${path}`);
    }
  });

  test('a token for another server is printed once, and the store has only its digest', async (t) => {
    const { run, etcd, audited } = await stage(t);
    const { code, out, err } = await run(runCluster, ['token', 'rack-2']);
    assert.equal(code, 0, err);
    assert.match(out, /^nvrjoin\.[0-9a-f]{10}\.[\w-]{43}\.[\w-]{43}\n$/);
    assert.match(err, /^For rack-2, once, until .*: recorder cluster join MEMBER --token TOKEN\n$/);
    assert.deepEqual(
      audited.map(({ what, node }) => [what, node]),
      [['invite-node', 'rack-2']],
    );
    const secret = out.split('.')[2] ?? '';
    const { kvs } = await etcd.range({ key: '/', rangeEnd: '0' });
    assert.ok(kvs.every(({ value }) => !value.includes(secret)));
    assert.match((await run(runCluster, ['token', 'Rack 2'])).err, /node_id: expected the name of a node/);
  });

  test('a key that is not replaced is no success, and the reason is printed', async (t) => {
    const { run, audited } = await stage(t);
    const { code, err } = await run(runCluster, ['rotate-key']);
    assert.deepEqual([code, err], [1, 'recorder: rack-2 does not have the new key\n']);
    assert.deepEqual(
      audited.map(({ what }) => what),
      ['rotate-key'],
    );
  });

  test('without the token of an admin nothing is shown or changed', async (t) => {
    const { directory, run, apply } = await stage(t);
    const file = join(directory, 'viewer.token');
    writeFileSync(file, 'operator');
    for (const args of [['cameras'], ['secrets']]) {
      const done = await run(GET.run, [...args, '--token-file', file]);
      assert.match(done.err, /this needs the role admin/);
    }
    assert.match((await apply(CAMERA, ['--token-file', file])).err, /this needs the role admin/);
    writeFileSync(file, 'guess');
    assert.match(
      (await run(GET.run, ['cameras', '--token-file', file])).err,
      /give the token of an admin with --token-file/,
    );
  });
});

interface Done {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A recorder's API on the store, and commands that call it as on the machine of the recorder. */
async function stage(t: TestContext) {
  const directory = workspace(t);
  const files = nodeFiles(directory, 'rack-1');
  const about = { namespace: STORE_NAMESPACE, pool: 'default' };
  const nowMs = Date.now();
  const founded = await foundCluster({ ...about, nodeId: 'rack-1', names: [], nowMs });
  await writeMember(files, founded);
  const etcd = new EtcdClient({ endpoints: () => [controlPlane.etcd] });
  // Each test begins without objects.
  const { kvs } = await etcd.range({ key: '/kube-nvr/', rangeEnd: '/kube-nvr0' });
  for (const { key } of kvs) await etcd.txn({ compare: [], success: [{ delete: { key } }] });
  const connection = new StoreConnection({ etcd, seal: KeyRing.parse(await readKeys(files)), clock: systemClock });
  const client = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: 10_000 });
  const issuer = new Issuer({ ...about, nodeId: 'rack-1', own: () => founded, api: client, files, clock: systemClock });
  await issuer.adopt();
  const tokens = new JoinTokens({ api: client, namespace: STORE_NAMESPACE, clock: systemClock });
  const admission = new Admission({
    issuer,
    tokens,
    files,
    pool: 'default',
    members: () => [],
    admitElsewhere: () => Promise.reject(new Error('it has a vote')),
  });
  const expulsion = { begin: () => Promise.reject(new Error('nobody is expelled here')), state: undefined };
  const rotation = { rotate: () => Promise.reject(new RotationError('rack-2 does not have the new key')) };
  const audited: AuditEntry[] = [];
  const { app } = await build(t, {
    store: { objects: new ClusterObjects({ api: client, namespace: STORE_NAMESPACE }), admission, rotation, expulsion },
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  t.after(() => client.close());
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const tokenFile = join(directory, 'admin.token');
  writeFileSync(tokenFile, 'admin');
  const run = async (command: Command['run'], args: readonly string[], stdin = ''): Promise<Done> => {
    const { context, printed } = commandContext({ stdin: Readable.from([stdin]) });
    const more = args.includes('--token-file') ? [] : ['--token-file', tokenFile];
    const code = await runCommand({ usage: '', run: command }, [...args, '--server', address, ...more], context);
    return { code, ...printed };
  };
  const apply = (text: string, args: readonly string[] = []): Promise<Done> =>
    run(APPLY.run, ['-f', '-', ...args], text);
  return { directory, client, etcd, audited, run, apply };
}
