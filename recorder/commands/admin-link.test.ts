import { test } from 'node:test';
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { workspace } from '../../test/support/workspace.ts';
import { loadConfig } from '../config/load.ts';
import { OwnCertificate } from '../http/own-certificate.ts';
import { run as runAdminLink } from './admin-link.ts';
import { UsageError } from './command.ts';
import { commandContext } from './test-support.ts';

test('with TLS the link is https, and the fingerprint of the certificate is told beside it', async (t) => {
  const directory = workspace(t);
  const config = join(directory, 'config.yaml');
  writeFileSync(config, JSON.stringify({ workDir: join(directory, 'work'), listen: '192.0.2.1:9997', tls: 'auto' }));
  const { context, printed } = commandContext({ load: loadConfig });
  const run = (): Promise<number> => runAdminLink(['--config', config], context);
  await assert.rejects(
    run(),
    (err) => err instanceof UsageError && /tls: .*certificate\.pem is not there: start/.test(err.message),
  );
  assert.equal(printed.out, '', 'a start would end the link');

  const certificate = await OwnCertificate.open({
    directory: join(directory, 'work/tls'),
    names: () => ['nvr'],
    clock: new VirtualClock(),
    log: silentLog,
  });
  t.after(() => certificate.close());
  assert.equal(await run(), 0);
  assert.match(printed.out, /^https:\/\/192\.0\.2\.1:9997\/#\/welcome\?code=[\w-]{43}\n$/);
  const { fingerprint256 } = new X509Certificate(certificate.pair.certificate);
  assert.equal(printed.err, `SHA-256 fingerprint of its certificate: ${fingerprint256}\n`);
});
