import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { build } from './test-support.ts';

async function counting(t: Parameters<typeof build>[0]) {
  const seen = { held: 0, total: 0 };
  const { app } = await build(t, {
    auth: { mode: 'none', tokens: [] },
    keepAwake: () => {
      seen.held++;
      seen.total++;
      return () => seen.held--;
    },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { seen, address: `127.0.0.1:${port}` };
}

test('the event loop is kept awake while a request is answered, and not longer', async (t) => {
  const { seen, address } = await counting(t);
  for (const path of ['/api/cameras', '/no/such/route']) {
    const answer = await fetch(`http://${address}${path}`);
    await answer.text();
  }
  for (let i = 0; i < 100 && seen.held > 0; i++) await sleep(10);
  assert.deepEqual(seen, { held: 0, total: 2 });
});

test('a viewer does not keep the event loop awake', async (t) => {
  const { seen, address } = await counting(t);
  const viewer = new WebSocket(`ws://${address}/websocket/nobody`);
  await once(viewer, 'close');
  assert.equal(seen.total, 0);
});
