import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import { ConfigFile, toConfig } from '../../recorder/config/schema.ts';
import { disruptionBudgetOf, guardOf } from './guard.ts';
import { configMapOf, daemonSetOf, servicesOf, settingsOf } from './recorder.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- an object of any kind, accessed by path
type Manifest = any;

const pool = (spec: object = {}): RecorderPool =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...spec },
  });

const NODE: RecorderNode = parseRecorderNode({
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { name: 'a', namespace: 'video', uid: 'n' },
  spec: { nodeName: 'a', poolRef: { name: 'north' } },
});

test('probes ask a listener that viewers cannot fill', () => {
  const { spec } = daemonSetOf(pool({ tls: { secretRef: { name: 'tls' } } }), 'recorder:1', '') as Manifest;
  const { ports, env, ...probes } = spec.template.spec.containers[0];
  for (const name of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
    assert.deepEqual(Object.keys(probes[name].httpGet), ['path', 'port'], name);
    assert.equal(probes[name].httpGet.port, 'health', name);
  }
  const port = ports.find(({ name }: Manifest) => name === 'health');
  assert.deepEqual(port, { name: 'health', containerPort: 9994, protocol: 'TCP' }, 'no port of the node');
  assert.equal(env.find(({ name }: Manifest) => name === 'KUBE_NVR_HEALTH_LISTEN').value, ':9994');
});

test('the directory of the archive must exist: that of a disk that is not mounted is not made', () => {
  const { spec } = daemonSetOf(pool(), 'image', 'digest') as Manifest;
  const { volumes } = spec.template.spec;
  const hostPath = (name: string): object => volumes.find((volume: Manifest) => volume.name === name).hostPath;
  assert.deepEqual(hostPath('archive'), { path: '/mnt/archive', type: 'Directory' });
  assert.deepEqual(hostPath('state'), { path: '/var/lib/kube-nvr', type: 'DirectoryOrCreate' });
});

test('the operator replaces pods, not the DaemonSet; the pool’s own image wins', () => {
  const { spec } = daemonSetOf(pool({ image: 'its:own' }), 'image', 'digest') as Manifest;
  assert.equal(spec.updateStrategy.type, 'OnDelete');
  assert.equal(spec.template.spec.containers[0].image, 'its:own');
});

test('what Node compiled stays for the next start of the container, and goes with its pod', () => {
  const { spec } = daemonSetOf(pool(), 'image', 'digest') as Manifest;
  const [{ env, volumeMounts }] = spec.template.spec.containers;
  const { value } = env.find(({ name }: Manifest) => name === 'NODE_COMPILE_CACHE');
  const { name } = volumeMounts.find(({ mountPath }: Manifest) => value.startsWith(`${mountPath}/`));
  const volume = spec.template.spec.volumes.find((volume: Manifest) => volume.name === name);
  assert.deepEqual(volume, { name, emptyDir: {} });
});

test('recorders get the audiences of tokens and the trusted proxies', () => {
  const settings = (spec: object): Manifest => settingsOf(pool(spec));
  const { auth, trustedProxies } = settings({});
  assert.deepEqual([auth.audiences, auth.allowPlaintext, trustedProxies], [['kube-nvr.dev'], false, undefined]);
  const changed = settings({
    auth: { mode: 'Kubernetes', audiences: [], allowPlaintext: true },
    trustedProxies: ['10.0.0.0/8', 'fd00::1'],
  });
  assert.deepEqual([changed.auth.audiences, changed.auth.allowPlaintext], [[], true]);
  assert.deepEqual(changed.trustedProxies, ['10.0.0.0/8', 'fd00::1']);
  const open = settings({ auth: { mode: 'None', allowedHosts: ['nvr.example.com'] } });
  assert.ok(open.auth.allowedHosts.includes('nvr.example.com'));
});

test('metrics of a pool are where its Services and monitors look for them', () => {
  const { metrics } = settingsOf(pool()) as Manifest;
  const { spec } = daemonSetOf(pool(), 'image', 'digest') as Manifest;
  const { containerPort } = spec.template.spec.containers[0].ports.find(({ name }: Manifest) => name === 'metrics');
  // Otherwise only the pod itself could reach them.
  assert.equal(metrics.listen, `:${containerPort}`);
});

