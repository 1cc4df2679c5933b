// Recorders among themselves: mutual TLS of the pool's CA, as the asking side and as strangers see it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { connect } from 'node:tls';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { newAuthority, newKey, newRequest, selfSigned, signRequest, type Authority } from '../../base/x509.ts';
import { PEER_LIMITS, PeerPart, type PartDeps } from '../jobs/peer-part.ts';
import type { MutualTls } from '../peers/identity.ts';
import type { Job } from '../jobs/job.ts';
import { PeerServer } from '../../test/support/peer-server.ts';
import { buildPeersServer } from './peers-server.ts';
import { followAuthorities } from '../http/member-certificate.ts';
import { relayedBy } from '../http/relayed.ts';
import { buildServer } from '../http/server.ts';
import { CALLER_HEADER } from '../peers/peer-requests.ts';
import type { JobKeeper } from './deps.ts';

const TIMES = { fromMs: Date.now() - 3_600_000, toMs: Date.now() + 86_400_000 };
const ID = 'e0123456789abcdef01234567';
const BYTES = Buffer.from('a movie');
const ADDRESS = '127.0.0.9:9997';

let ca: Authority;
let directory: string;

before(async () => {
  ca = await newAuthority({ commonName: 'CA', ...TIMES });
  directory = mkdtempSync(join(tmpdir(), 'kube-nvr-peers-'));
  writeFileSync(join(directory, 'e.mp4'), BYTES);
});
after(() => rmSync(directory, { recursive: true }));

async function memberOf(authority: Authority, node: string): Promise<MutualTls> {
  const key = newKey();
  const subject = { commonName: node, names: [node, `kube-nvr://video/default/${node}`], ...TIMES };
  return { key, certificate: await signRequest(await newRequest(key), authority, subject), ca: ca.certificate };
}

interface Stage {
  readonly hasCa?: boolean;
  readonly members?: Parameters<typeof buildPeersServer>[0]['members'];
}

/** The listener of node-1, with one export. */
async function stage(t: TestContext, { hasCa = true, members }: Stage = {}) {
  const job = {
    id: ID,
    cameraId: 'gate',
    fromMs: 0,
    toMs: 1_000,
    createdAtMs: 0,
    kind: 'export',
    state: 'done',
    progress: 1,
  };
  const outcome = { sizeBytes: BYTES.length, durationMs: 1_000, gaps: [] };
  const jobs = {
    fileName: () => 'e.mp4',
    get: async (id: string) => (id === ID ? ({ ...job, outcome } as unknown as Job) : undefined),
    result: async () => ({ path: join(directory, 'e.mp4'), sizeBytes: BYTES.length, modifiedMs: 0 }),
    manifest: async () => undefined,
    signingKey: async () => ({ publicKey: '', fingerprint: '' }),
  } as unknown as JobKeeper;
  const own = await memberOf(ca, 'node-1');
  const [api, playback] = [1, 2].map(() => buildServer({ log: silentLog, maxConnections: 10 }));
  assert.ok(api && playback);
  await Promise.all([api.ready(), playback.ready()]);
  const app = await buildPeersServer({
    nodeId: 'node-1',
    pair: own,
    authorities: hasCa ? ca.certificate : undefined,
    jobs,
    listeners: { api, playback },
    members,
    clock: systemClock,
    log: silentLog,
  });
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { app, port };
}

function part(port: number, own: MutualTls | undefined, { identity = 'node-1', address = ADDRESS } = {}): PeerPart {
  const mutual = { address: `https://127.0.0.1:${port}`, identity: `kube-nvr://video/default/${identity}` };
  const deps: PartDeps = {
    access: {
      members: () => [{ address, mutual }],
      scheme: 'http',
      silenceMs: 5_000,
      own: () => own,
    },
    limits: { ...PEER_LIMITS, giveUpMs: 0 },
    clock: systemClock,
    spareBytes: async () => Infinity,
  };
  const asked = { peerAddress: address, peerJobId: ID };
  return new PeerPart(asked, 0, deps, 'Bearer of-an-admin', new AbortController().signal);
}

