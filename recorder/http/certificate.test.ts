import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rename, writeFile } from 'node:fs/promises';
import type { Server } from 'node:https';
import { connect as connectPlain, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { Registry } from 'prom-client';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { silentLog, type Log } from '../../base/log.ts';
import {
  CertificateError,
  followCertificate,
  readCertificate,
  registerCertificateMetrics,
  type CertificatePair,
} from './certificate.ts';
import { buildServer } from './server.ts';

async function stage(t: TestContext) {
  const directory = workspace(t);
  const paths = { certificate: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  /** As programs that renew certificates do: each file replaced by another, one after the other. */
  const write = async (certificate: string, key: string): Promise<void> => {
    for (const [path, text] of [
      [paths.key, key],
      [paths.certificate, certificate],
    ] as const) {
      await writeFile(`${path}.new`, text, { mode: 0o600 });
      await rename(`${path}.new`, path);
    }
  };
  const first = selfSignedCertificate('first');
  await write(first.cert, first.key);
  const app = buildServer({ log: silentLog, tls: await readCertificate(paths), maxConnections: 100 });
  app.get('/', async () => 'hello');
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const refused: unknown[] = [];
  const log: Log = { ...silentLog, error: (fields) => void refused.push(fields) };
  let inUse: CertificatePair | undefined = await readCertificate(paths);
  const followed = followCertificate(paths, [app.server as Server], {
    log,
    used: (pair) => (inUse = pair),
    settleMs: 50,
    pollMs: 1_000,
  });
  t.after(() => followed.close());
  await followed.ready;
  const open = async (options = {}): Promise<TLSSocket> => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options });
    t.after(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  const nameShown = async (): Promise<string | undefined> => {
    const socket = await open();
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN as string | undefined;
  };
  return { paths, write, port, open, nameShown, refused, inUse: () => inUse };
}

/** Asks on a connection that stands and reads until the answer is complete. */
async function ask(socket: TLSSocket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  let text = '';
  while (!text.endsWith('hello')) text += String((await once(socket, 'data'))[0]);
  return text.split('\r\n')[0] as string;
}

test('a new certificate is shown to new connections, and those that stand continue', async (t) => {
  const { write, open, nameShown } = await stage(t);
  const before = await open();
  assert.equal(before.getPeerCertificate().subject.CN, 'first');
  const second = selfSignedCertificate('second');
  await write(second.cert, second.key);
  await until('the second certificate', async () => (await nameShown()) === 'second');
  assert.equal(await ask(before), 'HTTP/1.1 200 OK');
});

test('a broken pair, or half of one, is refused with a line in the log, and the old one stays', async (t) => {
  const { paths, write, nameShown, refused } = await stage(t);
  const [second, third] = [selfSignedCertificate('second'), selfSignedCertificate('third')];
  await write('no certificate', second.key);
  await until('the broken certificate', () => refused.length > 0);
  assert.deepEqual(refused.at(-1), { file: paths.certificate, problem: 'is not a certificate in PEM' });
  assert.equal(await nameShown(), 'first');
  await write(second.cert, third.key);
  const mismatch = { file: paths.key, problem: 'is not the key of tls.certificate' };
  await until('the mismatch', () => JSON.stringify(refused.at(-1)) === JSON.stringify(mismatch));
  assert.equal(await nameShown(), 'first');
  await write(third.cert, third.key);
  await until('the third certificate', async () => (await nameShown()) === 'third');
});

test('the metric says when the certificate in use ends, and a renewed one moves it', async (t) => {
  const { write, inUse } = await stage(t);
  const registry = new Registry();
  let encrypted = true;
  registerCertificateMetrics(registry, {
    listeners: () => (encrypted ? inUse() : undefined),
    nodes: () => ({ certificate: selfSignedCertificate('node', 7 * 86_400_000).cert }),
  });
  const daysLeft = async (use = 'listeners'): Promise<number | undefined> => {
    const metric = `kube_nvr_certificate_expiry_timestamp_seconds{use="${use}"}`;
    const line = new RegExp(`^${metric} (\\d+)$`, 'm').exec(await registry.metrics());
    return line ? Math.round((Number(line[1]) - Date.now() / 1000) / 86_400) : undefined;
  };
  assert.equal(await daysLeft(), 1);
  const renewed = selfSignedCertificate('first', 90 * 86_400_000);
  await write(renewed.cert, renewed.key);
  await until('the renewed certificate', async () => (await daysLeft()) === 90);
  encrypted = false;
  assert.equal(await daysLeft(), undefined);
  assert.equal(await daysLeft('nodes'), 7);
});

test('nothing below TLS 1.2 is spoken, and no plain HTTP, not even for a redirect', async (t) => {
  const { open, port } = await stage(t);
  assert.equal((await open({ maxVersion: 'TLSv1.2' })).getProtocol(), 'TLSv1.2');
  assert.equal((await open()).getProtocol(), 'TLSv1.3');
  // SECLEVEL 0: else this side would refuse by itself.
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
  await assert.rejects(open(old), { code: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION' });
  const plain = connectPlain(port, '127.0.0.1');
  plain.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  let received = Buffer.alloc(0);
  plain.on('data', (data: Buffer) => (received = Buffer.concat([received, data])));
  plain.on('error', () => {});
  await once(plain, 'close');
  assert.doesNotMatch(received.toString('latin1'), /HTTP/);
});

for (const [name, change, expected] of [
  ['a file that is not there', { key: '/nowhere/tls.key' }, { key: 'key', message: /cannot be read \(ENOENT\)/ }],
  ['a key that is none', { key: import.meta.filename }, { key: 'key', message: /is not a private key in PEM/ }],
] as const) {
  test(`reading a pair names the file: ${name}`, async (t) => {
    const { paths } = await stage(t);
    const given = { ...paths, ...change };
    await assert.rejects(readCertificate(given), (err) => {
      assert.ok(err instanceof CertificateError);
      assert.equal(err.file, given.key);
      assert.equal(err.key, expected.key);
      assert.match(err.message, expected.message);
      return true;
    });
  });
}
