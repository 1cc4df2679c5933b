// A server without Kubernetes is stolen: its owner follows the page, and the thief tries every door with what was on the server.

import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { after, afterEach, before, suite, test } from 'node:test';
import { authoritiesIn, leafTimes, type KeptAuthority } from '../../base/authorities.ts';
import { systemClock } from '../../base/clock.ts';
import { EtcdClient } from '../../base/etcd/client.ts';
import { messageOf } from '../../base/error.ts';
import { newKey, newRequest, signRequest } from '../../base/x509.ts';
import type { Camera } from '../../crds/camera.ts';
import { nodeIdentity } from '../../crds/names.ts';
import { keyIn, type StoredAuthority } from '../../recorder/certificates/authority-copies.ts';
import { KeyRing, SealError } from '../../recorder/certificates/key-ring.ts';
import { nodeFiles } from '../../recorder/certificates/node-files.ts';
import { ApiServer } from '../../recorder/cluster/api-server.ts';
import { CALLER_HEADER } from '../../recorder/peers/peer-requests.ts';
import { StoreConnection } from '../../store/connection.ts';
import { startCamera, type Camera as Source } from '../camera/camera.ts';
import { Page } from '../operations/page.ts';
import { until as untilWithin } from '../support/until.ts';
import { PlainServers, plainServersMissing, type PlainServer } from './plain-servers.ts';
import { askEtcd } from './votes.ts';

