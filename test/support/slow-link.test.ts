import assert from 'node:assert/strict';
import { createServer, connect, type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { SlowLink } from './slow-link.ts';

test('all bytes arrive, in the order in which they were sent', async (t) => {
  const sent = Buffer.from(Uint32Array.from({ length: 2_000_000 }, (_, i) => i).buffer);
  const server = createServer((socket) => {
    // In bursts of unequal size, so that each byte has another wait on the link.
    for (let at = 0, size = 1_000; at < sent.length; at += size, size = (size * 3) % 90_007)
      socket.write(sent.subarray(at, at + size));
    socket.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const link = await SlowLink.to({ port, bitsPerSecond: 1e9, roundTripMs: 20 });
  t.after(() => link.close());
  assert.ok((await buffer(connect({ port: link.port, host: '127.0.0.1' }))).equals(sent));
});
