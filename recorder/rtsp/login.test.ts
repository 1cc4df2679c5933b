import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { checkRefused, Login, NO_MEMORY, type LoginErrorCode, type LoginOptions } from './login.ts';

const credentials = { username: 'user', password: 'secret' };
const BASIC = 'Basic realm="a"';
const DIGEST = 'Digest realm="a", nonce="1"';

const outcome = (options: Partial<LoginOptions>, better: 'Digest' | 'TLS' | undefined, ...lines: string[]): string => {
  const login = new Login({ credentials, secure: false, ...options }, { ...NO_MEMORY, better });
  try {
    login.take(lines);
    return login.authorize('GET', '/')?.split(' ')[0] ?? '';
  } catch (err) {
    return (err as { code: LoginErrorCode }).code;
  }
};

test('the password is sent as it is over TLS, or where the camera has taken nothing better', () => {
  assert.equal(outcome({}, undefined, BASIC), 'Basic');
  assert.equal(outcome({}, 'Digest', BASIC), 'downgraded');
  assert.equal(outcome({}, 'TLS', BASIC), 'downgraded');
  assert.equal(outcome({ secure: true }, 'Digest', BASIC), 'Basic');
  assert.equal(outcome({ basic: 'always' }, 'Digest', BASIC), 'Basic');
  assert.equal(outcome({ basic: 'never', secure: true }, undefined, BASIC), 'unknown');
});

test('a camera that also offers Digest gets that, whatever is known of it', () => {
  for (const better of [undefined, 'Digest', 'TLS'] as const) {
    assert.equal(outcome({}, better, BASIC, DIGEST), 'Digest');
    assert.equal(outcome({ basic: 'never' }, better, `${BASIC}, ${DIGEST}`), 'Digest');
  }
});

test('without a login, and for an unknown challenge, there is nothing to send', () => {
  assert.equal(outcome({ credentials: undefined }, undefined, DIGEST), 'none');
  assert.equal(outcome({}, undefined, 'Negotiate'), 'unknown');
  assert.equal(outcome({}, undefined), 'unknown');
});

test('in FIPS mode, which has no MD5, a camera gets a Digest of SHA-256, and no password in clear text instead', (t) => {
  t.mock.method(crypto, 'getFips', () => 1);
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.equal(outcome({}, undefined, DIGEST, BASIC), 'unknown');
  assert.equal(outcome({}, undefined, DIGEST, 'Digest realm="a", nonce="1", algorithm=SHA-256'), 'Digest');
  assert.equal(outcome({ secure: true }, undefined, BASIC), 'Basic');
});

test('nothing is sent before a challenge was taken, and the reason of a refusal holds no password', () => {
  const login = new Login({ credentials, secure: false }, { ...NO_MEMORY, better: 'Digest', mayTry: false });
  assert.equal(login.authorize('GET', '/'), undefined);
  for (const refusal of [
    () => login.take([BASIC]),
    () => login.checkRefused(),
    () => checkRefused({ ...NO_MEMORY, mayTry: false }),
  ]) {
    assert.throws(refusal, (err: Error) => !/user:|secret/.test(err.message));
  }
  assert.equal(login.authorize('GET', '/'), undefined);
});

test('what became of a login is reported: Digest as such, nothing of a login that was not sent', () => {
  const told: unknown[] = [];
  const memory = { ...NO_MEMORY, accepted: (took?: 'Digest') => told.push(took ?? 'as it is') };
  const login = new Login({ credentials, secure: false }, memory);
  login.accepted();
  login.take([BASIC]);
  login.accepted();
  login.take([DIGEST]);
  login.accepted();
  assert.deepEqual(told, ['as it is', 'Digest']);
});
