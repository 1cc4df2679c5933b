// Makes the objects of a pool, apart from its rights: settings, DaemonSet, Services. Pure.

import { stringify } from 'yaml';
import {
  APP_NAME,
  MANAGED_BY_LABEL,
  NAME_LABEL,
  POOL_LABEL,
  poolLabels,
  recorderName,
  SESSION_KEY_FILE,
  sessionKeyName,
  tokensName,
} from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { KubeObject } from '../kube/api.ts';
import { authorityFiles, keyMounts, keyVolumes, ruleSettings, targetSettings, type ConfiguredPool } from './copying.ts';
import { withPodTemplate, type Placement } from './pod-template.ts';
import { diskSettings, nodeRecorderName, ownMounts, storageVolumes, wholeDisks, wholeMounts } from './storage.ts';

export const API_PORT = 9997;
export const PLAYBACK_PORT = 9996;
const METRICS_PORT = 9998;
const HEALTH_PORT = 9994;
export const PEERS_PORT = 9995;

/** Annotation of a pod: the scheme of its listeners. During an update, pods with the old and the new scheme run side by side. */
export const SCHEME_ANNOTATION = 'kube-nvr.dev/scheme';

/** Annotation of a pod whose metrics are read over HTTPS. */
export const METRICS_SCHEME_ANNOTATION = 'kube-nvr.dev/metrics-scheme';

/** Label of the pods of a DaemonSet for one node: those of other nodes are not its own. */
const NODE_DAEMON_SET_LABEL = 'kube-nvr.dev/daemonset';

const CONFIG_DIRECTORY = '/etc/recorder';
const STATE_DIRECTORY = '/var/lib/recorder';
const ARCHIVE_DIRECTORY = `${STATE_DIRECTORY}/recordings`;
/** A file in the ConfigMap and not a setting: recorders of older versions would reject an unknown setting. */
const METRICS_TOKEN_FILE = 'metrics-token.sha256';
const TLS_DIRECTORY = `${CONFIG_DIRECTORY}-tls`;
const TOKENS_DIRECTORY = `${CONFIG_DIRECTORY}-tokens`;
const SESSION_DIRECTORY = `${CONFIG_DIRECTORY}-session`;
const LICENSE_DIRECTORY = `${CONFIG_DIRECTORY}-license`;
const WEBHOOKS_DIRECTORY = `${CONFIG_DIRECTORY}-webhooks`;
const AUDIT_DIRECTORY = `${CONFIG_DIRECTORY}-audit`;
/** Where Kubernetes clients look for the token of their pod. */
const TOKEN_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The lifetime that the kubelet itself uses for tokens; it renews them after four fifths of it. */
const TOKEN_SECONDS = 3607;
/** The same for all pools: after a change of `runAsUser`, the new user can read older footage. */
const GROUP = 65_532;
/** Deleted with the pod; survives restarts of its container. */
const TMP_DIRECTORY = '/tmp';
/** Recorders close their files within seconds; after this time the kubelet kills the container. */
const GRACE_SECONDS = 30;

const meta = (pool: RecorderPool, name = recorderName(pool.metadata.name)): KubeObject['metadata'] => ({
  name,
  namespace: pool.metadata.namespace,
  labels: poolLabels(pool.metadata.name),
});

/**
 * The recorder's configuration file, without secrets. Without `clusterNetworks` it has only the settings that a recorder reads
 * once; it follows changes of the networks, of the pool's renewals, of the limits of the archive and of the objectives, while it runs.
 */
