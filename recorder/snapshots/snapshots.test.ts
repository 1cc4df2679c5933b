import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { systemClock, VirtualClock, type Clock } from '../../base/clock.ts';
import { MemoryBudget, type MemoryAccount } from '../../base/memory-budget.ts';
import type { Challenge } from '../../test/camera/credentials.ts';
import {
  cutBody,
  endlessBody,
  garbage,
  image,
  jpeg,
  loginPage,
  motionJpeg,
  redirect,
  reset,
  resetInBody,
  silence,
  stalledBody,
  startStillCamera,
  status,
  type StillAnswer,
  type StillCamera,
  type StillCameraOptions,
} from '../../test/camera/still-camera.ts';
import { until } from '../../test/support/until.ts';
import { StillError } from './error.ts';
import { Snapshots } from './snapshots.ts';
import { CameraLogins } from '../reach/logins.ts';
import { anywhere, type Reach } from '../reach/reach.ts';

interface Setting {
  readonly camera: StillCamera;
  readonly snapshots: Snapshots;
  readonly clock: VirtualClock;
  readonly reach: Reach;
}

interface Options extends StillCameraOptions {
  /** The user part of the snapshot's address, including its `@`. */
  readonly login?: string;
  readonly source?: string;
  readonly verify?: boolean;
  readonly clock?: Clock;
  readonly reach?: Reach;
  readonly memory?: MemoryAccount;
}

async function setting(t: TestContext, options: Options = {}): Promise<Setting> {
  const { login = '', source = 'rtsp://10.0.0.9/live', verify = false, ...rest } = options;
  const camera = await startStillCamera(rest);
  const clock = new VirtualClock();
  const reach = options.reach ?? { ...anywhere(), logins: new CameraLogins({ clock }) };
  const snapshot = camera.url.replace('://', `://${login}`);
  const snapshots = new Snapshots({
    find: (id) => (id === 'gate' ? { source, snapshot, tls: { verify } } : undefined),
    reach,
    clock: options.clock ?? clock,
    memory: options.memory,
  });
  t.after(async () => {
    await snapshots.close();
    await camera.close();
  });
  return { camera, snapshots, clock, reach };
}

const codeOf = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'an image',
    (err: unknown) => {
      assert.ok(err instanceof StillError, String(err));
      assert.doesNotMatch(err.message, /secret|127\.0\.0\.1/);
      return err.code;
    },
  );

/** Resolves when real sockets have delivered `count` requests to the camera. */
const asked = (camera: StillCamera, count: number): Promise<unknown> =>
  until(`request ${count} has come`, () => camera.requests.length >= count);

test('a hundred who ask at once get the same image, of one question to the camera', async (t) => {
  const { camera, snapshots } = await setting(t);
  const images = await Promise.all(Array.from({ length: 100 }, () => snapshots.get('gate')));
  assert.deepEqual(camera.requests, ['GET /snap.jpg?channel=1']);
  for (const { type, body, etag, remainingMs } of images) {
    assert.deepEqual([type, remainingMs, etag], ['image/jpeg', 15_000, images[0]?.etag]);
    assert.ok(body.equals(jpeg()));
  }
});

test('an image is handed out for 15 seconds, counted from when it was there', async (t) => {
  const { camera, snapshots, clock } = await setting(t);
  await snapshots.get('gate');
  camera.options.answer = image(jpeg('another'));
  clock.advance(14_000);
  assert.equal((await snapshots.get('gate')).remainingMs, 1_000);
  assert.equal(camera.served, 1);
  clock.advance(1_000);
  const next = await snapshots.get('gate');
  assert.ok(next.body.equals(jpeg('another')));
  assert.equal(next.remainingMs, 15_000);
  assert.equal(camera.served, 2);
});