test('the digest of the token for metrics is beside the settings: another one replaces no pod, and old recorders start', () => {
  const files = (spec: object, sha256?: string): Record<string, string> =>
    (configMapOf(pool(spec), [], sha256) as Manifest).data;
  const podOf = (spec: object): Manifest => (daemonSetOf(pool(spec), 'image', 'digest') as Manifest).spec.template;
  const fileOf = (spec: object): string | undefined =>
    podOf(spec).spec.containers[0].env.find(({ name }: Manifest) => name === 'KUBE_NVR_METRICS_TOKEN_FILE')?.value;
  const { 'config.yaml': settings = '', ...others } = files({}, 'ab'.repeat(32));
  assert.deepEqual(others, { 'metrics-token.sha256': 'ab'.repeat(32) });
  assert.equal(fileOf({}), '/etc/recorder/metrics-token.sha256');
  assert.equal(settings, files({ metrics: { mode: 'None' } })['config.yaml']);
  assert.equal(files({})['metrics-token.sha256'], '', 'asked for as long as there is none, too');

  const off = { metrics: { mode: 'None' } };
  assert.deepEqual([Object.keys(files(off)), fileOf(off)], [['config.yaml'], undefined]);

  const schemeOf = (spec: object): unknown => podOf(spec).metadata.annotations['kube-nvr.dev/metrics-scheme'];
  const tls = { tls: { mode: 'Auto' } };
  assert.deepEqual([schemeOf({}), schemeOf(tls), schemeOf({ ...tls, ...off })], [undefined, 'https', undefined]);
});

test('recorders get the key of sessions and the users of the pool as files that may be missing; old recorders start', () => {
  const podOf = (auth: object): Manifest =>
    (daemonSetOf(pool({ auth }), 'image', 'digest') as Manifest).spec.template.spec;
  const valueOf = ({ containers }: Manifest, name: string): string | undefined =>
    containers[0].env.find((variable: Manifest) => variable.name === name)?.value;
  const secretAt = ({ containers, volumes }: Manifest, file: string | undefined): unknown => {
    const at = containers[0].volumeMounts.find(({ mountPath }: Manifest) => file?.startsWith(`${mountPath}/`));
    return volumes.find(({ name }: Manifest) => name === at?.name)?.secret;
  };
  for (const auth of [{ mode: 'Token' }, { mode: 'Kubernetes', tokensSecretRef: { name: 'mine' } }]) {
    const pod = podOf(auth);
    const key = valueOf(pod, 'KUBE_NVR_SESSION_KEY_FILE');
    assert.equal(key?.split('/').at(-1), 'session.key');
    assert.deepEqual(secretAt(pod, key), { secretName: 'north-session-key', optional: true });
    const users = valueOf(pod, 'KUBE_NVR_USERS_FILE');
    assert.equal(users?.split('/').at(-1), 'users.yaml');
    const secretName = auth.tokensSecretRef?.name ?? 'north-tokens';
    assert.deepEqual(secretAt(pod, users), { secretName });
    const issuers = valueOf(pod, 'KUBE_NVR_ISSUERS_FILE');
    assert.equal(issuers, users?.replace('users', 'issuers'));
    const { auth: settings } = settingsOf(pool({ auth })) as Manifest;
    assert.deepEqual([settings.usersFile, settings.sessionKeyFile], [undefined, undefined]);
  }
  const open = podOf({ mode: 'None' });
  assert.equal(valueOf(open, 'KUBE_NVR_SESSION_KEY_FILE'), undefined, 'nobody signs in');
  assert.equal(valueOf(open, 'KUBE_NVR_USERS_FILE'), undefined);
});

test('recorders that need no token answer to the names of their Services', () => {
  const { auth } = settingsOf(pool({ auth: { mode: 'None' } })) as Manifest;
  for (const service of servicesOf(pool())) {
    const { name, namespace } = service.metadata;
    for (const host of [
      name,
      `${name}.${namespace}`,
      `${name}.${namespace}.svc`,
      `${name}.${namespace}.svc.cluster.local`,
    ]) {
      assert.ok(auth.allowedHosts.includes(host), host);
    }
  }
  assert.equal((settingsOf(pool()) as Manifest).auth.allowedHosts, undefined);
});

