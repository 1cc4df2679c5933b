import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import {
  expiryMs,
  formatPublicKey,
  LicenseError,
  parsePublicKey,
  readUnverified,
  signLicense,
  verifyLicense,
} from './statement.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const STATEMENT = { holder: 'Example GmbH', cameras: 16, expires: '2027-12-31', features: ['cluster'] };

const codeOf = (run: () => unknown): string => {
  try {
    run();
  } catch (err) {
    assert.ok(err instanceof LicenseError, String(err));
    return err.code;
  }
  return 'taken';
};

test('a licence says what was signed, also when its lines were broken on the way', () => {
  const text = signLicense(STATEMENT, privateKey);
  assert.deepEqual(verifyLicense(text, publicKey), STATEMENT);
  assert.deepEqual(verifyLicense(`\r\n${text.replaceAll(/(.{40})/g, '$1\n  ')}\n`, publicKey), STATEMENT);
});

test('a licence is a JSON Web Signature that other programs can read', () => {
  const [header, payload, signature] = signLicense(STATEMENT, privateKey).split('.') as [string, string, string];
  const json = (part: string): unknown => JSON.parse(Buffer.from(part, 'base64url').toString());
  assert.deepEqual(json(header), { alg: 'EdDSA', typ: 'kube-nvr-license' });
  assert.deepEqual(json(payload), STATEMENT);
  assert.equal(Buffer.from(signature, 'base64url').length, 64);
});

test('no byte of a licence can be changed', () => {
  const text = signLicense(STATEMENT, privateKey);
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom('A', 'z', '7', '-', '.', '=', '"'), (at, other) => {
      const changed = text.slice(0, at) + other + text.slice(at + 1);
      // The last character of base64url contains unused bits.
      if (Buffer.from(changed.slice(-86), 'base64url').equals(Buffer.from(text.slice(-86), 'base64url'))) {
        fc.pre(changed.slice(0, -86) !== text.slice(0, -86));
      }
      assert.notEqual(
        codeOf(() => verifyLicense(changed, publicKey)),
        'taken',
      );
    }),
  );
});

test('another key, another algorithm and another kind of token are refused', () => {
  const other = generateKeyPairSync('ed25519');
  assert.equal(
    codeOf(() => verifyLicense(signLicense(STATEMENT, other.privateKey), publicKey)),
    'license-forged',
  );
  const body = signLicense(STATEMENT, privateKey).split('.')[1] as string;
  for (const header of [
    { alg: 'none', typ: 'kube-nvr-license' },
    { alg: 'EdDSA', typ: 'JWT' },
    { alg: 'EdDSA', typ: 'kube-nvr-license', crit: ['exp'] },
  ]) {
    const payload = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.${body}`;
    const signature = sign(null, Buffer.from(payload), privateKey).toString('base64url');
    assert.equal(
      codeOf(() => verifyLicense(`${payload}.${signature}`, publicKey)),
      'license-malformed',
      JSON.stringify(header),
    );
  }
});

test('any text is a licence or a LicenseError', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[\w-]*\.[\w-]*\.[\w-]*$/)), (text) => {
      assert.notEqual(
        codeOf(() => verifyLicense(text, publicKey)),
        'taken',
      );
    }),
  );
  assert.equal(
    codeOf(() => readUnverified('')),
    'license-malformed',
  );
});

test('a statement that makes no sense is not signed, and the field is named', () => {
  const wrong = [
    [{ ...STATEMENT, cameras: 1.5 }, 'cameras'],
    [{ ...STATEMENT, cameras: Number.NaN }, 'cameras'],
    [{ ...STATEMENT, holder: '' }, 'holder'],
    [{ ...STATEMENT, expires: '2027-02-30' }, 'expires'],
    [{ ...STATEMENT, expires: 'soon' }, 'expires'],
  ] as const;
  for (const [statement, field] of wrong) {
    assert.throws(() => signLicense(statement, privateKey), new RegExp(`: ${field}: `));
  }
});

test('a licence is good until the end of its last day, in UTC', () => {
  assert.equal(expiryMs({ expires: '2027-12-31' }), Date.UTC(2028, 0, 1));
  assert.equal(expiryMs({}), Infinity);
});

test('a public key is read from base64 and from PEM; a key of another kind is none', () => {
  const text = formatPublicKey(publicKey);
  assert.equal(Buffer.from(text, 'base64').length, 32);
  for (const written of [text, ` ${text}\n`, publicKey.export({ format: 'pem', type: 'spki' }).toString()]) {
    assert.ok(parsePublicKey(written)?.equals(publicKey));
  }
  const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey;
  for (const none of ['', 'abc', text.slice(4), ec.export({ format: 'pem', type: 'spki' }).toString()]) {
    assert.equal(parsePublicKey(none), undefined, none);
  }
});