const LOGINS: readonly { name: string; challenges: readonly Challenge[]; scheme: RegExp }[] = [
  { name: 'Basic', challenges: [{ scheme: 'basic' }], scheme: /^Basic / },
  { name: 'Digest without algorithm and qop (RFC 2069)', challenges: [{ scheme: 'digest' }], scheme: /^Digest / },
  { name: 'MD5, qop auth', challenges: [{ scheme: 'digest', algorithm: 'MD5', qop: 'auth' }], scheme: /qop=auth/ },
  {
    name: 'MD5, qop auth and auth-int, opaque',
    challenges: [{ scheme: 'digest', algorithm: 'MD5', qop: 'auth,auth-int', opaque: 'opaque-1' }],
    scheme: /opaque=/,
  },
  {
    name: 'MD5-sess',
    challenges: [{ scheme: 'digest', algorithm: 'MD5-sess', qop: 'auth' }],
    scheme: /algorithm=MD5-sess/,
  },
  {
    name: 'SHA-256',
    challenges: [{ scheme: 'digest', algorithm: 'SHA-256', qop: 'auth' }],
    scheme: /algorithm=SHA-256/,
  },
  {
    name: 'SHA-256-sess',
    challenges: [{ scheme: 'digest', algorithm: 'SHA-256-sess', qop: 'auth' }],
    scheme: /algorithm=SHA-256-sess/,
  },
  {
    name: 'Basic, MD5 and SHA-256, of which the strongest is answered',
    challenges: [
      { scheme: 'basic' },
      { scheme: 'digest', algorithm: 'MD5', qop: 'auth' },
      { scheme: 'digest', algorithm: 'SHA-256', qop: 'auth' },
    ],
    scheme: /algorithm=SHA-256/,
  },
];

for (const { name, challenges, scheme } of LOGINS) {
  test(`login: ${name}`, async (t) => {
    const credentials = { username: 'us"er', password: 's3cr€t:@/#', challenges };
    const login = [credentials.username, credentials.password].map(encodeURIComponent).join(':');
    const { camera, snapshots } = await setting(t, { credentials, login: `${login}@` });
    const { body } = await snapshots.get('gate');
    assert.ok(body.equals(jpeg()));
    assert.deepEqual(camera.refusals, []);
    assert.equal(camera.requests.length, 2);
    assert.equal(camera.authorizations.length, 1, 'nothing is sent before it is asked for');
    assert.match(camera.authorizations[0] ?? '', scheme);
  });
}

test('the login of the stream is used where the snapshot has none, and only there', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const source = 'rtsp://user:secret@127.0.0.1/live';
  const one = await setting(t, { credentials, source });
  await one.snapshots.get('gate');
  const other = await setting(t, { credentials, source, login: 'user:wrong-secret@' });
  assert.equal(await codeOf(other.snapshots.get('gate')), 'camera-refused-login');
  assert.equal(other.camera.authorizations.length, 1, 'a refused password is not tried again: accounts get locked');
});

test('the login of the stream is not for a snapshot on another host', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const { camera, snapshots } = await setting(t, { credentials, source: 'rtsp://user:secret@127.0.0.2/live' });
  await assert.rejects(snapshots.get('gate'), { code: 'camera-refused-login', message: /nor source on the same host/ });
  assert.deepEqual(camera.authorizations, []);
});

test('a password that the camera refused rests, until it or the address changes', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const { camera, snapshots, clock, reach } = await setting(t, { credentials, login: 'user:wrong@' });
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-refused-login');
  clock.advance(59_000);
  await assert.rejects(snapshots.get('gate'), {
    code: 'camera-refused-login',
    message: /refused this user and password before/,
  });
  assert.equal(camera.authorizations.length, 1);
  // Logins that the stream refused count as well, and so do those it accepts again.
  const { hostname: host } = new URL(camera.url);
  const wrong = { username: 'user', password: 'wrong' };
  assert.equal(reach.logins.at({ kind: 'rtsp', host, port: 554 }, wrong).mayTry, false);
  const changed = await setting(t, { credentials, login: 'user:secret@', reach });
  await changed.snapshots.get('gate');
  clock.advance(1_000);
  await assert.rejects(snapshots.get('gate'), { code: 'camera-refused-login' });
  assert.equal(camera.authorizations.length, 2, 'it has rested');
});

test('a camera that took Digest and wants the password in clear gets none, unless that is allowed', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const { camera, snapshots, clock, reach } = await setting(t, { credentials, login: 'user:secret@' });
  await snapshots.get('gate');
  const sent = camera.authorizations.length;
  camera.options.credentials = { ...credentials, challenges: [{ scheme: 'basic' }] };
  clock.advance(60_000);
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-login-downgraded');
  assert.equal(camera.authorizations.length, sent);
  const allowed = new Snapshots({
    find: () => ({
      source: 'rtsp://a/',
      snapshot: camera.url.replace('://', '://user:secret@'),
      tls: { verify: false },
      allowPlaintextLogin: true,
    }),
    reach,
    clock,
  });
  t.after(() => allowed.close());
  assert.ok((await allowed.get('gate')).body.equals(jpeg()));
});