const until = <T>(what: string, ask: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> =>
  untilWithin(what, ask, 240_000, 250);

const AUTHORITIES = '/api/v1/namespaces/default/secrets/kube-nvr-authorities';

interface Identity {
  readonly certificate: string;
  readonly key: string;
  readonly ca: string;
}

interface Asked {
  readonly headers?: object;
  readonly body?: object;
  /** The address of the host that asks. */
  readonly from?: string;
}

/** The status of an answer over mutual TLS. Rejects without one. */
function ask(place: string, path: string, own: Partial<Identity>, more: Asked = {}) {
  return new Promise<number>((resolve, reject) => {
    const [host = '', port] = place.split(':');
    const { headers = {}, body, from } = more;
    const asked = request(
      {
        host,
        port,
        path,
        method: body ? 'POST' : 'GET',
        headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
        cert: own.certificate,
        key: own.key,
        // A thief minds no certificates of others.
        rejectUnauthorized: false,
        agent: false,
        localAddress: from,
      },
      (answer) => answer.resume().once('end', () => resolve(answer.statusCode ?? 0)),
    );
    asked.setTimeout(10_000, () => asked.destroy(new Error('no answer')));
    asked.once('error', reject);
    asked.end(body && JSON.stringify(body));
  });
}

/** What the files of a server open. */
interface Files {
  readonly own: Identity;
  readonly ring: KeyRing;
}

function filesOf(server: PlainServer, directory: string): Files {
  const files = nodeFiles(join(directory, 'data'), server.name);
  const paths = [files.certificate, files.key, files.authorities, files.keys];
  const [certificate = '', key = '', ca = '', keys = ''] = paths.map((file) => readFileSync(file, 'utf8'));
  return { own: { certificate, key, ca }, ring: KeyRing.parse(keys) };
}

/** The store of the cluster, by etcd of this server. */
function apiAt(at: PlainServer, { own, ring }: Files): ApiServer {
  const etcd = new EtcdClient({ endpoints: () => [`https://${at.address}:2379`], tls: () => own });
  return new ApiServer(new StoreConnection({ etcd, seal: ring, clock: systemClock }));
}

/** The CAs as the store has them. */
async function authoritiesAt(at: PlainServer, files: Files): Promise<readonly StoredAuthority[]> {
  const api = apiAt(at, files);
  try {
    const { data } = await api.get(AUTHORITIES);
    return [...authoritiesIn<StoredAuthority>(data).values()].flat();
  } finally {
    await api.close();
  }
}

/** What a thief copies from the disk of a server, and makes of it. */
class Thief {
  /** Where the thief is. */
  readonly address: string;
  readonly own: Identity;
  readonly ring: KeyRing;
  readonly adminToken: string;
  /** A session of an admin, which the server signed. */
  readonly cookie: string;
  /** A token for joining, which an admin of the server made. */
  readonly joinToken: string;
  /** Of the CA, as the store had it. */
  authority: KeptAuthority | undefined;
  /** A certificate in the name of another server, made with the key of the CA. */
  forged: Identity | undefined;

  constructor(
    server: PlainServer,
    loot: string,
    { address, cookie, joinToken }: Pick<Thief, 'address' | 'cookie' | 'joinToken'>,
  ) {
    this.address = address;
    ({ own: this.own, ring: this.ring } = filesOf(server, loot));
    this.adminToken = readFileSync(join(loot, 'work/admin.token'), 'utf8').trim();
    this.cookie = cookie;
    this.joinToken = joinToken;
  }

  /** The CA's key is in the store, encrypted with a key of the server's ring: a copy for each server with a vote. */
  async takeAuthority(at: PlainServer): Promise<void> {
    const [stored] = await authoritiesAt(at, this);
    const opened = stored && keyIn(stored, this.own);
    assert.ok(opened, 'rack-3 has a vote');
    this.authority = { ...stored, key: opened };
    const key = newKey();
    // etcd wants to see the address of its other members in their certificates.
    const names = [at.name, nodeIdentity('default', 'default', at.name), at.address, this.address];
    const subject = { commonName: at.name, names, ...leafTimes(this.authority, Date.now()) };
    const certificate = await signRequest(await newRequest(key), this.authority, subject);
    this.forged = { certificate, key, ca: this.own.ca };
  }

  /** By door: what happened there. `open`: it let the thief in. */
  async doors(at: PlainServer): Promise<Readonly<Record<string, string>>> {
    const statement = (caller: object): object => ({
      headers: { [CALLER_HEADER]: Buffer.from(JSON.stringify(caller)).toString('base64url') },
    });
    const asked = async (path: string, own: Partial<Identity>, more = {}): Promise<boolean> =>
      (await ask(`${at.address}:9995`, path, own, more)) < 300;
    const http = async (path: string, headers: Record<string, string>): Promise<boolean> =>
      (await fetch(at.url + path, { headers })).ok;
    const key = newKey();
    const join = { token: this.joinToken, node_id: 'rack-9', request: await newRequest(key), names: [] };
    const doors: Record<string, () => Promise<boolean>> = {
      'API, token of the server': () => http('/api/accounts', { authorization: `Bearer ${this.adminToken}` }),
      'API, session that the server signed': () => http('/api/session', { cookie: this.cookie }),
      // A wrong token is counted: it is used last.
      'listener for members, token for joining': () => asked('/cluster/join', {}, { body: join }),
    };
    for (const [whose, identity] of Object.entries({ 'its certificate': this.own, 'a forged one': this.forged })) {
      if (!identity) continue;
      Object.assign(doors, {
        [`etcd for clients, ${whose}`]: async () => {
          const api = apiAt(at, { own: identity, ring: this.ring });
          try {
            return (await api.list('/apis/kube-nvr.dev/v1alpha1/namespaces/default/cameras')).items.length > 0;
          } finally {
            await api.close();
          }
        },
        [`keys, ${whose}`]: () => asked('/cluster/keys', identity),
        [`API by its listener for members, ${whose}`]: () =>
          asked('/listener/api/api/cameras', identity, statement({ name: 'the-mayor', cameras: ['*'] })),
      });
    }
    const { forged, address } = this;
    if (forged) {
      doors['etcd for members, a forged one'] = async () =>
        (await ask(`${at.address}:2380`, '/version', forged, { from: address })) < 300;
    }
    const found: Record<string, string> = {};
    for (const [name, door] of Object.entries(doors)) {
      found[name] = await door().then((isOpen) => (isOpen ? 'open' : 'refused'), messageOf);
    }
    return found;
  }
}

const openIn = (doors: Readonly<Record<string, string>>): readonly string[] =>
  Object.keys(doors).filter((name) => doors[name] === 'open');

suite('a stolen server', { skip: plainServersMissing() }, () => {
  let servers: PlainServers;
  let source: Source;
  let [first, second, third]: readonly PlainServer[] = [];
  let thief: Thief;

  const gate = async (): Promise<Camera> =>
    JSON.parse(await first!.run('get', 'camera', 'gate', '-o', 'json')) as Camera;

  async function invite(server: PlainServer): Promise<void> {
    const token = /nvrjoin\.\S+/.exec(await first!.run('cluster', 'token', server.name))![0];
    await server.run('cluster', 'join', `${first!.address}:9995`, '--token', token, '--address', server.address);
  }

  const apply = async (name: string, object: object): Promise<string> => {
    const manifest = join(servers.directory, `${name}.json`);
    writeFileSync(manifest, JSON.stringify(object));
    return first!.run('apply', '-f', manifest);
  };

  const login = (password: string): Promise<string> =>
    apply('gate-login', {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'gate-login' },
      type: 'Opaque',
      stringData: { username: 'viewer', password },
    });

  /** The servers for which the store has the key of the CA that this one can open, too. */
  const havingKey = async (by: PlainServer): Promise<string> => {
    const files = filesOf(by, by.directory);
    const stored = await authoritiesAt(by, files);
    assert.ok(stored.every((one) => keyIn(one, files.own) !== undefined && !('key' in one)));
    return stored
      .map(({ copies = [] }) =>
        copies
          .map(({ nodeId }) => nodeId)
          .sort()
          .join(' '),
      )
      .join(', ');
  };

  const inEtcd = (by: PlainServer, members: string): Promise<unknown> =>
    until(`etcd has ${members}`, async () => (await by.etcdMembers()).join(' ') === members);

  before(async () => {
    servers = await PlainServers.make();
    source = await startCamera({ pace: 'realtime', host: servers.network.addresses.cameras });
    for (const name of ['rack-1', 'rack-2', 'rack-3']) await servers.add(name);
    [first, second, third] = servers.all;
    await first!.run('cluster', 'init', '--address', first!.address);
    await first!.start();
    const spec = { source: source.url };
    await apply('gate', { apiVersion: 'kube-nvr.dev/v1alpha1', kind: 'Camera', metadata: { name: 'gate' }, spec });
    await login('before-the-theft');
    await until('rack-1 records the camera', async () =>
      (await gate()).status?.conditions?.some(({ type, status }) => type === 'Recording' && status === 'True'),
    );
    for (const server of [second!, third!]) {
      await invite(server);
      await server.start();
    }
    await inEtcd(first!, 'rack-1 rack-2 rack-3');
    await until(
      'each server has a copy of the key of the CA',
      async () => (await havingKey(first!)) === 'rack-1 rack-2 rack-3',
    );
  });

  afterEach((t) => {
    if ('passed' in t && t.passed) return;
    for (const { name, output } of servers.all) console.log(name, output);
  });

  after(async () => {
    await source?.close();
    await servers?.[Symbol.asyncDispose]();
  });

  test('with the files of a server every door of the cluster is open', async () => {
    const ofFirst = readFileSync(join(String(first!.config['workDir']), 'admin.token'), 'utf8').trim();
    const signedIn = await until('rack-3 knows the tokens of rack-1', async () => {
      const answer = await fetch(`${third!.url}/api/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: ofFirst }),
      });
      return answer.ok && answer;
    });
    const cookie = String(signedIn.headers.get('set-cookie')).split(';', 1)[0] ?? '';
    const [joinToken = ''] = /nvrjoin\.\S+/.exec(await third!.run('cluster', 'token', 'rack-9')) ?? [];
    await third!.kill();
    const loot = join(servers.directory, 'loot');
    cpSync(third!.directory, loot, { recursive: true });
    thief = new Thief(third!, loot, { address: servers.network.addresses.viewers, cookie, joinToken });
    await thief.takeAuthority(first!);
    const doors = await thief.doors(first!);
    // The token for joining works once. A second one is left for the time after the server was expelled.
    assert.deepEqual(openIn(doors), Object.keys(doors), JSON.stringify(doors, undefined, 2));
    const [second = ''] = /nvrjoin\.\S+/.exec(await first!.run('cluster', 'token', 'rack-9')) ?? [];
    Object.assign(thief, { joinToken: second });
  });

  test('the page shuts every door, and meanwhile no picture is lost and no camera moves', async () => {
    const fromMs = Date.now();
    const before = await gate();
    const page = new Page('stolen-server.md', { on });
    await page.follow('On servers without Kubernetes', {
      events: { 'rack-3 is stolen': () => {} },
      any: ['READY', 'REASON'],
    });
    const doors = await Promise.all([first!, second!].map((server) => thief.doors(server)));
    assert.deepEqual(doors.map(openIn), [[], []], JSON.stringify(doors, undefined, 2));
    assert.deepEqual(await first!.etcdMembers(), ['rack-1', 'rack-2']);
    for (const server of [first!, second!]) assert.equal(await havingKey(server), 'rack-1 rack-2');
    await login('after-the-theft');
    const sealed = await askEtcd(
      first!,
      async (etcd) =>
        (await etcd.range({ key: '/kube-nvr/objects/secrets/', rangeEnd: '/kube-nvr/objects/secrets0' })).kvs,
    );
    assert.ok(sealed.length > 2);
    for (const { key, value } of sealed) assert.throws(() => thief.ring.open(value, key), SealError, key);
    const owner = ({ status }: typeof before): unknown => [status?.assignment?.node, status?.assignment?.epoch];
    assert.deepEqual(owner(await gate()), owner(before));
    const path = `/api/archive/gate/gaps?from=${fromMs / 1000}&to=${Date.now() / 1000}&local=1`;
    const { gaps } = (await (await first!.call('GET', path)).json()) as { readonly gaps: unknown };
    assert.deepEqual(gaps, []);
    await page.follow('Its replacement, without Kubernetes', {
      events: {
        'another server joins as rack-3': async () => {
          for (const name of ['data', 'work', 'recordings']) {
            rmSync(join(third!.directory, name), { recursive: true, force: true });
          }
          await invite(third!);
          await third!.start();
          await inEtcd(first!, 'rack-1 rack-2 rack-3');
        },
      },
      any: ['READY', 'REASON'],
    });
    page.end();
    assert.deepEqual(openIn(await thief.doors(second!)), [], 'also with another server of this name');
    await servers.assertVotesAreTold();
  });

  /** Runs a line of the page on a server. */
  async function on(name: string, script: string): Promise<{ readonly code: number; readonly printed: string }> {
    const server = servers.all.find((one) => one.name === name)!;
    const { code, output } = await server.attempt(...script.split(' ').slice(1));
    return { code: code ?? 1, printed: output };
  }
});
