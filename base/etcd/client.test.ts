import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { EtcdClient } from './client.ts';

test('a watch at another member than the first one ends after a time, and a watch at the first one does not', async (t) => {
  let watches = 0;
  const member = createServer((_, response) => {
    watches++;
    response.write(`${JSON.stringify({ result: { header: { revision: '5' }, created: true } })}\n`);
  }).listen(0, '127.0.0.1');
  await once(member, 'listening');
  const url = `http://127.0.0.1:${(member.address() as AddressInfo).port}`;
  let endpoints = ['http://127.0.0.1:1', url];
  const client = new EtcdClient({ endpoints: () => endpoints, awayMs: 100 });
  t.after(async () => {
    await client.close();
    member.closeAllConnections();
    member.close();
  });
  const ending = new AbortController();
  const watch = () => client.watch({ key: 'a', rangeEnd: 'b', afterRevision: '4' }, ending.signal).next();

  assert.deepEqual(await watch(), { done: true, value: undefined });

  endpoints = [url];
  const second = watch();
  const third = watch();
  const isOpen = await Promise.race([second.then(() => false), third.then(() => false), laterThan(300)]);
  assert.ok(isOpen);
  assert.equal(watches, 3);
  ending.abort();
  await assert.rejects(second, { code: 'UNREACHABLE' });
  await assert.rejects(third, { code: 'UNREACHABLE' });
});

test('a read that a member does not answer is sent again while the call has time, and a change is not', async (t) => {
  let requests = 0;
  const member = createServer((_, response) => {
    if (++requests !== 2) return;
    response.end(JSON.stringify({ header: { revision: '7' } }));
  }).listen(0, '127.0.0.1');
  await once(member, 'listening');
  const url = `http://127.0.0.1:${(member.address() as AddressInfo).port}`;
  const endpoints = (): readonly string[] => ['http://127.0.0.1:1', url];
  const reading = new EtcdClient({ endpoints, callTimeoutMs: 120_000 });
  // Longer than the second after which a read is sent again.
  const changing = new EtcdClient({ endpoints, callTimeoutMs: 4_000 });
  t.after(async () => {
    await reading.close();
    await changing.close();
    member.closeAllConnections();
    member.close();
  });

  assert.equal((await reading.range({ key: 'a' })).revision, '7');
  assert.equal(requests, 2);

  await assert.rejects(changing.txn({ compare: [], success: [] }), { code: 'UNREACHABLE' });
  assert.equal(requests, 3);
});

const laterThan = (ms: number): Promise<boolean> => new Promise((resolve) => setTimeout(resolve, ms, true));