test('a licence is read and required as soon as the pool has the key of its signer', () => {
  const publicKey = '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=';
  const licenseSecretRef = { name: 'license' };
  const { volumeMounts } = (daemonSetOf(pool({ licenseSecretRef }), 'image', 'digest') as Manifest).spec.template.spec
    .containers[0];
  const { mountPath } = volumeMounts.find(({ name }: Manifest) => name === 'license');
  assert.deepEqual(settingsOf(pool({ licenseSecretRef, licensePublicKey: publicKey }))['license'], {
    file: `${mountPath}/recorder.lic`,
    publicKey,
    required: true,
  });
  assert.equal(settingsOf(pool({ licenseSecretRef }))['license'], undefined);
});

test('webhooks are read from the Secret of the pool, and pods start without it', () => {
  const webhooksSecretRef = { name: 'hooks' };
  const { containers, volumes } = podSpecOf({ webhooksSecretRef });
  const isOurs = ({ name }: Manifest): boolean => name === 'webhooks';
  assert.deepEqual(volumes.find(isOurs), { name: 'webhooks', secret: { secretName: 'hooks', optional: true } });
  const { mountPath, readOnly, subPath } = containers[0].volumeMounts.find(isOurs);
  // A subPath would stay as it was when the Secret changes.
  assert.deepEqual([mountPath, readOnly, subPath], ['/etc/recorder-webhooks', true, undefined]);
  const settings = settingsOf(pool({ webhooksSecretRef }));
  const { webhooksFile } = toConfig(ConfigFile.parse(settings), 'n');
  assert.equal(webhooksFile, '/etc/recorder-webhooks/webhooks.yaml');
  assert.equal(settingsOf(pool())['webhooksFile'], undefined);
  assert.ok(!podSpecOf().volumes.some(isOurs));
});

test('collectors of the audit are in the settings, with the files of their Secrets, and pods start without these', () => {
  const tls = { caSecretRef: { name: 'logs-ca' }, certificateSecretRef: { name: 'logs-tls' } };
  const audit = {
    syslog: { address: 'logs.example:6514', ...tls },
    otlp: { url: 'https://otel.example:4318/v1/logs', headersSecretRef: { name: 'otel' } },
  };
  const { containers, volumes } = podSpecOf({ audit });
  const isOurs = ({ name }: Manifest): boolean => name === 'audit';
  const { mountPath, readOnly } = containers[0].volumeMounts.find(isOurs);
  assert.deepEqual([mountPath, readOnly], ['/etc/recorder-audit', true]);
  const { sources } = volumes.find(isOurs).projected;
  const files = new Map<string, string>();
  for (const { secret } of sources) {
    assert.equal(secret.optional, true);
    for (const { key, path } of secret.items) files.set(`${mountPath}/${path}`, `${secret.name} ${key}`);
  }
  const { syslog, otlp } = toConfig(ConfigFile.parse(settingsOf(pool({ audit }))), 'n').audit;
  assert.deepEqual(syslog?.address, { host: 'logs.example', port: 6514 });
  assert.deepEqual(
    [syslog?.ca, syslog?.certificate, syslog?.key].map((path) => files.get(String(path))),
    ['logs-ca ca.crt', 'logs-tls tls.crt', 'logs-tls tls.key'],
  );
  assert.deepEqual([otlp?.url, otlp?.ca], [audit.otlp.url, undefined]);
  assert.equal(files.get(String(otlp?.headersFile)), 'otel headers');
});

test('a pool without collectors, or with collectors without Secrets, has no volume for them', () => {
  const audit = { syslog: { address: '[2001:db8::7]:6514' } };
  for (const spec of [{}, { audit }])
    assert.ok(!podSpecOf(spec).volumes.some(({ name }: Manifest) => name === 'audit'));
  assert.equal(settingsOf(pool())['audit'], undefined);
  const { address } = toConfig(ConfigFile.parse(settingsOf(pool({ audit }))), 'n').audit.syslog ?? {};
  assert.deepEqual(address, { host: '2001:db8::7', port: 6514 });
});

for (const audit of [
  { syslog: { address: 'logs.example' } },
  { syslog: { address: 'https://logs.example:6514' } },
  { otlp: { url: 'http://127.0.0.1:4318/v1/logs' } },
  { otlp: { url: 'https://user:secret@otel.example/v1/logs' } },
]) {
  test(`a pool refuses a collector such as ${JSON.stringify(audit)}`, () => {
    assert.ok(pool({ audit }).unread?.[0]?.startsWith('spec.audit'), 'and from such a pool nothing is made');
  });
}

