import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, readFile, rmdir, stat, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog, type Log } from '../../base/log.ts';
import { newAuthority, newKey, newRequest, signRequest } from '../../base/x509.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { readCertificate } from './certificate.ts';
import { OwnCertificate } from './own-certificate.ts';

const DAY_MS = 86_400_000;

function stage(t: TestContext) {
  const directory = join(workspace(t), 'tls');
  const clock = new VirtualClock();
  const said: Record<string, unknown>[] = [];
  const info = (about: object): void => void said.push(about as Record<string, unknown>);
  const log: Log = { ...silentLog, info };
  const open = async (): Promise<OwnCertificate> => {
    const own = await OwnCertificate.open({ directory, names: () => ['nvr', 'localhost', '192.0.2.1'], clock, log });
    t.after(() => own.close());
    return own;
  };
  return { directory, clock, said, open };
}
const parsed = async (path: string): Promise<X509Certificate> => new X509Certificate(await readFile(path));

test('the first start makes a pair that servers can use, readable by its owner alone, and says its fingerprint', async (t) => {
  const { directory, clock, said, open } = stage(t);
  const own = await open();
  await readCertificate(own.paths);
  const certificate = await parsed(own.paths.certificate);
  assert.deepEqual([certificate.checkHost('nvr'), certificate.checkIP('192.0.2.1')], ['nvr', '192.0.2.1']);
  assert.equal(said.at(-1)?.['fingerprint'], certificate.fingerprint256);
  const lifeDays = (certificate.validToDate.getTime() - clock.wallMs()) / DAY_MS;
  assert.ok(lifeDays > 390 && lifeDays < 398, `${lifeDays} days`);
  for (const path of [own.paths.key, own.paths.certificate]) assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(directory)).mode & 0o777, 0o700);
});

test('the next start uses the pair that is there', async (t) => {
  const { open } = stage(t);
  const first = (await open()).pair;
  assert.deepEqual((await open()).pair, first);
});

test('before two thirds of its time are over it stays; then another one over the same key takes its place', async (t) => {
  const { clock, open } = stage(t);
  const own = await open();
  const before = own.pair;
  clock.stepWall(260 * DAY_MS);
  clock.advance(60_000);
  await own.close();
  assert.equal(own.pair.certificate, before.certificate);
  const later = await open();
  clock.stepWall(10 * DAY_MS);
  clock.advance(60_000);
  await until('it is renewed', async () => (await readFile(later.paths.certificate, 'utf8')) !== before.certificate);
  assert.equal(later.pair.key, before.key);
  assert.ok((await parsed(later.paths.certificate)).validToDate.getTime() > clock.wallMs() + 390 * DAY_MS);
});

test('a certificate that a wrong clock made is replaced when the clock is put right', async (t) => {
  const { clock, open } = stage(t);
  clock.stepWall(20_000 * DAY_MS);
  const own = await open();
  const before = own.pair.certificate;
  clock.stepWall(-20_000 * DAY_MS);
  clock.advance(60_000);
  await until('it is replaced', async () => (await readFile(own.paths.certificate, 'utf8')) !== before);
});

test('what a CA has signed and the disk did not take is kept within a minute of when it does', async (t) => {
  const { clock, open } = stage(t);
  const own = await open();
  const times = { fromMs: clock.wallMs(), toMs: clock.wallMs() + 90 * DAY_MS };
  const ca = await newAuthority({ commonName: 'CA', ...times });
  const certificate = await signRequest(await own.request(), ca, { commonName: 'nvr', names: ['nvr'], ...times });
  const blocked = `${own.paths.certificate}.new`;
  await mkdir(blocked);
  const used: string[] = [];
  own.follow((pair) => used.push(pair.certificate));
  await assert.rejects(own.take({ certificate, authorities: ca.certificate }), { code: /^E/ });
  assert.notEqual(own.pair.certificate, certificate);
  await rmdir(blocked);
  clock.advance(60_000);
  await until('it is kept', async () => (await readFile(own.paths.certificate, 'utf8')) === certificate);
  await until('it is used', () => used.join() === certificate);
});

test('what a CA has signed over this key takes the place of its own, over a restart too; over another key it does not', async (t) => {
  const { clock, open } = stage(t);
  const own = await open();
  const times = { fromMs: clock.wallMs(), toMs: clock.wallMs() + 90 * DAY_MS };
  const ca = await newAuthority({ commonName: 'CA', ...times });
  const subject = { commonName: 'nvr', names: ['nvr'], ...times };
  const before = own.pair;
  const foreign = await signRequest(await newRequest(newKey()), ca, subject);
  await own.take({ certificate: foreign, authorities: ca.certificate });
  await own.take({ certificate: 'x', authorities: ca.certificate });
  assert.deepEqual([own.pair, own.authorities], [before, undefined]);
  const certificate = await signRequest(await own.request(), ca, subject);
  await own.take({ certificate, authorities: ca.certificate });
  await readCertificate(own.paths);
  for (const one of [own, await open()]) {
    assert.deepEqual([one.pair.certificate, one.authorities], [certificate, ca.certificate]);
  }
  // The CA renews it in time; without it the recorder vouches for itself again.
  clock.stepWall(91 * DAY_MS);
  clock.advance(60_000);
  await until('it has ended', async () => (await readFile(own.paths.certificate, 'utf8')) !== certificate);
});

test('a key that others may know is not taken, and the file named', async (t) => {
  const { open } = stage(t);
  const { paths } = await open();
  await chmod(paths.key, 0o644);
  await assert.rejects(open(), { file: paths.key, message: /can be read or written by others/ });
  await unlink(paths.key);
  await writeFile(`${paths.key}.elsewhere`, newKey(), { mode: 0o600 });
  await symlink(`${paths.key}.elsewhere`, paths.key);
  await assert.rejects(open(), { file: paths.key, message: 'is a link' });
});

test('a certificate that is damaged or of another key is made again', async (t) => {
  const { open } = stage(t);
  const { paths } = await open();
  for (const text of ['', 'x', (await stage(t).open()).pair.certificate]) {
    await writeFile(paths.certificate, text, { mode: 0o600 });
    await open();
    await readCertificate(paths);
  }
});
