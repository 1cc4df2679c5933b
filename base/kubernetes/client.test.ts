// The client against a scripted server that behaves like API servers, their proxies and broken links.

import { after, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { Child } from '../../test/support/child.ts';
import { TcpProxy } from '../../test/support/tcp-proxy.ts';
import { ApiError } from './api-error.ts';
import { KubernetesClient, type Connection, type WatchEvent } from './client.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server | undefined;
/** The port to connect to instead of the server's. */
let port: number | undefined;

function serverPort(): number {
  assert.ok(server);
  return (server.address() as AddressInfo).port;
}

/** A client connected to a server whose responses come from `handler`. */
async function clientOf(handler: Handler): Promise<KubernetesClient> {
  server?.closeAllConnections();
  server?.close();
  server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = undefined;
  const dispatcher = new Agent();
  const connection: Connection = {
    get url() {
      return `http://127.0.0.1:${port ?? serverPort()}`;
    },
    prepare: () => Promise.resolve({ headers: { authorization: 'Bearer secret-token' }, dispatcher }),
    reconnect: () => {},
    close: () => dispatcher.destroy(),
  };
  return new KubernetesClient(connection, {
    userAgent: 'test',
    callTimeoutMs: 2_000,
    watchSeconds: { least: 30, most: 40 },
    watchSilenceMs: 300,
    random: () => 0.5,
  });
}

after(() => {
  server?.closeAllConnections();
  server?.close();
});

const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Handler =>
  (_request, response) => {
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

const never = new AbortController().signal;

async function eventsOf(client: KubernetesClient, signal = never): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const event of client.watch('/watch', '7', { query: { fieldSelector: 'a=b' }, signal }))
    events.push(event);
  return events;
}

const HOUR_MS = 3_600_000;
const lines = (...events: unknown[]): string => events.map((event) => `${JSON.stringify(event)}\n`).join('');

const object = (name: string, resourceVersion = '8') => ({ metadata: { name, resourceVersion } });

test('a refusal carries status, reason and words of the API server', async () => {
  const body = {
    kind: 'Status',
    status: 'Failure',
    reason: 'Conflict',
    message: 'the object has been modified',
    code: 409,
  };
  const client = await clientOf(answer(409, body));
  await assert.rejects(client.get('/x'), { status: 409, reason: 'Conflict', message: 'the object has been modified' });
});

test('a refusal in the words of a proxy is one as well, whatever its body', async () => {
  for (const body of ['<html>Bad Gateway</html>', '', '"text"', 'null', '[]', '{"reason":5,"message":{}}']) {
    const client = await clientOf(answer(502, body));
    await assert.rejects(client.get('/x'), { status: 502, reason: 'Status502', message: 'it answered 502' }, body);
  }
});

test('how long to wait is taken over, when it is a number of seconds', async () => {
  const waits: [string, number | undefined][] = [
    ['7', 7_000],
    ['0', 0],
    ['Fri, 31 Dec 2027 23:59:59 GMT', undefined],
    ['-1', undefined],
  ];
  for (const [header, retryAfterMs] of waits) {
    const client = await clientOf(answer(429, {}, { 'retry-after': header }));
    await assert.rejects(client.get('/x'), { status: 429, retryAfterMs }, header);
  }
});

test('what is no answer of an API server is refused', async () => {
  for (const body of ['{', '', 'null', '5', '{"metadata":{}}', '{"metadata":{"name":5,"resourceVersion":"1"}}']) {
    const client = await clientOf(answer(200, body));
    await assert.rejects(client.get('/x'), { status: 0, reason: 'INVALID_ANSWER' }, body);
    await assert.rejects(client.list('/x'), { status: 0, reason: 'INVALID_ANSWER' }, body);
  }
});

/** Answers with pages of names; the next place is the index of the next page. Refuses the n-th request with 410. */
const paged =
  (pages: readonly (readonly string[])[], asked: string[], refused = -1): Handler =>
  (request, response) => {
    asked.push(new URL(request.url ?? '', 'http://x').search);
    const place = Number(new URL(request.url ?? '', 'http://x').searchParams.get('continue') ?? 0);
    if (asked.length === refused) return answer(410, { code: 410, reason: 'Expired' })(request, response);
    const metadata = { resourceVersion: '7', ...(place + 1 < pages.length && { continue: String(place + 1) }) };
    answer(200, { metadata, items: pages[place]?.map((name) => object(name)) })(request, response);
  };

const namesOf = ({ items }: { readonly items: readonly { readonly metadata: { readonly name: string } }[] }) =>
  items.map(({ metadata }) => metadata.name);

