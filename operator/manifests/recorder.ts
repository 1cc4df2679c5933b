// The objects that a pool needs beside its rights: settings, DaemonSet, Services, PodDisruptionBudget. A RecorderPool in,
// manifests out; pure.

import { stringify } from 'yaml';
import { APP_NAME, MANAGED_BY_LABEL, NAME_LABEL, POOL_LABEL, poolLabels, recorderName } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';

export const API_PORT = 9997;
export const PLAYBACK_PORT = 9996;
export const METRICS_PORT = 9998;

const CONFIG_DIRECTORY = '/etc/recorder';
const STATE_DIRECTORY = '/var/lib/recorder';
const ARCHIVE_DIRECTORY = `${STATE_DIRECTORY}/recordings`;
const TLS_DIRECTORY = `${CONFIG_DIRECTORY}-tls`;
const TOKENS_DIRECTORY = `${CONFIG_DIRECTORY}-tokens`;
const LICENSE_DIRECTORY = `${CONFIG_DIRECTORY}-license`;
/** Goes with the pod, and stays when its container is started again. */
const TMP_DIRECTORY = '/tmp';
/** Files are closed within seconds; kubelets kill what takes longer. */
const GRACE_SECONDS = 30;

const meta = (pool: RecorderPool, name = recorderName(pool.metadata.name)): KubeObject['metadata'] => ({
  name,
  namespace: pool.metadata.namespace,
  labels: poolLabels(pool.metadata.name),
});

/** The recorder's own file. Secrets are not in it. */
export function settingsOf({ metadata, spec }: RecorderPool): Record<string, unknown> {
  const { retention } = spec.archive;
  return {
    listen: `:${API_PORT}`,
    playback: { listen: `:${PLAYBACK_PORT}` },
    metrics: { listen: `:${METRICS_PORT}` },
    record_path: ARCHIVE_DIRECTORY,
    workDir: `${STATE_DIRECTORY}/state`,
    auth: {
      mode: spec.auth.mode.toLowerCase(),
      ...(spec.auth.tokensSecretRef && { tokensFile: `${TOKENS_DIRECTORY}/tokens.yaml` }),
      // Whoever writes None into a RecorderPool has said so explicitly.
      ...(spec.auth.mode === 'None' && { allowAnonymousNetwork: true }),
    },
    ...(spec.origins && { cors: { origins: [...spec.origins] } }),
    ...(spec.tls && { tls: { certificate: `${TLS_DIRECTORY}/tls.crt`, key: `${TLS_DIRECTORY}/tls.key` } }),
    ...(spec.licenseSecretRef && { license: { file: `${LICENSE_DIRECTORY}/recorder.lic` } }),
    ...(retention && {
      archive: {
        retention: {
          ...(retention.maxAgeSeconds !== undefined && { maxAge: `${retention.maxAgeSeconds}s` }),
          ...(retention.maxSize !== undefined && { maxSize: retention.maxSize }),
          ...(retention.minFree !== undefined && { minFree: retention.minFree }),
        },
      },
    }),
    cluster: {
      mode: 'kubernetes',
      pool: metadata.name,
      renewInterval: `${spec.failover.renewSeconds}s`,
      dataDir: `${STATE_DIRECTORY}/state/cluster`,
    },
  };
}

export const configMapOf = (pool: RecorderPool): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: meta(pool),
  data: { 'config.yaml': stringify(settingsOf(pool)) },
});

/**
 * `image`: of pools that name none. `digest`: of what pods read once, at their start; another one is another revision.
 */
export function daemonSetOf(pool: RecorderPool, image: string, digest: string): KubeObject {
  const { metadata, spec } = pool;
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: meta(pool),
    spec: {
      selector: { matchLabels: { [NAME_LABEL]: APP_NAME, [POOL_LABEL]: metadata.name } },
      // The operator deletes pods one node at a time.
      updateStrategy: { type: 'OnDelete' },
      template: {
        metadata: {
          labels: poolLabels(metadata.name),
          annotations: { 'kube-nvr.dev/settings': digest, 'kubectl.kubernetes.io/default-container': 'recorder' },
        },
        spec: {
          serviceAccountName: recorderName(metadata.name),
          terminationGracePeriodSeconds: GRACE_SECONDS,
          enableServiceLinks: false,
          ...(spec.nodeSelector && { nodeSelector: spec.nodeSelector }),
          ...(spec.tolerations && { tolerations: spec.tolerations }),
          ...(spec.imagePullSecretRefs && { imagePullSecrets: spec.imagePullSecretRefs }),
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
          containers: [container(pool, spec.image ?? image)],
          volumes: volumesOf(pool),
        },
      },
    },
  };
}

