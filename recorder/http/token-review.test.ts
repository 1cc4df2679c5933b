import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { installAccess, callerOf } from './access.ts';
import { Authenticator } from './auth.ts';
import { buildServer } from './server.ts';
import type { TokenReview as Review } from '../cluster/token-reviews.ts';
import type { TokenReviewer } from './token-review.ts';

/** Stands for the API server: a question waits for an answer if there is none in `reviews`. */
class Reviewer implements TokenReviewer {
  readonly reviews = new Map<string, Review>();
  readonly asked: string[] = [];
  readonly waiting: (() => void)[] = [];
  isSlow = false;

  async review(token: string): Promise<Review> {
    this.asked.push(token);
    const review = this.reviews.get(token) ?? { kind: 'wrong' };
    if (this.isSlow) await new Promise<void>((resolve) => void this.waiting.push(resolve));
    return review;
  }
}

const person = (changes: Partial<Extract<Review, { kind: 'known' }>> = {}): Review => ({
  kind: 'known',
  name: 'anna',
  role: 'viewer',
  cameras: undefined,
  ...changes,
});
const AWAY: Review = { kind: 'unavailable', problem: 'nobody answers' };

interface Stage {
  readonly app: FastifyInstance;
  readonly clock: VirtualClock;
  readonly reviewer: Reviewer;
  readonly auth: Authenticator;
  readonly lines: string[];
  /** The status of a request for a camera, and the code of the problem. */
  readonly ask: (token: string, camera?: string) => Promise<string>;
}

async function stage(t: TestContext): Promise<Stage> {
  const clock = new VirtualClock();
  const reviewer = new Reviewer();
  const lines: string[] = [];
  const write = (fields: unknown, message: unknown): void => void lines.push(JSON.stringify(fields) + String(message));
  const log: Log = { ...silentLog, info: write, warn: write, error: write };
  const auth = new Authenticator({ mode: 'kubernetes', tokens: [] }, { clock, log, reviewer });
  const app = buildServer({ log, maxConnections: 100 });
  installAccess(app, auth);
  app.get('/cameras/:id', { config: { role: 'viewer', cameras: { param: 'id' } } }, async (asked) => ({
    caller: callerOf(asked).name,
  }));
  app.get('/film', { config: { role: 'viewer', cameras: 'none', credentials: 'header-or-query' } }, (_, reply) => {
    reply.hijack();
    reply.raw.writeHead(200).write('a long film');
  });
  t.after(() => app.close());
  return {
    app,
    clock,
    reviewer,
    auth,
    lines,
    async ask(token, camera = 'gate') {
      const answer = await app.inject({ url: `/cameras/${camera}`, headers: { authorization: `Bearer ${token}` } });
      return [answer.statusCode, ...(answer.statusCode === 200 ? [] : [answer.json().code])].join(' ');
    },
  };
}

test('an answer is believed for twenty seconds, and a right that was taken away counts no longer than that', async (t) => {
  const { clock, reviewer, ask } = await stage(t);
  reviewer.reviews.set('token', person());
  assert.equal(await ask('token'), '200');
  reviewer.reviews.set('token', person({ role: undefined }));
  clock.advance(19_999);
  assert.equal(await ask('token'), '200');
  assert.equal(reviewer.asked.length, 1);
  clock.advance(1);
  assert.equal(await ask('token'), '403 forbidden');
  assert.equal(reviewer.asked.length, 2);
});

test('a refusal is believed for five seconds: a right that was given counts soon', async (t) => {
  const { clock, reviewer, ask } = await stage(t);
  for (const [token, refused, expected] of [
    ['poor', person({ role: undefined }), '403 forbidden'],
    ['new', { kind: 'wrong' }, '401 unauthorized'],
  ] as const) {
    reviewer.reviews.set(token, refused);
    assert.equal(await ask(token), expected);
    reviewer.reviews.set(token, person());
    clock.advance(4_999);
    assert.equal(await ask(token), expected);
    clock.advance(1);
    assert.equal(await ask(token), '200');
  }
});

test('the time counts from the question: what happens while it is asked may not be in the answer', async (t) => {
  const { clock, reviewer, ask } = await stage(t);
  reviewer.reviews.set('token', person());
  reviewer.isSlow = true;
  const slow = ask('token');
  while (reviewer.waiting.length === 0) await new Promise(setImmediate);
  reviewer.isSlow = false;
  clock.advance(15_000);
  reviewer.waiting[0]?.();
  assert.equal(await slow, '200');
  clock.advance(5_000);
  reviewer.reviews.set('token', { kind: 'wrong' });
  assert.equal(await ask('token'), '401 unauthorized');
});

test('with nobody to ask, an answer counts as long as ever, and afterwards 503; the log says it once', async (t) => {
  const { clock, reviewer, ask, lines } = await stage(t);
  reviewer.reviews.set('token', person());
  assert.equal(await ask('token'), '200');
  for (const token of ['token', 'other']) reviewer.reviews.set(token, AWAY);
  for (let i = 0; i < 30; i++) assert.equal(await ask('other'), '503 auth-unavailable');
  clock.advance(19_999);
  assert.equal(await ask('token'), '200');
  clock.advance(1);
  assert.equal(await ask('token'), '503 auth-unavailable');
  reviewer.reviews.set('token', person());
  assert.equal(await ask('token'), '200');
  assert.deepEqual(lines, ['{"problem":"nobody answers"}tokens cannot be checked', '{}tokens can be checked again']);
});

