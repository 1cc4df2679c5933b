import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { OwnCertificate } from '../http/own-certificate.ts';
import { foundCluster } from './found-cluster.ts';
import { Issuer } from './issuer.ts';
import { nodeFiles, writeMember } from './node-files.ts';
import { Renewal } from './renewal.ts';
import { MemoryStore } from './test-support.ts';

const ABOUT = { namespace: 'default', pool: 'default' };

/** The first member of a cluster, with its certificate in use. */
async function stage(t: TestContext) {
  const clock = new VirtualClock();
  clock.stepWall(Date.now() - clock.wallMs());
  const files = nodeFiles(workspace(t), 'rack-1');
  const names = ['192.0.2.1'];
  const content = await foundCluster({ ...ABOUT, nodeId: 'rack-1', names, nowMs: clock.wallMs() });
  await writeMember(files, content);
  const problems: string[] = [];
  const log: Log = {
    ...silentLog,
    warn: (about) => void problems.push((about as { problem: string }).problem),
  };
  const own = await OwnCertificate.open({ directory: files.directory, names: () => names, isIssued: true, clock, log });
  const store = new MemoryStore();
  const issuer = new Issuer({ ...ABOUT, api: store, files, clock });
  const renewal = new Renewal({
    issuer,
    nodeId: 'rack-1',
    current: () => ({ certificate: own.pair.certificate, authorities: own.authorities }),
    request: () => own.request(),
    names: () => names,
    take: (issued) => own.take(issued),
    clock,
    log,
  });
  t.after(async () => {
    await renewal.close();
    await own.close();
  });
  const kept = (): string => readFileSync(files.certificate, 'utf8');
  /** Lets the next check come, `ms` later. */
  const pass = (ms: number): void => {
    clock.stepWall(ms);
    clock.advance(HOUR_MS);
  };
  return { files, names, content, problems, own, store, issuer, renewal, kept, pass };
}

test('at the first start the CA goes into the store, and the certificate of `cluster init` stays', async (t) => {
  const { content, store, renewal, kept } = await stage(t);
  renewal.start();
  await until('the store has the CA', () => store.objects.size === 1);
  assert.equal(kept(), content.certificate);
});

test('a certificate is renewed 30 days before it expires, for the same key', async (t) => {
  const { content, own, renewal, kept, pass } = await stage(t);
  renewal.start();
  const ends = new X509Certificate(content.certificate).validToDate.getTime();
  const before = own.pair;
  await renewal.close();
  pass(ends - Date.now() - 31 * DAY_MS);
  renewal.start();
  await renewal.close();
  assert.equal(kept(), content.certificate, 'not earlier');
  pass(DAY_MS);
  renewal.start();
  await until('it is renewed', () => kept() !== content.certificate);
  assert.equal(own.pair.key, before.key);
  const next = new X509Certificate(kept());
  assert.ok(next.validToDate.getTime() > ends + 50 * DAY_MS);
  assert.equal(next.checkIP('192.0.2.1'), '192.0.2.1');
});

test('a server with another address gets a certificate for it', async (t) => {
  const { content, names, renewal, kept } = await stage(t);
  names.push('2001:db8::7', 'rack-1.example');
  renewal.start();
  await until('it is renewed', () => kept() !== content.certificate);
  const next = new X509Certificate(kept());
  assert.deepEqual([next.checkIP('2001:db8::7'), next.checkHost('rack-1.example')], ['2001:db8::7', 'rack-1.example']);
});

test('while the store does not answer it is asked again, and the log says so', async (t) => {
  const { names, problems, store, renewal, kept, content, pass } = await stage(t);
  names.push('192.0.2.7');
  store.isReachable = false;
  renewal.start();
  await until('it was asked', () => problems.length === 1);
  assert.match(problems[0] ?? '', /the store cannot be reached/);
  store.isReachable = true;
  pass(0);
  await until('it is renewed', () => kept() !== content.certificate);
});

test('the next CA is trusted a day before it signs', async (t) => {
  const { files, own, issuer, renewal, content, kept, pass } = await stage(t);
  renewal.start();
  await renewal.close();
  const trusted = (): number => readFileSync(files.authorities, 'utf8').split('BEGIN').length - 1;
  // Seven years later, when the node has a certificate of 90 days.
  pass(7 * 365 * DAY_MS + DAY_MS);
  renewal.start();
  await until('both are trusted', () => trusted() === 2);
  await renewal.close();
  const [first] = [new X509Certificate(content.authorities)];
  assert.ok(new X509Certificate(kept()).verify(first.publicKey), 'signed by the old one');
  pass(90 * DAY_MS);
  renewal.start();
  await until('it is signed by the new one', () => !new X509Certificate(kept()).verify(first.publicKey));
  assert.equal(own.authorities, await issuer.bundle());
});

test('a certificate that has expired is not replaced by one that the node makes itself', async (t) => {
  const { content, own, kept, pass } = await stage(t);
  pass(100 * DAY_MS);
  await own.close();
  assert.equal(kept(), content.certificate);
});
