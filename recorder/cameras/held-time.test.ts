import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCamera, type CameraAssignment } from '../../crds/camera.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import type { Assignment } from '../cluster/assignments.ts';
import { heldMsOf, wantedFromMs } from './held-time.ts';

const NOW_MS = Date.UTC(2026, 10, 21, 10);
const SYNC_MS = 5_000;

const poolOf = (unavailableAfterSeconds: number): RecorderPool =>
  parseRecorderPool({
    apiVersion: 'kube-nvr.dev/v1alpha1',
    kind: 'RecorderPool',
    metadata: { name: 'default', namespace: 'shop' },
    spec: { archive: { hostPath: '/srv' }, failover: { unavailableAfterSeconds } },
  });

function ownOf(assignment: Partial<CameraAssignment>): Assignment {
  const status = {
    assignment: { node: 'a', epoch: 2, reason: 'NodeUnavailable', time: '2026-11-21T10:00:00Z', ...assignment },
  };
  const metadata = { name: 'gate', namespace: 'shop', uid: 'u1', resourceVersion: '1' };
  const spec = { source: 'rtsp://10.0.0.9/' };
  const camera = parseCamera({ apiVersion: 'kube-nvr.dev/v1alpha1', kind: 'Camera', metadata, spec, status });
  return { camera, state: 'own', epoch: 2 };
}

/** How many seconds before now what was held is wanted. */
const agoOf = (assignment: Partial<CameraAssignment>, pool = poolOf(15)): number =>
  (NOW_MS - wantedFromMs(ownOf(assignment), pool, SYNC_MS, NOW_MS)) / 1_000;

const secondsAgo = (seconds: number): string => new Date(NOW_MS - seconds * 1_000).toISOString();

test('a camera of a lost node is wanted from its last renewal on, and what that node may not have had on its disk', () => {
  assert.equal(agoOf({ lastSeenTime: secondsAgo(17) }), 24);
});

test('the clock of a lost node is not believed where that would cost footage', () => {
  assert.equal(agoOf({ lastSeenTime: secondsAgo(-3_600) }), 22);
  assert.ok(agoOf({ lastSeenTime: secondsAgo(3_600) }) > 3_600, 'all that is held');
});

test('of a node that nobody knows the end of, all that is held is wanted; of one that hands over, nothing', () => {
  assert.equal(agoOf({ lastSeenTime: undefined }), Infinity);
  assert.equal(agoOf({ reason: 'NotTakenUp', lastSeenTime: secondsAgo(17) }), Infinity);
  assert.equal(agoOf({ reason: 'Drain', handover: 'Pending' }), 0);
});

test('thirty seconds are held, and more where nodes count as lost later', () => {
  assert.deepEqual([heldMsOf(undefined), heldMsOf(poolOf(15)), heldMsOf(poolOf(60))], [30_000, 30_000, 75_000]);
});