export function settingsOf(pool: ConfiguredPool, clusterNetworks?: readonly string[]): Record<string, unknown> {
  const { metadata, spec, objectives = [] } = pool;
  const { protectForSeconds } = spec.archive;
  const targets = targetSettings(pool);
  const copies = clusterNetworks ? ruleSettings(pool) : [];
  const retention = clusterNetworks && spec.archive.retention;
  return {
    listen: `:${API_PORT}`,
    playback: { listen: `:${PLAYBACK_PORT}` },
    metrics: { listen: `:${METRICS_PORT}` },
    record_path: ARCHIVE_DIRECTORY,
    workDir: `${STATE_DIRECTORY}/state`,
    auth: {
      mode: spec.auth.mode.toLowerCase(),
      ...(tokensSecretOf({ metadata, spec }) !== undefined && { tokensFile: `${TOKENS_DIRECTORY}/tokens.yaml` }),
      ...(spec.auth.mode === 'Kubernetes' && {
        audiences: [...spec.auth.audiences],
        allowPlaintext: spec.auth.allowPlaintext,
      }),
      // Mode None in a RecorderPool is explicit enough.
      ...(spec.auth.mode === 'None' && {
        allowAnonymousNetwork: true,
        allowedHosts: [...serviceNamesOf(metadata), ...(spec.auth.allowedHosts ?? [])],
      }),
    },
    ...(spec.trustedProxies && { trustedProxies: [...spec.trustedProxies] }),
    ...(clusterNetworks && spec.cameraNetworks && { cameraNetworks: spec.cameraNetworks }),
    ...(spec.origins && { cors: { origins: [...spec.origins] } }),
    ...(spec.tls && { tls: tlsOf(spec.tls) }),
    ...(spec.site !== undefined && { console: { site: spec.site } }),
    ...(spec.webhooksSecretRef && { webhooksFile: `${WEBHOOKS_DIRECTORY}/webhooks.yaml` }),
    ...(spec.audit && { audit: auditOf(spec.audit) }),
    ...(spec.licensePublicKey !== undefined && {
      license: { file: `${LICENSE_DIRECTORY}/recorder.lic`, publicKey: spec.licensePublicKey, required: true },
    }),
    ...((retention || protectForSeconds !== undefined || spec.archive.disks?.length || targets.length > 0) && {
      archive: {
        ...(spec.archive.disks?.length && { disks: diskSettings({ metadata, spec }) }),
        ...(targets.length > 0 && { targets, copies }),
        ...(retention && { retention: retentionOf(retention) }),
        ...(protectForSeconds !== undefined && { protectFor: `${protectForSeconds}s` }),
      },
    }),
    ...(clusterNetworks && objectives.length > 0 && { objectives }),
    cluster: {
      mode: 'kubernetes',
      pool: metadata.name,
      dataDir: `${STATE_DIRECTORY}/state/cluster`,
      ...(clusterNetworks && { renewInterval: `${spec.failover.renewSeconds}s`, networks: clusterNetworks }),
    },
  };
}

/** Name of the Secret with the hashes of tokens; undefined: no such tokens. */
function tokensSecretOf({ metadata, spec: { auth } }: Pick<RecorderPool, 'metadata' | 'spec'>): string | undefined {
  return auth.tokensSecretRef?.name ?? (auth.mode === 'Token' ? tokensName(metadata.name) : undefined);
}

/** Whether people sign in. */
const hasSessions = ({ auth }: RecorderPool['spec']): boolean => auth.mode !== 'None';

const retentionOf = ({
  maxAgeSeconds,
  maxSize,
  minFree,
}: NonNullable<RecorderPool['spec']['archive']['retention']>): unknown => ({
  ...(maxAgeSeconds !== undefined && { maxAge: `${maxAgeSeconds}s` }),
  ...(maxSize !== undefined && { maxSize }),
  ...(minFree !== undefined && { minFree }),
});

type AuditOfPool = NonNullable<RecorderPool['spec']['audit']>;
type CollectorOfPool = NonNullable<AuditOfPool['syslog'] | AuditOfPool['otlp']>;

/** The files of a collector: the setting that names one, its Secret, the key there. */
const filesOf = (collector: CollectorOfPool | undefined) => {
  const { caSecretRef, certificateSecretRef } = collector ?? {};
  const headersSecretRef = collector && 'headersSecretRef' in collector ? collector.headersSecretRef : undefined;
  return [
    { setting: 'ca', secret: caSecretRef, key: 'ca.crt' },
    { setting: 'certificate', secret: certificateSecretRef, key: 'tls.crt' },
    { setting: 'key', secret: certificateSecretRef, key: 'tls.key' },
    { setting: 'headersFile', secret: headersSecretRef, key: 'headers' },
  ].filter(({ secret }) => secret !== undefined);
};

function auditOf({ syslog, otlp }: AuditOfPool): unknown {
  const files = (name: string, collector: CollectorOfPool) =>
    Object.fromEntries(filesOf(collector).map(({ setting, key }) => [setting, `${AUDIT_DIRECTORY}/${name}/${key}`]));
  return {
    ...(syslog && { syslog: { address: syslog.address, ...files('syslog', syslog) } }),
    ...(otlp && { otlp: { url: otlp.url, ...files('otlp', otlp) } }),
  };
}