test('a member fetches a result from a member, and brings no credential of anybody', async (t) => {
  const { app, port } = await stage(t);
  const seen: (string | undefined)[] = [];
  app.server.on('request', ({ headers }: { headers: { authorization?: string } }) => seen.push(headers.authorization));
  const one = part(port, await memberOf(ca, 'node-2'));
  const done = await one.finished();
  assert.equal(done.camera_id, 'gate');
  const path = join(directory, 'fetched.mp4');
  await one.download(done, path, () => {});
  assert.deepEqual(readFileSync(path), BYTES);
  assert.deepEqual(seen, [undefined, undefined]);
});

test('a member that is another than was asked for is not believed', async (t) => {
  const { port } = await stage(t);
  const own = await memberOf(ca, 'node-2');
  await assert.rejects(part(port, own, { identity: 'node-3' }).finished(), /ERR_TLS_CERT_ALTNAME_INVALID/);
  await assert.rejects(part(port, own, { identity: 'node' }).finished(), /ERR_TLS_CERT_ALTNAME_INVALID/);
});

test('a recorder of an older version, which has no such listener, is asked by its API, with the credential of the caller', async (t) => {
  const peer = await PeerServer.start(t);
  const job = { camera_id: 'gate', from: 0, to: 1, kind: 'export', state: 'done', size_bytes: BYTES.length };
  peer.serve(ID, job, BYTES);
  for (const own of [undefined, await memberOf(ca, 'node-2')]) {
    const deps: PartDeps = {
      access: { members: () => [{ address: peer.address }], scheme: 'http', silenceMs: 5_000, own: () => own },
      limits: PEER_LIMITS,
      clock: systemClock,
      spareBytes: async () => Infinity,
    };
    const asked = { peerAddress: peer.address, peerJobId: ID };
    await new PeerPart(asked, 0, deps, 'Bearer one', new AbortController().signal).finished();
  }
  assert.deepEqual([...peer.credentials], ['Bearer one']);
});