function container({ spec }: RecorderPool, image: string): Record<string, unknown> {
  const scheme = spec.tls ? 'HTTPS' : 'HTTP';
  const probe = (path: string) => ({ httpGet: { path, port: 'api', scheme }, timeoutSeconds: 5 });
  const port = (name: string, containerPort: number, isReached = true) => ({
    name,
    containerPort,
    protocol: 'TCP',
    ...(isReached && spec.advertise.type === 'HostPort' && { hostPort: containerPort }),
  });
  const mount = (name: string, mountPath: string) => ({ name, mountPath, readOnly: true });
  return {
    name: 'recorder',
    image,
    args: ['--config', `${CONFIG_DIRECTORY}/config.yaml`],
    env: [
      fieldEnv('KUBE_NVR_NODE_NAME', 'spec.nodeName'),
      fieldEnv('POD_IP', 'status.podIP'),
      fieldEnv('HOST_IP', 'status.hostIP'),
      // Node keeps there what it has compiled: the container's next start takes three quarters of the time.
      { name: 'NODE_COMPILE_CACHE', value: `${TMP_DIRECTORY}/compiled` },
      { name: 'KUBE_NVR_ADVERTISE', value: advertised(spec, API_PORT) },
      { name: 'KUBE_NVR_PLAYBACK_ADVERTISE', value: advertised(spec, PLAYBACK_PORT) },
      ...(spec.databaseSecretRef ? [secretEnv('KUBE_NVR_DATABASE_URL', spec.databaseSecretRef.name)] : []),
      ...(spec.redisSecretRef ? [secretEnv('KUBE_NVR_REDIS_URL', spec.redisSecretRef.name)] : []),
    ],
    ports: [port('api', API_PORT), port('playback', PLAYBACK_PORT), port('metrics', METRICS_PORT, false)],
    startupProbe: { ...probe('/api/health/live'), periodSeconds: 1, failureThreshold: 120 },
    readinessProbe: { ...probe('/api/health/ready'), periodSeconds: 2, failureThreshold: 3 },
    livenessProbe: { ...probe('/api/health/live'), periodSeconds: 10, failureThreshold: 6 },
    ...(spec.resources && { resources: spec.resources }),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { name: 'state', mountPath: STATE_DIRECTORY },
      { name: 'archive', mountPath: ARCHIVE_DIRECTORY },
      mount('config', CONFIG_DIRECTORY),
      { name: 'tmp', mountPath: TMP_DIRECTORY },
      ...(spec.tls ? [mount('tls', TLS_DIRECTORY)] : []),
      ...(spec.auth.tokensSecretRef ? [mount('tokens', TOKENS_DIRECTORY)] : []),
      ...(spec.licenseSecretRef ? [mount('license', LICENSE_DIRECTORY)] : []),
    ],
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
}

const fieldEnv = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const secretEnv = (name: string, secret: string) => ({
  name,
  valueFrom: { secretKeyRef: { name: secret, key: 'url' } },
});

/** Kubernetes puts in what stands in `$( )`. */
function advertised({ advertise }: RecorderPool['spec'], port: number): string {
  switch (advertise.type) {
    case 'HostPort':
      return `$(HOST_IP):${port}`;
    case 'Template':
      return (advertise.template ?? '').replaceAll('{node}', '$(KUBE_NVR_NODE_NAME)');
    default:
      return `$(POD_IP):${port}`;
  }
}

function volumesOf({ metadata, spec }: RecorderPool): readonly Record<string, unknown>[] {
  const secret = (name: string, secretName: string) => ({ name, secret: { secretName } });
  return [
    // Not made when it is missing: the directory of a disk that is not mounted must not be taken for the disk.
    { name: 'archive', hostPath: { path: spec.archive.hostPath, type: 'Directory' } },
    { name: 'state', hostPath: { path: spec.stateHostPath, type: 'DirectoryOrCreate' } },
    { name: 'config', configMap: { name: recorderName(metadata.name) } },
    { name: 'tmp', emptyDir: {} },
    ...(spec.tls ? [secret('tls', spec.tls.secretRef.name)] : []),
    ...(spec.auth.tokensSecretRef ? [secret('tokens', spec.auth.tokensSecretRef.name)] : []),
    ...(spec.licenseSecretRef ? [secret('license', spec.licenseSecretRef.name)] : []),
  ];
}

/** One for any node, and one with a name for each of them. */
export function servicesOf(pool: RecorderPool): readonly KubeObject[] {
  const { name } = pool.metadata;
  const { [MANAGED_BY_LABEL]: _managedBy, ...selector } = poolLabels(name);
  const ports = [
    { name: 'api', port: API_PORT, targetPort: 'api', protocol: 'TCP' },
    { name: 'playback', port: PLAYBACK_PORT, targetPort: 'playback', protocol: 'TCP' },
    { name: 'metrics', port: METRICS_PORT, targetPort: 'metrics', protocol: 'TCP' },
  ];
  const service = (serviceName: string, spec: object): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(pool, serviceName),
    spec: { selector, ports, ...spec },
  });
  return [
    service(recorderName(name), {}),
    service(`${recorderName(name)}-nodes`, { clusterIP: 'None', publishNotReadyAddresses: true }),
  ];
}

export const disruptionBudgetOf = (pool: RecorderPool): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: meta(pool),
  spec: {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: 'AlwaysAllow',
    selector: { matchLabels: { [POOL_LABEL]: pool.metadata.name } },
  },
});
