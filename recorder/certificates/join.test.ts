// A server that joins a cluster, over the listener of a member, and strangers at the same listener.

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { authoritiesIn } from '../../base/authorities.ts';
import type { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { MEMBERS, startMember } from '../../test/support/member.ts';
import { newAuthority, newKey, newRequest, selfSigned, signRequest } from '../../base/x509.ts';
import { buildServer } from '../http/server.ts';
import { askToJoin, JoinError } from './ask-to-join.ts';
import { JoinTokens } from './join-tokens.ts';
import { formatJoinToken, parseJoinToken } from './join-token.ts';
import { keyIn, type OwnPair, type StoredAuthority } from './authority-copies.ts';
import { KeyRing } from './key-ring.ts';
import { readAuthority, readCluster, readKeys } from './node-files.ts';
import type { MemoryStore } from './test-support.ts';

/** The same with how a server joins it. */
async function stage(t: TestContext) {
  const member = await startMember(t);
  const join = async (token: string, nodeId = 'rack-2', names: readonly string[] = ['127.0.0.2']) => {
    const parsed = parseJoinToken(token);
    assert.ok(parsed, 'it is a token');
    const { clock, port } = member;
    return askToJoin({ address: { host: '127.0.0.1', port }, token: parsed, nodeId, names, clock });
  };
  return { ...member, join };
}

test('a new cluster has a CA, a certificate and keys that only their owner can read', async (t) => {
  const { files } = await stage(t);
  for (const path of [files.key, files.certificate, files.authorities, files.keys, files.cluster]) {
    assert.equal(statSync(path).mode & 0o777, 0o600, path);
  }
  assert.equal(statSync(files.directory).mode & 0o777, 0o700);
  const certificate = new X509Certificate(readFileSync(files.certificate));
  const [ca] = [new X509Certificate(readFileSync(files.authorities))];
  assert.ok(certificate.verify(ca.publicKey));
  assert.match(certificate.subjectAltName ?? '', /URI:kube-nvr:\/\/default\/default\/rack-1/);
  assert.deepEqual([certificate.checkIP('192.0.2.1'), certificate.checkHost('localhost')], ['192.0.2.1', 'localhost']);
  assert.deepEqual((await readCluster(files))?.initial, 'new');
});

test('the first start puts the CA into the store and removes it from the disk; a repeated one changes nothing', async (t) => {
  const { files, store, issuer, authorities } = await stage(t);
  assert.equal(await readAuthority(files), undefined);
  const before = [...store.objects];
  await issuer.adopt();
  assert.deepEqual([...store.objects], before);
  assert.equal((await issuer.trust()).bundle, authorities);
});

test('a server joins with a token: its key stays with it, and it gets certificate, CA, keys and members', async (t) => {
  const { files, admission, authorities, audited, join } = await stage(t);
  const { token } = await admission.invite('rack-2');
  const joined = await join(token);
  const certificate = new X509Certificate(joined.certificate);
  assert.equal(certificate.subject, 'CN=rack-2');
  assert.match(certificate.subjectAltName ?? '', /URI:kube-nvr:\/\/default\/default\/rack-2/);
  assert.deepEqual([certificate.checkIP('127.0.0.2'), certificate.checkIP('127.0.0.1')], ['127.0.0.2', '127.0.0.1']);
  assert.equal(joined.authorities, authorities);
  const sealed = KeyRing.parse(await readKeys(files)).seal(Buffer.from('login'), 'a');
  assert.equal(KeyRing.parse(joined.keys).open(sealed, 'a').toString(), 'login');
  const clusterId = (await readCluster(files))?.clusterId;
  assert.deepEqual(joined.cluster, { version: 1, clusterId, initial: 'join', members: MEMBERS });
  const [entry] = audited;
  assert.deepEqual([entry?.what, entry?.['node'], entry?.['outcome']], ['join-cluster', 'rack-2', 'done']);
  assert.ok(!JSON.stringify(audited).includes(parseJoinToken(token)?.secret ?? ''), 'the audit has no token');
});

test('a token works once, also when two servers bring it at the same time', async (t) => {
  const { admission, join } = await stage(t);
  const { token } = await admission.invite('rack-2');
  const both = await Promise.allSettled([join(token), join(token)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  await assert.rejects(join(token), /the token is wrong, has expired, was used, or is for another node/);
});

test('a token is for one node and an hour', async (t) => {
  const { clock, admission, join } = await stage(t);
  const { token, untilMs } = await admission.invite('rack-2');
  assert.equal(untilMs, clock.wallMs() + HOUR_MS);
  await assert.rejects(join(token, 'rack-3'), /is for another node/);
  clock.stepWall(HOUR_MS);
  await assert.rejects(join(token), /has expired/);
  clock.stepWall(-1);
  assert.equal(new X509Certificate((await join(token)).certificate).subject, 'CN=rack-2', 'refusals did not use it up');
});

test('the store keeps only the digest of a token, and forgets tokens that have expired', async (t) => {
  const { clock, store, admission } = await stage(t);
  const { token } = await admission.invite('rack-2');
  const stored = (): string => Buffer.from(JSON.stringify([...store.objects])).toString();
  const secret = parseJoinToken(token)?.secret ?? '';
  assert.equal(stored().includes(secret), false);
  assert.equal(stored().includes(Buffer.from(secret).toString('base64')), false);
  const tokens = (): number => [...store.objects.keys()].filter((path) => path.includes('/join-')).length;
  assert.equal(tokens(), 1);
  clock.stepWall(HOUR_MS);
  await admission.invite('rack-3');
  assert.equal(tokens(), 1);
});

test('a token that was made before all were removed lets nobody in', async (t) => {
  const { admission, store, clock, join } = await stage(t);
  const { token } = await admission.invite('rack-2');
  await new JoinTokens({ api: store, namespace: 'default', clock }).removeAll();
  await assert.rejects(join(token), /the token is wrong, has expired, was used, or is for another node/);
  await join((await admission.invite('rack-2')).token);
});

test('a wrong secret is refused, and guesses are slowed down', async (t) => {
  const { clock, admission, join } = await stage(t);
  const right = parseJoinToken((await admission.invite('rack-2')).token);
  assert.ok(right);
  const wrong = formatJoinToken({ ...right, secret: 'A'.repeat(43) });
  for (let i = 0; i < 10; i++) await assert.rejects(join(wrong), /the token is wrong/);
  await assert.rejects(join(formatJoinToken(right)), /too many wrong tokens: try again in 6 seconds/);
  clock.advance(6_000);
  await join(formatJoinToken(right));
});

test('a server that is no member of the cluster of the token gets neither the token nor a request', async (t) => {
  const { admission, audited, join } = await stage(t);
  const right = parseJoinToken((await admission.invite('rack-2')).token);
  assert.ok(right);
  const elsewhere = formatJoinToken({ ...right, fingerprint: 'A'.repeat(43) });
  await assert.rejects(join(elsewhere), (err) => err instanceof JoinError && /another fingerprint/.test(err.message));
  assert.deepEqual(audited, []);
});

test('a client that presents the CA of a cluster and has no certificate of it gets no token', async (t) => {
  const { clock, admission, authorities } = await stage(t);
  const parsed = parseJoinToken((await admission.invite('rack-2')).token);
  assert.ok(parsed);
  // The CA certificate is public: everybody can show it. Its key is not.
  const key = newKey();
  const times = { fromMs: Date.now() - HOUR_MS, toMs: Date.now() + DAY_MS };
  const names = ['rack-1', 'kube-nvr://default/default/rack-1', '127.0.0.1'];
  const certificate = await selfSigned(key, { commonName: 'rack-1', names, ...times });
  const heard: string[] = [];
  const app = buildServer({ log: silentLog, maxConnections: 10, tls: { certificate, key } });
  app.get('/cluster/authorities', async () => ({ authorities }));
  app.post('/cluster/join', async ({ body }) => (heard.push(JSON.stringify(body)), {}));
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const joining = askToJoin({
    address: { host: '127.0.0.1', port },
    token: parsed,
    nodeId: 'rack-2',
    names: [],
    clock,
  });
  await assert.rejects(joining, /cannot be asked: (DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_VERIFY_LEAF_SIGNATURE)/);
  assert.deepEqual(heard, []);
});

test('a server gets no certificate in the name or with the address of another node', async (t) => {
  const { store, admission, join } = await stage(t);
  await store.call('POST', '/apis/kube-nvr.dev/v1alpha1/namespaces/default/recordernodes', {
    metadata: { name: 'rack-3' },
    spec: { address: 'https://192.0.2.3:9997', peerAddress: 'https://[2001:db8::3]:9995' },
  });
  const { token } = await admission.invite('rack-2');
  for (const name of ['rack-3', 'RACK-3', '192.0.2.3', '2001:db8::3']) {
    await assert.rejects(join(token, 'rack-2', [name]), /is the node rack-3/, name);
  }
  for (const name of ['kube-nvr://default/default/rack-3', 'a b', '*', '*.example', '']) {
    await assert.rejects(join(token, 'rack-2', [name]), /expected host names and IP addresses/, name);
  }
  await join(token, 'rack-2', ['rack-2.example', '192.0.2.2']);
});

test('while the store cannot be used, the server asks again; after a minute it is told so, and the token stays valid', async (t) => {
  const { store, clock, admission, join } = await stage(t);
  const { token } = await admission.invite('rack-2');
  store.isReachable = false;
  const began = clock.monotonicMs();
  await assert.rejects(passing(clock, join(token)), /the store cannot be reached/);
  assert.ok(clock.monotonicMs() - began > 60_000);
  const joining = join(token);
  store.isReachable = true;
  await passing(clock, joining);
});

/** Time passes while `work` waits for it, until `work` has ended. */
async function passing<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  void work.catch(() => {}).finally(() => over.abort());
  while (!over.signal.aborted) {
    if (clock.timers > 0) clock.advance(1_000);
    await setImmediate();
  }
  return work;
}

test('a request that is not signed with its key costs no token', async (t) => {
  const { admission, port, authorities, join } = await stage(t);
  const { token } = await admission.invite('rack-2');
  const body = JSON.stringify({ token, node_id: 'rack-2', request: 'not a request', names: [] });
  const { text } = await ask(port, { ca: authorities }, `POST /cluster/join HTTP/1.1`, body);
  assert.match(text, /^HTTP\/1\.1 400 [^]*request: it is not a certificate request in PEM/);
  await join(token);
});

interface Asked {
  readonly text: string;
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

/** The whole answer over a connection of its own; with the session that the server gave. */
async function ask(port: number, tls: ConnectionOptions, line: string, body = '', headers = ''): Promise<Asked> {
  const { promise, resolve } = Promise.withResolvers<Asked>();
  let text = '';
  let session: Buffer | undefined;
  let isResumed = false;
  const socket: TLSSocket = connect({ port, host: '127.0.0.1', checkServerIdentity: () => undefined, ...tls });
  socket.on('secureConnect', () => (isResumed = socket.isSessionReused()));
  socket.on('session', (given) => (session = given));
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')));
  socket.on('error', () => {});
  socket.on('close', () => resolve({ text, session, isResumed }));
  const length = body === '' ? '' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  socket.write(`${line}\r\nhost: x\r\n${headers || 'connection: close\r\n'}${length}\r\n${body}`);
  return promise;
}

const STATE = 'GET /api/archive/jobs/e0123456789abcdef01234567 HTTP/1.1';
const PASSED_ON = 'GET /listener/api/api/health/live HTTP/1.1';

test('strangers are told why they are not served: without a certificate, of another CA, and after it expired', async (t) => {
  const { authorities: ca, port, files, issuer, store, pair } = await stage(t);
  const times = { fromMs: Date.now() - HOUR_MS, toMs: Date.now() + DAY_MS };
  const other = await newAuthority({ commonName: 'kube-nvr default/default', ...times });
  const key = newKey();
  const request = await newRequest(key);
  const subject = { commonName: 'rack-2', names: ['rack-2', 'kube-nvr://default/default/rack-2'] };
  const foreign = await signRequest(request, other, { ...subject, ...times });
  const own = await selfSigned(key, { ...subject, ...times });
  // As a member that was switched off for a long time has it.
  const signer = signerIn(store, pair);
  const past = { fromMs: Date.now() - 2 * DAY_MS, toMs: Date.now() - DAY_MS };
  const expired = await signRequest(request, signer, { ...subject, ...past });
  for (const line of [STATE, PASSED_ON, 'GET /cluster/authorities/x HTTP/1.1', 'DELETE /cluster/join HTTP/1.1']) {
    const said = async (certificate?: string): Promise<string> =>
      (await ask(port, { ca, ...(certificate !== undefined && { key, cert: certificate }) }, line)).text;
    assert.match(await said(), /^HTTP\/1\.1 403 [^]*you presented no certificate/, line);
    assert.match(await said(foreign), /^HTTP\/1\.1 403 [^]*your certificate is not of this cluster/, line);
    assert.match(await said(own), /^HTTP\/1\.1 403 [^]*your certificate is not of this cluster/, line);
    assert.match(
      await said(expired),
      /^HTTP\/1\.1 403 [^]*your certificate expired on .*: join the cluster again/,
      line,
    );
  }
  const member = { ca, key, cert: (await issuer.issue({ nodeId: 'rack-2', request, names: [] })).certificate };
  assert.match((await ask(port, member, PASSED_ON)).text, /^HTTP\/1\.1 404 /, 'passed on to a listener without routes');
  assert.equal(await readAuthority(files), undefined);
});

test('a stranger who resumes a session is still a stranger', async (t) => {
  const { authorities: ca, port } = await stage(t);
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const { session, text } = await ask(port, { ca, maxVersion }, 'GET /cluster/authorities HTTP/1.1');
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.ok(session, 'the server gives sessions');
    for (const line of [STATE, PASSED_ON]) {
      const again = await ask(port, { ca, maxVersion, session }, line);
      assert.ok(again.isResumed);
      assert.match(again.text, /^HTTP\/1\.1 403 [^]*you presented no certificate/, `${maxVersion} ${line}`);
    }
  }
});

test('a stranger gets no WebSocket', async (t) => {
  const { authorities: ca, port } = await stage(t);
  const headers =
    'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  assert.equal((await ask(port, { ca }, PASSED_ON, '', headers)).text, '');
});

test('after the CA of the listener was replaced, members of the old one are strangers', async (t) => {
  const { authorities: ca, port, app, pair, issuer } = await stage(t);
  const key = newKey();
  const request = await newRequest(key);
  const member = { ca, key, cert: (await issuer.issue({ nodeId: 'rack-2', request, names: [] })).certificate };
  assert.match((await ask(port, member, PASSED_ON)).text, /^HTTP\/1\.1 404 /);
  const times = { fromMs: Date.now() - HOUR_MS, toMs: Date.now() + DAY_MS };
  const other = await newAuthority({ commonName: 'other', ...times });
  (app.server as Server).setSecureContext({ cert: pair.certificate, key: pair.key, ca: other.certificate });
  assert.match((await ask(port, member, PASSED_ON)).text, /^HTTP\/1\.1 403 /);
});

/** The CA with its key, as the store keeps it. */
function signerIn(store: MemoryStore, own: OwnPair) {
  const secret = [...store.objects.values()].find(({ metadata }) => metadata.name === 'kube-nvr-authorities');
  const [signer] = [...authoritiesIn<StoredAuthority>(secret?.['data']).values()].flat();
  const key = signer && keyIn(signer, own);
  assert.ok(key);
  return { ...signer, key };
}
