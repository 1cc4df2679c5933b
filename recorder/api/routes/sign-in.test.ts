import assert from 'node:assert/strict';
import { createServer, request as ask } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { generateKeyPair, SignJWT } from 'jose';
import { Registry } from 'prom-client';
import { Browser, CLIENT, startIssuer, type Person, type TestIssuer } from '../../../test/support/issuer.ts';
import { systemClock } from '../../../base/clock.ts';
import { NO_CAMERA_THERE } from '../../../base/networks.ts';
import { CameraNetworks } from '../../reach/networks.ts';
import { IssuerList, type IssuerConfig } from '../../config/schema.ts';
import type { AuditEntry } from '../../audit/entry.ts';
import { endedBy } from '../../http/issuer-rules.ts';
import type { StatedCaller } from '../../http/relayed.ts';
import { publicKeyOf, Seal } from '../../http/seal.ts';
import { SESSION_COOKIE } from '../../http/sessions.ts';
import { Issuers } from '../../identity/issuers.ts';
import { build, token, type TestApi } from '../test-support.ts';

const ANNA: Person = { sub: 'u-1', preferred_username: 'anna', groups: ['staff', 'nvr-guards'] };
const RULES = [
  { claim: 'groups', value: 'nvr-admins', role: 'admin' },
  { claim: 'groups', value: 'nvr-guards', role: 'viewer', cameras: ['gate', 'dock-*'], export: true },
];

interface Stage extends TestApi {
  readonly registry: Registry;
  readonly url: string;
  readonly issuer: TestIssuer;
  readonly issuers: Issuers;
  readonly config: (changes?: object) => readonly IssuerConfig[];
  readonly audited: readonly AuditEntry[];
  readonly browser: Browser;
}

/** A recorder whose people sign in at an issuer. */
async function stage(t: TestContext, changes: object = {}, networks = new CameraNetworks()): Promise<Stage> {
  const audited: AuditEntry[] = [];
  const issuers = new Issuers([], { clock: systemClock, networks });
  t.after(() => issuers.close());
  const registry = new Registry();
  const api = await build(t, {
    auth: { mode: 'token', tokens: [token('admin')], registry },
    issuers,
    audit: { sink: { write: (entry) => void audited.push(entry) } },
  });
  // Certificates and tokens of the issuer have the time of the system.
  api.clock.advance(Date.now() - api.clock.wallMs());
  const url = await api.app.listen({ port: 0, host: '127.0.0.1' });
  const issuer = await startIssuer(t);
  issuer.serve(url);
  const config = (more: object = {}): readonly IssuerConfig[] =>
    IssuerList.parse([
      { name: 'plant', issuer: issuer.url, clientId: CLIENT.id, clientSecret: CLIENT.secret, rules: RULES, ...more },
    ]);
  issuers.replace(config(changes));
  api.auth.replaceIssuers(config(changes));
  return { ...api, registry, url, issuer, issuers, config, audited, browser: new Browser() };
}

async function signIn({ url, browser, issuer }: Stage, person: Person | undefined, to = '#/live'): Promise<string> {
  issuer.person = person;
  const { addresses } = await browser.open(`${url}/api/sign-in/plant?to=${encodeURIComponent(to)}`);
  return addresses.at(-1) ?? '';
}

const sessionOf = ({ url, browser }: Stage) => browser.request(`${url}/api/session`);

test('a person signs in at the issuer, and has the rights of the first rule that fits', async (t) => {
  const all = await stage(t);
  const { url, browser, audited } = all;
  assert.deepEqual(await (await fetch(`${url}/api/sign-in`)).json(), { issuers: [{ name: 'plant', label: 'plant' }] });
  assert.equal(await signIn(all, ANNA, '#/playback?c=gate'), `${url}/#/playback?c=gate`);
  const { name, role, cameras, may_export } = (await (await sessionOf(all)).json()) as Record<string, unknown>;
  assert.deepEqual([name, role, cameras, may_export], ['plant/anna', 'viewer', ['gate', 'dock-*'], true]);
  assert.ok(browser.cookie(url, SESSION_COOKIE));
  assert.equal(browser.cookie(url, 'kube_nvr_sign_in'), undefined);
  const line = audited.find(({ what }) => what === 'sign-in');
  const { caller, issuer, subject, outcome, role: told } = line as AuditEntry;
  assert.deepEqual([caller, issuer, subject, outcome, told], ['plant/anna', 'plant', 'u-1', 'done', 'viewer']);
});

test('a person whom no rule fits is told so, and has no session', async (t) => {
  const all = await stage(t);
  const at = await signIn(all, { ...ANNA, groups: ['staff'] });
  assert.equal(at, `${all.url}/#/login?problem=no-role&issuer=plant&to=%23%2Flive`);
  assert.equal((await sessionOf(all)).status, 401);
  const { outcome, problem, subject, caller } = all.audited.at(-1) as AuditEntry;
  assert.deepEqual([outcome, problem, subject, caller], ['denied', 'no-role', 'u-1', null]);
});

