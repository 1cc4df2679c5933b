import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { RtspSyntaxError } from './error.ts';
import { contentLength, formatMessage, HeaderFields, parseHead, sequenceOf } from './message.ts';

const fields = (headers: HeaderFields): string[] => [...headers].map(({ name, value }) => `${name}=${value}`);

test('a response: status, reason and fields', () => {
  const message = parseHead('RTSP/1.0 200 OK\r\nCSeq: 3\r\nServer: x\r\n\r\n');
  assert.ok(message.kind === 'response');
  assert.equal(message.status, 200);
  assert.equal(message.reason, 'OK');
  assert.deepEqual(fields(message.headers), ['CSeq=3', 'Server=x']);
});

test('a request of the camera', () => {
  const message = parseHead('OPTIONS * RTSP/1.0\r\nCSeq: 7\r\n');
  assert.ok(message.kind === 'request');
  assert.equal(message.method, 'OPTIONS');
  assert.equal(message.url, '*');
});

for (const [name, head, sequence] of [
  ['as it should be', 'CSeq: 1', 1],
  ['in other case', 'Cseq: 1', 1],
  ['in lower case', 'cseq:1', 1],
  ['with blanks around (Longse)', 'CSeq  :  1 ', 1],
  ['absent', 'Server: x', undefined],
  ['no number', 'CSeq: one', undefined],
] as const) {
  test(`CSeq ${name}`, () => {
    assert.equal(sequenceOf(parseHead(`RTSP/1.0 200 OK\r\n${head}\r\n\r\n`).headers), sequence);
  });
}

test('line ends without CR, a folded line, a line without a colon and a status without reason are taken', () => {
  const message = parseHead(
    'RTSP/1.0  401\nCSeq: 2\nWWW-Authenticate: Digest realm="a",\n nonce="b"\nnonsense\nA: b\n\n',
  );
  assert.ok(message.kind === 'response');
  assert.equal(message.status, 401);
  assert.equal(message.reason, '');
  assert.deepEqual(fields(message.headers), ['CSeq=2', 'WWW-Authenticate=Digest realm="a", nonce="b"', 'A=b']);
});

test('several fields of one name are all there', () => {
  const { headers } = parseHead('RTSP/1.0 401 x\r\nWWW-Authenticate: a\r\nwww-authenticate: b\r\n');
  assert.deepEqual(headers.all('WWW-Authenticate'), ['a', 'b']);
  assert.equal(headers.get('WWW-AUTHENTICATE'), 'a');
});

test('Content-Length that is no number means no body', () => {
  assert.equal(contentLength(parseHead('RTSP/1.0 200 OK\r\nContent-Length: -4\r\n').headers), 0);
  assert.equal(contentLength(parseHead('RTSP/1.0 200 OK\r\nContent-length: 12 \r\n').headers), 12);
});

test('a web server on the port is recognized', () => {
  assert.throws(() => parseHead('HTTP/1.1 400 Bad Request\r\n'), /does not speak RTSP/);
});

test('what is formatted is parsed to the same, and no value becomes a header of its own', () => {
  const token = fc.stringMatching(/^[A-Za-z-]{1,12}$/);
  const value = fc.string({ maxLength: 30 }).map((text) => text.replace(/[^\x20-\x7e]/g, '').trim());
  fc.assert(
    fc.property(fc.array(fc.tuple(token, value), { maxLength: 8 }), fc.string(), (pairs, injected) => {
      const headers = new HeaderFields();
      for (const [name, text] of pairs) headers.add(name, text);
      headers.add('X', `a\r\nInjected: ${injected.replace(/[^\x20-\x7e]/g, '')}`);
      const text = formatMessage({ kind: 'request', method: 'SETUP', url: 'rtsp://h/', headers, body: '' });
      const parsed = parseHead(text);
      assert.equal(parsed.headers.get('Injected'), pairs.find(([name]) => /^injected$/i.test(name))?.[1]);
      assert.deepEqual(
        fields(parsed.headers).slice(0, pairs.length),
        pairs.map(([name, v]) => `${name}=${v}`),
      );
    }),
  );
});

test('any head parses or throws RtspSyntaxError', () => {
  const start = fc.constantFrom('', 'RTSP/1.0 200 OK\r\n', 'OPTIONS * RTSP/1.0\n', 'RTSP/1.0 2');
  fc.assert(
    fc.property(start, fc.string({ unit: 'binary' }), (line, rest) => {
      try {
        formatMessage(parseHead(line + rest));
      } catch (error) {
        assert.ok(error instanceof RtspSyntaxError, String(error));
      }
    }),
  );
});
