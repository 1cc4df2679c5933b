// A pool with `tls: { mode: Auto }` from the CA to the viewer: real control plane, operator and recorders. The operator runs
// in this process, with a wall clock that the test moves: certificates are good for 90 days.

import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { buffer, text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { suite, test } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { METRICS_SCHEME_ANNOTATION } from '../../operator/manifests/recorder.ts';
import { PEERS_PORT } from '../../operator/manifests/recorder.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { clusterMissing, type Cluster } from './cluster.ts';
import { metricsToken, NAMESPACE, RESOURCES } from './own-operator.ts';
import { createTlsPool, onStage, operatorHere } from './stage.ts';

const NODES = ['node-1', 'node-2'];
const SLOW_MS = 120_000;
const DAY_MS = 86_400_000;
const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const API_PORT = 9997;
const PLAYBACK_PORT = 9996;
const METRICS_PORT = 9998;
const TOKENS = [{ name: 'ops', role: 'admin', sha256: createHash('sha256').update('ops').digest('hex') }];
/** Of a load balancer that passes TLS on. */
const NAME = 'nvr.example';

interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: Buffer;
}
interface Segments {
  readonly archive: readonly { readonly filename: string; readonly is_open: boolean }[];
}
interface Gaps {
  readonly wanted_seconds: number;
  readonly gaps: readonly object[];
}
type Pod = KubeObject & {
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly restartCount: number;
      readonly state?: { readonly running?: { readonly startedAt: string } };
    }[];
  };
};

let cluster: Cluster;
/** What clients trust, and nothing else. */
let authority: string;
/** How far the operator's clock is behind: certificates that it signs now end in 29 days, and are renewed from 30 on. */
let behindMs = 61 * DAY_MS;

const urlOf = (node: string, port: number, path: string): string =>
  `https://${cluster.node(node).address}:${port}${path}`;

/** On a connection of its own; rejects when the certificate is not taken. */
async function get(url: string, ca: string | undefined): Promise<Answer> {
  const agent = new Agent({ keepAlive: false, ...(ca !== undefined && { ca }) });
  const headers = { authorization: 'Bearer ops' };
  const [response] = (await once(request(url, { agent, headers, timeout: SLOW_MS }).end(), 'response')) as [
    IncomingMessage,
  ];
  return { status: response.statusCode ?? 0, location: response.headers.location, body: await buffer(response) };
}

async function json<T>(url: string): Promise<T> {
  const { status, body } = await get(url, authority);
  assert.equal(status, 200, body.toString());
  return JSON.parse(body.toString()) as T;
}

/** A connection as a client has it that knows a node by one of its names; rejects when it is not that of the pool. */
async function connectTo(node: string, servername: string, port = API_PORT): Promise<TLSSocket> {
  const socket = connect({ host: cluster.node(node).address, port, servername, ca: authority });
  await once(socket, 'secureConnect');
  return socket;
}

async function certificateOf(node: string, port = API_PORT): Promise<X509Certificate> {
  const socket = await connectTo(node, node, port);
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  assert.ok(certificate);
  return certificate;
}

/** Which containers run, since when. */
async function containers(): Promise<readonly string[]> {
  const pods = await cluster.api.list<Pod>(`${CORE}/pods?labelSelector=kube-nvr.dev/pool`);
  return pods
    .flatMap(({ metadata, status }) =>
      (status?.containerStatuses ?? []).map(
        ({ name, restartCount, state }) =>
          `${metadata.uid} ${name}: ${restartCount} restarts, since ${state?.running?.startedAt}`,
      ),
    )
    .sort();
}

const gateIsRecorded = (): Promise<boolean> =>
  until(
    'gate is recorded on node-1',
    async () => {
      const { status } = await cluster.api.get<KubeObject & { status?: { conditions?: readonly Condition[] } }>(
        `${RESOURCES}/cameras/gate`,
      );
      return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
    },
    SLOW_MS,
  );

