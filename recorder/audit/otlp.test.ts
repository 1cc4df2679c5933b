import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { recordsOf, sendOtlp } from './otlp.ts';
import { sentLineOf } from './sent-line.ts';

const STREAM = { node: 'rack-1', version: '1.2.3' };
const TEXT = '{"n":7,"time":"2026-11-21T09:35:12.345Z","what":"export","caller":"ü","outcome":"denied","prev":"0"}';
const LINE = sentLineOf(TEXT, { n: 6, sha256: '' });

async function serve(t: TestContext, answer: (response: ServerResponse) => void) {
  const asked: { readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked.push({ headers: request.headers, body: Buffer.concat(chunks) });
      answer(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/logs`, asked };
}

const signal = (): AbortSignal => new AbortController().signal;
const ok = (response: ServerResponse, body = Buffer.alloc(0)): void => void response.writeHead(200).end(body);

test('a record has the time of the line, its SHA-256 as the id, its facts, and the line itself', () => {
  const [record] = recordsOf([LINE], STREAM);
  const { resource, attributes, ...rest } = record!;
  assert.deepEqual(resource.attributes, {
    'service.name': 'kube-nvr-recorder',
    'service.version': '1.2.3',
    'service.instance.id': 'rack-1',
  });
  assert.deepEqual(attributes, {
    'log.record.uid': LINE.id,
    'kube_nvr.audit.n': 7,
    'kube_nvr.audit.what': 'export',
    'kube_nvr.audit.caller': 'ü',
    'kube_nvr.audit.outcome': 'denied',
  });
  const seconds = Date.UTC(2026, 10, 21, 9, 35, 12) / 1000;
  assert.deepEqual([rest.hrTime, rest.severityText, rest.body], [[seconds, 345_000_000], 'WARN', TEXT]);
});

test('lines go out as protobuf with the headers of the file, which may change', async (t) => {
  const { url, asked } = await serve(t, (response) => ok(response));
  const headersFile = join(workspace(t), 'headers');
  for (const token of ['one', 'two']) {
    writeFileSync(headersFile, `Authorization: Bearer ${token}\nX-Tenant: nvr\n`);
    assert.equal(await sendOtlp({ url, headersFile }, STREAM, [LINE], signal()), undefined);
  }
  assert.deepEqual(
    asked.map(({ headers }) => [headers['authorization'], headers['x-tenant'], headers['content-type']]),
    ['one', 'two'].map((token) => [`Bearer ${token}`, 'nvr', 'application/x-protobuf']),
  );
  assert.ok(asked[0]!.body.includes(TEXT));
});

test('a file of headers with a fault is named, and its content is not', async (t) => {
  const { url } = await serve(t, (response) => ok(response));
  const headersFile = join(workspace(t), 'headers');
  writeFileSync(headersFile, 'sesame-without-a-name');
  await assert.rejects(sendOtlp({ url, headersFile }, STREAM, [LINE], signal()), {
    message: 'headersFile has a line that is not NAME: VALUE',
  });
});

for (const [what, answer, problem] of [
  ['an error', (response) => response.writeHead(503).end(), /^Error: it answered 503$/],
  ['a redirect', (response) => response.writeHead(302, { location: '/' }).end(), /^Error: it answered 302$/],
  ['garbage', (response) => ok(response, Buffer.from('<html>hello</html>')), /^Error: its answer is not one of OTLP$/],
  ['no end', (response) => response.write(Buffer.alloc(100_000)), /^Error: its answer is too long$/],
  ['a broken connection', (response) => response.destroy(), /other side closed|ECONNRESET/],
] as const satisfies readonly (readonly [string, (response: ServerResponse) => void, RegExp])[]) {
  test(`a collector that answers with ${what} has no line`, async (t) => {
    const { url } = await serve(t, answer);
    await assert.rejects(sendOtlp({ url }, STREAM, [LINE], signal()), problem);
  });
}

test('records that a collector rejects for ever are told, with its reason', async (t) => {
  // ExportLogsServiceResponse: partial_success { rejected_log_records: 1, error_message: "too old" }.
  const partial = Buffer.concat([Buffer.from([0x08, 1, 0x12, 7]), Buffer.from('too old')]);
  const { url } = await serve(t, (response) =>
    ok(response, Buffer.concat([Buffer.from([0x0a, partial.length]), partial])),
  );
  assert.deepEqual(await sendOtlp({ url }, STREAM, [LINE], signal()), { lines: 1, message: 'too old' });
});
