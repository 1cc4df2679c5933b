// Webhooks over real connections: what receivers get when they are slow, fail, or the recorder is killed in between.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import {
  createServer,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { PATIENCE_MS } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { unlimitedMemory } from '../../base/memory-budget.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { EventJournal } from '../events/journal.ts';
import { newWebhookSecret } from '../events/signature.ts';
import { registerWebhookMetrics } from './webhook-metrics.ts';
import { run as runWebhook } from '../commands/webhook.ts';
import { Webhooks } from './webhooks.ts';

const SECRET = newWebhookSecret();

interface Got {
  readonly id: string;
  readonly number: unknown;
  readonly type: string;
}

/** A receiver that answers as it is told, and notes what it has taken and what it was sent at all. */
class Receiver {
  readonly sent: Got[] = [];
  readonly taken: Got[] = [];
  readonly headers: IncomingHttpHeaders[] = [];
  readonly bodies: string[] = [];
  /** Status of the next answers; undefined: none is given. */
  answer: () => number | undefined = () => 200;
  readonly #server: Server;
  readonly #held: ServerResponse[] = [];
  #changed = Promise.withResolvers<void>();

  private constructor(secure: boolean) {
    const listener: RequestListener = (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        const event = JSON.parse(body) as { id: string; type: string; data: { number: unknown } };
        const got = { id: event.id, type: event.type, number: event.data.number };
        this.headers.push(request.headers);
        this.bodies.push(body);
        this.sent.push(got);
        const status = this.answer();
        if (status === 200) this.taken.push(got);
        if (status === undefined) this.#held.push(response);
        else response.writeHead(status).end();
        this.#changed.resolve();
        this.#changed = Promise.withResolvers();
      });
    };
    this.#server = secure ? createTlsServer(selfSignedCertificate('hook'), listener) : createServer(listener);
  }

  static async open(t: TestContext, secure = false): Promise<Receiver> {
    const receiver = new Receiver(secure);
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    t.after(() => {
      receiver.#server.closeAllConnections();
      receiver.#server.close();
    });
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook?key=hidden`;
  }

  /** What was sent while no answer was given is taken now. */
  answerHeld(): void {
    for (const response of this.#held.splice(0)) response.writeHead(200).end();
  }

  async until(wanted: () => boolean): Promise<void> {
    while (!wanted()) await this.#changed.promise;
  }
}

interface Node {
  readonly clock: VirtualClock;
  readonly registry: Registry;
  journal: EventJournal;
  tell(number: number, cameraId?: string): void;
  /** A reload with other webhooks. */
  configure(webhooks: readonly object[]): Promise<void>;
  /** Another process, after this one was closed. */
  restart(): Promise<void>;
}

async function configOf(t: TestContext, webhooks: readonly object[], more: object = {}): Promise<Config> {
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  writeFileSync(file, JSON.stringify({ nodeName: 'rack-1', workDir: directory, webhooks, ...more }));
  return loadConfig(file);
}

async function start(t: TestContext, webhooks: readonly object[], more: object = {}): Promise<Node> {
  let config = await configOf(t, webhooks, more);
  const clock = new VirtualClock();
  const registry = new Registry();
  const directory = join(config.workDir, 'events');
  let opened: Webhooks | undefined;
  registerWebhookMetrics(registry, () => opened?.list ?? []);
  const open = async (): Promise<EventJournal> => {
    const memory = unlimitedMemory('events');
    const journal = await EventJournal.open({ directory, node: 'rack-1', clock, log: silentLog, memory });
    opened = new Webhooks({ journal, directory, clock, log: silentLog });
    await opened.configure(config, journal.newestId);
    return journal;
  };
  const node: Node = {
    clock,
    registry,
    journal: await open(),
    tell: (number, cameraId = 'gate') => node.journal.tell({ type: 'job.progress', cameraId, data: { number } }),
    async configure(webhooks) {
      config = await configOf(t, webhooks, more);
      await opened?.configure(config, node.journal.newestId);
    },
    async restart() {
      await opened?.close();
      await node.journal.close();
      clock.advance(1);
      node.journal = await open();
    },
  };
  t.after(async () => {
    await opened?.close();
    await node.journal.close();
  });
  return node;
}

/** As Standard Webhooks says. */
function signatureOf(secret: string, headers: IncomingHttpHeaders, body: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = `${headers['webhook-id'] as string}.${headers['webhook-timestamp'] as string}.${body}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

const numbers = (list: readonly Got[]): unknown[] => list.map(({ number }) => number);
const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

/** Lets time pass until something has happened, whatever waits for the clock. */
async function passUntil(node: Node, wanted: () => boolean): Promise<void> {
  const untilMs = performance.now() + PATIENCE_MS;
  while (!wanted()) {
    assert.ok(performance.now() < untilMs, 'it does not happen');
    node.clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('each event is delivered once, in order, signed as Standard Webhooks says', async (t) => {
  const receiver = await Receiver.open(t);
  const node = await start(t, [{ url: receiver.url, secret: SECRET }]);
  for (const number of upTo(20)) node.tell(number);
  await receiver.until(() => receiver.taken.length === 20);
  assert.deepEqual(numbers(receiver.sent), upTo(20));
  const [headers, body] = [receiver.headers[0] ?? {}, receiver.bodies[0] ?? ''];
  assert.equal(headers['content-type'], 'application/cloudevents+json; charset=utf-8');
  assert.equal(headers['webhook-id'], receiver.sent[0]?.id);
  assert.equal(headers['webhook-timestamp'], String(Date.UTC(2026, 0, 1, 12) / 1000));
  assert.equal(headers['webhook-signature'], signatureOf(SECRET, headers, body));
  const { specversion, source, subject } = JSON.parse(body) as Record<string, unknown>;
  assert.deepEqual([specversion, source, subject], ['1.0', '/nodes/rack-1', 'gate']);
});

test('a receiver that answers 500, redirects, and then 200 gets each event, in order, under its id, and none after it has taken it', async (t) => {
  const receiver = await Receiver.open(t);
  let answers = 0;
  receiver.answer = () => [200, 500, 302][++answers % 3];
  const node = await start(t, [{ url: receiver.url, secret: SECRET }]);
  for (const number of upTo(10)) node.tell(number);
  await passUntil(node, () => receiver.taken.length === 10);
  assert.deepEqual(numbers(receiver.taken), upTo(10));
  assert.deepEqual(
    numbers(receiver.sent),
    upTo(10).flatMap((number) => [number, number, number]),
  );
  assert.equal(new Set(receiver.sent.map(({ id }) => id)).size, 10);
  const text = await node.registry.metrics();
  assert.match(text, /deliveries_total\{webhook="1",outcome="failed"\} 20/);
  assert.doesNotMatch(text, /hidden/);
});

test('one that is down for most of an hour gets all of it when it is back, over restarts of the recorder', async (t) => {
  const receiver = await Receiver.open(t);
  receiver.answer = () => 503;
  const node = await start(t, [{ url: receiver.url, secret: SECRET }]);
  for (const number of upTo(50)) {
    node.tell(number);
    node.clock.advance(60_000);
    if (number % 20 !== 0) continue;
    await receiver.until(() => receiver.sent.length > 0);
    // What was told is in the file before anybody sees it.
    await new Promise<void>((resolve) => {
      const seen = (): void => {
        const last = [...node.journal.after(0)].at(-1);
        if (last?.json.includes(`"number":${number}}`)) resolve();
      };
      node.journal.follow(seen);
      seen();
    });
    await node.restart();
  }
  const behind = /behind_seconds\{[^}]*\} (\d+)/.exec(await node.registry.metrics())?.[1];
  assert.equal(Number(behind), 50 * 60);
  receiver.answer = () => 200;
  await passUntil(node, () => receiver.taken.length === 50);
  assert.deepEqual(numbers(receiver.taken), upTo(50));
});

test('a receiver that does not answer holds up no other', async (t) => {
  const deaf = await Receiver.open(t);
  deaf.answer = () => undefined;
  const receiver = await Receiver.open(t);
  const node = await start(t, [
    { url: deaf.url, secret: SECRET },
    { url: receiver.url, secret: SECRET },
  ]);
  for (const number of upTo(50)) node.tell(number);
  await receiver.until(() => receiver.taken.length === 50);
  assert.deepEqual(numbers(deaf.sent), [1]);
});

test('a reload opens those that are new, closes those that are gone, and disturbs no other', async (t) => {
  const [kept, gone, added] = [await Receiver.open(t), await Receiver.open(t), await Receiver.open(t)];
  kept.answer = () => undefined;
  const hook = ({ url }: Receiver) => ({ url, secret: SECRET });
  const node = await start(t, [hook(gone), hook(kept)]);
  node.tell(1);
  await Promise.all([kept.until(() => kept.sent.length === 1), gone.until(() => gone.taken.length === 1)]);
  await node.configure([hook(kept), hook(added)]);
  node.tell(2);
  await added.until(() => added.taken.length === 1);
  assert.deepEqual([numbers(gone.sent), numbers(kept.sent), numbers(added.sent)], [[1], [1], [2]]);
  // The very connection on which it was sent: it was not sent again.
  kept.answer = () => 200;
  kept.answerHeld();
  await kept.until(() => numbers(kept.sent).includes(2));
  assert.deepEqual(numbers(kept.sent), [1, 2]);
});

test('one that gets another secret continues where it was, also where its place cannot be written', async (t) => {
  const receiver = await Receiver.open(t);
  const node = await start(t, [{ url: receiver.url, secret: SECRET }], { workDir: '/dev/null/kube-nvr' });
  node.tell(1);
  await receiver.until(() => receiver.taken.length === 1);
  receiver.answer = () => 500;
  node.tell(2);
  await receiver.until(() => receiver.sent.length === 2);
  receiver.answer = () => 200;
  const secret = newWebhookSecret();
  await node.configure([{ url: receiver.url, secret }]);
  await receiver.until(() => receiver.taken.length === 2);
  assert.deepEqual(numbers(receiver.taken), [1, 2]);
  const [headers, body] = [receiver.headers.at(-1) ?? {}, receiver.bodies.at(-1) ?? ''];
  assert.equal(headers['webhook-signature'], signatureOf(secret, headers, body));
});

test('a receiver gets what it asks for: types, cameras, and what is of the node', async (t) => {
  const receiver = await Receiver.open(t);
  const node = await start(t, [
    { url: receiver.url, secret: SECRET, events: ['job.*', 'warning.raised'], cameras: ['gate*'] },
  ]);
  node.tell(1, 'yard');
  node.tell(2, 'gate-2');
  node.journal.tell({ type: 'camera.state', cameraId: 'gate', data: { number: 3 } });
  node.journal.tell({ type: 'warning.raised', data: { number: 4 } });
  node.tell(5);
  await receiver.until(() => receiver.taken.length === 3);
  assert.deepEqual(numbers(receiver.sent), [2, 4, 5]);
});

test('a self-signed certificate is not accepted, and nothing is sent to it', async (t) => {
  const receiver = await Receiver.open(t, true);
  const config = await configOf(t, [{ url: `https://127.0.0.1:${receiver.port}/`, secret: SECRET }]);
  const printed: string[] = [];
  const clock = new VirtualClock();
  const code = await runWebhook(['test'], { load: async () => config, print: (text) => printed.push(text), clock });
  assert.equal(code, 1);
  assert.match(printed.join(''), /self-signed certificate/);
  assert.deepEqual(receiver.sent, []);
});

test('recorder webhook test says of each webhook whether it took the event; the secret may be in a file', async (t) => {
  const [good, bad] = [await Receiver.open(t), await Receiver.open(t)];
  bad.answer = () => 404;
  const secretFile = join(workspace(t), 'secret');
  writeFileSync(secretFile, `${SECRET}\n`);
  const config = await configOf(t, [
    { url: good.url, secretFile },
    { url: bad.url, secret: SECRET },
  ]);
  const printed: string[] = [];
  const deps = {
    load: async () => config,
    print: (text: string) => void printed.push(text),
    clock: new VirtualClock(),
  };
  assert.equal(await runWebhook(['test'], deps), 1);
  assert.deepEqual(printed, [`127.0.0.1:${good.port}: ok\n`, `127.0.0.1:${bad.port}: it answered 404\n`]);
  assert.equal(good.taken[0]?.type, 'dev.kube-nvr.webhook.test');
  printed.length = 0;
  assert.equal(await runWebhook(['secret'], deps), 0);
  assert.match(printed.join(''), /^whsec_\S{44}\n$/);
  await assert.rejects(runWebhook(['tset'], deps), /expected "webhook test"/);
});

test('in a cluster nothing is sent to this machine, to what clouds tell their machines, or to the cluster', async (t) => {
  const receiver = await Receiver.open(t);
  const urls = [
    receiver.url,
    `http://localhost:${receiver.port}/`,
    'http://169.254.169.254/latest',
    'http://10.96.0.1/',
  ];
  const config = await configOf(
    t,
    urls.map((url) => ({ url, secret: SECRET })),
    { cluster: { mode: 'kubernetes', networks: ['10.96.0.0/12'] } },
  );
  const printed: string[] = [];
  const clock = new VirtualClock();
  await runWebhook(['test'], { load: async () => config, print: (text) => printed.push(text), clock });
  assert.equal(printed.length, 4);
  for (const line of printed) assert.match(line, /events are not sent to this address/);
  assert.deepEqual(receiver.sent, []);
});

test('a webhook that makes no sense is refused, and the key named', async (t) => {
  const refused = async (webhook: object): Promise<string> => {
    let message = '';
    await assert.rejects(configOf(t, [webhook]), (err: Error) => {
      message = err.message;
      return true;
    });
    return message;
  };
  const url = 'https://hooks.example/';
  assert.match(await refused({ url, secret: 'hunter2' }), /webhooks\[0\]\.secret: expected whsec_/);
  assert.doesNotMatch(await refused({ url, secret: 'hunter2' }), /hunter2/);
  assert.match(await refused({ url }), /webhooks\[0\]\.secret: expected either secret or secretFile/);
  assert.match(
    await refused({ url, secret: SECRET, events: ['camera.gone'] }),
    /events\[0\]: no event has such a type/,
  );
  assert.match(await refused({ url: 'ftp://x', secret: SECRET }), /webhooks\[0\]\.url/);
});