suite('a pool with certificates of its own CA', { skip: clusterMissing() }, () => {
  onStage({
    nodes: NODES.length,
    operator: (started) => operatorHere(started, { ...systemClock, wallMs: () => Date.now() - behindMs }),
    begin: async (started, camera) => {
      cluster = started;
      authority = await createTlsPool(started, camera, TOKENS, { names: [NAME] });
      await until(
        'both nodes have certificates of it',
        () => Promise.all(NODES.map((node) => certificateOf(node))),
        SLOW_MS,
      );
      await gateIsRecorded();
    },
  });

  test('a client that trusts only the published CA reads cameras and footage from any node, and follows redirects', async () => {
    for (const node of NODES) {
      const cameras = await until(
        `${node} knows the camera`,
        async () => {
          const list = await json<readonly { readonly id: string }[]>(urlOf(node, API_PORT, '/cluster/cameras')).catch(
            () => undefined,
          );
          return list !== undefined && JSON.stringify(list).includes('"gate"') && list;
        },
        SLOW_MS,
      );
      assert.ok(cameras);
    }
    const home = (await get(urlOf('node-1', API_PORT, '/api/cameras'), authority)).body.toString();
    assert.match(home, /"gate"/);
    const { filename } = await until(
      'a segment is closed',
      async () => {
        const { archive } = await json<Segments>(urlOf('node-1', API_PORT, '/api/archive/gate/segments?local=1'));
        return archive.find(({ is_open }) => !is_open);
      },
      SLOW_MS,
    );
    const own = await get(urlOf('node-1', PLAYBACK_PORT, `/${filename}`), authority);
    assert.deepEqual([own.status, own.body.subarray(4, 8).toString()], [200, 'ftyp']);

    const sent = await until(
      'node-2 knows whose footage it is',
      async () => {
        const answer = await get(urlOf('node-2', PLAYBACK_PORT, `/${filename}`), authority);
        return answer.status === 307 && answer;
      },
      SLOW_MS,
    );
    assert.ok(sent.location?.startsWith(urlOf('node-1', PLAYBACK_PORT, `/${filename}`)), sent.location);
    const followed = await get(sent.location ?? '', authority);
    assert.deepEqual([followed.status, followed.body], [200, own.body]);
  });

  test('the names of nodes, Services and the pool are in the certificates, and no others', async () => {
    for (const name of ['node-1', NAME, 'default-recorder', `default-recorder.${NAMESPACE}.svc`]) {
      const socket = await connectTo('node-1', name);
      assert.ok(socket.authorized, name);
      socket.destroy();
    }
    for (const name of ['node-2', 'other.example']) {
      await assert.rejects(connectTo('node-1', name), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }, name);
    }
  });

  test('metrics are read by HTTPS with the token of the pool, by the name that monitors of the chart use', async () => {
    const agent = new Agent({ keepAlive: false, ca: authority, servername: 'default-recorder' });
    const ask = async (url: string, token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      const sent = request(url, { agent, headers, timeout: SLOW_MS }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      await buffer(response);
      return response.statusCode ?? 0;
    };
    const token = await metricsToken(cluster.controlPlane, NAMESPACE, 'default');
    for (const node of NODES) {
      const metrics = urlOf(node, METRICS_PORT, '/metrics');
      assert.deepEqual([await ask(metrics, 'guess'), await ask(metrics, token)], [401, 200], node);
      assert.equal(await ask(urlOf(node, API_PORT, '/api/cameras'), token), 401, 'it is for metrics alone');
    }
    const pods = await cluster.api.list<Pod>(`${CORE}/pods?labelSelector=kube-nvr.dev/pool`);
    const schemes = pods.map(({ metadata }) => metadata.annotations?.[METRICS_SCHEME_ANNOTATION]);
    assert.deepEqual(
      schemes,
      NODES.map(() => 'https'),
      'monitors learn it from the pods',
    );
  });

  test('a client that does not trust the CA, or speaks plain HTTP, gets nothing', async () => {
    for (const port of [API_PORT, PLAYBACK_PORT]) {
      await assert.rejects(
        get(urlOf('node-1', port, '/api/cameras'), undefined),
        /self-signed certificate|unable to verify|unable to get/,
      );
      await assert.rejects(fetch(urlOf('node-1', port, '/api/cameras').replace('https', 'http')));
    }
  });

  test('certificates are renewed without a restart, a lost picture or an ended connection', async () => {
    const fromMs = Date.now();
    const [running, old] = [await containers(), await certificateOf('node-1')];
    assert.ok(running.length >= NODES.length && old.validToDate.getTime() - Date.now() < 30 * DAY_MS, old.validTo);
    const viewer = await connectTo('node-1', NAME);

    behindMs = 0;
    for (const node of NODES) {
      for (const port of [API_PORT, PLAYBACK_PORT, PEERS_PORT]) {
        await until(
          `${node}:${port} has a new certificate`,
          async () => (await certificateOf(node, port)).validToDate.getTime() - Date.now() > 80 * DAY_MS,
          SLOW_MS,
        );
      }
    }
    const renewed = await certificateOf('node-1');
    assert.ok(renewed.publicKey.equals(old.publicKey), 'over the same key, which is the node’s own');
    assert.match((await get(urlOf('node-1', API_PORT, '/api/cameras'), authority)).body.toString(), /"gate"/);
    viewer.write(
      `GET /api/cameras HTTP/1.1\r\nHost: ${NAME}\r\nAuthorization: Bearer ops\r\nConnection: close\r\n\r\n`,
    );
    const answer = await text(viewer);
    assert.match(answer, /^HTTP\/1\.1 200 [^]*"gate"/, 'a connection of before goes on');

    const query = `from=${fromMs / 1000}&to=${Date.now() / 1000}`;
    await until(
      'the account of that time has no gap',
      async () => {
        // What was written last is told a little later.
        const account = await json<Gaps>(urlOf('node-1', API_PORT, `/api/archive/gate/gaps?${query}`));
        if (account.gaps.length > 0) throw new Error(JSON.stringify(account));
        return account.wanted_seconds > 0;
      },
      SLOW_MS,
    );
    assert.deepEqual(await containers(), running);
  });
});
