// Time that a caller can cost: whatever a caller repeats in a text, no regular expression of the product takes more than 5 ms of one
// core for 16 KiB of it, as much as a request may have in its head. One process serves all cameras of a node.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { nearName } from '../../base/near-name.ts';
import { KeySuggestions } from '../../recorder/config/did-you-mean.ts';
import { labelSelector } from '../../store/selectors.ts';
import { as, build } from '../../recorder/api/test-support.ts';
import { BUDGET_MS, expensiveText, LENGTH, TOKENS } from '../support/expensive-text.ts';
import { processorCost, processorCostOfAll } from '../support/processor-cost.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Of a body whose JSON escapes each character: as long as a recorder reads one. */
const BODY_LENGTH = 30 * 1024;

/** Literals, found by what stands before them. */
const LITERAL = /(?:^|[=(,:;!&|?[{}]|return|=>)\s*(\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*)/gm;
test('no regular expression of the product takes more than 5 ms for 16 KiB of a repeated text', () => {
  const files = globSync('{base,console,crds,operator,recorder,store}/**/*.{ts,js}', { cwd: ROOT }).filter(
    (file) => !/\.test\.|support/.test(file),
  );
  let count = 0;
  const expensive: string[] = [];
  for (const file of files) {
    for (const [, literal = ''] of readFileSync(join(ROOT, file), 'utf8').matchAll(LITERAL)) {
      const end = literal.lastIndexOf('/');
      let pattern: RegExp;
      try {
        pattern = new RegExp(literal.slice(1, end), literal.slice(end + 1));
      } catch {
        // A division, or a text with slashes.
        continue;
      }
      count++;
      const text = expensiveText(pattern);
      if (text !== undefined) expensive.push(`${file}: ${literal} with ${text}`);
    }
  }
  assert.ok(count > 300, `${count} literals were found`);
  assert.deepEqual(expensive, []);
});

test('an expression that takes the square of its text is noticed', () => {
  assert.notEqual(expensiveText(/\[.*\]$/, ['[']), undefined);
  assert.notEqual(expensiveText(/\s*,\s*/, [' ']), undefined);
});

test('thousands of unknown keys, a name and a selector of 16 KiB take less than 5 ms each time', () => {
  const suggestions = new KeySuggestions();
  suggestions.for('recrod_path');
  const steps = [
    () => Array.from({ length: 5_000 }, (_, i) => suggestions.for(`cameras[0].k${i}`)),
    () => nearName('a'.repeat(LENGTH), ['from', 'to', 'limit', 'cursor']),
    () => assert.throws(() => labelSelector(`a=${' '.repeat(LENGTH)}=`)),
  ];
  for (const step of steps) assert.ok(processorCost(step, BUDGET_MS) <= BUDGET_MS);
});

/** A request whose headers or query have the text, from a stranger or a viewer. */
interface Asked {
  readonly method?: 'GET' | 'POST';
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const HEADERS = [
  'accept',
  'accept-encoding',
  'accept-language',
  'access-control-request-headers',
  'connection',
  'content-type',
  'expect',
  'forwarded',
  'host',
  'icy-metadata',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'kube-nvr-caller',
  'last-event-id',
  'origin',
  'range',
  'referer',
  'sec-websocket-protocol',
  'traceparent',
  'upgrade',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-request-id',
];
const COOKIES = ['kube_nvr_session', 'kube_nvr_device', 'kube_nvr_sign_in', '__Host-kube_nvr_session'];

/** Everywhere in a request that the recorder reads text of a caller. `text` has no line break, which ends a header. */
function* placesOf(text: string): Generator<Asked> {
  const encoded = encodeURIComponent(text.slice(0, LENGTH / 3));
  const plain = text.replaceAll(/[^!-~]|#/g, '');
  for (const word of [encoded, plain]) {
    yield { url: `/api/archive/gate/gaps?from=1&to=2&${word}=1`, headers: as('viewer') };
    yield {
      url: `/api/archive/gate/segments?from=${word}&to=${word}&limit=${word}&cursor=${word}`,
      headers: as('viewer'),
    };
    yield { url: `/api/archive/${word}/days?month=${word}&tz=${word}`, headers: as('viewer') };
    yield { url: `/api/sign-in/plant?to=${word}` };
    yield { url: `/api/sign-in/plant/callback?code=${word}&state=${word}` };
    yield { url: `/node/${word}/api/cameras`, headers: as('viewer') };
    yield { url: `/api/cameras?access_token=${word}&access_link=${word}` };
    yield { url: `/a${word}` };
  }
  for (const name of HEADERS) yield { headers: { ...as('viewer'), [name]: text } };
  for (const name of COOKIES) yield { headers: { cookie: `${name}=${text}` } };
  yield { headers: { cookie: text } };
  for (const scheme of ['', 'Bearer ', 'Basic ', 'Bearer a.']) yield { headers: { authorization: scheme + text } };
  // As much as a stranger may send.
  const short = text.slice(0, 1_000);
  yield { method: 'POST', url: '/api/session', body: { name: short, password: short } };
  yield { method: 'POST', url: '/api/session', body: { token: short } };
  yield { method: 'POST', url: '/api/session', body: { [short]: 1 } };
  yield { method: 'POST', url: '/api/sign-in/plant/logout', body: { logout_token: short } };
  yield { method: 'POST', url: '/api/links', body: { path: `/${text}` }, headers: as('viewer') };
  yield { method: 'POST', url: '/api/links', body: { [text]: 1 }, headers: as('viewer') };
  // As much as an admin may send.
  const long = text.repeat(Math.ceil(BODY_LENGTH / text.length)).slice(0, BODY_LENGTH);
  for (const body of [{ source: long }, { id: long, source: 'rtsp://a' }, { source: `rtsp://${long}` }, { [long]: 1 }])
    for (const url of ['/api/cameras/test', '/api/cameras/test/still'])
      yield { method: 'POST', url, body, headers: as('admin') };
}

/** Sends the bytes of a request, and resolves when the answer begins. */
function send(
  { method = 'GET', url = '/api/cameras', headers = {}, body }: Asked,
  from: string,
  port: number,
): Promise<void> {
  const payload = body === undefined ? '' : JSON.stringify(body);
  const lines = Object.entries({ host: 'a', ...(body && { 'content-type': 'application/json' }), ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  return new Promise((resolve) => {
    socket.once('data', () => socket.destroy());
    socket.once('error', () => {});
    socket.once('close', () => resolve());
    socket.write(`${method} ${url} HTTP/1.1\r\n${head}content-length: ${Buffer.byteLength(payload)}\r\n\r\n${payload}`);
  });
}

test('a request takes less than 5 ms, wherever it has 16 KiB of a repeated text', async (t) => {
  const { app, clock } = await build(t);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.addresses()[0] as AddressInfo;
  const expensive: string[] = [];
  let count = 0;
  for (const token of TOKENS.filter((one) => !/[\r\n]/.test(one))) {
    for (const asked of placesOf(token.repeat(Math.ceil(LENGTH / token.length)).slice(0, LENGTH - 1_000))) {
      const cost = await processorCostOfAll(() => {
        // Each from another address, and much later than the one before: no limit of guesses or work keeps it from being read.
        clock.advance(60_000);
        const from = `127.${1 + ((count >> 14) & 127)}.${(count >> 7) & 127}.${1 + (count++ & 127)}`;
        return send(asked, from, port);
      }, BUDGET_MS);
      if (cost > BUDGET_MS) expensive.push(`${JSON.stringify(asked).slice(0, 100)}: ${cost} ms`);
    }
  }
  t.diagnostic(`${count} requests`);
  assert.deepEqual(expensive, []);
});