test('requests that come together share one question', async (t) => {
  const { reviewer, ask } = await stage(t);
  reviewer.reviews.set('token', person());
  reviewer.isSlow = true;
  const answers = Array.from({ length: 20 }, () => ask('token'));
  while (reviewer.waiting.length === 0) await new Promise(setImmediate);
  for (let i = 0; i < 10; i++) await new Promise(setImmediate);
  for (const answer of reviewer.waiting) answer();
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(['200']));
  assert.deepEqual(reviewer.asked, ['token']);
});

test('a user who may see some cameras only learns of no other', async (t) => {
  const { reviewer, ask } = await stage(t);
  reviewer.reviews.set('token', person({ cameras: new Set(['gate']) }));
  assert.deepEqual([await ask('token', 'gate'), await ask('token', 'yard')], ['200', '404 unknown-camera']);
});

test('who guesses is told to wait without anybody being asked, and tokens that were right pass', async (t) => {
  const { clock, reviewer, ask } = await stage(t);
  reviewer.reviews.set('token', person());
  assert.equal(await ask('token'), '200');
  for (let i = 0; i < 10; i++) assert.equal(await ask(`guess-${i}`), '401 unauthorized');
  const asked = reviewer.asked.length;
  // Tokens that are known to be wrong count as well.
  assert.equal(await ask('guess-0'), '429 too-many-attempts');
  assert.equal(await ask('guess-10'), '429 too-many-attempts');
  assert.equal(reviewer.asked.length, asked);
  assert.equal(await ask('token'), '200');
  // Asked about again, though the address has nothing left.
  for (let i = 0; i < 30; i++) await ask('guess');
  clock.advance(20_000);
  for (let i = 0; i < 5; i++) await ask(`more-${i}`);
  assert.equal(await ask('token'), '200');
});

test('so many questions at a time and no more; those for tokens that were right are always asked', async (t) => {
  const { clock, reviewer, auth, ask } = await stage(t);
  reviewer.reviews.set('token', person());
  assert.equal(await ask('token'), '200');
  clock.advance(20_000);
  reviewer.isSlow = true;
  const from = (address: string, token: string) =>
    Promise.resolve(
      auth.identify(
        {
          ip: address,
          headers: { authorization: `Bearer ${token}` },
          method: 'GET',
          url: '/',
          id: '1',
          protocol: 'https',
          server: { listenerName: 'api' },
          raw: {},
        } as never,
        'header',
      ),
    ).then(
      ({ name }) => name,
      (err: { code: string }) => err.code,
    );
  const answers = Array.from({ length: 40 }, (_, i) => from(`10.0.0.${i}`, `guess-${i}`));
  const right = from('10.0.1.1', 'token');
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  assert.equal(reviewer.waiting.length, 33);
  for (const answer of reviewer.waiting) answer();
  const got = await Promise.all(answers);
  assert.equal(got.filter((code) => code === 'unauthorized').length, 32);
  assert.equal(got.filter((code) => code === 'auth-unavailable').length, 8);
  assert.equal(await right, 'anna');
});

test('a long transfer ends within thirty seconds of losing its right, and continues while the API server is away', async (t) => {
  const { app, clock, reviewer } = await stage(t);
  reviewer.reviews.set('token', person());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const film = request({ port, path: '/film?access_token=token' }).end();
  const [answer] = (await once(film, 'response')) as [NodeJS.ReadableStream];
  answer.resume();
  let ended = false;
  answer.once('error', () => (ended = true));
  /** Time passes, and what it has set off happens. */
  const pass = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      clock.advance(1_000);
      for (let j = 0; j < 5; j++) await new Promise(setImmediate);
    }
  };
  reviewer.reviews.set('token', AWAY);
  await pass(120);
  assert.ok(!ended && reviewer.asked.length > 2, `asked ${reviewer.asked.length} times`);
  reviewer.reviews.set('token', person());
  await pass(30);
  assert.ok(!ended);
  // The worst moment: just after somebody was asked.
  const known = reviewer.asked.length;
  while (reviewer.asked.length === known) await pass(1);
  reviewer.reviews.set('token', person({ role: undefined }));
  // An API server may believe a token for 10 s itself.
  await pass(20);
  assert.ok(ended);
  // Nobody holds on to the token now.
  await pass(10);
  const asked = reviewer.asked.length;
  await pass(60);
  assert.equal(reviewer.asked.length, asked);
});

test('no token is in what a caller is or what is logged', async (t) => {
  const { reviewer, auth, lines, ask } = await stage(t);
  reviewer.reviews.set('sesame', person());
  await ask('sesame');
  await ask('wrong-sesame');
  const asked = { ip: '::1', protocol: 'http', headers: { authorization: 'Bearer sesame' }, raw: {} } as never;
  const caller = await auth.identify(asked, 'header');
  assert.doesNotMatch(JSON.stringify(caller) + lines.join(''), /sesame/);
});