test('a long list is read in pages; a place in it is not asked for together with a resourceVersion', async () => {
  const asked: string[] = [];
  const client = await clientOf(paged([['a', 'b'], ['c'], []], asked));
  const list = await client.list('/x', { query: { resourceVersion: '0', labelSelector: 'l' } });
  assert.deepEqual([namesOf(list), list.resourceVersion], [['a', 'b', 'c'], '7']);
  assert.deepEqual(asked, [
    '?labelSelector=l&limit=500&resourceVersion=0',
    '?labelSelector=l&limit=500&continue=1',
    '?labelSelector=l&limit=500&continue=2',
  ]);
});

test('a list whose place was forgotten before its end is begun again, and given up in the end', async () => {
  const asked: string[] = [];
  const client = await clientOf(paged([['a'], ['b']], asked, 2));
  assert.deepEqual(namesOf(await client.list('/x')), ['a', 'b']);
  assert.equal(asked.length, 4);
  const expired = await clientOf(answer(410, { code: 410, reason: 'Expired' }));
  await assert.rejects(expired.list('/x'), { status: 410 });
});

test('pages are handed on as they come', async () => {
  const asked: string[] = [];
  const client = await clientOf(paged([['a'], ['b']], asked));
  for await (const page of client.pages('/x')) {
    assert.deepEqual(namesOf(page), ['a']);
    break;
  }
  assert.equal(asked.length, 1);
});

test('no answer in time, a broken connection, and no server: an error without address or token', async () => {
  const tries = [
    [(): void => {}, { timeoutMs: 100 }],
    [(_request: IncomingMessage, response: ServerResponse) => response.socket?.resetAndDestroy(), {}],
    [answer(200, {}), { signal: AbortSignal.abort() }],
  ] as const;
  for (const [handler, options] of tries) {
    const call = (await clientOf(handler)).get('/x', options);
    await assert.rejects(call, (err) => {
      assert.ok(err instanceof ApiError);
      assert.deepEqual([err.status, err.reason], [0, 'UNREACHABLE']);
      assert.doesNotMatch(err.message, /127\.0\.0\.1|secret-token/);
      return true;
    });
  }
});

test('an answer that begins and does not end is given up as well', async () => {
  const client = await clientOf((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"metadata":');
  });
  await assert.rejects(client.get('/x', { timeoutMs: 150 }), { status: 0, reason: 'UNREACHABLE' });
});

test('a deadline holds also while the connection is being made', async () => {
  // The connection is accepted but nothing is sent, so the TLS handshake never completes.
  const sockets: Socket[] = [];
  const mute = createTcpServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(mute, 'listening');
  port = undefined;
  // Only the deadline of the call may end it.
  const dispatcher = new Agent({ connect: { timeout: HOUR_MS } });
  const client = new KubernetesClient(
    {
      url: `https://127.0.0.1:${(mute.address() as AddressInfo).port}`,
      prepare: () => Promise.resolve({ headers: {}, dispatcher }),
      reconnect: () => {},
      close: () => dispatcher.destroy(),
    },
    { userAgent: 'test', callTimeoutMs: HOUR_MS, watchSeconds: { least: 30, most: 40 }, watchSilenceMs: HOUR_MS },
  );
  await assert.rejects(client.get('/x', { timeoutMs: 150 }), { status: 0, reason: 'UNREACHABLE' });
  await client.close();
  for (const socket of sockets) socket.destroy();
  mute.close();
});

test('a watch asks for bookmarks from where the list ended, and for an end that differs between clients', async () => {
  let url: URL | undefined;
  const client = await clientOf((request, response) => {
    url = new URL(request.url!, 'http://x');
    response.end(lines({ type: 'ADDED', object: object('a') }));
  });
  assert.deepEqual(await eventsOf(client), [{ type: 'ADDED', object: object('a') }]);
  assert.deepEqual(Object.fromEntries(url!.searchParams), {
    fieldSelector: 'a=b',
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: '7',
    timeoutSeconds: '35',
  });
});

test('events are read whatever pieces they come in', async () => {
  const text = lines(
    { type: 'ADDED', object: object('käse') },
    { type: 'BOOKMARK', object: { kind: 'Camera', metadata: { resourceVersion: '9', creationTimestamp: null } } },
    { type: 'DELETED', object: object('b', '10') },
  );
  for (const size of [1, 2, 7, 50, 1_000]) {
    const client = await clientOf((_request, response) => {
      void (async () => {
        const bytes = Buffer.from(text);
        for (let i = 0; i < bytes.length; i += size) {
          response.write(bytes.subarray(i, i + size));
          await new Promise(setImmediate);
        }
        response.end();
      })();
    });
    const events = await eventsOf(client);
    assert.deepEqual(
      events.map(({ type, object }) => [type, object.metadata.name, object.metadata.resourceVersion]),
      [
        ['ADDED', 'käse', '8'],
        ['BOOKMARK', '', '9'],
        ['DELETED', 'b', '10'],
      ],
      `${size} bytes at a time`,
    );
  }
});

