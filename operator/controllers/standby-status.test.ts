import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCamera } from '../../crds/camera.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { reportsOf } from '../observe/views.ts';
import { standbyOf } from './standby-status.ts';

const camera = parseCamera({
  apiVersion: 'kube-nvr.dev/v1alpha1',
  kind: 'Camera',
  metadata: { name: 'gate', namespace: 'shop', uid: 'u1', resourceVersion: '1' },
  spec: { source: 'rtsp://10.0.0.9/' },
  status: {
    assignment: { node: 'a', epoch: 1, reason: 'Scheduled', time: '2026-11-21T10:00:00Z' },
    standby: { node: 'b', epoch: 3 },
  },
});

const CHOSEN = { type: 'Standby', status: 'True', reason: 'Chosen', message: 'node b is to hold it' } as const;

/** What the Camera says when its standby reports this. */
function said(report: object | undefined, { isLive = true, wants = true } = {}): unknown {
  const node = parseRecorderNode({
    apiVersion: 'kube-nvr.dev/v1alpha1',
    kind: 'RecorderNode',
    metadata: { name: 'b', namespace: 'shop', uid: 'u2', resourceVersion: '1' },
    spec: { nodeName: 'b', poolRef: { name: 'default' } },
    status: { standbys: report ? [{ name: 'gate', epoch: 3, ...report }] : [] },
  });
  const nodes = new Map([['b', reportsOf(node)]]);
  const conditions = standbyOf({
    camera,
    planned: wants ? CHOSEN : undefined,
    nodes,
    isLive: () => isLive,
    isRecorded: true,
  });
  return conditions.map(({ status, reason, message }) => `${status} ${reason}: ${message}`).join();
}

test('a camera that wants no standby has no such condition', () => {
  assert.equal(said(undefined, { wants: false }), '');
});

test('a camera is held when its standby says so under the epoch of the choice', () => {
  assert.equal(said({ state: 'Holding' }), 'True Holding: its last seconds are in the memory of b');
  assert.equal(said({ state: 'Holding', epoch: 2 }), 'False NotTakenUp: b has not reported yet that it holds it');
  assert.equal(
    said({ state: 'Holding' }, { isLive: false }),
    'Unknown NodeUnavailable: b has not been heard of lately',
  );
  assert.equal(said({ state: 'Connecting' }), 'False Connecting: b connects to it');
});

test('a camera that refuses the second connection is told apart from one for which memory is missing', () => {
  assert.equal(
    said({ state: 'Failed', reason: 'TooManyStreams', message: '453 Not Enough Bandwidth' }),
    'False TooManyStreams: b: 453 Not Enough Bandwidth; it may not serve a second client beside the node that records it',
  );
  assert.equal(said({ state: 'Failed', reason: 'NoMemory', message: 'too little' }), 'False NoMemory: b: too little');
});
