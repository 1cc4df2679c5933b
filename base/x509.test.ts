import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { RequestError } from './error.ts';
import { newAuthority, newKey, newRequest, selfSigned, signRequest } from './x509.ts';
// Must come after our module, which imports what this library needs.
import * as x509 from '@peculiar/x509';

const DAY_MS = 86_400_000;
const NOW_MS = Date.now();
const TIMES = { fromMs: NOW_MS - 3_600_000, toMs: NOW_MS + 90 * DAY_MS };

/** Writes `files` to a temporary directory, for openssl to read. */
function written(t: TestContext, files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-x509-'));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}
const openssl = (cwd: string, ...args: string[]): string =>
  execFileSync('openssl', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test('what the CA signs is believed by openssl as a server and as a client, for the names that the signer says', async (t) => {
  const authority = await newAuthority({ commonName: 'CA of video/default', ...TIMES });
  const names = ['node-1', '10.0.0.7', 'fd00::7', 'kube-nvr://video/default/node-1'];
  const certificate = await signRequest(await newRequest(newKey()), authority, {
    commonName: 'node-1',
    names,
    ...TIMES,
  });
  const directory = written(t, { 'ca.pem': authority.certificate, 'leaf.pem': certificate });
  for (const purpose of ['sslserver', 'sslclient']) {
    const verified = openssl(directory, 'verify', '-x509_strict', '-purpose', purpose, '-CAfile', 'ca.pem', 'leaf.pem');
    assert.match(verified, /OK/);
  }
  const leaf = new X509Certificate(certificate);
  for (const name of ['node-1']) assert.equal(leaf.checkHost(name), name);
  for (const ip of ['10.0.0.7', 'fd00::7']) assert.equal(leaf.checkIP(ip), ip);
  assert.match(leaf.subjectAltName ?? '', /URI:kube-nvr:\/\/video\/default\/node-1/);
  assert.equal(leaf.checkHost('node-2'), undefined);
});

test('what a CA has signed signs nothing itself, and the CA no other CA', async (t) => {
  const authority = await newAuthority({ commonName: 'CA', ...TIMES });
  const key = newKey();
  const middle = {
    key,
    certificate: await signRequest(await newRequest(key), authority, {
      commonName: 'node-1',
      names: ['node-1'],
      ...TIMES,
    }),
  };
  const leaf = await signRequest(await newRequest(newKey()), middle, {
    commonName: 'node-2',
    names: ['node-2'],
    ...TIMES,
  });
  const directory = written(t, { 'ca.pem': authority.certificate, 'middle.pem': middle.certificate, 'leaf.pem': leaf });
  assert.throws(
    () => openssl(directory, 'verify', '-CAfile', 'ca.pem', '-untrusted', 'middle.pem', 'leaf.pem'),
    /invalid CA certificate/,
  );
  assert.match(openssl(directory, 'x509', '-in', 'ca.pem', '-noout', '-text'), /CA:TRUE, pathlen:0/);
});

test('a self-signed certificate is not accepted for other hosts', async (t) => {
  const certificate = await selfSigned(newKey(), { commonName: 'nvr', names: ['nvr', '192.0.2.1'], ...TIMES });
  const directory = written(t, { 'own.pem': certificate });
  assert.match(openssl(directory, 'verify', '-purpose', 'sslserver', '-CAfile', 'own.pem', 'own.pem'), /OK/);
  assert.match(openssl(directory, 'x509', '-in', 'own.pem', '-noout', '-text'), /CA:FALSE/);
});

test('a request that is damaged, of another curve or not signed by its key is not signed', async () => {
  const authority = await newAuthority({ commonName: 'CA', ...TIMES });
  const subject = { commonName: 'node-1', names: ['node-1'], ...TIMES };
  const whole = await newRequest(newKey());
  const keyIn = (pem: string): string =>
    new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'pem' }) as string;
  const own = keyIn(await signRequest(whole, authority, subject));
  const der = Buffer.from(whole.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const toPem = (bytes: Buffer): string =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
  for (let i = 0; i < der.length; i++) {
    const damaged = Buffer.from(der);
    damaged.writeUInt8(damaged.readUInt8(i) ^ 1, i);
    // Only the key in the request is used.
    const key = await signRequest(toPem(damaged), authority, subject).then(keyIn, (err: unknown) => err);
    assert.ok(key === own || key instanceof RequestError, `byte ${i}`);
  }
  for (const text of [
    '',
    'x',
    '-----BEGIN CERTIFICATE REQUEST-----\n!\n-----END CERTIFICATE REQUEST-----\n',
    whole.slice(0, 200),
  ]) {
    await assert.rejects(signRequest(text, authority, subject), RequestError);
  }
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const algorithm = { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-256' };
  const keys = {
    privateKey: privateKey.toCryptoKey(algorithm, false, ['sign']),
    publicKey: publicKey.toCryptoKey(algorithm, true, ['verify']),
  };
  const other = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'CN=x',
    keys,
    signingAlgorithm: algorithm,
  });
  await assert.rejects(signRequest(other.toString('pem'), authority, subject), /not on the curve P-256/);
});

test('serial numbers are positive, long and never the same', async () => {
  const key = newKey();
  const made = await Promise.all(
    Array.from({ length: 50 }, () => selfSigned(key, { commonName: 'x', names: ['x'], ...TIMES })),
  );
  const serials = made.map((pem) => new X509Certificate(pem).serialNumber);
  assert.equal(new Set(serials).size, 50);
  for (const serial of serials) assert.match(serial, /^[4-7][0-9A-F]{31}$/);
});

test('the programs load this library only when they make a certificate', () => {
  const root = join(import.meta.dirname, '..');
  const importing = ['base', 'operator', 'recorder', 'store'].flatMap((room) =>
    (readdirSync(join(root, room), { recursive: true }) as string[])
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
      .map((path) => join(room, path))
      .filter((path) =>
        /^(import|export) (?!type )[^;]* from '[^']*\/x509\.ts'/m.test(readFileSync(join(root, path), 'utf8')),
      ),
  );
  assert.deepEqual(importing, []);
});