test('a person who refuses at the issuer comes back to the sign-in page', async (t) => {
  const all = await stage(t);
  assert.match(await signIn(all, undefined), /#\/login\?problem=refused&issuer=plant/);
  assert.equal((await sessionOf(all)).status, 401);
});

test('an answer of the issuer is worth nothing in a browser that has not asked, and nothing twice', async (t) => {
  const all = await stage(t);
  const { url, browser, issuer } = all;
  issuer.person = ANNA;
  const begun = await browser.request(`${url}/api/sign-in/plant`);
  // Stops where the issuer sends the browser back.
  let next = begun.headers.get('location') ?? '';
  while (!next.startsWith(url)) next = new URL((await browser.request(next)).headers.get('location') ?? '', next).href;
  const stranger = await new Browser().open(next);
  assert.match(stranger.addresses.at(-1) ?? '', /problem=expired/);
  const changed = await browser.request(next.replace(/state=[^&]*/, 'state=another'));
  assert.match(changed.headers.get('location') ?? '', /problem=invalid/);
  const again = await browser.request(next);
  assert.match(again.headers.get('location') ?? '', /problem=expired/);
  assert.equal((await sessionOf(all)).status, 401);
});

test('the issuer ends the session at which it was asked, and the other sessions of the person go on', async (t) => {
  const all = await stage(t);
  await signIn(all, ANNA);
  const other = { ...all, browser: new Browser() };
  await signIn(other, ANNA);
  assert.deepEqual([(await sessionOf(all)).status, (await sessionOf(other)).status], [200, 200]);
  await signOutAtIssuer(all);
  assert.deepEqual([(await sessionOf(all)).status, (await sessionOf(other)).status], [401, 200]);
  const line = all.audited.find(({ what }) => what === 'sign-out');
  assert.deepEqual([line?.['issuer'], line?.['outcome']], ['plant', 'done']);
});

/** The browser says at the issuer that the person leaves; the issuer tells the recorder. */
async function signOutAtIssuer({ browser, issuer }: Stage): Promise<void> {
  const form = await (await browser.request(`${issuer.url}/session/end`)).text();
  const xsrf = /name="xsrf" value="([^"]*)"/.exec(form)?.[1] ?? '';
  const { response } = await browser.open(`${issuer.url}/session/end/confirm`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
  });
  assert.equal(response.status, 200, await response.text());
}