/** The status of an answer; undefined when the handshake or the connection ends without one. */
function ask(
  port: number,
  path: string,
  pair?: Pick<MutualTls, 'key' | 'certificate'>,
  method = 'GET',
  headers: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const options = pair ? { key: pair.key, cert: pair.certificate } : {};
    const socket = connect({
      port,
      host: '127.0.0.1',
      ca: ca.certificate,
      checkServerIdentity: () => undefined,
      ...options,
    });
    let answer = '';
    socket.on('data', (data: Buffer) => (answer += data.toString('latin1')));
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer === '' ? undefined : Number(answer.split(' ')[1])));
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\n${more.join('')}connection: close\r\n\r\n`);
  });
}

test('without a certificate of this CA there is no answer, before and after the CA has signed for this node', async (t) => {
  const path = `/api/archive/jobs/${ID}`;
  const key = newKey();
  const other = await newAuthority({ commonName: 'CA', ...TIMES });
  const subject = { commonName: 'node-2', names: ['node-2'], ...TIMES };
  const strangers = [undefined, { key, certificate: await selfSigned(key, subject) }, await memberOf(other, 'node-2')];
  const early = await stage(t, { hasCa: false });
  const { app, port } = await stage(t);
  for (const stranger of strangers) {
    assert.equal(await ask(port, path, stranger), undefined);
    assert.equal(await ask(early.port, path, stranger), undefined);
  }
  const member = await memberOf(ca, 'node-2');
  assert.equal(await ask(early.port, path, member), undefined, 'nobody is let in before there is a CA');
  assert.equal(await ask(port, path, member), 200);
  // Another certificate and CA take their places while it listens.
  const next = await memberOf(other, 'node-1');
  (app.server as Server).setSecureContext({ key: next.key, cert: next.certificate, ca: other.certificate });
  assert.equal(await ask(port, path, member), undefined);
});

test('only the nodes that the store has are members; one that is not known yet is looked up before it is refused', async (t) => {
  const known = new Set(['node-2']);
  const look = async (): Promise<void> => void known.add('node-3');
  const { port } = await stage(t, { members: { has: (nodeId) => known.has(nodeId), look } });
  const path = `/api/archive/jobs/${ID}`;
  const asked: (number | undefined)[] = [];
  for (const node of ['node-2', 'node-3', 'node-4']) asked.push(await ask(port, path, await memberOf(ca, node)));
  known.delete('node-2');
  asked.push(await ask(port, path, await memberOf(ca, 'node-2')));
  assert.deepEqual(asked, [200, 200, 403, 403]);
});

test('connections with certificates of a CA that is no longer trusted end, and the others go on', async (t) => {
  const { app, port } = await stage(t);
  const next = await newAuthority({ commonName: 'CA', ...TIMES });
  const own = await memberOf(ca, 'node-1');
  const follow = followAuthorities(app.server as Server);
  follow(own, `${ca.certificate}${next.certificate}`);
  const open = async (pair: MutualTls) => {
    const { key, certificate: cert } = pair;
    const options = { port, host: '127.0.0.1', key, cert, rejectUnauthorized: false };
    const socket = connect(options);
    await once(socket, 'secureConnect');
    // In TLS 1.3 the server has not seen the certificate yet.
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'data');
    return socket;
  };
  const [old, renewed] = [await open(await memberOf(ca, 'node-2')), await open(await memberOf(next, 'node-3'))];
  const session = old.getSession();
  follow(own, next.certificate);
  await once(old, 'close');
  renewed.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(renewed, 'data');
  renewed.destroy();
  // The session of the connection that ended does not stand for the certificate, either.
  const again = connect({ port, host: '127.0.0.1', session, rejectUnauthorized: false });
  again.on('error', () => {});
  let said = '';
  again.on('data', (data: Buffer) => (said += data.toString('latin1')));
  again.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await new Promise((resolve) => again.once('close', resolve));
  assert.equal(said, '');
});

test('a command with the key of this node may do everything here, and no other member may', async (t) => {
  const { app, port } = await stage(t);
  const seen: unknown[] = [];
  app.server.on('request', (raw: IncomingMessage) => seen.push(relayedBy(raw)?.viewer?.role));
  const statement = { name: 'command', cameras: [], may: 'everything' };
  const headers = { [CALLER_HEADER]: Buffer.from(JSON.stringify(statement)).toString('base64url') };
  const path = '/listener/api/api/cluster/cameras/gate';
  assert.equal(await ask(port, path, await memberOf(ca, 'node-2'), 'DELETE', headers), 400);
  // Nothing is behind the listener of this test.
  assert.equal(await ask(port, path, await memberOf(ca, 'node-1'), 'DELETE', headers), 404);
  assert.equal(await ask(port, path, await memberOf(ca, 'node-1'), 'DELETE'), 404);
  assert.deepEqual(seen, [undefined, 'admin', undefined]);
});

test('members are served results of jobs, and nothing else', async (t) => {
  const { port } = await stage(t);
  const member = await memberOf(ca, 'node-2');
  assert.equal(await ask(port, `/api/archive/jobs/${ID}/download`, member), 200);
  assert.equal(await ask(port, '/api/archive/jobs/e999999999999999999999999', member), 404);
  for (const path of ['/', '/api/cameras', '/api/archive/jobs', '/cluster/cameras', '/metrics', '/api/log']) {
    assert.ok([404, 405].includes((await ask(port, path, member)) ?? 0), path);
  }
  assert.equal(await ask(port, `/api/archive/jobs/${ID}`, member, 'DELETE'), 405);
});
