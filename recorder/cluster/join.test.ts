// A member of a cluster against a scripted API server.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { API_VERSION, nodeLeaseName } from '../../crds/names.ts';
import { until } from '../../test/support/until.ts';
import { CONNECTIONS } from './api-server.ts';
import type { NodeFacts } from './cluster.ts';
import { joinCluster, openApiServer, type JoinedCluster } from './join.ts';

const NO_FACTS: NodeFacts = {
  address: '',
  certificateRequest: undefined,
  sessionKey: 'A'.repeat(43),
  endedSessions: [],
  playbackAddress: '',
  version: '1.0.0',
  archiveID: undefined,
  freeBytes: undefined,
  fault: undefined,
  cameras: new Map(),
  standbys: new Map(),
  archives: [],
};

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Member extends JoinedCluster {
  readonly warnings: readonly string[];
  /** Certificates that the operator has issued to it. */
  readonly certified: readonly string[];
}

async function joined(t: TestContext, handler: Handler): Promise<Member> {
  const warnings: string[] = [];
  const certified: string[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-join-'));
  for (const [name, text] of Object.entries({ token: 't', 'ca.crt': '', namespace: 'video' })) {
    writeFileSync(join(directory, name), text);
  }
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const place = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serviceAccountDirectory: directory,
  };
  const member: JoinedCluster = await joinCluster({
    open: (connections) => openApiServer(place, systemClock, connections),
    nodeId: 'a',
    pool: 'default',
    renewMs: 20,
    dataDir: directory,
    recordPath: directory,
    facts: async () => NO_FACTS,
    held: () => [],
    account: { takeOver: () => {}, giveUp: () => {} },
    certified: ({ certificate }) => void certified.push(certificate),
    changed: () => {},
    clock: systemClock,
    log: { ...silentLog, warn: (_fields, message) => void warnings.push(message) },
  });
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await member.cluster.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { ...member, warnings, certified };
}

test('the Lease is renewed while every other connection to the API server waits for an answer', async (t) => {
  const lease = nodeLeaseName('a');
  let waiting = 0;
  let renewals = 0;
  const { api, cluster, warnings } = await joined(t, (request, response) => {
    const { method = '', url = '' } = request;
    if (!url.endsWith(`/leases/${lease}`)) return void waiting++;
    if (method === 'PUT') renewals++;
    response.end(JSON.stringify({ metadata: { name: lease, resourceVersion: String(renewals) }, spec: {} }));
    return undefined;
  });
  for (let i = 0; i < 2 * CONNECTIONS; i++) api.get(`/slow/${i}`).catch(() => {});
  await until('all connections wait', () => waiting >= CONNECTIONS);
  await cluster.start();
  await until('the Lease is renewed', () => renewals >= 20);
  assert.ok(!warnings.includes('the Lease of this node could not be renewed'), 'each at its first try');
  assert.ok(cluster.isReachable);
});

test('how long no renewal got through is known, and that none ever did', async (t) => {
  let answers = false;
  const { cluster } = await joined(t, ({ url = '' }, response) => {
    response.statusCode = answers ? 200 : 500;
    response.end(JSON.stringify({ metadata: { name: nodeLeaseName('a'), resourceVersion: url }, spec: {} }));
  });
  assert.equal(cluster.unreachableMs, Infinity);
  answers = true;
  await cluster.start();
  await until('the Lease is renewed', () => cluster.unreachableMs === 0);
  answers = false;
  await until('renewals fail', () => cluster.unreachableMs > 0);
  assert.ok(Number.isFinite(cluster.unreachableMs));
});

test('a renewed certificate is taken although it is made from the same, and each once', async (t) => {
  const pem = (text: string): string => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
  const node = (term: number, changes: object = {}) => ({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name: 'a', namespace: 'video', uid: 'u', resourceVersion: String(term) },
    spec: {
      nodeName: 'a',
      poolRef: { name: 'default' },
      certificate: { certificate: pem(`term${term}`), authorities: pem('ca'), madeFrom: 'same' },
      ...changes,
    },
  });
  let watch: ServerResponse | undefined;
  const { cluster, certified } = await joined(t, ({ url = '' }, response) => {
    const isNodes = url.includes('/recordernodes?') && url.includes('fieldSelector=');
    if (url.includes('watch=')) return void (isNodes && (watch = response));
    const items = isNodes ? [node(1)] : [];
    response.end(JSON.stringify({ metadata: { name: nodeLeaseName('a'), resourceVersion: '1' }, spec: {}, items }));
    return undefined;
  });
  await cluster.start();
  const stream = await until('its node is watched', () => watch);
  const tell = (object: object): boolean => stream.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
  const { certificate } = node(1).spec;
  tell(node(2, { certificate, drain: true }));
  tell(node(3));
  await until('the new one is taken', () => certified.length >= 2);
  assert.deepEqual(certified, [pem('term1'), pem('term3')]);
});
