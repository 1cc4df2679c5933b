// What was sent is not sent back: an answer ends in logs of proxies and on screens, and a token may stand in what was sent.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { stage } from '../playback/test-support.ts';
import { build, token } from './test-support.ts';

const SECRET = 'nvr_secret-of-somebody';
const QUERIES = [
  'access_token=SECRET',
  'access_token=SECRET&access_token=SECRET',
  'from=SECRET&to=SECRET',
  'x=%zzSECRET',
  '%53ECRET=1',
];
const PATHS = [
  '/%zz',
  '/no/such',
  '/api/cameras',
  '/api/archive/gate/segments',
  '/websocket/gate',
  '/window/gate.mp4',
  '/hls/gate/index.m3u8',
];

/** Too long for a part of a path. */
const LONG = `&access_token=${'x'.repeat(1_100)}`;

/** All that a listener answers to the bytes of one request. */
async function answerTo(app: FastifyInstance, lines: readonly string[]): Promise<string> {
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  return text(socket);
}

for (const listener of ['the API', 'playback'] as const) {
  test(`${listener}: no answer repeats a token, whatever is wrong about the request`, async (t) => {
    const auth = { mode: 'token', tokens: [token('viewer')] } as const;
    const { app } = listener === 'playback' ? await stage(t, { playback: { auth } }) : await build(t, { auth });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const ends = ['Host: nvr', 'Connection: close'];
    const requests: string[][] = [];
    for (const path of PATHS) {
      for (const query of QUERIES) {
        for (const method of ['GET', 'POST', 'DELETE']) requests.push([`${method} ${path}?${query} HTTP/1.1`, ...ends]);
      }
      for (const joint of ['%3F', '%3faccess_token=', '&access_token=', ';access_token=', '/access_token=', LONG]) {
        requests.push([`GET ${path}${joint}SECRET HTTP/1.1`, ...ends]);
      }
    }
    for (const header of [
      'Authorization: Bearer SECRET',
      'Authorization: Basic SECRET',
      'Authorization: SECRET',
      'Cookie: SECRET',
      'Content-Type: SECRET',
      'Expect: SECRET',
      'Origin: SECRET',
      'Range: SECRET',
      'X-Request-Id: SECRET SECRET',
      'SECRET',
    ]) {
      requests.push(['GET /api/cameras HTTP/1.1', ...ends, header], ['GET /window/gate.mp4 HTTP/1.1', ...ends, header]);
    }
    requests.push(['SECRET'], ['GET / HTTP/9.SECRET']);
    let answered = 0;
    for (const request of requests) {
      const sent = request.map((line) => line.replaceAll('SECRET', SECRET));
      const answer = await answerTo(app, sent);
      assert.ok(!answer.includes(SECRET), `${sent.join(' | ')}\n${answer}`);
      if (answer.startsWith('HTTP/1.1 4')) answered++;
    }
    assert.ok(answered > requests.length / 2, `${answered} of ${requests.length} were refused`);
  });
}
