// The recorder's own member of etcd: one, three, one that dies, leaves, lost its data, or came from a backup.

import assert from 'node:assert/strict';
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { silentLog } from '../../base/log.ts';
import { EtcdMember, EtcdMemberError } from '../../recorder/servers/etcd-member.ts';
import { freePorts } from '../support/recorder-process.ts';
import { PATIENCE_MS, until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';
import { CertificateAuthority } from './certificates.ts';
import { etcdMissing } from './programs.ts';

const skip = etcdMissing();

interface Node {
  readonly name: string;
  readonly directory: string;
  readonly url: string;
  readonly client: EtcdClient;
  /** Starts a member there: the first one, or one that joins the others. */
  start(others?: EtcdClient, more?: { readonly isLast: boolean }): Promise<EtcdMember>;
}

async function node(t: TestContext, name: string, authority?: CertificateAuthority): Promise<Node> {
  const root = workspace(t);
  const files = authority?.issue(name, { commonName: name, hosts: ['127.0.0.1'] });
  const tls = authority && files && { certificate: files.cert, key: files.key, authorities: authority.certFile };
  const scheme = tls ? 'https' : 'http';
  const directory = join(root, 'etcd');
  const [peerPort, clientPort] = (await freePorts(2)) as [number, number];
  const url = `${scheme}://127.0.0.1:${clientPort}`;
  const pems = tls && {
    ca: readFileSync(tls.authorities, 'utf8'),
    certificate: readFileSync(tls.certificate, 'utf8'),
    key: readFileSync(tls.key, 'utf8'),
  };
  const client = new EtcdClient({ endpoints: () => [url], tls: () => pems });
  t.after(() => client.close());
  return {
    name,
    directory,
    url,
    client,
    async start(others, more) {
      const member = new EtcdMember({
        directory,
        witnessFile: join(root, 'witness'),
        name,
        peerUrl: `${scheme}://127.0.0.1:${peerPort}`,
        clientUrl: url,
        tls,
        own: client,
        others,
        ...more,
        clock: systemClock,
        log: silentLog,
      });
      t.after(() => member.close());
      await member.start();
      return member;
    },
  };
}

const put = (client: EtcdClient, key: string, value: string) =>
  client.txn({ compare: [], success: [{ put: { key, value } }] });
const valueOf = async (client: EtcdClient, key: string): Promise<string | undefined> =>
  (await client.range({ key })).kvs[0]?.value.toString();
const names = async (client: EtcdClient): Promise<readonly string[]> =>
  (await client.members()).map(({ name, isLearner }) => (isLearner ? `(${name})` : name)).sort();
const patience = (): AbortSignal => AbortSignal.timeout(PATIENCE_MS);

test('a member keeps what it stored when it is stopped, and when it is killed', { skip }, async (t) => {
  const one = await node(t, 'one');
  const first = await one.start();
  await put(one.client, 'a', '1');
  await first.close();
  const second = await one.start();
  assert.equal(await valueOf(one.client, 'a'), '1');
  const { pid } = second;
  process.kill(pid!, 'SIGKILL');
  await until('it is started again', async () => second.pid !== pid && (await valueOf(one.client, 'a')) === '1');
});

test('others join as learners, get a vote, and one of three may be lost', { skip }, async (t) => {
  const [one, two, three] = [await node(t, 'one'), await node(t, 'two'), await node(t, 'three')];
  await one.start();
  await put(one.client, 'a', '1');
  const second = await two.start(one.client);
  assert.deepEqual(await names(one.client), ['(two)', 'one']);
  await second.promote(patience());
  await second.promote(patience());
  const third = await three.start(one.client);
  await third.promote(patience());
  assert.deepEqual(await names(three.client), ['one', 'three', 'two']);
  await second.close();
  await until('two of three accept writes', () => put(three.client, 'a', '2').then(() => true));
  assert.equal(await valueOf(one.client, 'a'), '2');
});

test(
  'members with certificates speak to each other and to clients of their authority, and to nobody else',
  { skip },
  async (t) => {
    const authority = new CertificateAuthority(join(workspace(t), 'pki'));
    const [one, two] = [await node(t, 'one', authority), await node(t, 'two', authority)];
    await one.start();
    const second = await two.start(one.client);
    await second.promote(patience());
    await put(one.client, 'a', '1');
    assert.equal(await valueOf(two.client, 'a'), '1');
    const stranger = new EtcdClient({
      endpoints: () => [one.url],
      tls: () => ({ ca: readFileSync(authority.certFile, 'utf8'), certificate: '', key: '' }),
    });
    t.after(() => stranger.close());
    await assert.rejects(stranger.range({ key: 'a' }), { code: 'UNREACHABLE' });
  },
);

test('a member that leaves is no member any more, has no data, and can join again', { skip }, async (t) => {
  const [one, two] = [await node(t, 'one'), await node(t, 'two')];
  await one.start();
  await put(one.client, 'a', '1');
  const member = await two.start(one.client);
  await member.promote(patience());
  await member.leave({ force: false });
  assert.ok(!existsSync(two.directory));
  await until('the other one goes on alone', () => put(one.client, 'a', '2').then(() => true));
  assert.deepEqual(await names(one.client), ['one']);
  const again = await two.start(one.client);
  await again.promote(patience());
  assert.equal(await valueOf(two.client, 'a'), '2');
});

test('without a majority a member leaves only by force, because the others cannot be told', { skip }, async (t) => {
  const [one, two] = [await node(t, 'one'), await node(t, 'two')];
  const first = await one.start();
  const member = await two.start(one.client);
  await member.promote(patience());
  await first.close();
  await assert.rejects(member.leave({ force: false }), { code: 'NOT_REMOVED' });
  await member.leave({ force: true });
  assert.ok(!existsSync(two.directory));
});

test('a member whose data was deleted comes back as a learner', { skip }, async (t) => {
  const [one, two] = [await node(t, 'one'), await node(t, 'two')];
  await one.start();
  const learner = await two.start(one.client);
  await learner.close();
  rmSync(two.directory, { recursive: true });
  const again = await two.start(one.client);
  await again.promote(patience());
  assert.deepEqual(await names(one.client), ['one', 'two']);
});

test('data from a backup is refused, with an instruction', { skip }, async (t) => {
  const one = await node(t, 'one');
  const member = await one.start();
  const backup = join(workspace(t), 'backup');
  // While it runs, and put back without a start in between.
  cpSync(one.directory, backup, { recursive: true });
  await member.close();
  rmSync(one.directory, { recursive: true });
  cpSync(backup, one.directory, { recursive: true });
  await assert.rejects(one.start(), (err) => {
    assert.ok(err instanceof EtcdMemberError && err.code === 'STALE_DATA');
    assert.match(err.message, /from a backup .* remove the node on the leader, delete this directory/);
    return true;
  });
});

test(
  'the last of three makes a cluster of itself, even from a backup, and the others are refused',
  { skip },
  async (t) => {
    const [one, two, three] = await Promise.all(['one', 'two', 'three'].map((name) => node(t, name)));
    const members = [await one!.start()];
    for (const other of [two!, three!]) {
      const member = await other.start(one!.client);
      await member.promote(patience());
      members.push(member);
    }
    await put(one!.client, 'a', '1');
    const backup = join(workspace(t), 'backup');
    // The others may have the key before the disk of this one has it.
    await members[0]!.close();
    cpSync(one!.directory, backup, { recursive: true });
    members[0] = await one!.start();
    for (const member of members) await member.close();
    rmSync(one!.directory, { recursive: true });
    cpSync(backup, one!.directory, { recursive: true });
    await one!.start(undefined, { isLast: true });
    assert.deepEqual(await names(one!.client), ['one']);
    assert.equal(await valueOf(one!.client, 'a'), '1');
    for (const other of [two!, three!]) await assert.rejects(other.start(one!.client), { code: 'NOT_STARTED' });
    const four = await node(t, 'four');
    await assert.rejects(four.start(undefined, { isLast: true }), /has no data of etcd/);
    await (await four.start(one!.client)).close();
    await assert.rejects(four.start(undefined, { isLast: true }), /is of a member without a vote/);
  },
);

test('a program that is missing, or of another version, is named', { skip }, async (t) => {
  const directory = workspace(t);
  const program = join(directory, 'etcd');
  const start = (path: string) =>
    new EtcdMember({
      directory: join(directory, 'data'),
      witnessFile: join(directory, 'witness'),
      name: 'one',
      peerUrl: 'http://127.0.0.1:1',
      clientUrl: 'http://127.0.0.1:2',
      own: new EtcdClient({ endpoints: () => [] }),
      clock: systemClock,
      log: silentLog,
      program: path,
    }).start();
  await assert.rejects(start(join(directory, 'none')), { code: 'NOT_INSTALLED' });
  writeFileSync(program, '#!/bin/sh\necho "etcd Version: 2.3.8"\n');
  chmodSync(program, 0o755);
  await assert.rejects(start(program), {
    code: 'WRONG_VERSION',
    message: 'etcd 2.3.8 is not supported: it must be 3.4 to 3.6',
  });
});