test('how long footage is kept and protected is in the settings, as the recorder’s own file takes it', () => {
  const archiveOf = (archive: object): unknown =>
    settingsOf(pool({ archive: { hostPath: '/mnt/archive', ...archive } }), [])['archive'];
  assert.equal(archiveOf({}), undefined);
  const limits = { retention: { maxAgeSeconds: 60, minFree: '5%' }, protectForSeconds: 3600 };
  assert.deepEqual(archiveOf(limits), { retention: { maxAge: '60s', minFree: '5%' }, protectFor: '3600s' });
  assert.deepEqual(archiveOf({ protectForSeconds: 3600 }), { protectFor: '3600s' });
  const read = (archive: object) =>
    toConfig(ConfigFile.parse(settingsOf(pool({ archive: { hostPath: '/a', ...archive } }), [])), 'n');
  assert.equal(read(limits).archive.protectForMs, 3_600_000);
});

test('the name of the site is that of the console, of exports and of reports', () => {
  const siteOf = (spec: object) => toConfig(ConfigFile.parse(settingsOf(pool(spec), [])), 'n').console.site;
  assert.deepEqual([siteOf({ site: 'Filiale 17, Köln' }), siteOf({})], ['Filiale 17, Köln', '']);
});

test('another limit of the archive reaches recorders through their settings, and replaces no pod', () => {
  const archive = { hostPath: '/mnt/archive', retention: { maxAgeSeconds: 60 } };
  assert.deepEqual(settingsOf(pool({ archive })), settingsOf(pool({ archive: { hostPath: '/mnt/archive' } })));
});

test('where cameras may be is in the settings, and changing it replaces no pod', () => {
  const cameraNetworks = ['10.20.0.0/16'];
  const settings = settingsOf(pool({ cameraNetworks }), ['10.96.0.0/12']) as Manifest;
  assert.deepEqual([settings.cameraNetworks, settings.cluster.networks], [cameraNetworks, ['10.96.0.0/12']]);
  assert.deepEqual(settingsOf(pool({ cameraNetworks })), settingsOf(pool()));
});

test('another interval of renewals reaches recorders through their pool, and replaces no pod', () => {
  const failover = { renewSeconds: 20, unavailableAfterSeconds: 60 };
  assert.deepEqual(settingsOf(pool({ failover })), settingsOf(pool()));
  const { cluster } = settingsOf(pool({ failover }), []) as Manifest;
  assert.equal(cluster.renewInterval, '20s', 'for a start while the API server is away');
});

test('pods ask for what the cameras of a node need, unless the pool says otherwise', () => {
  const podOf = (spec: object, priorityClass?: string): Manifest =>
    (daemonSetOf(pool(spec), 'image', 'digest', priorityClass) as Manifest).spec.template.spec;
  const resourcesOf = (spec: object): Manifest => podOf(spec).containers[0].resources;
  assert.deepEqual(resourcesOf({}), { requests: { cpu: '400m', memory: '456Mi' }, limits: { memory: '912Mi' } });
  const small = resourcesOf({ limits: { maxCamerasPerNode: 10 } });
  assert.deepEqual(small, { requests: { cpu: '130m', memory: '276Mi' }, limits: { memory: '552Mi' } });
  assert.deepEqual(resourcesOf({ resources: {} }), {});
  assert.equal(podOf({}).priorityClassName, undefined);
  assert.equal(podOf({}, 'recording').priorityClassName, 'recording');
  assert.equal(podOf({ priorityClassName: 'own' }, 'recording').priorityClassName, 'own');
  assert.equal(podOf({ priorityClassName: '' }, 'recording').priorityClassName, undefined);
});

test('nothing that is made has a finalizer: nothing waits for a dead node to be deleted', () => {
  const made = [
    daemonSetOf(pool(), 'image', 'digest'),
    disruptionBudgetOf(pool(), 1),
    guardOf(pool(), NODE, 'image'),
    configMapOf(pool(), []),
    ...servicesOf(pool()),
  ];
  assert.doesNotMatch(JSON.stringify(made), /finalizers/);
});

