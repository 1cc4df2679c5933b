// What the chart makes of its values, and which values it refuses.

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Child } from '../support/child.ts';
import { freePorts } from '../support/recorder-process.ts';
import { CHART, Helm, helmMissing, objectsOf, ofKind, one, type Manifest, type Values } from './helm.ts';

const POOL = { enabled: true, spec: { archive: { hostPath: '/mnt/archive' } } };
const RECORDER_POOL_KNOWN = ['--api-versions', 'kube-nvr.dev/v1alpha1/RecorderPool'];
const POD_MONITOR_KNOWN = ['--api-versions', 'monitoring.coreos.com/v1/PodMonitor'];

suite('the chart', { skip: helmMissing() }, () => {
  const helm = new Helm();
  after(() => helm.close());

  const VARIANTS: readonly { readonly name: string; readonly values: Values; readonly args?: readonly string[] }[] = [
    { name: 'no values', values: {} },
    { name: 'a pool', values: { pool: POOL } },
    { name: 'a pool of a known kind', values: { pool: POOL }, args: RECORDER_POOL_KNOWN },
    { name: 'all namespaces', values: { watch: { allNamespaces: true, secretNamespaces: ['a', 'b'] } } },
    { name: 'another namespace', values: { watch: { namespace: 'footage' }, pool: POOL } },
    {
      name: 'everything on',
      values: {
        pool: POOL,
        image: { digest: `sha256:${'0'.repeat(64)}`, pullSecrets: [{ name: 'registry' }] },
        operator: {
          antiAffinity: 'Preferred',
          nodeSelector: { a: 'b' },
          podAnnotations: { a: 'b' },
          podLabels: { a: 'b' },
          priorityClassName: 'system-cluster-critical',
        },
        ingress: { enabled: true, host: 'nvr.example.com', playbackHost: 'play.example.com', tlsSecret: 'tls' },
        gateway: {
          enabled: true,
          parentRefs: [{ name: 'public' }],
          hostnames: ['nvr.example.com'],
          playbackHostnames: ['p.example.com'],
        },
        podMonitor: { enabled: true, labels: { release: 'prometheus' } },
        networkPolicy: { clientsFrom: [{ ipBlock: { cidr: '10.0.0.0/8' } }], metricsFrom: [{ namespaceSelector: {} }] },
        userRoles: { aggregate: true },
      },
      args: POD_MONITOR_KNOWN,
    },
    {
      name: 'everything off',
      values: {
        crds: { enabled: false },
        admissionPolicy: { enabled: false },
        networkPolicy: { enabled: false },
        operator: { podDisruptionBudget: { enabled: false }, tolerations: [] },
        userRoles: { enabled: false },
      },
    },
  ];

  for (const { name, values, args = [] } of VARIANTS) {
    test(`${name}: every object has a kind, a name of its own and our labels, and a namespace unless it is the cluster's`, async () => {
      const objects = await helm.template(values, ...args);
      const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
      assert.ok(ids.length >= 5);
      assert.equal(new Set(ids).size, ids.length, ids.join('\n'));
      for (const [index, { apiVersion, kind, metadata }] of objects.entries()) {
        assert.ok(typeof apiVersion === 'string' && typeof kind === 'string' && metadata.name, ids[index]);
        assert.equal(metadata.labels['app.kubernetes.io/instance'], 'nvr', ids[index]);
        const ofCluster = /^(Cluster|CustomResourceDefinition|ValidatingAdmission)/.test(kind);
        assert.equal(metadata.namespace === undefined, ofCluster, ids[index]);
      }
    });
  }

  test('helm lint finds nothing, with and without a pool', async () => {
    for (const values of [{}, { pool: POOL }]) {
      assert.match(await helm.run(['lint', '--strict', CHART], values), /1 chart\(s\) linted, 0 chart\(s\) failed/);
    }
  });

  const REFUSED: readonly { readonly values: Values; readonly words: RegExp }[] = [
    { values: { operater: {} }, words: /operater/ },
    { values: { operator: { replica: 3 } }, words: /operator.*replica/s },
    { values: { operator: { replicas: '2' } }, words: /operator.*replicas/s },
    { values: { operator: { antiAffinity: 'required' } }, words: /antiAffinity.*Required/s },
    { values: { image: { digest: 'abc' } }, words: /digest/ },
    { values: { crds: { kept: true } }, words: /crds.*kept/s },
    { values: { pool: { spec: { archiv: {} } } }, words: /pool.*spec.*archiv/s },
    { values: { pool: { spec: { archive: { hostPath: 'mnt' } } } }, words: /archive.*hostPath/s },
    { values: { pool: { spec: { failover: { renewSecond: 1 } } } }, words: /failover.*renewSecond/s },
    { values: { pool: { spec: { auth: { mode: 'token' } } } }, words: /auth.*mode/s },
    { values: { pool: { name: 'Default' } }, words: /pool.*name/s },
    { values: { pool: { enabled: true } }, words: /pool\.spec\.archive\.hostPath: is required/ },
    { values: { ingress: { enabled: true, host: 'a.b' } }, words: /ingress\.enabled: needs pool\.enabled/ },
    { values: { ingress: { enabled: true }, pool: POOL }, words: /ingress\.host: is required/ },
    { values: { gateway: { enabled: true }, pool: POOL }, words: /gateway\.parentRefs: is required/ },
    { values: { watch: { namespace: 'a', allNamespaces: true } }, words: /watch\.namespace: leave it out/ },
    { values: { watch: { secretNamespaces: ['a'] } }, words: /watch\.secretNamespaces: is only for/ },
  ];
  for (const { values, words } of REFUSED) {
    test(`refused, and the key is named: ${JSON.stringify(values)}`, async () => {
      await assert.rejects(helm.template(values), words);
    });
  }

  test('an older Kubernetes, whose tokens do not say the node, is refused', async () => {
    await assert.rejects(helm.run(['template', 'nvr', CHART, '--kube-version', 'v1.31.9']), /kubeVersion/);
  });

  test('two replicas of the operator are never on one node, unless that is only preferred', async () => {
    const affinity = async (values: Values): Promise<Manifest> => {
      const { spec } = one(await helm.template(values), 'Deployment');
      assert.equal(spec.replicas, 2);
      return spec.template.spec.affinity.podAntiAffinity;
    };
    const term = {
      topologyKey: 'kubernetes.io/hostname',
      labelSelector: {
        matchLabels: {
          'app.kubernetes.io/name': 'kube-nvr',
          'app.kubernetes.io/instance': 'nvr',
          'app.kubernetes.io/component': 'operator',
        },
      },
    };
    assert.deepEqual(await affinity({}), { requiredDuringSchedulingIgnoredDuringExecution: [term] });
    assert.deepEqual(await affinity({ operator: { antiAffinity: 'Preferred' } }), {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }],
    });
  });

  test('images are those of the chart’s version, for operator, recorders and test; a digest wins', async () => {
    const images = async (values: Values): Promise<readonly string[]> => {
      const objects = await helm.template(values);
      const [operator] = one(objects, 'Deployment').spec.template.spec.containers;
      const told = operator.args.find((arg: string) => arg.startsWith('--image=')).slice('--image='.length);
      return [operator.image, told, one(objects, 'Pod').spec.containers[0].image];
    };
    const [chart] = objectsOf(await helm.run(['show', 'chart', CHART]));
    const ofChart = (name: string): string => `kube-nvr-${name}:${chart.appVersion}`;
    assert.deepEqual(await images({}), [ofChart('operator'), ofChart('recorder'), ofChart('operator')]);
    const digest = `sha256:${'a'.repeat(64)}`;
    const own = { repository: 'example.com/nvr', tag: 'x', digest };
    const named = `example.com/nvr@${digest}`;
    assert.deepEqual(await images({ image: own }), [named, ofChart('recorder'), named]);
    assert.deepEqual(await images({ recorderImage: own }), [ofChart('operator'), named, ofChart('operator')]);
  });

  test('without allNamespaces nothing of the cluster but nodes is the operator’s; with it, Secrets are still not', async () => {
    const ofCluster = async (values: Values): Promise<readonly string[]> => {
      const objects = await helm.template(values);
      const bound = ofKind(objects, 'ClusterRoleBinding').map(({ roleRef }) => roleRef.name);
      return ofKind(objects, 'ClusterRole')
        .filter(({ metadata }) => bound.includes(metadata.name))
        .flatMap(({ rules }) => rules.flatMap(({ resources }: Manifest) => resources));
    };
    assert.deepEqual(await ofCluster({}), ['nodes']);
    const all = await ofCluster({ watch: { allNamespaces: true, secretNamespaces: ['a'] } });
    assert.ok(all.includes('cameras') && !all.includes('secrets'), all.join());
    const bindings = ofKind(
      await helm.template({ watch: { allNamespaces: true, secretNamespaces: ['a'] } }),
      'RoleBinding',
    ).filter(({ roleRef }) => roleRef.name.endsWith('-secrets'));
    assert.deepEqual(
      bindings.map(({ metadata }) => metadata.namespace),
      ['video', 'a'],
    );
  });

  test('the kinds are kept over an uninstall unless crds.keep is off, and are in the chart only if enabled', async () => {
    const policies = async (crds: Values): Promise<readonly unknown[]> =>
      ofKind(await helm.template({ crds }), 'CustomResourceDefinition').map(
        ({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'],
      );
    assert.deepEqual(await policies({}), ['keep', 'keep', 'keep']);
    assert.deepEqual(await policies({ keep: false }), [undefined, undefined, undefined]);
    assert.deepEqual(await policies({ enabled: false }), []);
  });

  test('PodMonitors are off by default, and left out where the cluster does not know them', async () => {
    const count = async (values: Values, ...args: readonly string[]): Promise<number> =>
      ofKind(await helm.template(values, ...args), 'PodMonitor').length;
    assert.equal(await count({}, ...POD_MONITOR_KNOWN), 0);
    assert.equal(await count({ podMonitor: { enabled: true } }), 0);
    assert.equal(await count({ podMonitor: { enabled: true } }, ...POD_MONITOR_KNOWN), 2);
  });

  test('Ingress and HTTPRoute lead to the recorders’ Service, playback by a name of its own', async () => {
    const objects = await helm.template({
      pool: { ...POOL, name: 'north' },
      ingress: { enabled: true, host: 'nvr.example.com', playbackHost: 'play.example.com', tlsSecret: 'tls' },
      gateway: { enabled: true, parentRefs: [{ name: 'public' }], hostnames: ['nvr.example.com'] },
    });
    const { spec } = one(objects, 'Ingress');
    assert.deepEqual(
      spec.rules.map(({ host, http }: Manifest) => [host, http.paths[0].backend.service]),
      [
        ['nvr.example.com', { name: 'north-recorder', port: { name: 'api' } }],
        ['play.example.com', { name: 'north-recorder', port: { name: 'playback' } }],
      ],
    );
    assert.deepEqual(spec.tls, [{ secretName: 'tls', hosts: ['nvr.example.com', 'play.example.com'] }]);
    const route = one(objects, 'HTTPRoute').spec;
    assert.deepEqual(
      [route.hostnames, route.rules],
      [['nvr.example.com'], [{ backendRefs: [{ name: 'north-recorder', port: 9997 }] }]],
    );
  });

  test('helm test asks operator and recorders, and fails when one of them is not there', async () => {
    const { command } = one(await helm.template({ pool: POOL }), 'Pod').spec.containers[0];
    const [node, ...args] = command as readonly string[];
    assert.equal(node, 'node');
    assert.deepEqual(JSON.parse(args.pop()!), [
      { host: 'nvr-kube-nvr-operator.video', port: 8080 },
      { host: 'default-recorder.video', port: 9997 },
      { host: 'default-recorder.video', port: 9996 },
    ]);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const [closed] = await freePorts(1);
    const reach = async (...ports: readonly number[]): Promise<readonly [number | null, string]> => {
      const targets = JSON.stringify(ports.map((port) => ({ host: '127.0.0.1', port })));
      await using child = new Child(process.execPath, [...args, targets]);
      const { code } = await child.exit();
      return [code, child.output];
    };
    try {
      const there = `127.0.0.1:${port} is there\n`;
      assert.deepEqual(await reach(port, port), [0, there + there]);
      const [code, output] = await reach(port, closed!);
      assert.equal(code, 1);
      assert.match(output, new RegExp(`ECONNREFUSED 127.0.0.1:${closed}`));
    } finally {
      server.close();
    }
  });

  test('one replica of the operator may be evicted at a time, also the only one; one that is not ready never blocks a drain', async () => {
    for (const replicas of [1, 2, 3]) {
      const { spec } = one(await helm.template({ operator: { replicas } }), 'PodDisruptionBudget');
      assert.deepEqual([spec.maxUnavailable, spec.minAvailable], [1, undefined]);
      assert.equal(spec.unhealthyPodEvictionPolicy, 'AlwaysAllow');
    }
    const off = { operator: { podDisruptionBudget: { enabled: false } } };
    assert.deepEqual(ofKind(await helm.template(off), 'PodDisruptionBudget'), []);
  });

  test('the operator is reached by `helm test` and those who may see metrics, and reaches names and the API server only', async () => {
    const prometheus = { namespaceSelector: { matchLabels: { name: 'monitoring' } } };
    const policy = async (values: Values): Promise<Manifest> =>
      one(await helm.template({ networkPolicy: values }), 'NetworkPolicy', 'nvr-kube-nvr-operator').spec;
    const { ingress, egress, policyTypes } = await policy({ metricsFrom: [prometheus], apiServerPorts: [6443] });
    assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
    assert.deepEqual(
      ingress.flatMap(({ from }: Manifest) => from.map((peer: Manifest) => peer.podSelector?.matchLabels ?? peer)),
      [
        {
          'app.kubernetes.io/name': 'kube-nvr',
          'app.kubernetes.io/instance': 'nvr',
          'app.kubernetes.io/component': 'test',
        },
        prometheus,
      ],
    );
    assert.deepEqual(
      egress.map(({ ports }: Manifest) => ports.map(({ port }: Manifest) => port)),
      [[53, 53], [6443]],
    );
    assert.deepEqual(ofKind(await helm.template({ networkPolicy: { enabled: false } }), 'NetworkPolicy'), []);
  });

  test('tokens are made only for a pool whose tokens are nobody else’s', async () => {
    const secrets = async (auth: Values | undefined): Promise<readonly string[]> =>
      ofKind(await helm.template({ pool: { ...POOL, spec: { ...POOL.spec, ...(auth && { auth }) } } }), 'Secret').map(
        ({ metadata }) => metadata.name,
      );
    assert.deepEqual(await secrets(undefined), ['default-tokens', 'default-admin-token']);
    assert.deepEqual(await secrets({ mode: 'Token', tokensSecretRef: { name: 'mine' } }), []);
    assert.deepEqual(await secrets({ mode: 'Kubernetes' }), []);
    assert.deepEqual(ofKind(await helm.template(), 'Secret'), []);
  });

  test('recorders may ask about tokens when their pool leaves it to the API server, and only then', async () => {
    const asking = async (mode: string, pools: readonly Values[] = []): Promise<readonly Manifest[]> => {
      const values = { pool: { ...POOL, spec: { ...POOL.spec, auth: { mode } } }, tokenReviews: { pools } };
      return ofKind(await helm.template(values), 'ClusterRoleBinding')
        .filter(({ roleRef }) => roleRef.name === 'system:auth-delegator')
        .flatMap(({ subjects }) => subjects.map(({ namespace, name }: Manifest) => `${namespace}/${name}`));
    };
    const north = { namespace: 'other', name: 'north' };
    assert.deepEqual(await asking('Token'), []);
    assert.deepEqual(await asking('Kubernetes'), ['video/default-recorder']);
    assert.deepEqual(await asking('Token', [north]), ['other/north-recorder']);
    assert.deepEqual(await asking('Kubernetes', [north]), ['video/default-recorder', 'other/north-recorder']);
  });

  test('only view and edit are added to the cluster’s roles, and only when asked for', async () => {
    const aggregated = async (values: Values): Promise<readonly string[]> =>
      ofKind(await helm.template({ userRoles: values }), 'ClusterRole')
        .filter(({ metadata }) => Object.keys(metadata.labels).some((label) => label.includes('aggregate-to')))
        .map(({ metadata }) => metadata.name);
    assert.deepEqual(await aggregated({}), []);
    assert.deepEqual(await aggregated({ aggregate: true }), ['video-nvr-kube-nvr-view', 'video-nvr-kube-nvr-edit']);
  });

  test('nobody reaches metrics unless allowed to; clients reach the recorders', async () => {
    const ports = async (values: Values): Promise<readonly unknown[]> =>
      one(await helm.template({ networkPolicy: values }), 'NetworkPolicy', 'nvr-kube-nvr-recorders').spec.ingress.map(
        (rule: Manifest) => [rule.ports.map(({ port }: Manifest) => port), rule.from ?? 'everyone'],
      );
    const prometheus = { namespaceSelector: { matchLabels: { name: 'monitoring' } } };
    assert.deepEqual(await ports({}), [[['api', 'playback'], 'everyone']]);
    assert.deepEqual(await ports({ metricsFrom: [prometheus] }), [
      [['api', 'playback'], 'everyone'],
      [['metrics'], [prometheus]],
    ]);
  });
});
