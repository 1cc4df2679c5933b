import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCamera } from '../../crds/camera.ts';
import { API_VERSION } from '../../crds/names.ts';
import { placementOf } from './placement-status.ts';

const NODES = new Map([
  ['a', { labels: { zone: 'east' } }],
  ['b', { labels: { zone: 'west' } }],
]);

const met = (placement: object, node = 'a') => {
  const assignment = { node, epoch: 1, reason: 'Scheduled', time: '2026-11-21T10:00:00Z' };
  const camera = parseCamera({
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { name: 'gate', namespace: 'video' },
    spec: { source: 'rtsp://10.0.0.9/1', placement },
    status: { assignment },
  });
  const { status, reason, message } = placementOf(camera, NODES);
  return { shown: `${status} ${reason}`, message };
};

test('a camera on a node that its placement allows says nothing', () => {
  for (const placement of [{}, { nodeSelector: { zone: 'east' } }, { preferredNode: 'b' }, { preferredNode: '' }]) {
    assert.equal(met(placement).shown, 'True Met', JSON.stringify(placement));
  }
});

test('a camera on a node that lost a label says which, and stays there', () => {
  const { shown, message } = met({ nodeSelector: { zone: 'north' } });
  assert.equal(shown, 'False NodeSelectorNotMet');
  assert.match(message, /^a, which records it, lacks zone=north of placement\.nodeSelector/);
});

test('a preferred node that the pool does not have, or that the selector excludes, is named', () => {
  const unknown = met({ preferredNode: 'no-such-node' });
  assert.deepEqual(unknown, {
    shown: 'False PreferredNodeUnknown',
    message: 'placement.preferredNode: the pool has no node no-such-node',
  });
  assert.equal(met({ preferredNode: 'b', nodeSelector: { zone: 'east' } }).shown, 'False PreferredNodeExcluded');
});
