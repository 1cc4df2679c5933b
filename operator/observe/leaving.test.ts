import assert from 'node:assert/strict';
import { test } from 'node:test';
import { whyLeaving } from './leaving.ts';

const tainted = (...keys: string[]) => ({ spec: { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) } });

test('a node leaves when it is cordoned, out of service or removed by an autoscaler, and says why', () => {
  assert.equal(whyLeaving({ spec: { unschedulable: true } }), 'the Kubernetes node is cordoned');
  for (const key of ['node.kubernetes.io/out-of-service', 'ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted'])
    assert.equal(whyLeaving(tainted('dedicated', key)), `the Kubernetes node has the taint ${key}`);
});

test('a node stays with other taints: of its role, of a fault that may pass, of an autoscaler that only considers it', () => {
  const keys = [
    'node-role.kubernetes.io/control-plane',
    'node.kubernetes.io/not-ready',
    'DeletionCandidateOfClusterAutoscaler',
  ];
  assert.equal(whyLeaving(tainted(...keys)), undefined);
  assert.equal(whyLeaving({}), undefined);
});
