import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { Authorizer, digestResponse } from './authorization.ts';
import { parseChallenges, strongest } from './challenge.ts';
import type { Challenge } from './challenge.ts';
import { quote } from './parameters.ts';

type Digest = Extract<Challenge, { scheme: 'digest' }>;

function digest(overrides: Partial<Digest> = {}): Digest {
  return {
    scheme: 'digest',
    realm: 'cam',
    nonce: 'n',
    opaque: undefined,
    algorithm: 'MD5',
    session: false,
    algorithmText: undefined,
    qop: undefined,
    stale: false,
    ...overrides,
  };
}

const cases: { name: string; lines: string[]; challenges: Challenge[] }[] = [
  {
    name: 'Hikvision: Digest without qop',
    lines: ['Digest realm="IP Camera(21388)", nonce="534407f373af1bdff561b7b4da295354", stale="FALSE"'],
    challenges: [digest({ realm: 'IP Camera(21388)', nonce: '534407f373af1bdff561b7b4da295354' })],
  },
  { name: 'Basic', lines: ['Basic realm="/"'], challenges: [{ scheme: 'basic', realm: '/' }] },
  {
    name: 'a comma and escaped quotes in the realm, an unquoted nonce, blanks at the end',
    lines: ['Digest realm="Cam, \\"A\\"", nonce=abc123  ,  algorithm=MD5   '],
    challenges: [digest({ realm: 'Cam, "A"', nonce: 'abc123', algorithmText: 'MD5' })],
  },
  {
    name: 'SHA-256 in quotes (Prama), several lines',
    lines: [
      'Digest realm="a", nonce="b", algorithm="SHA-256", qop="auth"',
      'Digest realm="a", nonce="b", algorithm="MD5"',
    ],
    challenges: [
      digest({ realm: 'a', nonce: 'b', algorithm: 'SHA-256', algorithmText: '"SHA-256"', qop: 'auth' }),
      digest({ realm: 'a', nonce: 'b', algorithmText: '"MD5"' }),
    ],
  },
  {
    name: 'two challenges in one line, qop list, -sess, opaque and stale',
    lines: [
      'Basic realm="a", digest REALM="b",nonce="c", qop="auth-int, auth", algorithm=sha-256-SESS, opaque="", stale=true',
    ],
    challenges: [
      { scheme: 'basic', realm: 'a' },
      digest({
        realm: 'b',
        nonce: 'c',
        qop: 'auth',
        algorithm: 'SHA-256',
        session: true,
        algorithmText: 'sha-256-SESS',
        opaque: '',
        stale: true,
      }),
    ],
  },
  {
    name: 'what cannot be answered is left out',
    lines: [
      'Bearer realm="x"',
      'Digest realm="x"',
      'Digest nonce="x", algorithm=SHA-9',
      'Digest nonce="x", qop="auth-int"',
    ],
    challenges: [],
  },
  {
    name: 'an unclosed quote',
    lines: ['Digest nonce="x", realm="abc'],
    challenges: [digest({ realm: 'abc', nonce: 'x' })],
  },
];
function formatChallenge(challenge: Challenge): string {
  if (challenge.scheme === 'basic') return `Basic realm=${quote(challenge.realm)}`;
  const parts = [`realm=${quote(challenge.realm)}`];
  if (challenge.qop) parts.push(`qop="${challenge.qop}"`);
  if (challenge.algorithmText !== undefined) parts.push(`algorithm=${challenge.algorithmText}`);
  parts.push(`nonce=${quote(challenge.nonce)}`);
  if (challenge.opaque !== undefined) parts.push(`opaque=${quote(challenge.opaque)}`);
  if (challenge.stale) parts.push('stale=true');
  return `Digest ${parts.join(', ')}`;
}

for (const { name, lines, challenges } of cases) {
  test(`WWW-Authenticate: ${name}`, () => {
    assert.deepEqual(parseChallenges(lines), challenges);
    assert.deepEqual(parseChallenges(challenges.map(formatChallenge)), challenges);
    assert.deepEqual(parseChallenges([challenges.map(formatChallenge).join(', ')]), challenges);
  });
}

test('WWW-Authenticate: any input parses, and what is formatted parses to the same', () => {
  const piece = fc.constantFrom(
    'Digest ',
    'Basic ',
    'realm=',
    'nonce=',
    'algorithm=MD5',
    '"',
    '\\',
    ',',
    ' ',
    '=',
    'qop="auth"',
  );
  const input = fc.oneof(
    fc.string(),
    fc.array(fc.oneof(piece, fc.string({ maxLength: 4 }))).map((p) => p.join('')),
  );
  fc.assert(
    fc.property(input, (text) => {
      const challenges = parseChallenges([text]);
      assert.deepEqual(parseChallenges(challenges.map(formatChallenge)), challenges);
    }),
  );
});

