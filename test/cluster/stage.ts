// What most tests of recording on a cluster begin with: nodes with disks for the archive, the kinds of this repository, one
// camera for all Camera resources, and an operator.

import { after, afterEach, before } from 'node:test';
import { systemClock, type Clock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { RestKubeApi } from '../../operator/kube/client.ts';
import { KubeConfigConnection, loadKubeConfig } from '../../operator/kube/kube-config.ts';
import { startOperator as runOperator } from '../../operator/operator.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { until } from '../support/until.ts';
import type { KubeObject } from './api-client.ts';
import { startCluster, type Cluster } from './cluster.ts';
import { OWN_IMAGES } from './own-images.ts';
import { apply, makeArchives, NAMESPACE, poolOfAllNodes, resource, startOperator } from './own-operator.ts';
import { reportFailure } from './report.ts';

type Json = Readonly<Record<string, unknown>>;
type End = () => Promise<unknown>;

interface StageOptions {
  readonly nodes: number;
  /** Starts the operator and resolves to what ends it; by default a process. */
  readonly operator?: (cluster: Cluster) => Promise<End>;
  /** Creates what the tests need, once the operator runs. */
  readonly begin: (cluster: Cluster, camera: Camera) => Promise<void>;
}

const CORE = `/api/v1/namespaces/${NAMESPACE}`;
const CA_TIMEOUT_MS = 120_000;

/** Starts all of it before the first test of a suite, and ends it after the last one. */
export function onStage({ nodes, operator = operatorProcess, begin }: StageOptions): void {
  const ends: End[] = [];
  let cluster: Cluster | undefined;
  before(async () => {
    const started = await startCluster({ nodes, images: OWN_IMAGES });
    cluster = started;
    ends.push(() => started.close());
    makeArchives(started);
    await started.controlPlane.installKinds();
    const camera = await startCamera({ pace: 'realtime', host: started.network.addresses.cameras });
    ends.push(() => camera.close());
    ends.push(await operator(started));
    await begin(started, camera);
  });
  afterEach(reportFailure(() => cluster));
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
}

async function operatorProcess({ controlPlane, directory }: Cluster): Promise<End> {
  const { program } = await startOperator(controlPlane, directory);
  return () => program.kill();
}

/** An operator in this process, whose clock the test can set. */
export async function operatorHere({ kubeconfig }: Cluster, clock: Clock = systemClock): Promise<End> {
  const connection = new KubeConfigConnection(loadKubeConfig(kubeconfig), systemClock);
  const operator = await runOperator({
    api: new RestKubeApi(connection),
    namespace: NAMESPACE,
    ownNamespace: NAMESPACE,
    identity: 'test/1',
    image: 'kube-nvr-recorder:checkout',
    clock,
    log: silentLog,
  });
  return async () => {
    await operator.close();
    await connection.close();
  };
}

/** Creates a pool with TLS and tokens, and a camera `gate` on node-1. Resolves to the certificate of the pool's CA. */
export async function createTlsPool(
  cluster: Cluster,
  camera: Camera,
  tokens: readonly Json[],
  tls: Json = {},
): Promise<string> {
  await cluster.api.create(`${CORE}/secrets`, {
    metadata: { name: 'tokens' },
    stringData: { 'tokens.yaml': JSON.stringify(tokens) },
  });
  const auth = { mode: 'Token', tokensSecretRef: { name: 'tokens' } };
  const gate = {
    source: camera.url,
    transport: 'Tcp',
    placement: { preferredNode: 'node-1' },
    record: { segmentSeconds: 4 },
  };
  const pool = poolOfAllNodes({ auth, tls: { mode: 'Auto', ...tls } });
  await apply(cluster.controlPlane, [pool, resource('Camera', 'gate', gate)]);
  const path = `${CORE}/configmaps/default-recorder-ca`;
  return until(
    'the CA is published',
    async () => (await cluster.api.get<KubeObject & { data: Record<string, string> }>(path)).data['ca.crt'],
    CA_TIMEOUT_MS,
  );
}