test('an error inside a watch is thrown, whatever its code: none is dropped in silence', async () => {
  for (const code of [410, 500]) {
    const status = { kind: 'Status', code, reason: 'Expired', message: 'too old resource version: 7 (9)' };
    const client = await clientOf(answer(200, lines({ type: 'ERROR', object: status })));
    await assert.rejects(eventsOf(client), { status: code, reason: 'Expired' });
  }
});

test('a watch that says what is no event fails', async () => {
  for (const line of ['nonsense', '{"type":"LATER","object":{}}', '{"type":"ADDED"}', 'null', '{"type":"BOOKMARK"}']) {
    const client = await clientOf(answer(200, `${line}\n`));
    await assert.rejects(eventsOf(client), { status: 0, reason: 'INVALID_ANSWER' }, line);
  }
});

test('a watch is refused like any call', async () => {
  const client = await clientOf(answer(403, { reason: 'Forbidden', message: 'no' }));
  await assert.rejects(eventsOf(client), { status: 403, reason: 'Forbidden' });
});

test('a watch that says nothing for too long hangs on a dead connection: it fails, though the way to the server is still open', async (t) => {
  const client = await clientOf((_request, response) => {
    response.writeHead(200).write(lines({ type: 'ADDED', object: object('a') }));
  });
  const proxy = await TcpProxy.to(serverPort());
  t.after(() => proxy.close());
  port = proxy.port;
  const watching = (async () => {
    for await (const event of client.watch('/watch', '7', { query: {}, signal: never })) {
      assert.equal(event.type, 'ADDED');
      proxy.silence();
    }
  })();
  await assert.rejects(watching, { status: 0, reason: 'UNREACHABLE' });
});

test('an event without end is not kept in memory', async () => {
  const client = await clientOf((_request, response) => {
    const more = (): void => void (response.writable && response.write('x'.repeat(65_536), more));
    more();
  });
  await assert.rejects(eventsOf(client), { status: 0, reason: 'INVALID_ANSWER', message: 'a watch event is too long' });
});

test('an answer that is seen after the time limit is not used, even if the timer of the limit has not fired', async (t) => {
  const LIMIT_MS = 100;
  await clientOf((_request, response) => void response.end(JSON.stringify(object('gate'))));
  /** Freezes the process before the bytes of the response are processed; they arrive in the event loop turn after it resumes. */
  const paused = (handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler =>
    new Proxy(handler, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key);
        if (key !== 'onResponseData' || typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LIMIT_MS);
          return Reflect.apply(value, target, args);
        };
      },
    });
  const agent = new Agent();
  t.after(() => agent.close());
  const dispatcher = agent.compose((dispatch) => (options, handler) => dispatch(options, paused(handler)));
  const connection = {
    url: `http://127.0.0.1:${serverPort()}`,
    prepare: () => Promise.resolve({ headers: {}, dispatcher }),
    reconnect() {},
    close: () => Promise.resolve(),
  };
  const client = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: LIMIT_MS });
  await assert.rejects(client.get('/'), { status: 0, reason: 'UNREACHABLE', message: /it did not answer in time$/ });
});

// The failover simulation relies on it (test/sim/failover/api-server.ts).
test('an answer that came while the process was frozen, beyond its time limit, is none: it is about the past', async () => {
  const LIMIT_MS = 300;
  await clientOf((_request, response) => {
    child.signal('SIGSTOP');
    response.end(JSON.stringify(object('gate')));
    setTimeout(() => child.signal('SIGCONT'), 3 * LIMIT_MS);
  });
  const program = `
    import { KubernetesClient } from ${JSON.stringify(import.meta.resolve('./client.ts'))};
    const prepare = () => Promise.resolve({ headers: {} });
    const connection = { url: 'http://127.0.0.1:${serverPort()}', prepare, reconnect() {}, close: () => Promise.resolve() };
    const client = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: ${LIMIT_MS} });
    const said = await client.get('/').then(() => 'believed', ({ reason }) => reason);
    console.log(said);
    process.exit();
  `;
  await using child = new Child(process.execPath, ['--input-type=module', '--eval', program]);
  await child.exit();
  assert.equal(child.output.trim(), 'UNREACHABLE');
});
