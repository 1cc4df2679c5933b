import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createServer, type TLSSocket } from 'node:tls';
import { systemClock, VirtualClock } from '../../base/clock.ts';
import { serverFiles } from '../../test/support/collectors.ts';
import { workspace } from '../../test/support/workspace.ts';
import { sentLineOf } from './sent-line.ts';
import { messageOf, sendSyslog } from './syslog.ts';

const STREAM = { node: 'rack-1', site: 'North', namespace: 'video', pool: 'a', version: '1.2.3' };
const BEFORE = { n: 0, sha256: '' };
const lineOf = (facts: object) =>
  sentLineOf(JSON.stringify({ n: 7, time: '2026-11-21T09:35:12.345Z', prev: '0', ...facts }), BEFORE);
const LINE = lineOf({ what: 'export', caller: 'ops' });

/** A server with TLS. `asIs`: what it does with a connection instead of reading its messages. */
async function serve(t: TestContext, asIs?: (socket: TLSSocket) => void) {
  const files = await serverFiles(workspace(t));
  const received: Buffer[] = [];
  const server = createServer({ cert: readFileSync(files.certificate), key: readFileSync(files.key) }, (socket) => {
    socket.on('error', () => {});
    if (asIs) asIs(socket);
    else socket.on('data', (bytes) => received.push(bytes));
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const target = { address: { host: '127.0.0.1', port: (server.address() as AddressInfo).port }, ca: files.ca };
  return { target, messages: () => messagesIn(Buffer.concat(received)) };
}

/** RFC 5425 §4.3: MSG-LEN SP SYSLOG-MSG, and nothing else. */
function messagesIn(bytes: Buffer): string[] {
  const messages: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const [head, length] = /^([1-9]\d*) /.exec(bytes.toString('latin1', at, at + 10)) ?? assert.fail('no length');
    at += head.length + Number(length);
    assert.ok(at <= bytes.length, 'a message is cut off');
    messages.push(bytes.toString('utf8', at - Number(length), at));
  }
  return messages;
}

const signal = (): AbortSignal => new AbortController().signal;

test('a message has the time, node and action of the line, structured data, and the line itself', () => {
  const line = lineOf({ what: 'export', caller: 'ops', statedBy: 'rack-2', camera: 'gate', outcome: 'done' });
  assert.equal(
    messageOf(line, STREAM),
    `<110>1 2026-11-21T09:35:12.345Z rack-1 kube-nvr-recorder - export [kube-nvr@32473 n="7" id="${line.id}" node="rack-1" site="North" namespace="video" pool="a" what="export" caller="ops" statedBy="rack-2" camera="gate" outcome="done"][origin software="kube-nvr" swVersion="1.2.3"] ${line.text}`,
  );
});

test('quotes, backslashes, brackets and control characters of a value cannot end it, and the message is in ASCII', () => {
  const line = lineOf({ what: 'export', caller: 'a"b\\c]d\ne ü' });
  const message = messageOf(line, { node: 'räck', version: '1' });
  assert.match(message, /^<110>1 \S+ r\?ck kube-nvr-recorder - export \[/);
  assert.ok(message.includes(String.raw` node="räck" what="export" caller="a\"b\\c\]d e ü"]`), message);
  assert.ok(
    message.endsWith(
      String.raw` {"n":7,"time":"2026-11-21T09:35:12.345Z","prev":"0","what":"export","caller":"a\"b\\c]d\ne \u00fc"}`,
    ),
  );
  assert.deepEqual(JSON.parse(message.slice(message.indexOf(' {') + 1)), JSON.parse(line.text));
});

test('a call that was refused or failed is a warning, and a line that a crash has cut has no time', () => {
  assert.match(messageOf(lineOf({ what: 'export', outcome: 'denied' }), STREAM), /^<108>1 /);
  const cut = sentLineOf('{"n":8,"ti', { n: 7, sha256: '' });
  assert.match(messageOf(cut, STREAM), /^<110>1 - rack-1 kube-nvr-recorder - - \[kube-nvr@32473 n="8" /);
});

test('a server that reads all lines and ends the connection has them', async (t) => {
  const { target, messages } = await serve(t);
  await sendSyslog(target, STREAM, [LINE, lineOf({ what: 'heartbeat', name: 'ü' })], systemClock, signal());
  assert.deepEqual(
    messages(),
    [LINE, lineOf({ what: 'heartbeat', name: 'ü' })].map((line) => messageOf(line, STREAM)),
  );
});

for (const [what, asIs, problem] of [
  [
    'ends the connection before it has read them',
    (socket) => socket.end(),
    /before it had all lines|broke|ECONNRESET|EPIPE/,
  ],
  ['breaks the connection', (socket) => socket.destroy(), /before it had all lines|broke|ECONNRESET|EPIPE/],
] as const satisfies readonly (readonly [string, (socket: TLSSocket) => void, RegExp])[]) {
  test(`a server that ${what} has no line`, async (t) => {
    const { target } = await serve(t, asIs);
    await assert.rejects(sendSyslog(target, STREAM, [LINE], systemClock, signal()), problem);
  });
}

test('a server that talks and never reads has no line, and is given up in time', async (t) => {
  const clock = new VirtualClock();
  const { target } = await serve(t, (socket) => {
    socket.pause();
    socket.write('garbage\n'.repeat(10_000));
    // It is there: from here on only the time counts.
    socket.write('x', () => clock.advance(30_000));
  });
  await assert.rejects(sendSyslog(target, STREAM, [LINE], clock, signal()), /did not take the lines within 30 s/);
});

test('a server whose certificate is of another authority gets nothing', async (t) => {
  const { target, messages } = await serve(t);
  const { ca } = await serverFiles(workspace(t));
  await assert.rejects(sendSyslog({ ...target, ca }, STREAM, [LINE], systemClock, signal()), /certificate|signature/);
  assert.deepEqual(messages(), []);
});

test('a delivery ends with the recorder', async (t) => {
  const stop = new AbortController();
  const { target } = await serve(t, () => stop.abort());
  await assert.rejects(sendSyslog(target, STREAM, [LINE], systemClock, stop.signal), /the recorder ends/);
});
