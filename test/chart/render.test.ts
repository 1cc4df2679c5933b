// What the chart makes of its values, and which values its schema refuses. What single templates make of them, and which
// values do not go together, say the suites of charts/kube-nvr/tests (unittest.test.ts).

import { after, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Child } from '../support/child.ts';
import { freePorts } from '../support/recorder-process.ts';
import { kubernetesVersion } from '../cluster/programs.ts';
import { CHART, Helm, helmMissing, KINDS_CHART, objectsOf, ofKind, one, type Manifest, type Values } from './helm.ts';
import { POOL, VARIANTS } from './variants.ts';

const POD_MONITOR_KNOWN = ['--api-versions', 'monitoring.coreos.com/v1/PodMonitor'];

suite('the chart', { skip: helmMissing() }, () => {
  const helm = new Helm();
  after(() => helm.close());

  for (const { name, values, args = [] } of VARIANTS) {
    test(`${name}: every object has a kind, a name of its own and our labels, and a namespace unless it is the cluster's`, async () => {
      const objects = await helm.template(values, ...args);
      const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
      assert.ok(ids.length >= 4, ids.join('\n'));
      assert.equal(new Set(ids).size, ids.length, ids.join('\n'));
      for (const [index, { apiVersion, kind, metadata }] of objects.entries()) {
        assert.ok(typeof apiVersion === 'string' && typeof kind === 'string' && metadata.name, ids[index]);
        assert.equal(metadata.labels['app.kubernetes.io/instance'], 'nvr', ids[index]);
        const ofCluster = /^(Cluster|CustomResourceDefinition|ValidatingAdmission|PriorityClass)/.test(kind);
        assert.equal(metadata.namespace === undefined, ofCluster, ids[index]);
      }
    });
  }

  for (const { name, values } of VARIANTS) {
    test(`${name}: helm lint finds nothing`, async () => {
      assert.match(await helm.run(['lint', '--strict', CHART], values), /1 chart\(s\) linted, 0 chart\(s\) failed/);
    });
  }

  for (const { name, values, args = [] } of VARIANTS) {
    test(`${name}: rendering twice gives one result, without a hook other than helm test`, async () => {
      const [once, again] = [await helm.templateText(values, ...args), await helm.templateText(values, ...args)];
      assert.equal(once, again);
      const hooks = objectsOf(once).flatMap(({ metadata }) => metadata.annotations?.['helm.sh/hook'] ?? []);
      assert.ok(
        hooks.every((hook: string) => hook === 'test'),
        hooks.join(' '),
      );
    });
  }

  test('the kinds have our labels, those that are asked for, and stay after an uninstall', async () => {
    const kinds = async (values: Values): Promise<readonly Manifest[]> =>
      objectsOf(await helm.run(['template', 'kinds', KINDS_CHART, '--kube-version', kubernetesVersion()], values));
    const made = await kinds({ commonLabels: { team: 'video' } });
    assert.deepEqual(
      made.map(({ metadata }) => [
        metadata.name,
        metadata.labels.team,
        metadata.annotations['helm.sh/resource-policy'],
      ]),
      ['cameras', 'recorderpools', 'recordernodes', 'archivetargets', 'recordingobjectives'].map((name) => [
        `${name}.kube-nvr.dev`,
        'video',
        'keep',
      ]),
    );
    const [first] = await kinds({ keep: false });
    assert.deepEqual([first.metadata.annotations, first.metadata.labels.team], [undefined, undefined]);
    assert.match(await helm.run(['lint', '--strict', KINDS_CHART]), /0 chart\(s\) failed/);
    await assert.rejects(kinds({ kept: true }), /kept/);
  });

  const REFUSED: readonly { readonly values: Values; readonly words: RegExp }[] = [
    { values: { operater: {} }, words: /operater/ },
    { values: { operator: { replica: 3 } }, words: /operator.*replica/s },
    { values: { operator: { replicas: '2' } }, words: /operator.*replicas/s },
    { values: { operator: { antiAffinity: 'required' } }, words: /antiAffinity.*Required/s },
    { values: { image: { digest: 'abc' } }, words: /digest/ },
    { values: { userRoles: { aggregated: true } }, words: /userRoles.*aggregated/s },
    { values: { pool: { spec: { archiv: {} } } }, words: /pool.*spec.*archiv/s },
    { values: { pool: { spec: { archive: { hostPath: 'mnt' } } } }, words: /archive.*hostPath/s },
    { values: { pool: { spec: { failover: { renewSecond: 1 } } } }, words: /failover.*renewSecond/s },
    { values: { pool: { spec: { auth: { mode: 'token' } } } }, words: /auth.*mode/s },
    { values: { pool: { name: 'Default' } }, words: /pool.*name/s },
  ];
  for (const { values, words } of REFUSED) {
    test(`refused, and the key is named: ${JSON.stringify(values)}`, async () => {
      await assert.rejects(helm.template(values), words);
    });
  }

  test('an older Kubernetes, whose tokens do not name the node, is refused', async () => {
    await assert.rejects(helm.run(['template', 'nvr', CHART, '--kube-version', 'v1.31.9']), /kubeVersion/);
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

  test('nothing of the cluster but nodes and networks is the operator’s; with allNamespaces our own kinds, to look at', async () => {
    /** As `get secrets`: what holds in every namespace. */
    const ofCluster = async (values: Values): Promise<readonly string[]> => {
      const objects = await helm.template(values);
      const bound = ofKind(objects, 'ClusterRoleBinding').map(({ roleRef }) => roleRef.name);
      return ofKind(objects, 'ClusterRole')
        .filter(({ metadata }) => bound.includes(metadata.name))
        .flatMap(({ rules }) => rules)
        .flatMap(({ resources, verbs }: Manifest) => resources.map((name: string) => `${verbs.join(',')} ${name}`));
    };
    const nodes = ['list,watch nodes', 'list servicecidrs', 'get endpointslices'];
    assert.deepEqual(await ofCluster({}), nodes);
    assert.deepEqual(await ofCluster({ watch: { allNamespaces: true, namespaces: ['a'] } }), [
      ...nodes,
      ...['cameras', 'recorderpools', 'recordernodes', 'archivetargets', 'recordingobjectives'].map(
        (kind) => `list,watch ${kind}`,
      ),
      'patch recorderpools/status',
      'create events',
    ]);
  });

  test('with allNamespaces its rights are bound in named namespaces, and the command that gives others is in its arguments', async () => {
    const objects = await helm.template({ watch: { allNamespaces: true, namespaces: ['a'] } });
    const role = 'video-nvr-kube-nvr-operator-tenant';
    const bound = ofKind(objects, 'RoleBinding').filter(({ roleRef }) => roleRef.name === role);
    assert.deepEqual(
      bound.map(({ metadata }) => metadata.namespace),
      ['video', 'a'],
    );
    const { args } = one(objects, 'Deployment').spec.template.spec.containers[0];
    const command = args
      .find((arg: string) => arg.startsWith('--grant-command='))
      .split('=')
      .slice(1)
      .join('=');
    const account = `video:${one(objects, 'ServiceAccount').metadata.name}`;
    const create = 'create rolebinding video-nvr-kube-nvr-operator';
    assert.equal(
      command,
      `kubectl --namespace={namespace} ${create} --clusterrole=${role} --serviceaccount=${account}`,
    );
    const admin = ofKind(objects, 'ClusterRole').find(({ metadata }) => metadata.name.endsWith('-admin'));
    assert.deepEqual(admin?.rules.at(-1), {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['clusterroles'],
      verbs: ['bind'],
      resourceNames: [role],
    });
  });

  test('PodMonitors are off by default, and left out where the cluster does not know them', async () => {
    const count = async (values: Values, ...args: readonly string[]): Promise<number> =>
      ofKind(await helm.template(values, ...args), 'PodMonitor').length;
    assert.equal(await count({}, ...POD_MONITOR_KNOWN), 0);
    assert.equal(await count({ podMonitor: { enabled: true } }), 0);
    assert.equal(await count({ podMonitor: { enabled: true } }, ...POD_MONITOR_KNOWN), 2);
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
});
