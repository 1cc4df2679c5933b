import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { build } from '../api/test-support.ts';
import type { TokenConfig } from '../config/schema.ts';
import { installAccess } from './access.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { AuthFailures } from './auth-failures.ts';
import { Authenticator, type AuthOptions } from './auth.ts';
import { newToken } from '../../base/new-token.ts';
import { RightPlaces } from './right-places.ts';
import { buildServer } from './server.ts';
import type { TokenReview as Review } from '../cluster/token-reviews.ts';

const AUDIENCE = 'kube-nvr.dev';
const viewer = (name: string, text = name): TokenConfig => ({
  name,
  role: 'viewer',
  sha256: createHash('sha256').update(text).digest('hex'),
});

/** As a token of Kubernetes looks; whether it is one only the reviewer knows. */
function signed(claims: object, signature = 'c2ln'): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256' })}.${part({ iss: 'https://kubernetes', sub: 'anna', aud: [AUDIENCE], ...claims })}.${signature}`;
}

interface Asked {
  readonly from?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A listener whose callers come from where a test says. */
function stage(t: TestContext, options: AuthOptions, reviews: ReadonlyMap<string, Review> = new Map()) {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const write = (fields: unknown, message: unknown): void =>
    void lines.push(`${String(message)} ${JSON.stringify(fields)}`);
  const log: Log = { ...silentLog, info: write, warn: write, error: write };
  const registry = new Registry();
  const reviewed: string[] = [];
  const reviewer = {
    review: async (token: string): Promise<Review> => {
      reviewed.push(token);
      return reviews.get(token) ?? { kind: 'wrong' };
    },
  };
  const auth = new Authenticator(options, { clock, log, registry, reviewer });
  const app = buildServer({ log, maxConnections: 100, trustedProxies: ['127.0.0.1'] });
  t.after(() => app.close());
  installAccess(app, auth);
  app.get('/', { config: { role: 'viewer', cameras: 'none' } }, async () => 'seen');
  const answer = (token: string, { from = '192.0.2.1', headers = {} }: Asked = {}) =>
    app.inject({ url: '/', headers: { 'x-forwarded-for': from, ...headers, authorization: `Bearer ${token}` } });
  return {
    clock,
    lines,
    auth,
    registry,
    reviewed,
    answer,
    ask: async (token: string, asked?: Asked): Promise<number> => (await answer(token, asked)).statusCode,
  };
}

const TOKENS: AuthOptions = { mode: 'token', tokens: [viewer('right'), viewer('other')] };
const KUBERNETES: AuthOptions = { mode: 'kubernetes', tokens: [], audiences: [AUDIENCE], allowPlaintext: true };
const known = (name: string): Review => ({ kind: 'known', name, role: 'viewer', cameras: undefined });

test('a right token is as good as a wrong one from an address that has guessed too often, unless it was right from there before', async (t) => {
  const { ask, clock } = stage(t, TOKENS);
  assert.equal(await ask('right'), 200);
  for (let i = 0; i < 10; i++) assert.equal(await ask(`guess-${i}`), 401);
  assert.deepEqual([await ask('guess'), await ask('other'), await ask('right')], [429, 429, 200]);
  // Elsewhere both are right.
  assert.deepEqual([await ask('other', { from: '192.0.2.2' }), await ask('right', { from: '192.0.2.2' })], [200, 200]);
  assert.equal(await ask('other'), 429);
  clock.advance(6_000);
  assert.equal(await ask('other'), 200);
});

test('two thousand guesses from an address find nothing, with the right token among them', async (t) => {
  const { ask } = stage(t, TOKENS);
  const statuses = new Map<number, number>();
  for (let i = 0; i < 2_000; i++) {
    const status = await ask(i === 1_500 ? 'right' : `guess-${i}`);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.deepEqual(
    [...statuses],
    [
      [401, 10],
      [429, 1_990],
    ],
  );
});

test('readiness tells a guesser nothing that a refusal would not', async (t) => {
  const { app } = await build(t);
  const checks = async (token: string): Promise<boolean> =>
    'checks' in (await app.inject({ url: '/api/health/ready', headers: { authorization: `Bearer ${token}` } })).json();
  assert.equal(await checks('viewer'), true);
  for (let i = 0; i < 10; i++) assert.equal(await checks(`guess-${i}`), false);
  assert.deepEqual([await checks('admin'), await checks('viewer')], [false, true]);
});

test('tokens of Kubernetes are not held off by guesses from their address, nor renewed ones by made-up ones', async (t) => {
  const [anna, annaAgain, bert] = [signed({}), signed({ jti: '2' }), signed({ sub: 'bert' })];
  const reviews = new Map([anna, annaAgain, bert].map((token) => [token, known('somebody')]));
  const { ask, clock } = stage(t, KUBERNETES, reviews);
  assert.equal(await ask(anna), 200);
  for (let i = 0; i < 20; i++) await ask(`guess-${i}`);
  assert.deepEqual([await ask(anna), await ask(annaAgain), await ask(bert)], [200, 200, 200]);
  // Wrong tokens that look signed hold off users who were never here.
  for (let i = 0; i < 20; i++) await ask(signed({ sub: `nobody-${i}` }));
  clock.advance(20_000);
  for (let i = 0; i < 20; i++) await ask(signed({ sub: `more-${i}` }));
  const renewed = signed({ jti: '3' });
  reviews.set(renewed, known('somebody'));
  const stranger = signed({ sub: 'carl' });
  reviews.set(stranger, known('somebody'));
  assert.deepEqual([await ask(renewed), await ask(stranger)], [200, 429]);
});

test('an expired Kubernetes token, or one for another audience, is not sent to the API server', async (t) => {
  const { answer, ask, clock, reviewed } = stage(t, KUBERNETES);
  const over = signed({ exp: clock.wallMs() / 1000 - 1 });
  assert.equal(await ask(over), 401);
  const other = await answer(signed({ aud: ['https://kubernetes.default.svc'] }));
  assert.deepEqual([other.statusCode, other.json().code], [401, 'wrong-audience']);
  assert.match(other.json().detail, /--audience kube-nvr\.dev/);
  assert.deepEqual(reviewed, []);
  assert.equal(await ask(signed({ exp: clock.wallMs() / 1000 + 60 })), 401);
  assert.equal(reviewed.length, 1);
});

test('Kubernetes tokens are accepted over TLS, from this machine, or where plain HTTP is allowed', async (t) => {
  const token = signed({});
  const strict = stage(t, { ...KUBERNETES, allowPlaintext: false }, new Map([[token, known('anna')]]));
  const refused = await strict.answer(token);
  assert.deepEqual([refused.statusCode, refused.json().code], [403, 'tls-required']);
  assert.match(refused.json().detail, /tls.*trustedProxies.*auth\.allowPlaintext/);
  assert.deepEqual(strict.reviewed, []);
  assert.equal(await strict.ask(token, { from: '127.0.0.1' }), 200);
  assert.equal(await strict.ask(token, { headers: { 'x-forwarded-proto': 'https' } }), 200);
  const lenient = stage(t, KUBERNETES, new Map([[token, known('anna')]]));
  assert.equal(await lenient.ask(token), 200);
  // Configured tokens of other modes open nothing else than the recorder.
  assert.equal(await stage(t, TOKENS).ask('right'), 200);
});

test('refused tokens are counted by why, and told in the log at once and then once a minute', async (t) => {
  const { ask, clock, lines, registry } = stage(t, { ...KUBERNETES, tokens: [viewer('right')] });
  for (let i = 0; i < 15; i++) await ask(`guess-${i}`);
  await ask('guess', { from: '192.0.2.2' });
  await ask(signed({ aud: 'vault' }));
  const counted = await registry.getSingleMetric('kube_nvr_auth_failures_total')?.get();
  const api = counted?.values.filter(({ labels }) => labels['listener'] === 'api');
  assert.deepEqual(
    api?.map(({ labels, value }) => [labels['reason'], value]),
    [
      ['wrong', 11],
      ['password', 0],
      ['held-off', 5],
      ['audience', 1],
      ['plaintext', 0],
    ],
  );
  assert.equal(lines.length, 1);
  clock.advance(60_000);
  assert.equal(lines.length, 2);
  assert.match(
    lines[1] ?? '',
    /^tokens were refused .*"count":16,"addresses":2,"most":\{"192\.0\.2\.1":15,"192\.0\.2\.2":1\}/,
  );
  clock.advance(3_600_000);
  assert.equal(lines.length, 2, 'nothing happened');
  assert.equal(clock.timers, 0);
  await ask('guess-again');
  assert.equal(lines.length, 3);
  assert.doesNotMatch(lines.join(''), /guess|vault/);
});

test('a hundred thousand guesses are a line of the audit at once and one a minute: how many, and from where', () => {
  const entries: AuditEntry[] = [];
  const clock = new VirtualClock();
  const failures = new AuthFailures({
    clock,
    log: silentLog,
    registry: undefined,
    audit: { write: (entry) => void entries.push(entry) },
  });
  const guess = (i: number) =>
    ({ server: { listenerName: 'api' }, ip: `10.${i % 3_000}`, method: 'GET', url: '/', id: '' }) as never;
  for (let i = 0; i < 100_000; i++) failures.count('wrong', guess(i));
  assert.equal(entries.length, 1);
  clock.advance(60_000);
  const { most, ...line } = entries[1] as AuditEntry & { most: unknown[] };
  assert.deepEqual(line, { what: 'failed-logins', caller: null, attempts: 99_999, addresses: 1_000 });
  assert.deepEqual(most[0], { address: '10.1', attempts: 34 });
  assert.equal(most.length, 5);
  clock.advance(3_600_000);
  assert.equal(entries.length, 2, 'a quiet minute has no line');
  failures.count('wrong', guess(1));
  failures.count('wrong', guess(1));
  failures.close();
  assert.deepEqual(
    entries.slice(2).map(({ attempts }) => attempts),
    [1, 1],
  );
});

test('a configured token that can be guessed is named in the log and in warnings once it is seen', async (t) => {
  const good = newToken();
  const { ask, auth, lines } = stage(t, {
    mode: 'token',
    tokens: [viewer('reception', 'reception2024'), viewer('ops', good)],
  });
  assert.deepEqual([await ask(good), auth.warnings().length], [200, 0]);
  for (let i = 0; i < 3; i++) assert.equal(await ask('reception2024'), 200);
  assert.deepEqual(
    auth.warnings().map(({ code }) => code),
    ['token-guessable'],
  );
  assert.match(auth.warnings()[0]?.message ?? '', /: reception$/);
  assert.equal(lines.length, 1);
  assert.doesNotMatch(lines.join(''), /2024/);
});

test('where a token was right is remembered for a day, and of no more places than the bound', () => {
  const clock = new VirtualClock();
  const places = new RightPlaces(clock, 100);
  places.note('192.0.2.1', 'a');
  assert.deepEqual(
    [places.has('192.0.2.1', 'a'), places.has('192.0.2.1', 'b'), places.has('192.0.2.2', 'a')],
    [true, false, false],
  );
  clock.advance(80_000_000);
  places.note('192.0.2.1', 'a');
  clock.advance(86_399_999);
  assert.ok(places.has('192.0.2.1', 'a'));
  clock.advance(1);
  assert.ok(!places.has('192.0.2.1', 'a'));
  for (let i = 0; i < 1_000; i++) places.note(`10.0.${i >> 8}.${i & 255}`, 'a');
  assert.equal(places.size, 100);
});
