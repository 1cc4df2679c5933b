// A member of a cluster of servers, as far as a server that joins meets it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { AuditEntry } from '../../recorder/audit/entry.ts';
import type { JobKeeper } from '../../recorder/api/deps.ts';
import { buildPeersServer } from '../../recorder/api/peers-server.ts';
import { Admission } from '../../recorder/certificates/admission.ts';
import { foundCluster } from '../../recorder/certificates/found-cluster.ts';
import { Issuer } from '../../recorder/certificates/issuer.ts';
import { JoinTokens } from '../../recorder/certificates/join-tokens.ts';
import { nodeFiles, writeMember } from '../../recorder/certificates/node-files.ts';
import { MemoryStore } from '../../recorder/certificates/test-support.ts';
import { buildServer } from '../../recorder/http/server.ts';
import { workspace } from './workspace.ts';

const NAMESPACE = 'default';
const POOL = 'default';
/** The client URLs of etcd that a new member is told. */
export const MEMBERS = ['https://192.0.2.1:2379'];

/** The first server of a cluster, rack-1, with its store in memory and its listener for members. */
export async function startMember(t: TestContext) {
  const clock = new VirtualClock();
  clock.stepWall(Date.now() - clock.wallMs());
  const files = nodeFiles(workspace(t), 'rack-1');
  const about = { namespace: NAMESPACE, pool: POOL };
  const founded = await foundCluster({ ...about, nodeId: 'rack-1', names: ['192.0.2.1'], nowMs: clock.wallMs() });
  await writeMember(files, founded);
  const store = new MemoryStore();
  const issuer = new Issuer({ ...about, nodeId: 'rack-1', own: () => founded, api: store, files, clock });
  await issuer.adopt();
  const tokens = new JoinTokens({ api: store, namespace: NAMESPACE, clock });
  const admission = new Admission({
    issuer,
    tokens,
    files,
    pool: POOL,
    members: () => MEMBERS,
    admitElsewhere: () => Promise.reject(new Error('it has a vote')),
  });
  const authorities = readFileSync(files.authorities, 'utf8');
  const pair = { certificate: readFileSync(files.certificate, 'utf8'), key: readFileSync(files.key, 'utf8') };
  const audited: AuditEntry[] = [];
  const [api, playback] = [1, 2].map(() => buildServer({ log: silentLog, maxConnections: 10 }));
  assert.ok(api && playback);
  await Promise.all([api.ready(), playback.ready()]);
  const app = await buildPeersServer({
    nodeId: 'rack-1',
    pair,
    authorities,
    jobs: {} as JobKeeper,
    listeners: { api, playback },
    joining: { admission, issuer, keys: { text: readFileSync(files.keys, 'utf8') }, authorities: () => authorities },
    audit: { write: (entry) => void audited.push(entry) },
    clock,
    log: silentLog,
  });
  t.after(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return { clock, files, store, issuer, admission, authorities, pair, audited, app, port };
}
