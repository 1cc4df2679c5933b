import { test } from 'node:test';
import assert from 'node:assert/strict';
import { KINDS } from '../../crds/kinds.ts';
import { resourceReference } from '../../build/crd-reference.ts';
import { nodeIdentityPolicies } from './node-identity-policy.ts';
import {
  operatorClusterRules,
  operatorEverywhereRules,
  operatorLeaseRules,
  operatorRules,
  operatorSecretRules,
} from './operator-access.ts';
import { recorderRules, roleBindingOf, roleOf, serviceAccountOf, type PolicyRule } from './recorder-access.ts';
import { secretAccessPolicies, secretReferences } from './secret-access-policy.ts';

/** Rights such as `get secrets.`, one for each verb on each resource. */
const rights = (rules: readonly PolicyRule[]): string[] =>
  rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`))),
  );

const ALL_OPERATOR = [...operatorRules(), ...operatorSecretRules(), ...operatorLeaseRules(), ...operatorClusterRules()];

test('without a Secret there is no rule for Secrets: an empty list of names would mean all of them', () => {
  assert.ok(!rights(recorderRules([])).some((right) => right.includes('secrets')));
  const [rule] = recorderRules(['b', 'a', 'b']).filter(({ resources }) => resources.includes('secrets'));
  assert.deepEqual([rule?.verbs, rule?.resourceNames], [['get'], ['a', 'b']]);
});

test('a recorder writes its Lease and its report, and nothing else', () => {
  const isWrite = ({ verbs }: PolicyRule): boolean => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb));
  assert.deepEqual(recorderRules(['a']).filter(isWrite), [], 'without a node it writes nothing');
  const writes = recorderRules(['a'], ['n2', 'n1', 'n2']).filter(isWrite);
  assert.deepEqual(rights(writes), ['patch recordernodes/status.kube-nvr.dev', 'update leases.coordination.k8s.io']);
  assert.deepEqual(
    writes.map(({ resourceNames }) => resourceNames),
    [
      ['n1', 'n2'],
      ['kube-nvr-node-n1', 'kube-nvr-node-n2'],
    ],
  );
});

test('the operator has everything that it hands on', () => {
  const held = new Set(rights([...operatorRules(), ...operatorSecretRules()]));
  assert.deepEqual(
    rights(recorderRules(['a'], ['n'])).filter((right) => !held.has(right)),
    [],
  );
});

test('no role has wildcards or lists Secrets', () => {
  for (const rules of [ALL_OPERATOR, recorderRules(['a'])]) {
    assert.deepEqual(
      rights(rules).filter((right) => right.includes('*') || /^(list|watch) secrets/.test(right)),
      [],
    );
  }
  assert.ok(!rights(operatorClusterRules()).some((right) => right.includes('secrets')));
});

test('in namespaces that nobody gave it, the operator looks at our own kinds, and says so with a pool', () => {
  const everywhere = rights(operatorEverywhereRules());
  const held = rights(operatorRules());
  assert.deepEqual(
    everywhere.filter((right) => !right.endsWith('.kube-nvr.dev')),
    ['create events.events.k8s.io'],
  );
  assert.deepEqual(
    everywhere.filter((right) => !held.includes(right)),
    [],
  );
});

test('role, binding and account have the name of the pool and point at each other', () => {
  const pool = { namespace: 'home', name: 'default' };
  const { name } = serviceAccountOf(pool).metadata;
  assert.equal(name, 'default-recorder');
  assert.equal(roleOf(pool, []).metadata.name, roleBindingOf(pool).roleRef.name);
  assert.deepEqual(roleBindingOf(pool).subjects, [{ kind: 'ServiceAccount', namespace: 'home', name }]);
});

test('the policies fail closed, and each has a binding that denies', () => {
  const objects = [...nodeIdentityPolicies(), ...secretAccessPolicies()] as {
    kind: string;
    metadata: { name: string };
    spec: Record<string, unknown>;
  }[];
  const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
  const bindings = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding');
  assert.deepEqual(
    policies.map(({ spec }) => spec['failurePolicy']),
    ['Fail', 'Fail', 'Fail', 'Fail', 'Fail'],
  );
  assert.deepEqual(
    bindings.map(({ spec }) => [spec['policyName'], spec['validationActions']]),
    policies.map(({ metadata }) => [metadata.name, ['Deny']]),
  );
});

test('every field that refers to another object names a Secret, which a policy guards, or a pool', () => {
  const guarded = KINDS.flatMap((kind) => secretReferences(kind).map(({ path }) => `spec.${path}`));
  const references = Array.from(
    resourceReference().matchAll(/`(spec[\w.]*)(?:\[\])?\.name` \|/g),
    ([, field = '']) => field,
  );
  assert.deepEqual(
    references.filter((field) => !guarded.includes(field)),
    // Those of the pod template and of disks are names within the pod.
    [
      'spec.poolRef',
      'spec.podTemplate.spec.volumes',
      'spec.podTemplate.spec.containers',
      'spec.archive.disks',
      'spec.poolRef',
      'spec.poolRef',
    ],
  );
  assert.equal(guarded.length, references.length - 6);
});
