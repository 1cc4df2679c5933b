// The chart on a real API server: installed, upgraded, uninstalled and installed again.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { API_VERSION } from '../../crds/names.ts';
import type { RecorderPoolStatus } from '../../crds/recorder-pool.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { ApiError, type ApiClient, type KubeObject } from '../cluster/api-client.ts';
import { startControlPlane, type ControlPlane } from '../cluster/control-plane.ts';
import { apiServerMissing } from '../cluster/programs.ts';
import { Child } from '../support/child.ts';
import { until } from '../support/until.ts';
import { startOperatorOf } from './operator.ts';
import { CHART, Helm, helmMissing, KINDS_CHART, objectsOf, ofKind, one, type Manifest, type Values } from './helm.ts';

const NAMESPACE = 'video';
const RELEASE = 'nvr';
const OPERATOR = `${RELEASE}-kube-nvr-operator`;
const POOL_PATH = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/recorderpools/default`;
const SLOW_MS = 180_000;
const POOL = { enabled: true, spec: { archive: { hostPath: '/mnt/archive' } } };

suite('the chart on an API server', { skip: helmMissing() || apiServerMissing() }, () => {
  let controlPlane: ControlPlane;
  let helm: Helm;

  before(async () => {
    controlPlane = await startControlPlane({ parts: ['etcd', 'kube-apiserver'] });
    helm = new Helm(controlPlane.kubeconfig);
    await helm.kinds(NAMESPACE);
  });

  after(async () => {
    helm?.close();
    await controlPlane?.close();
  });

  const get = (path: string): Promise<Manifest> => controlPlane.api.get(path);
  const absent = (path: string): Promise<void> =>
    assert.rejects(get(path), (err) => err instanceof ApiError && err.status === 404);
  const install = (values: Values = { pool: POOL }): Promise<string> =>
    helm.run(['install', RELEASE, CHART, '--namespace', NAMESPACE, '--create-namespace'], values);
  const upgrade = (values: Values): Promise<string> =>
    helm.run(['upgrade', RELEASE, CHART, '--namespace', NAMESPACE], values);
  const secret = async (name: string, key: string): Promise<string> => {
    const { data } = await get(`/api/v1/namespaces/${NAMESPACE}/secrets/${name}`);
    return Buffer.from(data[key], 'base64').toString();
  };
  const may = async (verb: string, resource: string, namespace: string): Promise<boolean> => {
    const as = `--as=system:serviceaccount:${NAMESPACE}:${OPERATOR}`;
    const answer = await controlPlane.kubectl(['auth', 'can-i', verb, resource, as, '-n', namespace]).catch(String);
    return answer.trim() === 'yes';
  };
  let token: string;
  let poolUid: string;

  test('one command makes operator, policy and the first pool; NOTES say how to continue', async () => {
    const notes = await install();
    const pool = await get(POOL_PATH);
    poolUid = pool.metadata.uid;
    assert.equal(pool.spec.archive.hostPath, '/mnt/archive');
    assert.equal(pool.spec.auth.mode, 'Token');
    assert.equal((await get(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${OPERATOR}`)).spec.replicas, 2);
    await get('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kube-nvr-node-lease');
    await get('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/kube-nvr-node-lease');
    for (const command of [
      `kubectl -n ${NAMESPACE} rollout status deployment/${OPERATOR}`,
      'kubectl label node NODE kube-nvr.dev/recorder=true',
      `kubectl label namespace ${NAMESPACE} pod-security.kubernetes.io/enforce=privileged`,
      `kubectl -n ${NAMESPACE} port-forward service/default-recorder 9997`,
      `kubectl -n ${NAMESPACE} get secret default-admin-token -o jsonpath='{.data.token}' | base64 -d`,
      `helm test ${RELEASE} -n ${NAMESPACE}`,
    ]) {
      assert.ok(notes.includes(command), `${command}\nnot in\n${notes}`);
    }
  });

  test('the camera of the NOTES is taken', async () => {
    const notes = await helm.run(['get', 'notes', RELEASE, '-n', NAMESPACE]);
    const [, camera] = /<<'END'\n([\s\S]*?)\n {2}END/.exec(notes) ?? [];
    assert.ok(camera);
    const input = camera.replace(/^ {2}/gm, '');
    await controlPlane.kubectl(['-n', NAMESPACE, 'apply', '-f', '-'], { input });
    assert.ok((await controlPlane.kubectl(['-n', NAMESPACE, 'get', 'cameras'])).includes('gate'));
  });

  const limitedTo = (maxCamerasPerNode: number): Values => ({
    pool: { ...POOL, spec: { ...POOL.spec, limits: { maxCamerasPerNode } } },
  });
  const limit = async (): Promise<unknown> => (await get(POOL_PATH)).spec.limits.maxCamerasPerNode;

  test('the pool is what the values of each revision say: first upgrade, rollback, and an upgrade after that', async () => {
    const seen: unknown[] = [await limit()];
    const step = async (change: Promise<unknown>): Promise<void> => {
      await change;
      seen.push(await limit());
    };
    await step(upgrade(limitedTo(50)));
    await step(helm.run(['rollback', RELEASE, '1', '--namespace', NAMESPACE]));
    await step(upgrade(limitedTo(70)));
    await step(upgrade({ pool: POOL }));
    assert.deepEqual(seen, [100, 50, 100, 70, 100]);
    assert.equal((await get(POOL_PATH)).metadata.uid, poolUid);
    assert.ok((await helm.run(['get', 'manifest', RELEASE, '-n', NAMESPACE])).includes('kind: RecorderPool'));
  });

  test('an upgrade from a pool of every node is refused while a node that records lacks the label of the new default', async () => {
    await upgrade({ pool: { ...POOL, spec: { ...POOL.spec, nodeSelector: {} } } });
    assert.deepEqual((await get(POOL_PATH)).spec.nodeSelector, {});
    for (const name of ['labelled', 'plain']) {
      const labels = name === 'plain' ? {} : { 'kube-nvr.dev/recorder': 'true' };
      await controlPlane.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
      await controlPlane.api.create(`/apis/${API_VERSION}/namespaces/${NAMESPACE}/recordernodes`, {
        apiVersion: API_VERSION,
        kind: 'RecorderNode',
        metadata: { name },
        spec: { nodeName: name, poolRef: { name: 'default' } },
      });
    }
    await assert.rejects(upgrade({ pool: POOL }), /Run: kubectl label node plain kube-nvr\.dev\/recorder=true, or set/);
    assert.deepEqual((await get(POOL_PATH)).spec.nodeSelector, {});
    await controlPlane.kubectl(['label', 'node', 'plain', 'kube-nvr.dev/recorder=true']);
    await upgrade({ pool: POOL });
    assert.deepEqual((await get(POOL_PATH)).spec.nodeSelector, { 'kube-nvr.dev/recorder': 'true' });
    await controlPlane.kubectl(['label', 'node', 'plain', 'kube-nvr.dev/recorder-']);
    // After the migration, a node that loses its label leaves the pool on purpose.
    await upgrade({ pool: POOL });
    await controlPlane.kubectl(['-n', NAMESPACE, 'delete', 'recordernodes', '--all']);
    await controlPlane.kubectl(['delete', 'nodes', '--all']);
  });

  test('a second manager applies the rendered chart: nothing conflicts, and nothing changes', async () => {
    const rendered = await helm.templateText({ pool: POOL }, '--no-hooks');
    const before = (await get(POOL_PATH)).metadata.generation;
    // As Argo CD does.
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [one(objectsOf(rendered), 'RecorderPool')] });
    const args = ['-n', NAMESPACE, 'apply', '--server-side', '--field-manager=gitops', '-f', '-'];
    await controlPlane.kubectl(args, { input });
    assert.equal((await get(POOL_PATH)).metadata.generation, before);
    await upgrade(limitedTo(50));
    await assert.rejects(controlPlane.kubectl(args, { input }), /conflict with "helm"/);
    await upgrade({ pool: POOL });
  });

  test('a pool that left the release is taken over as it is; a revision that would change it is refused', async () => {
    // Without any value, helm would take those of before.
    await upgrade({ pool: { enabled: false } });
    assert.equal((await get(POOL_PATH)).metadata.uid, poolUid);
    await assert.rejects(upgrade(limitedTo(7)), /pool: this upgrade takes over the pool default .* cannot change it/);
    await upgrade({ pool: POOL });
    await upgrade(limitedTo(7));
    assert.equal(await limit(), 7);
    await upgrade({ pool: POOL });
  });

  test('pods of operator and test pass the Pod Security Standard restricted', async () => {
    const namespace = 'restricted';
    await controlPlane.kubectl(['create', 'namespace', namespace]);
    const label = ['label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted'];
    await controlPlane.kubectl(label);
    await controlPlane.kubectl(['-n', namespace, 'create', 'serviceaccount', OPERATOR]);
    await controlPlane.kubectl(['-n', namespace, 'create', 'serviceaccount', 'default']);
    const objects = await helm.template();
    const operator = one(objects, 'Deployment').spec.template;
    const pods = [
      { metadata: { name: 'operator', labels: operator.metadata.labels }, spec: operator.spec },
      { metadata: { name: 'test' }, spec: one(objects, 'Pod').spec },
    ];
    const dryRun = (pod: object): Promise<unknown> =>
      controlPlane.api.create(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
        apiVersion: 'v1',
        kind: 'Pod',
        ...pod,
      });
    for (const pod of pods) await dryRun(pod);
    const [container] = operator.spec.containers;
    const open = { ...container, securityContext: { ...container.securityContext, capabilities: {} } };
    await assert.rejects(dryRun({ ...pods[0], spec: { ...operator.spec, containers: [open] } }), /restricted/);
  });

  test('objects of all sorts of values are taken as they are: no field is unknown to the API server', async () => {
    const objects = await helm.template({
      pool: POOL,
      watch: { allNamespaces: true, namespaces: ['default'] },
      ingress: {
        enabled: true,
        host: 'nvr.example.com',
        playbackHost: 'play.example.com',
        tlsSecret: 'tls',
        className: 'a',
      },
      networkPolicy: { clientsFrom: [{ ipBlock: { cidr: '10.0.0.0/8' } }], metricsFrom: [{ namespaceSelector: {} }] },
      operator: { antiAffinity: 'Preferred', priorityClassName: '', nodeSelector: { a: 'b' }, podLabels: { a: 'b' } },
      userRoles: { aggregate: true },
    });
    // Pods need the namespace's service account, which a controller makes.
    await controlPlane.kubectl(['-n', NAMESPACE, 'create', 'serviceaccount', 'default']).catch(() => {});
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    const args = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', '-'];
    const said = await controlPlane.kubectl(args, { input });
    assert.equal(said.trim().split('\n').length, objects.length, said);
    assert.ok(ofKind(objects, 'NetworkPolicy').length === 3 && ofKind(objects, 'Ingress').length === 1);
  });

  test('the operator may do its work in its own namespace only, and list Secrets nowhere', async () => {
    assert.deepEqual(
      [
        await may('create', 'daemonsets.apps', NAMESPACE),
        await may('get', 'secrets', NAMESPACE),
        await may('list', 'secrets', NAMESPACE),
        await may('get', 'secrets', 'default'),
        await may('list', 'cameras.kube-nvr.dev', 'default'),
        await may('list', 'nodes', NAMESPACE),
      ],
      [true, true, false, false, false, true],
    );
  });

  test('a user who may edit changes cameras, and no pools: these choose what runs on nodes', async () => {
    const bind = ['create', 'rolebinding', 'eve', '--user=eve', `--clusterrole=${NAMESPACE}-nvr-kube-nvr-edit`];
    await controlPlane.kubectl(['-n', NAMESPACE, ...bind]);
    const eve = (verb: string, resource: string): Promise<string> =>
      controlPlane.kubectl(['auth', 'can-i', verb, resource, '--as=eve', '-n', NAMESPACE]).catch(() => 'no');
    await until('the binding is in force', async () => {
      const answers = [await eve('update', 'cameras.kube-nvr.dev'), await eve('get', 'recorderpools.kube-nvr.dev')];
      assert.deepEqual(
        answers.map((said) => said.trim()),
        ['yes', 'yes'],
      );
      return true;
    });
    assert.equal((await eve('update', 'recorderpools.kube-nvr.dev')).trim(), 'no');
  });

  const startOperator = (values: Values): Promise<Child> => startOperatorOf(controlPlane, helm, NAMESPACE, values);

  const untilThere = (path: string): Promise<Manifest> => until(path, () => get(path), SLOW_MS);

  test('the operator with the rights of the chart makes the recorders of the pool, and an admin token of which they get the hash', async () => {
    await using operator = await startOperator({ pool: POOL });
    await untilThere(`/api/v1/namespaces/${NAMESPACE}/services/default-recorder`);
    await untilThere(`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets/default-recorder`);
    const daemonSet = await untilThere(`/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/default-recorder`);
    token = await secret('default-admin-token', 'token');
    assert.match(token, /^nvr_[A-Za-z0-9_-]{43}$/);
    const sha256 = createHash('sha256').update(token).digest('hex');
    assert.equal(await secret('default-tokens', 'tokens.yaml'), `- name: admin\n  role: admin\n  sha256: ${sha256}\n`);
    const policy = `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies/nvr-kube-nvr-recorders`;
    const labels = daemonSet.spec.template.metadata.labels as Record<string, string>;
    const { matchLabels } = (await get(policy)).spec.podSelector;
    assert.deepEqual({ ...labels, ...matchLabels }, labels, 'the policy is that of the recorders');
    // It lets go of its Lease, so that the next one need not wait.
    operator.signal('SIGTERM');
    assert.equal((await operator.exit()).code, 0, operator.output);
  });

  suite('with allNamespaces', () => {
    const values = { pool: POOL, watch: { allNamespaces: true, namespaces: ['tenant'] } };
    /** The operator with the rights of the chart, and what it has in its hands. */
    let operator: Child;
    let thief: ApiClient;
    const ours = (namespace: string, plural: string): string =>
      `/apis/${API_VERSION}/namespaces/${namespace}/${plural}`;
    const make = (namespace: string, kind: string, name: string, spec: object): Promise<unknown> =>
      controlPlane.api.create(ours(namespace, `${kind.toLowerCase()}s`), {
        apiVersion: API_VERSION,
        kind,
        metadata: { name },
        spec,
      });
    const makePool = (namespace: string): Promise<unknown> =>
      make(namespace, 'RecorderPool', 'default', { archive: { hostPath: '/mnt/archive' } });
    /** `verb resource` that the operator may do in a namespace beside what everybody may. */
    const mayDo = async (namespace: string): Promise<readonly string[]> => {
      type Rule = { readonly verbs: readonly string[]; readonly resources: readonly string[] };
      type Answer = KubeObject & { readonly status: { readonly resourceRules: readonly Rule[] } };
      const { status } = await thief.create<Answer>('/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectRulesReview',
        spec: { namespace },
      });
      return status.resourceRules
        .flatMap(({ verbs, resources }) => verbs.flatMap((verb) => resources.map((resource) => `${verb} ${resource}`)))
        .filter((right) => !right.includes(' selfsubject'))
        .sort();
    };

    before(async () => {
      for (const namespace of ['tenant', 'owned', 'stranger']) {
        await controlPlane.kubectl(['create', 'namespace', namespace]);
      }
      await controlPlane.kubectl(['-n', 'stranger', 'create', 'secret', 'generic', 'bank']);
      await upgrade(values);
      operator = await startOperator(values);
      thief = controlPlane.api.withToken(
        (await controlPlane.kubectl(['-n', NAMESPACE, 'create', 'token', OPERATOR])).trim(),
      );
    });

    after(async () => {
      thief?.close();
      await operator?.[Symbol.asyncDispose]();
      await upgrade({ pool: POOL });
    });

    test('the operator makes the recorders of a tenant that is named, too, and hands on the login of a camera there', async () => {
      assert.deepEqual([await may('get', 'secrets', 'tenant'), await may('get', 'secrets', 'default')], [true, false]);
      await controlPlane.kubectl(['-n', 'tenant', 'create', 'secret', 'generic', 'yard-login']);
      const hosts = 'kube-nvr.dev/camera-hosts=10.0.0.9';
      await controlPlane.kubectl(['-n', 'tenant', 'annotate', 'secret', 'yard-login', hosts]);
      await make('tenant', 'Camera', 'yard', {
        source: 'rtsp://10.0.0.9/1',
        credentialsSecretRef: { name: 'yard-login' },
      });
      await makePool('tenant');
      await untilThere('/apis/apps/v1/namespaces/tenant/daemonsets/default-recorder');
      const role = '/apis/rbac.authorization.k8s.io/v1/namespaces/tenant/roles/default-recorder';
      await until(
        'the recorders may read the login',
        async () => JSON.stringify((await get(role)).rules).includes('"resourceNames":["yard-login"]'),
        SLOW_MS,
      );
    });

    test('a stolen token of the operator reads no Secret and makes no pod and no role in a namespace that was not given to it', async () => {
      assert.deepEqual(await mayDo('stranger'), [
        'create events',
        'get endpointslices',
        'list archivetargets',
        'list cameras',
        'list nodes',
        'list recordernodes',
        'list recorderpools',
        'list recordingobjectives',
        'list servicecidrs',
        'patch recorderpools/status',
        'watch archivetargets',
        'watch cameras',
        'watch nodes',
        'watch recordernodes',
        'watch recorderpools',
        'watch recordingobjectives',
      ]);
      const core = '/api/v1/namespaces/stranger';
      const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/stranger';
      const metadata = { name: 'mine' };
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
      const subjects = [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: OPERATOR }];
      const tenant = { ...roleRef, name: `${NAMESPACE}-${OPERATOR}-tenant` };
      const account = `${core}/serviceaccounts/default/token`;
      for (const [what, call] of [
        ['a Secret', () => thief.get(`${core}/secrets/bank`)],
        ['all Secrets', () => thief.list(`${core}/secrets`)],
        ['all Secrets of the cluster', () => thief.list('/api/v1/secrets')],
        ['pods, which have secrets in their environment', () => thief.list(`${core}/pods`)],
        ['all pods of the cluster', () => thief.list('/api/v1/pods')],
        ['all Leases of the cluster', () => thief.list('/apis/coordination.k8s.io/v1/leases')],
        ['ConfigMaps', () => thief.list(`${core}/configmaps`)],
        ['a pod', () => thief.create(`${core}/pods`, { metadata, spec: { containers: [{ name: 'a', image: 'a' }] } })],
        ['a DaemonSet', () => thief.create('/apis/apps/v1/namespaces/stranger/daemonsets', { metadata })],
        ['a Role', () => thief.create(`${rbac}/roles`, { metadata, rules: [] })],
        ['a binding', () => thief.create(`${rbac}/rolebindings`, { metadata, roleRef, subjects })],
        [
          'the binding that would name it',
          () => thief.create(`${rbac}/rolebindings`, { metadata, roleRef: tenant, subjects }),
        ],
        ['a token of another account', () => thief.create(account, { spec: { audiences: [] } })],
        [
          'a Camera',
          () => thief.create(ours('stranger', 'cameras'), { metadata, spec: { source: 'rtsp://10.0.0.9/1' } }),
        ],
        ['a Lease', () => thief.create('/apis/coordination.k8s.io/v1/namespaces/stranger/leases', { metadata })],
      ] as const) {
        await assert.rejects(call(), { status: 403 }, what);
      }
    });

    test('a pool elsewhere says which command gives the namespace; its owner runs that, and recorders come without a restart', async () => {
      await makePool('owned');
      const granted = async (): Promise<Condition | undefined> => {
        const { status } = await get(`${ours('owned', 'recorderpools')}/default`);
        return (status as RecorderPoolStatus | undefined)?.conditions?.find(({ type }) => type === 'NamespaceGranted');
      };
      const { status, reason, message } = await until('the pool says so', granted, SLOW_MS);
      assert.deepEqual([status, reason], ['False', 'NoRights']);
      const described = await until(
        'so does an event',
        async () => {
          const text = await controlPlane.kubectl(['-n', 'owned', 'describe', 'recorderpool', 'default']);
          return /Warning +NoRights .*kubectl --namespace=owned create rolebinding/.test(text) && text;
        },
        SLOW_MS,
      );
      assert.ok(described);
      const [, command = ''] = /: kubectl (.*)$/.exec(message) ?? [];

      // Olga may bind roles in her namespace, as its administrators may, and later make pools there.
      const inOwned = (...args: readonly string[]): Promise<string> => controlPlane.kubectl(['-n', 'owned', ...args]);
      await inOwned('create', 'role', 'owner', '--verb=create', '--resource=rolebindings');
      await inOwned('create', 'rolebinding', 'olga', '--user=olga', '--role=owner');
      const asOlga = ['--as=olga', ...command.split(' ')];
      await until(
        'she may bind what she has, and no more',
        () => controlPlane.kubectl(asOlga).catch((err: unknown) => /not currently held/.test(String(err))),
        SLOW_MS,
      );
      const pools = `--clusterrole=${NAMESPACE}-nvr-kube-nvr-admin`;
      await inOwned('create', 'rolebinding', 'olga-pools', '--user=olga', pools);
      await until('she may bind this', () => controlPlane.kubectl(asOlga).catch(() => false), SLOW_MS);
      const elsewhere = asOlga.map((word) => word.replace('=owned', '=stranger'));
      await assert.rejects(controlPlane.kubectl(elsewhere), /cannot create resource "rolebindings"/);

      await untilThere('/apis/apps/v1/namespaces/owned/daemonsets/default-recorder');
      await until('nothing is missing any more', async () => !(await granted()), SLOW_MS);
      assert.ok((await mayDo('owned')).includes('get secrets'));
      assert.ok(!(await mayDo('stranger')).includes('get secrets'));
    });
  });

  test('without allNamespaces again, no right is left in the namespace of a tenant', async () => {
    await until('the API server knows that the roles are gone', async () => {
      const rights = [await may('list', 'cameras.kube-nvr.dev', 'tenant'), await may('get', 'secrets', 'tenant')];
      assert.deepEqual(rights, [false, false]);
      return true;
    });
  });

  test('a second release of the cluster, for another tenant, shares kinds and policy', async () => {
    const values = { admissionPolicy: { enabled: false }, pool: POOL };
    const place = ['--namespace', 'other', '--create-namespace'];
    await helm.run(['install', 'kube-nvr', CHART, ...place], values);
    await get(`/apis/${API_VERSION}/namespaces/other/recorderpools/default`);
    await helm.run(['uninstall', 'kube-nvr', '--namespace', 'other']);
  });

  test('an uninstall leaves kinds, cameras, pool and tokens; the next install takes them over', async () => {
    const hashes = await secret('default-tokens', 'tokens.yaml');
    await helm.run(['uninstall', RELEASE, '--namespace', NAMESPACE]);
    await absent(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${OPERATOR}`);
    await get(`/apis/${API_VERSION}/namespaces/${NAMESPACE}/cameras/gate`);
    assert.equal((await get(POOL_PATH)).metadata.uid, poolUid);
    assert.equal(await secret('default-tokens', 'tokens.yaml'), hashes);
    assert.equal(await secret('default-admin-token', 'token'), token);
    await assert.rejects(install(limitedTo(7)), /pool: this install takes over/);
    await install();
    assert.equal((await get(POOL_PATH)).metadata.uid, poolUid);
    assert.equal(await secret('default-tokens', 'tokens.yaml'), hashes);
  });

  test('an upgrade installs the kinds of its version, a rollback the earlier ones, and an uninstall keeps them', async () => {
    const older = join(controlPlane.directory, 'older-chart');
    cpSync(KINDS_CHART, older, { recursive: true });
    const crds = join(older, 'templates/crds.yaml');
    const text = readFileSync(crds, 'utf8');
    writeFileSync(crds, text.replaceAll(/^ +categories:\n +- kubenvr\n/gm, ''));
    assert.notEqual(readFileSync(crds, 'utf8'), text);
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cameras.kube-nvr.dev';
    const categories = async (): Promise<unknown> => (await get(path)).spec.names.categories;
    await helm.kinds(NAMESPACE, older);
    assert.equal(await categories(), undefined);
    await helm.kinds(NAMESPACE);
    assert.deepEqual(await categories(), ['kubenvr']);
    await helm.run(['rollback', 'kube-nvr-crds', '--namespace', NAMESPACE]);
    assert.equal(await categories(), undefined);
    await helm.run(['uninstall', 'kube-nvr-crds', '--namespace', NAMESPACE]);
    await get(`/apis/${API_VERSION}/namespaces/${NAMESPACE}/cameras/gate`);
    assert.equal((await get(POOL_PATH)).metadata.uid, poolUid);
  });

  test('a release takes over the kinds of another one only with --take-ownership, and no camera is lost', async () => {
    const camera = `/apis/${API_VERSION}/namespaces/${NAMESPACE}/cameras/owned-kinds`;
    const spec = { source: 'rtsp://127.0.0.1/1' };
    await controlPlane.api.create(`/apis/${API_VERSION}/namespaces/${NAMESPACE}/cameras`, {
      apiVersion: API_VERSION,
      kind: 'Camera',
      metadata: { name: 'owned-kinds' },
      spec,
    });
    const { uid } = (await get(camera)).metadata;
    const takeOver = (...flags: readonly string[]): Promise<string> =>
      helm.run(['install', 'other-kinds', KINDS_CHART, '--namespace', NAMESPACE, ...flags]);
    await assert.rejects(takeOver(), /invalid ownership metadata/);
    await takeOver('--take-ownership');
    const crd = await get('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cameras.kube-nvr.dev');
    assert.equal(crd.metadata.annotations?.['meta.helm.sh/release-name'], 'other-kinds');
    assert.equal((await get(camera)).metadata.uid, uid);
  });
});