const podSpecOf = (spec: object = {}): Manifest =>
  (daemonSetOf(pool(spec), 'image', 'digest') as Manifest).spec.template.spec;

test('a recorder sees the directories of its own pool, and of the node nothing else', () => {
  const { containers, volumes } = podSpecOf();
  const ofNode = new Set(volumes.flatMap((volume: Manifest) => (volume.hostPath ? [volume.name] : [])));
  assert.deepEqual([...ofNode], ['archive', 'state']);
  const mounts = containers[0].volumeMounts.filter(({ name }: Manifest) => ofNode.has(name));
  assert.deepEqual(
    mounts.map(({ subPath }: Manifest) => subPath),
    ['video_north', 'video_north'],
  );
});

test('the directories of two tenants are two, whatever their names are', () => {
  const pathsOf = (namespace: string, name: string): string => {
    const { metadata, ...rest } = pool();
    const other = { ...rest, metadata: { ...metadata, namespace, name } } as RecorderPool;
    return (daemonSetOf(other, 'image', '') as Manifest).spec.template.spec.containers[0].volumeMounts[0].subPath;
  };
  assert.equal(new Set([pathsOf('a', 'b-c'), pathsOf('a-b', 'c'), pathsOf('b', 'a-c')]).size, 3);
});

test('a recorder is not root: it has its own user, no capabilities, and can write only to its volumes', () => {
  const { securityContext, containers } = podSpecOf();
  assert.deepEqual(securityContext, {
    runAsUser: 65_532,
    runAsGroup: 65_532,
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  assert.deepEqual(containers[0].securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  assert.equal(podSpecOf({ runAsUser: 1234 }).securityContext.runAsUser, 1234);
  assert.equal(podSpecOf({ runAsUser: 0 }).securityContext.runAsNonRoot, undefined);
});

test('what makes the directories may change owners, and has no token, no settings and no Secret', () => {
  const all = { databaseSecretRef: { name: 'db' }, tls: { secretRef: { name: 'tls' } } };
  const { containers, initContainers } = podSpecOf(all);
  // Nothing would be recorded while a container that precedes the recorder's runs.
  assert.equal(initContainers, undefined);
  const [{ env: told }, { args, env, securityContext, volumeMounts }] = containers;
  assert.deepEqual(securityContext.capabilities, { drop: ['ALL'], add: ['CHOWN', 'DAC_OVERRIDE', 'SETGID', 'SETUID'] });
  assert.equal(told.find(({ name }: Manifest) => name === 'KUBE_NVR_DIRECTORY_OWNER').value, '65532:65532');
  assert.deepEqual([securityContext.allowPrivilegeEscalation, securityContext.readOnlyRootFilesystem], [false, true]);
  assert.equal(env, undefined);
  assert.deepEqual(
    volumeMounts.map(({ name }: Manifest) => name),
    ['archive', 'state'],
  );
  assert.deepEqual(args.slice(0, 5), [
    'prepare-node',
    '--namespace=video',
    '--pool=north',
    '--user=65532',
    '--group=65532',
  ]);
});

test('only the container that asks the API server has a token for it', () => {
  const { automountServiceAccountToken, containers, volumes } = podSpecOf();
  assert.equal(automountServiceAccountToken, false);
  const { projected } = volumes.find(({ name }: Manifest) => name === 'token');
  assert.deepEqual(
    projected.sources.map((source: object) => Object.keys(source)[0]),
    ['serviceAccountToken', 'configMap', 'downwardAPI'],
  );
  const mount = containers[0].volumeMounts.find(({ name }: Manifest) => name === 'token');
  assert.deepEqual([mount.mountPath, mount.readOnly], ['/var/run/secrets/kubernetes.io/serviceaccount', true]);
});

test('no pod runs on nodes that record for another pool', () => {
  const { spec } = daemonSetOf(pool(), 'image', 'digest', '', { without: ['node-1', 'node-2'] }) as Manifest;
  const [term] =
    spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
  // The API server accepts one value per requirement of `matchFields`.
  assert.deepEqual(
    term.matchFields.map(({ key, operator, values }: Manifest) => [key, operator, ...values]),
    [
      ['metadata.name', 'NotIn', 'node-1'],
      ['metadata.name', 'NotIn', 'node-2'],
    ],
  );
  assert.equal(podSpecOf().affinity, undefined);
});