test('only the issuer ends sessions, with its own key', async (t) => {
  const all = await stage(t);
  await signIn(all, ANNA);
  const { privateKey } = await generateKeyPair('RS256');
  const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
  const forged = await new SignJWT({ iss: all.issuer.url, aud: CLIENT.id, sub: ANNA.sub, jti: '1', events })
    .setProtectedHeader({ alg: 'RS256', typ: 'logout+jwt' })
    .setIssuedAt()
    .sign(privateKey);
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${forged.split('.')[1]}.`;
  for (const text of ['x', forged, unsigned]) {
    const answer = await fetch(`${all.url}/api/sign-in/plant/logout`, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: text }),
    });
    assert.equal(answer.status, 400, text);
  }
  assert.equal((await sessionOf(all)).status, 200);
});

test('a session ends when its rule changes or goes, and when the issuer must be asked again', async (t) => {
  const all = await stage(t);
  const [guards] = [RULES[1]];
  for (const rules of [[{ ...guards, role: 'operator' }], [RULES[0]]]) {
    all.auth.replaceIssuers(all.config());
    await signIn(all, ANNA);
    assert.equal((await sessionOf(all)).status, 200);
    all.auth.replaceIssuers(all.config({ rules }));
    assert.equal((await sessionOf(all)).status, 401);
  }
  all.auth.replaceIssuers(all.config({ sessionDuration: '1h' }));
  await signIn(all, ANNA);
  all.clock.advance(3_599_000);
  assert.equal((await sessionOf(all)).status, 200);
  all.clock.advance(1_000);
  assert.equal((await sessionOf(all)).status, 401);
});

test('an issuer that does not answer, or answers what it should not, costs the person a line on the sign-in page', async (t) => {
  const all = await stage(t, { issuer: 'http://127.0.0.1:1' });
  const { addresses } = await all.browser.open(`${all.url}/api/sign-in/plant`);
  assert.match(addresses.at(-1) ?? '', /#\/login\?problem=away&issuer=plant$/);
  assert.equal((await fetch(`${all.url}/api/sign-in/another`)).status, 404);
});

test('in a pool, nothing is asked at an address of the node or of a metadata service', async (t) => {
  for (const changes of [{}, { proxy: 'http://localhost:3128' }]) {
    const all = await stage(t, changes, new CameraNetworks({ refused: NO_CAMERA_THERE }));
    assert.match(await signIn(all, ANNA), /#\/login\?problem=away/);
  }
});

test('people of several issuers sign in, each by the rules of theirs', async (t) => {
  const all = await stage(t);
  const town = await startIssuer(t);
  town.serve(all.url, 'town');
  const both = [
    ...all.config(),
    ...all.config({ name: 'town', label: 'Town hall', issuer: town.url, rules: [{ role: 'operator' }] }),
  ];
  all.issuers.replace(both);
  all.auth.replaceIssuers(both);
  await signIn(all, ANNA);
  assert.equal(((await (await sessionOf(all)).json()) as { name: string }).name, 'plant/anna');
  town.person = ANNA;
  await all.browser.open(`${all.url}/api/sign-in/town`);
  const { name, role } = (await (await sessionOf(all)).json()) as { name: string; role: string };
  assert.deepEqual([name, role], ['town/anna', 'operator']);
});

test('an issuer is asked through the proxy of the configuration', async (t) => {
  const asked: string[] = [];
  const proxy = createServer((incoming, response) => {
    const { url = '', method, headers } = incoming;
    asked.push(new URL(url).pathname);
    const onward = ask(url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const all = await stage(t, { proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
  await signIn(all, ANNA);
  assert.equal((await sessionOf(all)).status, 200);
  for (const path of ['/.well-known/openid-configuration', '/token', '/jwks', '/me']) {
    assert.ok(asked.includes(path), `${path}: ${asked.join(' ')}`);
  }
  assert.ok(!asked.includes('/auth'), 'the browser goes there itself');
});

test('a sign-in with a login of the recorder is counted where people sign in at an issuer', async (t) => {
  const all = await stage(t);
  const counted = async (): Promise<string> => all.registry.getSingleMetricAsString('kube_nvr_local_sign_ins_total');
  await signIn(all, ANNA);
  assert.match(await counted(), /_total 0$/m);
  const signInLocally = () => all.app.inject({ method: 'POST', url: '/api/session', payload: { token: 'admin' } });
  assert.equal((await signInLocally()).statusCode, 200);
  assert.match(await counted(), /_total 1$/m);
  all.auth.replaceIssuers([]);
  await signInLocally();
  assert.match(await counted(), /_total 1$/m);
});

/** Two members of a cluster that know the same issuer, and a person who has signed in at the first. */
async function twoNodes(t: TestContext) {
  const key = randomBytes(32);
  const secrets = { 'node-1': randomBytes(32), 'node-2': randomBytes(32) };
  const memberKey = (nodeId: string): string | undefined =>
    nodeId in secrets ? publicKeyOf(secrets[nodeId as keyof typeof secrets]) : undefined;
  const issuers = IssuerList.parse([
    { name: 'plant', issuer: 'https://sso.example', clientId: 'nvr', rules: RULES },
  ]) as readonly IssuerConfig[];
  const open = (nodeId: keyof typeof secrets) =>
    build(t, {
      auth: { mode: 'token', tokens: [], issuers, seal: new Seal({ nodeId, secret: secrets[nodeId], key, memberKey }) },
    });
  const [one, two] = [await open('node-1'), await open('node-2')];
  const signedIn = one.auth.signInPerson({ protocol: 'http', headers: {} } as FastifyRequest, 'plant', ANNA);
  assert.ok(signedIn);
  const cookie = signedIn.cookies[0]?.split(';', 1)[0] ?? '';
  const statusAt = async ({ app }: TestApi): Promise<number> =>
    (await app.inject({ url: '/api/session', headers: { cookie } })).statusCode;
  return { one, two, cookie, statusAt, caller: signedIn.caller };
}

test('every node of a cluster accepts the session of a person, until the issuer ends it at one of them', async (t) => {
  const { one, two, statusAt } = await twoNodes(t);
  assert.deepEqual([await statusAt(one), await statusAt(two)], [200, 200]);
  one.auth.endSessions([endedBy({ issuer: 'https://sso.example' }, { sub: ANNA.sub })]);
  assert.deepEqual([await statusAt(one), await statusAt(two)], [401, 200]);
  two.auth.learnEnded([
    { of: endedBy({ issuer: 'https://sso.example' }, { sub: ANNA.sub }), atMs: two.clock.wallMs() },
  ]);
  assert.equal(await statusAt(two), 401);
});

test('a live stream of a person ends with the session, and with the rule', async (t) => {
  for (const end of ['session', 'rule'] as const) {
    const { one, cookie } = await twoNodes(t);
    const request = { headers: { cookie }, query: {}, raw: {}, ip: '127.0.0.1', method: 'GET', protocol: 'http' };
    const caller = await one.auth.identify(request as unknown as FastifyRequest, 'header');
    assert.equal(one.auth.renewed(caller)?.name, 'plant/anna');
    if (end === 'session') one.auth.endSessions([endedBy({ issuer: 'https://sso.example' }, { sub: ANNA.sub })]);
    else one.auth.replaceIssuers([]);
    assert.equal(one.auth.renewed(caller), undefined);
  }
});

test('another node that is told of a person decides by its own rules', async (t) => {
  const { one, two, caller } = await twoNodes(t);
  const vouched = one.auth.vouchedFor(caller);
  assert.deepEqual([vouched?.name, vouched?.cameras], ['plant/anna', ['gate', 'dock-*']]);
  const stated = { ...caller, of: vouched?.of, statedBy: 'node-1', role: 'admin' } as StatedCaller;
  assert.equal(two.auth.renewed(stated)?.role, 'viewer');
  two.auth.replaceIssuers([]);
  assert.equal(two.auth.renewed(stated), undefined);
});
