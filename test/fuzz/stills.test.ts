// Whatever a camera answers when it is asked for a still image: an image or a reason comes of it, and nothing else.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import fc from '../support/fast-check.ts';
import { systemClock } from '../../base/clock.ts';
import { StillError } from '../../recorder/snapshots/error.ts';
import { Snapshots } from '../../recorder/snapshots/snapshots.ts';
import { jpeg } from '../camera/still-camera.ts';
import { anywhere } from '../../recorder/reach/reach.ts';

const RUNS = Number(process.env['FUZZ_RUNS'] ?? 150);

const word = fc.stringMatching(/^[ -~]{0,20}$/);
const status = fc.constantFrom(200, 200, 401, 401, 302, 307, 204, 206, 304, 100, 500, 999, 0);
const challenge = fc.constantFrom(
  'Digest realm="x", nonce="y", qop="auth"',
  'Digest realm="x", nonce="y", algorithm=SHA-256, stale=true',
  'Basic realm="',
  'Digest',
  'Digest nonce=',
);
const header = fc.oneof(
  challenge.map((value) => `WWW-Authenticate: ${value}`),
  word.map((value) => `WWW-Authenticate: ${value}`),
  fc.constantFrom('/', 'http://', '//[', 'https://127.0.0.1:1/', '\t', '?').map((value) => `Location: ${value}`),
  fc.constantFrom('5', '-1', '99999999999999999999', 'x', '0').map((value) => `Content-Length: ${value}`),
  fc.constantFrom('chunked', 'gzip', 'chunked, chunked').map((value) => `Transfer-Encoding: ${value}`),
  fc.constantFrom('Connection: upgrade', 'Upgrade: h2c', ': x', 'Content-Encoding: br'),
  word,
);
const body = fc.oneof(
  fc.constant(jpeg()),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('5\r\nhello\r\n', 'ffffffffffffffff\r\n', '<html>').map((text) => Buffer.from(text)),
);
const answer = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.record({ status, headers: fc.array(header, { maxLength: 4 }), body }).map(({ status, headers, body }) => {
    const head = [`HTTP/1.1 ${status} OK`, ...headers].join('\r\n');
    return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), body]);
  }),
);

test('still images: whatever a camera answers, an image or a reason comes of it', async (t) => {
  let bytes = Buffer.alloc(0);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(bytes));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  let run = 0;
  const snapshots = new Snapshots({
    // Another camera each time: nothing is remembered.
    find: () => ({
      source: 'rtsp://user:secret@a/',
      snapshot: `http://127.0.0.1:${port}/?${run}`,
      tls: { verify: false },
    }),
    reach: anywhere(),
    clock: systemClock,
  });
  t.after(() => snapshots.close());
  const property = fc.asyncProperty(answer, async (given) => {
    bytes = given;
    run++;
    try {
      const { body, type } = await snapshots.get('gate');
      assert.match(type, /^image\//);
      assert.ok(body.length >= 12);
    } catch (err) {
      if (!(err instanceof StillError)) throw err;
      assert.doesNotMatch(err.message, /secret|127\.0\.0\.1/);
    }
  });
  await fc.assert(property, { numRuns: RUNS });
});
