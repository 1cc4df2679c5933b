import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { parseCamera } from './camera.ts';
import { API_VERSION } from './names.ts';
import { ResourceError } from './parse.ts';
import { parseRecorderNode } from './recorder-node.ts';
import { parseRecorderPool } from './recorder-pool.ts';

const camera = (parts: { spec?: object; status?: object }) => ({
  apiVersion: API_VERSION,
  kind: 'Camera',
  metadata: { name: 'gate', namespace: 'home' },
  spec: { source: 'rtsp://10.0.0.9/stream1', ...parts.spec },
  ...(parts.status && { status: parts.status }),
});

test('what is left out has its default', () => {
  assert.deepEqual(parseCamera(camera({})).spec, {
    source: 'rtsp://10.0.0.9/stream1',
    allowPlaintextLogin: false,
    transport: 'Auto',
    maxBitrate: 100,
    ptz: false,
    events: 'Auto',
    suspend: false,
    record: { format: 'fmp4', segmentSeconds: 300 },
    poolRef: { name: 'default' },
    placement: { failover: 'Automatic', priority: 0 },
  });
});

test('an error names every wrong field, and repeats no value: an address could hold a password', () => {
  const value = camera({
    spec: { source: 'http://user:hunter2@10.0.0.9/', record: { segmentSeconds: 0 } },
    status: { archives: [{ node: 'a' }, { node: 5 }] },
  });
  assert.throws(
    () => parseCamera(value),
    (err) => {
      assert.ok(err instanceof ResourceError);
      assert.deepEqual(err.fields, ['spec.source', 'spec.record.segmentSeconds', 'status.archives[1].node']);
      assert.match(err.message, /^Camera home\/gate: spec\.source: /);
      assert.doesNotMatch(err.message, /hunter2/);
      return true;
    },
  );
});

test('what is no object at all is refused like any other', () => {
  for (const value of [undefined, null, 5, 'x', [], { metadata: null }]) {
    assert.throws(() => parseCamera(value), ResourceError);
    assert.throws(() => parseRecorderPool(value), ResourceError);
    assert.throws(() => parseRecorderNode(value), ResourceError);
  }
});

test('an older program keeps what a newer one wrote to a status: fields, and words of enumerations', () => {
  const status = {
    assignment: { epoch: 4, node: 'a', reason: 'Rebalanced', time: '2026-01-01T00:00:00Z', weight: 3 },
    conditions: [],
    schedule: { days: 5 },
  };
  assert.deepEqual(parseCamera(camera({ status })).status, status);
});

test('the examples parse', () => {
  const directory = join(import.meta.dirname, 'examples');
  const parsers: Record<string, (value: unknown) => { readonly kind: string }> = {
    Camera: parseCamera,
    RecorderPool: parseRecorderPool,
    RecorderNode: parseRecorderNode,
  };
  const kinds = new Set<string>();
  for (const file of readdirSync(directory)) {
    for (const document of parseAllDocuments(readFileSync(join(directory, file), 'utf8'))) {
      const value = document.toJS() as { kind: string; metadata: object };
      if (!(value.kind in parsers)) continue;
      kinds.add(parsers[value.kind]!({ ...value, metadata: { ...value.metadata, namespace: 'home' } }).kind);
    }
  }
  assert.deepEqual([...kinds].sort(), ['Camera', 'RecorderNode', 'RecorderPool']);
});
