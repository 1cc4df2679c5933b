import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { DAY_MS } from '../../base/units.ts';
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
  const about = { directory: files.directory, names: () => names, isIssued: true, clock, log: silentLog };
  const own = await OwnCertificate.open(about);
  const store = new MemoryStore();
  const issuer = new Issuer({ ...ABOUT, nodeId: 'rack-1', own: () => own.pair, api: store, files, clock });
  const renewal = new Renewal({
    issuer,
    issueElsewhere: () => Promise.reject(new Error('it has a vote')),
    nodeId: 'rack-1',
    current: () => ({ certificate: own.pair.certificate, authorities: own.authorities }),
    request: () => own.request(),
    names: () => names,
    take: (issued) => own.take(issued),
    clock,
  });
  await issuer.adopt();
  t.after(() => own.close());
  const kept = (): string => readFileSync(files.certificate, 'utf8');
  const pass = (ms: number): void => clock.stepWall(ms);
  return { files, names, content, own, store, issuer, renewal, kept, pass };
}

test('the CA of `cluster init` goes into the store, and its certificate stays', async (t) => {
  const { content, store, renewal, kept } = await stage(t);
  assert.equal(store.objects.size, 1);
  await renewal.renew();
  assert.equal(kept(), content.certificate);
});

test('a certificate is renewed 30 days before it expires, for the same key', async (t) => {
  const { content, own, renewal, kept, pass } = await stage(t);
  const ends = new X509Certificate(content.certificate).validToDate.getTime();
  const before = own.pair;
  pass(ends - Date.now() - 31 * DAY_MS);
  await renewal.renew();
  assert.equal(kept(), content.certificate, 'not earlier');
  pass(2 * DAY_MS);
  await renewal.renew();
  assert.notEqual(kept(), content.certificate);
  assert.equal(own.pair.key, before.key);
  const next = new X509Certificate(kept());
  assert.ok(next.validToDate.getTime() > ends + 50 * DAY_MS);
  assert.equal(next.checkIP('192.0.2.1'), '192.0.2.1');
});

test('a server with another address gets a certificate for it, once the store answers', async (t) => {
  const { names, store, renewal, kept, content } = await stage(t);
  names.push('2001:db8::7', 'rack-1.example');
  store.isReachable = false;
  await assert.rejects(renewal.renew(), /the store cannot be reached/);
  store.isReachable = true;
  assert.equal(kept(), content.certificate);
  await renewal.renew();
  const next = new X509Certificate(kept());
  assert.deepEqual([next.checkIP('2001:db8::7'), next.checkHost('rack-1.example')], ['2001:db8::7', 'rack-1.example']);
});

test('the next CA is trusted a day before it signs, and then nodes get its certificates at once', async (t) => {
  const { files, own, issuer, renewal, content, kept, pass } = await stage(t);
  const trusted = (): number => readFileSync(files.authorities, 'utf8').split('BEGIN').length - 1;
  // Seven years later, when the node has a certificate of 90 days.
  pass(7 * 365 * DAY_MS + DAY_MS);
  await renewal.renew();
  assert.equal(trusted(), 2);
  const [first] = [new X509Certificate(content.authorities)];
  assert.ok(new X509Certificate(kept()).verify(first.publicKey), 'signed by the old one');
  pass(DAY_MS);
  await renewal.renew();
  assert.ok(!new X509Certificate(kept()).verify(first.publicKey), 'signed by the new one');
  assert.equal(own.authorities, (await issuer.trust()).bundle);
});

test('a certificate that has expired is not replaced by one that the node makes itself', async (t) => {
  const { content, own, kept, pass } = await stage(t);
  pass(100 * DAY_MS);
  await own.close();
  assert.equal(kept(), content.certificate);
});