test('a missing login, and one that is asked for in an unknown way, are refusals', async (t) => {
  const none = await setting(t, { credentials: { username: 'user', password: 'secret' } });
  assert.equal(await codeOf(none.snapshots.get('gate')), 'camera-refused-login');
  const challenges = [{ scheme: 'basic', header: 'Negotiate' }] as const;
  const odd = await setting(t, { credentials: { username: 'u', password: 'p', challenges }, login: 'u:p@' });
  assert.equal(await codeOf(odd.snapshots.get('gate')), 'camera-refused-login');
});

test('a stale nonce is answered with the new one, but not forever', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const once = await setting(t, { credentials, login: 'user:secret@', staleNonces: 1 });
  assert.ok((await once.snapshots.get('gate')).body.equals(jpeg()));
  assert.deepEqual(once.camera.refusals, []);
  const always = await setting(t, { credentials, login: 'user:secret@', staleNonces: Infinity });
  assert.equal(await codeOf(always.snapshots.get('gate')), 'camera-refused-login');
  assert.ok(always.camera.requests.length <= 4, `${always.camera.requests.length} requests`);
});

test('a camera that ends each connection without saying so is logged in to anyway', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const { snapshots } = await setting(t, { credentials, login: 'user:secret@', closesSilently: true });
  assert.ok((await snapshots.get('gate')).body.equals(jpeg()));
});

const FAULTS: readonly { name: string; answer: StillAnswer; code: string }[] = [
  { name: 'an HTML login page with 200, said to be a JPEG', answer: loginPage, code: 'not-an-image' },
  { name: 'an empty body', answer: image(Buffer.alloc(0)), code: 'not-an-image' },
  { name: 'a body of a few bytes', answer: image(Buffer.from([0xff, 0xd8, 0xff])), code: 'not-an-image' },
  { name: 'motion JPEG without an end', answer: motionJpeg, code: 'not-an-image' },
  { name: '404', answer: status(404), code: 'camera-error' },
  { name: '500', answer: status(500), code: 'camera-error' },
  { name: '204', answer: status(204), code: 'camera-error' },
  { name: 'a picture without an end', answer: endlessBody, code: 'image-too-large' },
  {
    name: 'a picture that is announced to be too large',
    answer: (_, response) => void response.writeHead(200, { 'content-length': 2 ** 40 }).write(jpeg()),
    code: 'image-too-large',
  },
  { name: 'a connection that is reset', answer: reset, code: 'camera-unreachable' },
  { name: 'a connection that is reset within the picture', answer: resetInBody, code: 'camera-error' },
  { name: 'a picture that is cut short', answer: cutBody, code: 'camera-error' },
  { name: 'something that is not HTTP', answer: garbage, code: 'camera-error' },
  { name: 'a redirect to another host', answer: redirect('http://localhost/'), code: 'redirected-elsewhere' },
  { name: 'a redirect to another port', answer: redirect('http://127.0.0.1:1/'), code: 'redirected-elsewhere' },
  { name: 'a redirect to another scheme', answer: redirect('file:///etc/passwd'), code: 'redirected-elsewhere' },
  { name: 'a redirect to nowhere', answer: redirect('http://['), code: 'camera-error' },
  { name: 'redirects in a circle', answer: redirect('/snap.jpg'), code: 'camera-error' },
];

for (const { name, answer, code } of FAULTS) {
  test(`the camera's fault: ${name}`, async (t) => {
    const { snapshots } = await setting(t, { answer });
    assert.equal(await codeOf(snapshots.get('gate')), code);
  });
}

test('a redirect within the camera is followed, with the login', async (t) => {
  const credentials = { username: 'user', password: 'secret' };
  const answer: StillAnswer = (request, response) =>
    (request.url === '/cgi/real.jpg' ? image() : redirect('/cgi/real.jpg'))(request, response);
  const { camera, snapshots } = await setting(t, { credentials, login: 'user:secret@', answer });
  assert.ok((await snapshots.get('gate')).body.equals(jpeg()));
  assert.deepEqual(camera.refusals, []);
});

test('a redirect from https to http is not followed', async (t) => {
  const { camera, snapshots } = await setting(t, { tls: true });
  camera.options.answer = redirect(camera.url.replace('https', 'http'));
  assert.equal(await codeOf(snapshots.get('gate')), 'redirected-elsewhere');
});

