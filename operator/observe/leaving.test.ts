import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { whyLeaving, type LeavingNode } from './leaving.ts';

const pool = (more: object = {}) =>
  parseRecorderPool({
    apiVersion: API_VERSION,
    kind: 'RecorderPool',
    metadata: { name: 'north', namespace: 'video', uid: 'u' },
    spec: { archive: { hostPath: '/mnt/archive' }, ...more },
  }).spec;
const node = (spec: LeavingNode['spec'] = {}, more: Partial<LeavingNode> = {}): LeavingNode => ({
  metadata: { name: 'a', labels: { recorder: 'true' } },
  spec,
  ...more,
});
const tainted = (key: string, effect = 'NoSchedule') => node({ taints: [{ key, effect }] });
const IGNORE = pool({ cordon: { mode: 'Ignore' } });

test('a node leaves when it is cordoned, out of service or removed by an autoscaler, and says why', () => {
  assert.equal(whyLeaving(node({ unschedulable: true }), pool()), 'the Kubernetes node is cordoned');
  assert.equal(whyLeaving(node({ unschedulable: true }), IGNORE), undefined);
  const tolerates = pool({ tolerations: [{ operator: 'Exists' }] });
  for (const key of ['node.kubernetes.io/out-of-service', 'ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted'])
    assert.equal(whyLeaving(tainted(key), tolerates), `the Kubernetes node has the taint ${key}`);
});

test('a node stays with taints of a fault that may pass, of an autoscaler that only considers it, and those that the pool tolerates', () => {
  assert.equal(whyLeaving(node(), pool()), undefined);
  assert.equal(whyLeaving(tainted('node.kubernetes.io/not-ready', 'NoExecute'), pool()), undefined);
  assert.equal(whyLeaving(tainted('DeletionCandidateOfClusterAutoscaler', 'PreferNoSchedule'), pool()), undefined);
  assert.equal(whyLeaving(tainted('use'), pool({ tolerations: [{ key: 'use', operator: 'Exists' }] })), undefined);
});

test('a node leaves with a taint that the pool does not tolerate, or only for a time', () => {
  assert.match(whyLeaving(tainted('use'), pool()) ?? '', /taint use, which the pool does not tolerate/);
  assert.match(whyLeaving(tainted('use', 'NoExecute'), IGNORE) ?? '', /taint use, which evicts the recorder/);
  const forAMinute = pool({
    tolerations: [{ key: 'use', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
  });
  assert.match(whyLeaving(tainted('use', 'NoExecute'), forAMinute) ?? '', /evicts the recorder/);
});

test('a node leaves that the pool selects no more, that is gone, and whose machine shuts down', () => {
  const selects = (value: string) => pool({ nodeSelector: { recorder: value } });
  assert.equal(whyLeaving(node(), selects('true')), undefined);
  assert.match(whyLeaving(node(), selects('false')) ?? '', /does not select/);
  assert.match(whyLeaving(undefined, pool()) ?? '', /no such Kubernetes node/);
  const ready = (status: string, message: string) =>
    whyLeaving(node({}, { status: { conditions: [{ type: 'Ready', status, message }] } }), pool());
  assert.match(ready('False', 'node is shutting down') ?? '', /shuts down/);
  assert.equal(ready('False', 'container runtime is down'), undefined);
  assert.equal(ready('True', 'kubelet is posting ready status'), undefined);
});