/** What is mounted for the collectors. A pod starts, and records, without what is missing. */
const auditSources = ({ audit }: RecorderPool['spec']): readonly object[] =>
  (['syslog', 'otlp'] as const).flatMap((name) =>
    filesOf(audit?.[name]).map(({ secret, key }) => ({
      secret: { name: secret?.name, optional: true, items: [{ key, path: `${name}/${key}` }] },
    })),
  );

const tlsOf = ({ mode }: NonNullable<RecorderPool['spec']['tls']>): unknown =>
  mode === 'Auto' ? 'auto' : { certificate: `${TLS_DIRECTORY}/tls.crt`, key: `${TLS_DIRECTORY}/tls.key` };

/** DNS names of the pool's Services, with the domain that nearly all clusters have. */
export function serviceNamesOf({ name, namespace }: RecorderPool['metadata']): readonly string[] {
  const domains = ['', `.${namespace}`, `.${namespace}.svc`, `.${namespace}.svc.cluster.local`];
  return [recorderName(name), `${recorderName(name)}-nodes`].flatMap((service) =>
    domains.map((domain) => `${service}${domain}`),
  );
}

/**
 * `clusterNetworks`: networks in which no camera may be unless the pool allows it. `metricsSha256`: digest of the token for
 * metrics in hexadecimal digits; empty if there is none, and metrics then need a token for all cameras.
 */
export const configMapOf = (
  pool: ConfiguredPool,
  clusterNetworks: readonly string[],
  metricsSha256 = '',
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: meta(pool),
  data: {
    'config.yaml': stringify(settingsOf(pool, clusterNetworks)),
    ...(pool.spec.metrics.mode === 'Token' && { [METRICS_TOKEN_FILE]: metricsSha256 }),
    ...authorityFiles(pool),
  },
});

/**
 * `image`, `priorityClass`: defaults for pools that name none. `digest`: of the settings that pods read only at their start; a
 * new digest makes a new revision. `node`: the only node of the DaemonSet, for pools with claims; '' for others.
 */
export function daemonSetOf(
  pool: ConfiguredPool,
  image: string,
  digest: string,
  priorityClass = '',
  { without, named }: Pick<Placement, 'without' | 'named'> = {},
  node = '',
): KubeObject {
  const { metadata, spec } = pool;
  const ofNode = node === '' ? undefined : { [NODE_DAEMON_SET_LABEL]: nodeRecorderName(metadata.name, node) };
  const priorityClassName = spec.priorityClassName ?? priorityClass;
  const placement: Placement =
    node === '' ? { labels: spec.nodeSelector, without, named } : { named: [node], isOnlyNamed: true };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: meta(pool, node === '' ? undefined : nodeRecorderName(metadata.name, node)),
    spec: {
      selector: { matchLabels: { [NAME_LABEL]: APP_NAME, [POOL_LABEL]: metadata.name, ...ofNode } },
      // The operator itself deletes the pods, one node at a time.
      updateStrategy: { type: 'OnDelete' },
      template: withPodTemplate(spec.podTemplate, placement, {
        metadata: {
          labels: { ...poolLabels(metadata.name), ...ofNode },
          annotations: {
            'kube-nvr.dev/settings': digest,
            [SCHEME_ANNOTATION]: spec.tls ? 'https' : 'http',
            ...(spec.metrics.mode === 'Token' && spec.tls && { [METRICS_SCHEME_ANNOTATION]: 'https' }),
            'kubectl.kubernetes.io/default-container': 'recorder',
          },
        },
        spec: {
          serviceAccountName: recorderName(metadata.name),
          terminationGracePeriodSeconds: GRACE_SECONDS,
          enableServiceLinks: false,
          ...(spec.nodeSelector && { nodeSelector: spec.nodeSelector }),
          ...(spec.tolerations && { tolerations: spec.tolerations }),
          ...(priorityClassName !== '' && { priorityClassName }),
          ...(spec.imagePullSecretRefs && { imagePullSecrets: spec.imagePullSecretRefs }),
          // Only one of the containers needs the token and mounts it as a volume.
          automountServiceAccountToken: false,
          securityContext: {
            runAsUser: spec.runAsUser,
            runAsGroup: GROUP,
            ...(spec.runAsUser !== 0 && { runAsNonRoot: true }),
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [container(pool, spec.image ?? image), directories(pool, spec.image ?? image)],
          volumes: volumesOf(pool, node),
        },
      }),
    },
  };
}

