import { test } from 'node:test';
import assert from 'node:assert/strict';
import { nodeIdentityPolicies } from './node-identity-policy.ts';
import { operatorClusterRules, operatorLeaseRules, operatorRules, operatorSecretRules } from './operator-access.ts';
import { recorderRules, roleBindingOf, roleOf, serviceAccountOf, type PolicyRule } from './recorder-access.ts';

/** As `get secrets.`: one line for each verb on each resource. */
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
  const writes = rights(recorderRules(['a'])).filter((right) => !/^(get|list|watch) /.test(right));
  assert.deepEqual(writes, [
    'patch recordernodes/status.kube-nvr.dev',
    'create leases.coordination.k8s.io',
    'update leases.coordination.k8s.io',
  ]);
});

test('the operator has everything that it hands on', () => {
  const held = new Set(rights([...operatorRules(), ...operatorSecretRules()]));
  assert.deepEqual(
    rights(recorderRules(['a'])).filter((right) => !held.has(right)),
    [],
  );
});

test('nobody has wildcards, and nobody lists Secrets', () => {
  for (const rules of [ALL_OPERATOR, recorderRules(['a'])]) {
    assert.deepEqual(
      rights(rules).filter((right) => right.includes('*') || /^(list|watch) secrets/.test(right)),
      [],
    );
  }
  assert.ok(!rights(operatorClusterRules()).some((right) => right.includes('secrets')));
});

test('role, binding and account have the name of the pool and point at each other', () => {
  const pool = { namespace: 'home', name: 'default' };
  const { name } = serviceAccountOf(pool).metadata;
  assert.equal(name, 'default-recorder');
  assert.equal(roleOf(pool, []).metadata.name, roleBindingOf(pool).roleRef.name);
  assert.deepEqual(roleBindingOf(pool).subjects, [{ kind: 'ServiceAccount', namespace: 'home', name }]);
});

test('the policies fail closed, and each has a binding that denies', () => {
  const objects = nodeIdentityPolicies() as {
    kind: string;
    metadata: { name: string };
    spec: Record<string, unknown>;
  }[];
  const policies = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
  const bindings = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding');
  assert.deepEqual(
    policies.map(({ spec }) => spec['failurePolicy']),
    ['Fail', 'Fail'],
  );
  assert.deepEqual(
    bindings.map(({ spec }) => [spec['policyName'], spec['validationActions']]),
    policies.map(({ metadata }) => [metadata.name, ['Deny']]),
  );
});
