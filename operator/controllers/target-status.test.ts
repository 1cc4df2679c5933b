import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArchiveTarget } from '../../crds/archive-target.ts';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import { statusOfTarget } from './target-status.ts';

const target = parseArchiveTarget({
  apiVersion: API_VERSION,
  kind: 'ArchiveTarget',
  metadata: { name: 'offsite', namespace: 'video', generation: 3 },
  spec: { endpoint: 'https://s3.example', bucket: 'footage', credentialsSecretRef: { name: 'key' } },
});
const node = (name: string, targets: readonly object[], online = 'True'): RecorderNode =>
  parseRecorderNode({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name, namespace: 'video' },
    spec: { nodeName: name, poolRef: { name: 'north' } },
    status: {
      targets,
      conditions: [
        { type: 'Online', status: online, reason: 'Any', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  });
const WRONG = { name: 'offsite', reason: 'WrongCredentials', message: 'it answers 403' };
const ready = (...nodes: RecorderNode[]) => {
  const { status } = statusOfTarget(target, nodes, 0);
  const [{ status: is, reason, message }] = (status as { conditions: [Record<string, string>] }).conditions;
  return [is, reason, message];
};

test('a target is ready when every recorder that copies to it says so', () => {
  assert.deepEqual(ready(), ['Unknown', 'NotReported', 'no recorder copies footage to it']);
  assert.deepEqual(ready(node('a', [{ name: 'other', reason: 'NoBucket' }])).slice(0, 2), ['Unknown', 'NotReported']);
  assert.deepEqual(ready(node('a', [{ name: 'offsite' }])), ['True', 'Copying', '']);
});

test('what recorders say is wrong is the reason, with the nodes that say it', () => {
  const nodes = [node('a', [{ name: 'offsite' }]), node('b', [WRONG]), node('c', [WRONG])];
  assert.deepEqual(ready(...nodes), ['False', 'WrongCredentials', 'b, c: it answers 403']);
});

test('what a node said before it was lost does not count', () => {
  assert.deepEqual(ready(node('a', [WRONG], 'False'), node('b', [{ name: 'offsite' }])), ['True', 'Copying', '']);
});

test('a status that is as it was is not written again', () => {
  const { status, isChanged } = statusOfTarget(target, [node('a', [WRONG])], 0);
  assert.equal(isChanged, true);
  const before = { ...target, status } as typeof target;
  assert.equal(statusOfTarget(before, [node('a', [WRONG])], 60_000).isChanged, false);
});