test('the strongest challenge wins in whatever order', () => {
  const basic: Challenge = { scheme: 'basic', realm: 'a' };
  const md5 = digest();
  const sha256 = digest({ algorithm: 'SHA-256' });
  fc.assert(
    fc.property(fc.shuffledSubarray([basic, md5, sha256], { minLength: 1 }), (offered) => {
      const expected = [sha256, md5, basic].find((challenge) => offered.includes(challenge));
      assert.equal(strongest(offered), expected);
    }),
  );
  assert.equal(strongest([]), undefined);
});

const rfc7616 = {
  credentials: { username: 'Mufasa', password: 'Circle of Life' },
  method: 'GET',
  url: '/dir/index.html',
  clientNonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
  nonceCount: 1,
};
const rfc7616Challenge = digest({
  realm: 'http-auth@example.org',
  nonce: '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v',
  qop: 'auth',
});

const vectors: { name: string; challenge: Partial<Digest>; response: string }[] = [
  { name: 'MD5 (RFC 7616 §3.9.1)', challenge: {}, response: '8ca523f5e9506fed4657c9700eebdbec' },
  {
    name: 'SHA-256 (RFC 7616 §3.9.1)',
    challenge: { algorithm: 'SHA-256' },
    response: '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1',
  },
  // Computed with another implementation, because the RFC has no example.
  { name: 'MD5-sess', challenge: { session: true }, response: 'e783283f46242139c486a698fec7211d' },
  {
    name: 'SHA-256-sess',
    challenge: { session: true, algorithm: 'SHA-256' },
    response: '2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7',
  },
];
for (const { name, challenge, response } of vectors) {
  test(`Digest: ${name}`, () => {
    assert.equal(digestResponse({ ...rfc7616, challenge: { ...rfc7616Challenge, ...challenge } }), response);
  });
}

test('Digest: without qop as in RFC 2069 §2.4 (with its erratum 749)', () => {
  const response = digestResponse({
    challenge: digest({ realm: 'testrealm@host.com', nonce: 'dcd98b7102dd2f0e8b11d0f600bfb0c093' }),
    credentials: { username: 'Mufasa', password: 'CircleOfLife' },
    method: 'GET',
    url: '/dir/index.html',
    clientNonce: 'unused',
    nonceCount: 1,
  });
  assert.equal(response, '1949323746fe6a43ef61f9606e7febea');
});

test('Authorization: the algorithm is echoed as the camera wrote it, opaque too, and the count grows', () => {
  const challenge = digest({ algorithm: 'SHA-256', algorithmText: '"SHA-256"', qop: 'auth', opaque: 'o"p' });
  const authorizer = new Authorizer(challenge, { username: 'a"b', password: 'p' }, 'c');
  const first = authorizer.authorize('DESCRIBE', 'rtsp://h/');
  assert.match(
    first,
    /^Digest username="a\\"b", realm="cam", nonce="n", uri="rtsp:\/\/h\/", response="[0-9a-f]{64}", algorithm="SHA-256", opaque="o\\"p", qop=auth, nc=00000001, cnonce="c"$/,
  );
  assert.match(authorizer.authorize('SETUP', 'rtsp://h/'), /nc=00000002/);
  // Eight hexadecimal digits (RFC 7616 §3.4). This is the tenth request.
  for (let count = 3; count < 10; count++) authorizer.authorize('GET_PARAMETER', 'rtsp://h/');
  assert.match(authorizer.authorize('GET_PARAMETER', 'rtsp://h/'), /nc=0000000a/);
});

test('Authorization: the old form has neither count nor client nonce', () => {
  const header = new Authorizer(digest(), { username: 'u', password: 'p' }).authorize('PLAY', 'rtsp://h/');
  assert.match(header, /^Digest username="u", realm="cam", nonce="n", uri="rtsp:\/\/h\/", response="[0-9a-f]{32}"$/);
});

test('Authorization: Basic, in UTF-8', () => {
  const authorizer = new Authorizer({ scheme: 'basic', realm: 'x' }, { username: 'tür', password: 'p:w' });
  assert.equal(authorizer.authorize('PLAY', 'rtsp://h/'), `Basic ${Buffer.from('tür:p:w').toString('base64')}`);
});
