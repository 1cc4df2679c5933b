import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryDirectory } from '../archive/test-support.ts';
import { AdminClient, AdminError } from './admin-client.ts';

/** A recorder that answers with ten bytes, of which `sent` arrive. */
async function stage(t: TestContext, sent: number) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-length': 10 });
    response.write('x'.repeat(sent), () => (sent === 10 ? response.end() : response.destroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    client: new AdminClient(new URL(`http://127.0.0.1:${port}`), {}, {}),
    file: join(temporaryDirectory(t), 'a.mp4'),
  };
}

test('an answer is saved whole', async (t) => {
  const { client, file } = await stage(t, 10);
  await client.save('/movie', file);
  assert.equal(readFileSync(file, 'utf8'), 'x'.repeat(10));
});

test('of an answer that breaks off nothing is kept', async (t) => {
  const { client, file } = await stage(t, 4);
  await assert.rejects(client.save('/movie', file), AdminError);
  assert.equal(existsSync(file), false);
});

test('a file that exists is not written over', async (t) => {
  for (const sent of [4, 10]) {
    const { client, file } = await stage(t, sent);
    writeFileSync(file, 'mine');
    await assert.rejects(client.save('/movie', file), /a\.mp4 cannot be written: EEXIST/);
    assert.equal(readFileSync(file, 'utf8'), 'mine');
  }
});
