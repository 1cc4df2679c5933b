import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { Agent } from 'undici';
import { EtcdClient } from './etcd/client.ts';
import { isRedirect, readBody } from './http-answer.ts';
import { KubernetesClient } from './kubernetes/client.ts';
import { newKey, selfSigned } from './x509.ts';

const tooLong = (): Error => new Error('too long');

async function* endless(): AsyncGenerator<Buffer> {
  for (;;) yield Buffer.from('abcd');
}

test('a body is read to its end, up to the limit', async () => {
  const body = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('ab');
    yield Buffer.from('cd');
  };
  assert.equal(String(await readBody(body(), 4, tooLong)), 'abcd');
  await assert.rejects(readBody(body(), 3, tooLong), /too long/);
});

test('a body without end is given up at the limit', async () => {
  await assert.rejects(readBody(endless(), 1000, tooLong), /too long/);
});

test('a redirect has a Location to follow', () => {
  assert.deepEqual([301, 302, 303, 307, 308].map(isRedirect), [true, true, true, true, true]);
  assert.deepEqual([200, 300, 304, 401, undefined].map(isRedirect), [false, false, false, false, false]);
});

test('the clients of etcd and of the API server speak HTTP/1.1 with a server that prefers HTTP/2', async (t) => {
  const key = newKey();
  const [fromMs, toMs] = [Date.now() - 3_600_000, Date.now() + 3_600_000];
  const cert = await selfSigned(key, { commonName: 'server', names: ['127.0.0.1'], fromMs, toMs });
  const versions: string[] = [];
  const server = createSecureServer({ key, cert, allowHTTP1: true }, ({ httpVersion }, response) => {
    versions.push(httpVersion);
    response.end(JSON.stringify({ header: { revision: '7' }, metadata: { name: 'a', resourceVersion: '1' } }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const etcd = new EtcdClient({ endpoints: () => [url], tls: () => ({ ca: cert, certificate: cert, key }) });
  const dispatcher = new Agent({ connect: { ca: cert } });
  const connection = {
    url,
    prepare: () => Promise.resolve({ headers: {}, dispatcher }),
    reconnect: () => {},
    close: () => dispatcher.destroy(),
  };
  const api = new KubernetesClient(connection, { userAgent: 'test', callTimeoutMs: 180_000 });
  t.after(async () => {
    await Promise.all([etcd.close(), api.close()]);
    server.close();
  });
  await etcd.range({ key: 'a' });
  await api.get('/a');
  assert.deepEqual(versions, ['1.1', '1.1']);
});
