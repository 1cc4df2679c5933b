import assert from 'node:assert/strict';
import { test } from 'node:test';
import { API_VERSION } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import type { Condition } from '../../crds/schema-parts.ts';
import { LIVE, UNAVAILABLE, UNKNOWN } from '../../test/support/snapshots.ts';
import { statusOfNode } from './node-status.ts';

const node = (conditions: readonly Condition[]): RecorderNode =>
  parseRecorderNode({
    apiVersion: API_VERSION,
    kind: 'RecorderNode',
    metadata: { name: 'a', namespace: 'default', uid: 'u', generation: 7 },
    spec: { nodeName: 'a', poolRef: { name: 'default' } },
    status: { conditions },
  });
const ready: Condition = {
  type: 'Ready',
  status: 'True',
  reason: 'Recording',
  message: '',
  lastTransitionTime: '2026-11-21T10:00:00Z',
};

test('a node shows whether anything is heard of it; what its recorder says of itself is not touched', () => {
  const shown = (liveness: Parameters<typeof statusOfNode>[1]) => {
    const { status } = statusOfNode(node([ready]), liveness, 0);
    return (status['conditions'] as readonly Condition[]).map(({ type, status: is, reason }) => [type, is, reason]);
  };
  assert.deepEqual(shown(LIVE), [['Online', 'True', 'LeaseRenewed']]);
  assert.deepEqual(shown(UNAVAILABLE), [['Online', 'False', 'NodeUnavailable']]);
  assert.deepEqual(shown(UNKNOWN), [['Online', 'Unknown', 'NotHeard']]);
  assert.deepEqual(shown(undefined), [['Online', 'Unknown', 'NotHeard']]);
});

test('it is written when it changes, and not again', () => {
  const first = statusOfNode(node([ready]), LIVE, 0);
  assert.deepEqual([first.isChanged, first.transitions.length], [true, 1]);
  const conditions = first.status['conditions'] as readonly Condition[];
  assert.equal(statusOfNode(node([ready, ...conditions]), LIVE, 60_000).isChanged, false);
  assert.equal(statusOfNode(node([ready, ...conditions]), UNAVAILABLE, 60_000).isChanged, true);
});
