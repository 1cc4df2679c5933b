import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { TestLog } from '../archive/test-support.ts';
import { buildServer } from '../http/server.ts';
import { systemClock } from '../../base/clock.ts';
import { HolderLost } from '../footage/remote-file.ts';
import { Responder } from './respond.ts';
import { SendAborted, Sender } from './sender.ts';

test('HEAD says the length, also where GET does not', async (t) => {
  const app = buildServer({ log: new TestLog(), maxConnections: 10 });
  t.after(() => app.close());
  const responder = new Responder(new Sender({ clock: systemClock }), new TestLog());
  const representation = { pieces: [Buffer.from('a film')], sizeBytes: 6, etag: '"one"', modifiedMs: 0 };
  const answer = {
    representation,
    file: undefined,
    contentType: 'video/mp4',
    cacheControl: 'no-store',
    isChunked: true,
  };
  app.get('/film', async (request, reply) => {
    await responder.respond(request, reply, answer);
    return reply;
  });
  const [whole, head] = [await app.inject('/film'), await app.inject({ method: 'HEAD', url: '/film' })];
  assert.deepEqual([whole.body, whole.headers['content-length']], ['a film', undefined]);
  assert.deepEqual([head.body, head.headers['content-length']], ['', '6']);
});

for (const { name, failure, lines } of [
  { name: 'a disk that fails', failure: new Error('EIO: i/o error, read'), lines: 1 },
  { name: 'another node that goes away', failure: new HolderLost('the holder of the file does not send it'), lines: 0 },
  { name: 'a client that goes away', failure: new SendAborted('the client went away'), lines: 0 },
]) {
  test(`${name} within a body breaks the connection, and is ${lines === 0 ? 'not worth a line' : 'logged once'}`, async (t) => {
    const log = new TestLog();
    const app = buildServer({ log, maxConnections: 10 });
    const responder = new Responder(new Sender({ clock: systemClock }), log);
    app.get('/', async (request, reply) => {
      reply.header('content-length', 1000);
      await responder.stream(request, reply, 200, async (raw) => {
        raw.write('some of it');
        throw failure;
      });
      return reply;
    });
    t.after(() => app.close());
    await app.listen({ host: '127.0.0.1', port: 0 });
    const request = get({ port: (app.server.address() as AddressInfo).port, agent: false });
    const ended = Promise.race([
      once(request, 'error').then(([err]) => (err as NodeJS.ErrnoException).code),
      once(request, 'response').then(async ([response]) => {
        response.resume();
        return once(response, 'error').then(([err]) => (err as NodeJS.ErrnoException).code);
      }),
    ]);
    assert.equal(await ended, 'ECONNRESET');
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(log.lines.length, lines);
    // And the next one is answered.
    const [, other] = [request.destroy(), await app.inject('/nothing')];
    assert.equal(other.statusCode, 404);
  });
}