/** Resources of a node with this many cameras (docs/sizing.md). No CPU limit: packets that wait too long are lost. */
function resourcesFor(cameras: number) {
  const mebibytes = 256 + 2 * cameras;
  return {
    requests: { cpu: `${100 + 3 * cameras}m`, memory: `${mebibytes}Mi` },
    limits: { memory: `${2 * mebibytes}Mi` },
  };
}

/**
 * A container that makes the pool's directories in the volumes of the node, for the recorder's user, and then waits as that user.
 * Until then it is root with the capabilities for that; it has no token, settings or Secrets. It runs beside the recorder, not
 * before it: kubelets take a second or two to continue after a container has ended, and nothing would be recorded in that time.
 */
function directories({ metadata, spec }: RecorderPool, image: string) {
  const { namespace, name } = metadata;
  const words = { namespace, pool: name, user: spec.runAsUser, group: GROUP };
  const places = { archive: '/archive', state: '/state' };
  return {
    name: 'directories',
    image,
    ...pullPolicy(spec),
    args: [
      'prepare-node',
      ...Object.entries({ ...words, ...places }).map(([key, value]) => `--${key}=${value}`),
      ...wholeDisks({ metadata, spec }).map((disk) => `--disk=${disk}`),
    ],
    // Needed for a moment; afterwards the container uses almost nothing.
    resources: { requests: { cpu: '1m', memory: '2Mi' }, limits: { memory: '256Mi' } },
    securityContext: {
      runAsUser: 0,
      runAsGroup: 0,
      runAsNonRoot: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      // To change owners, to continue in directories of the new owner, and to switch to the recorder's user.
      capabilities: { drop: ['ALL'], add: ['CHOWN', 'DAC_OVERRIDE', 'SETGID', 'SETUID'] },
    },
    volumeMounts: wholeMounts({ metadata, spec }),
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
}

const pullPolicy = ({ imagePullPolicy }: RecorderPool['spec']) => imagePullPolicy && { imagePullPolicy };

function container(pool: ConfiguredPool, image: string) {
  const { spec } = pool;
  // A separate port: clients that occupy all connections of the API must not make the kubelet restart the recorder.
  const probe = (path: string) => ({ httpGet: { path, port: 'health' }, timeoutSeconds: 5 });
  const port = (name: string, containerPort: number, isReached = true) => ({
    name,
    containerPort,
    protocol: 'TCP',
    ...(isReached && spec.advertise.type === 'HostPort' && { hostPort: containerPort }),
  });
  return {
    name: 'recorder',
    image,
    ...pullPolicy(spec),
    args: ['--config', `${CONFIG_DIRECTORY}/config.yaml`],
    env: environment(pool),
    ports: [
      port('api', API_PORT),
      port('playback', PLAYBACK_PORT),
      port('metrics', METRICS_PORT, false),
      port('health', HEALTH_PORT, false),
      port('peers', PEERS_PORT, false),
    ],
    startupProbe: { ...probe('/api/health/live'), periodSeconds: 1, failureThreshold: 120 },
    readinessProbe: { ...probe('/api/health/ready'), periodSeconds: 2, failureThreshold: 3 },
    livenessProbe: { ...probe('/api/health/live'), periodSeconds: 10, failureThreshold: 6 },
    resources: spec.resources ?? resourcesFor(spec.limits.maxCamerasPerNode),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: mounts(pool),
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
}

function environment(pool: RecorderPool) {
  const { spec } = pool;
  const hasTokens = tokensSecretOf(pool) !== undefined;
  return [
    fieldEnv('KUBE_NVR_NODE_NAME', 'spec.nodeName'),
    fieldEnv('POD_IP', 'status.podIP'),
    fieldEnv('HOST_IP', 'status.hostIP'),
    { name: 'KUBE_NVR_DIRECTORY_OWNER', value: `${spec.runAsUser}:${GROUP}` },
    // Node keeps compiled code there: the next start of the container takes a quarter less time.
    { name: 'NODE_COMPILE_CACHE', value: `${TMP_DIRECTORY}/compiled` },
    // An environment variable and not a setting: recorders of an older version that restart before their update read the file
    // too.
    { name: 'KUBE_NVR_HEALTH_LISTEN', value: `:${HEALTH_PORT}` },
    { name: 'KUBE_NVR_PEERS_LISTEN', value: `:${PEERS_PORT}` },
    ...(spec.metrics.mode === 'Token'
      ? [{ name: 'KUBE_NVR_METRICS_TOKEN_FILE', value: `${CONFIG_DIRECTORY}/${METRICS_TOKEN_FILE}` }]
      : []),
    ...(hasTokens
      ? [
          { name: 'KUBE_NVR_USERS_FILE', value: `${TOKENS_DIRECTORY}/users.yaml` },
          { name: 'KUBE_NVR_ISSUERS_FILE', value: `${TOKENS_DIRECTORY}/issuers.yaml` },
        ]
      : []),
    ...(hasSessions(spec)
      ? [{ name: 'KUBE_NVR_SESSION_KEY_FILE', value: `${SESSION_DIRECTORY}/${SESSION_KEY_FILE}` }]
      : []),
    { name: 'KUBE_NVR_ADVERTISE', value: advertised(spec, API_PORT) },
    { name: 'KUBE_NVR_PLAYBACK_ADVERTISE', value: advertised(spec, PLAYBACK_PORT) },
    ...(spec.databaseSecretRef ? [secretEnv('KUBE_NVR_DATABASE_URL', spec.databaseSecretRef.name)] : []),
    ...(spec.redisSecretRef ? [secretEnv('KUBE_NVR_REDIS_URL', spec.redisSecretRef.name)] : []),
  ];
}

function mounts(pool: ConfiguredPool) {
  const { spec } = pool;
  const mount = (name: string, mountPath: string) => ({ name, mountPath, readOnly: true });
  return [
    ...ownMounts(pool, { archive: ARCHIVE_DIRECTORY, state: STATE_DIRECTORY }),
    mount('token', TOKEN_DIRECTORY),
    mount('config', CONFIG_DIRECTORY),
    { name: 'tmp', mountPath: TMP_DIRECTORY },
    ...(spec.tls?.secretRef ? [mount('tls', TLS_DIRECTORY)] : []),
    ...(tokensSecretOf(pool) === undefined ? [] : [mount('tokens', TOKENS_DIRECTORY)]),
    ...(hasSessions(spec) ? [mount('session', SESSION_DIRECTORY)] : []),
    ...(spec.licenseSecretRef ? [mount('license', LICENSE_DIRECTORY)] : []),
    ...(spec.webhooksSecretRef ? [mount('webhooks', WEBHOOKS_DIRECTORY)] : []),
    ...(auditSources(spec).length > 0 ? [mount('audit', AUDIT_DIRECTORY)] : []),
    ...keyMounts(pool),
  ];
}

const fieldEnv = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const secretEnv = (name: string, secret: string) => ({
  name,
  valueFrom: { secretKeyRef: { name: secret, key: 'url' } },
});

/** Kubernetes replaces `$(NAME)` by the value of the variable. */
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

function volumesOf(pool: ConfiguredPool, node: string): readonly object[] {
  const { metadata, spec } = pool;
  const secret = (name: string, secretName: string, options: object = {}) => ({
    name,
    secret: { secretName, ...options },
  });
  const tokens = tokensSecretOf({ metadata, spec });
  const sources = auditSources(spec);
  return [
    ...storageVolumes({ metadata, spec }, node),
    { name: 'config', configMap: { name: recorderName(metadata.name) } },
    { name: 'tmp', emptyDir: {} },
    {
      name: 'token',
      projected: {
        sources: [
          { serviceAccountToken: { path: 'token', expirationSeconds: TOKEN_SECONDS } },
          { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
          { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
        ],
      },
    },
    ...(spec.tls?.secretRef ? [secret('tls', spec.tls.secretRef.name)] : []),
    ...(tokens === undefined ? [] : [secret('tokens', tokens)]),
    ...(hasSessions(spec) ? [secret('session', sessionKeyName(metadata.name), { optional: true })] : []),
    ...(spec.licenseSecretRef ? [secret('license', spec.licenseSecretRef.name)] : []),
    // Nothing is recorded by a pod that waits for a Secret.
    ...(spec.webhooksSecretRef ? [secret('webhooks', spec.webhooksSecretRef.name, { optional: true })] : []),
    ...(sources.length > 0 ? [{ name: 'audit', projected: { sources } }] : []),
    ...keyVolumes(pool),
  ];
}

/** Two Services: one for any node, and a headless one with a DNS name for each node. */
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
    // In a cluster with both, the Service has an address of each.
    spec: { ipFamilyPolicy: 'PreferDualStack', selector, ports, ...spec },
  });
  return [
    service(recorderName(name), {}),
    service(`${recorderName(name)}-nodes`, { clusterIP: 'None', publishNotReadyAddresses: true }),
  ];
}