test('a self-signed certificate is accepted, unless tls.verify is set', async (t) => {
  const { snapshots } = await setting(t, { tls: true });
  assert.ok((await snapshots.get('gate')).body.equals(jpeg()));
  const strict = await setting(t, { tls: true, verify: true });
  assert.equal(await codeOf(strict.snapshots.get('gate')), 'camera-unreachable');
  assert.equal(strict.camera.requests.length, 0);
});

for (const [name, answer] of [
  ['says nothing', silence],
  ['begins a picture and does not end it', stalledBody],
] as const) {
  test(`a camera that ${name} is given up after 10 seconds, by all who wait`, async (t) => {
    const { camera, snapshots, clock } = await setting(t, { answer });
    const answers = Promise.all(Array.from({ length: 10 }, () => codeOf(snapshots.get('gate'))));
    await asked(camera, 1);
    clock.advance(9_999);
    const late = codeOf(snapshots.get('gate'));
    clock.advance(1);
    assert.deepEqual([...new Set([...(await answers), await late])], ['camera-timeout']);
    assert.equal(camera.requests.length, 1);
  });
}

test('a failure is reported again for no longer than a second', async (t) => {
  const { camera, snapshots, clock } = await setting(t, { answer: status(503) });
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-error');
  camera.options.answer = image();
  clock.advance(999);
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-error');
  assert.equal(camera.requests.length, 1);
  clock.advance(1);
  assert.equal(await codeOf(snapshots.get('gate')), 'an image');
});

test('a failure that is forgotten is not reported again, also one that comes after it was forgotten', async (t) => {
  const { camera, snapshots } = await setting(t, { answer: status(503) });
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-error');
  camera.options.answer = image();
  snapshots.forget('gate');
  assert.equal(await codeOf(snapshots.get('gate')), 'an image');
  snapshots.forget('gate');
  camera.options.answer = status(503);
  const early = codeOf(snapshots.get('gate'));
  snapshots.forget('gate');
  assert.equal(await early, 'camera-error');
  camera.options.answer = image();
  assert.equal(await codeOf(snapshots.get('gate')), 'an image');
});

test('a camera that cannot be reached is its own fault; one without an address, and an unknown one, are the caller’s', async (t) => {
  const { camera, snapshots } = await setting(t);
  await camera.close();
  assert.equal(await codeOf(snapshots.get('gate')), 'camera-unreachable');
  assert.equal(await codeOf(snapshots.get('yard')), 'unknown-camera');
  await camera.listen();
  const without = new Snapshots({
    find: () => ({ source: 'rtsp://a/', snapshot: undefined, tls: { verify: false } }),
    reach: anywhere(),
    clock: systemClock,
  });
  assert.equal(await codeOf(without.get('gate')), 'no-snapshot-address');
  await without.close();
});

test('another address in the configuration is asked at once', async (t) => {
  await using first = await startStillCamera({ answer: image(jpeg('first')) });
  await using second = await startStillCamera({ answer: image(jpeg('second')) });
  let snapshot = first.url;
  const snapshots = new Snapshots({
    find: () => ({ source: 'rtsp://a/', snapshot, tls: { verify: false } }),
    reach: anywhere(),
    clock: new VirtualClock(),
  });
  t.after(() => snapshots.close());
  assert.ok((await snapshots.get('gate')).body.equals(jpeg('first')));
  snapshot = second.url;
  assert.ok((await snapshots.get('gate')).body.equals(jpeg('second')));
});

test('where memory is short an image is handed out and not kept, and of two at once one is asked for again later', async (t) => {
  const memory = new MemoryBudget(Infinity).open('images', { maxBytes: 100 });
  const body = jpeg('large'.repeat(100));
  const { camera, snapshots, clock } = await setting(t, { answer: image(body), memory });
  // An image larger than the limit has room if nothing else is held.
  assert.ok((await snapshots.get('gate')).body.equals(body));
  assert.equal(memory.usedBytes, body.length);
  clock.advance(15_000);
  assert.equal(memory.usedBytes, 0);
  memory.take(1);
  assert.equal(await codeOf(snapshots.get('gate')), 'too-many-thumbnails');
  assert.equal(memory.usedBytes, 1);
  assert.equal(camera.requests.length, 2);
});

test('the end of the recorder does not wait for cameras', async (t) => {
  const { camera, snapshots } = await setting(t, { answer: silence });
  const answer = codeOf(snapshots.get('gate'));
  await asked(camera, 1);
  await snapshots.close();
  assert.equal(await answer, 'camera-unreachable');
});
