import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { DAY_MS } from '../../base/units.ts';
import { LevelSwitch } from '../../base/log-level.ts';
import { workspace } from '../../test/support/workspace.ts';
import { foundCluster } from '../certificates/found-cluster.ts';
import { nodeFiles, writeMember } from '../certificates/node-files.ts';
import { loadConfig } from '../config/load.ts';
import { openOwnCertificate } from './trust.ts';

test('a member of a cluster of servers starts with the certificate of its CA, and without one not at all', async (t) => {
  const directory = workspace(t);
  const file = join(directory, 'config.yaml');
  const data = join(directory, 'data');
  writeFileSync(
    file,
    `nodeName: rack-1\nworkDir: ${directory}/work\ncluster: { mode: etcd, listen: '127.0.0.1:0', dataDir: ${data} }\n`,
  );
  const config = await loadConfig(file);
  const clock = new VirtualClock();
  const deps = { clock, log: silentLog, logLevels: new LevelSwitch('info'), version: '1' };
  await assert.rejects(
    openOwnCertificate(config, deps),
    /cluster\.mode: etcd: .*cluster\.json is missing: run recorder cluster init/,
  );
  assert.ok(!existsSync(data), 'it makes no key of its own');
  const files = nodeFiles(data, 'rack-1');
  // Expired by this clock: it stays, because the clock may be wrong.
  const content = await foundCluster({
    nodeId: 'rack-1',
    namespace: 'default',
    pool: 'default',
    names: [],
    nowMs: clock.wallMs() - 100 * DAY_MS,
  });
  await writeMember(files, content);
  const own = await openOwnCertificate(config, deps);
  await own?.close();
  assert.equal(own?.pair.certificate, content.certificate);
  assert.equal(own.authorities, content.authorities);
  assert.equal(readFileSync(files.certificate, 'utf8'), content.certificate);
});
