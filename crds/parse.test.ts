import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import fc from '../test/support/fast-check.ts';
import { lacksSource, parseCamera } from './camera.ts';
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
    activity: false,
    suspend: false,
    record: { format: 'fmp4', segmentSeconds: 300 },
    poolRef: { name: 'default' },
    placement: { failover: 'Automatic', priority: 0 },
  });
});

test('an error names every wrong field, and repeats no value: an address could hold a password', () => {
  const value = camera({
    spec: { source: 'http://user:hunter2@10.0.0.9/', record: { segmentSeconds: 0 } },
    status: { archives: [{ node: 'a' }, { node: 5 }], assignment: { epoch: 'hunter2', reason: 'Scheduled' } },
  });
  assert.throws(
    () => parseCamera(value),
    (err) => {
      assert.ok(err instanceof ResourceError);
      for (const field of ['spec.source', 'spec.record.segmentSeconds', 'status.archives[1].node'])
        assert.ok(err.fields.includes(field), field);
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

const WHOLE_CAMERA = camera({
  spec: {
    displayName: 'Gate',
    credentialsSecretRef: { name: 'gate-login' },
    tls: { fingerprint: 'ab'.repeat(32) },
    transport: 'Tcp',
    preview: { source: 'rtsp://10.0.0.9/small', recorded: true, retention: { maxAgeSeconds: 3_600 } },
    snapshot: 'http://10.0.0.9/still.jpg',
    maxBitrate: 20,
    suspend: false,
    record: { format: 'fmp4', segmentSeconds: 60, retention: { maxSize: '10Gi' } },
    poolRef: { name: 'north' },
    placement: { failover: 'Automatic', priority: 3, nodeSelector: { disk: 'ssd' }, preferredNode: 'a', standby: true },
  },
  status: {
    assignment: {
      epoch: 4,
      node: 'a',
      previousNode: 'b',
      handover: 'Pending',
      reason: 'Drain',
      time: '2026-01-01T00:00:00Z',
      home: 'b',
    },
    standby: { node: 'b', epoch: 2 },
    archives: [{ node: 'a' }, { node: 'b', newestTime: '2026-01-01T00:00:00Z' }],
    conditions: [
      { type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
});
const WHOLE_POOL = {
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { name: 'north', namespace: 'home' },
  spec: {
    archive: { hostPath: '/mnt/archive', retention: { maxAgeSeconds: 86_400 } },
    nodeSelector: { recorder: 'true' },
    tolerations: [{ key: 'use', operator: 'Exists' }],
    auth: { mode: 'Kubernetes', audiences: ['here'] },
    failover: { unavailableAfterSeconds: 15, renewSeconds: 2, maxConcurrentMoves: 4, standby: true },
    limits: { maxCamerasPerNode: 50 },
    update: { type: 'Rolling', maxUnavailable: 1 },
    cordon: { mode: 'Drain' },
  },
  status: { nodes: 3, voters: ['a', 'b', 'c'], quorum: { needed: 2, live: 3 } },
};

const WHOLE_NODE = {
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { name: 'a', namespace: 'home' },
  spec: {
    nodeName: 'a',
    poolRef: { name: 'north' },
    role: 'Voter',
    drain: false,
    address: 'https://10.0.0.7:9997',
    refusedReports: ['yard'],
    responses: [{ id: '1', code: 200 }],
  },
  status: {
    drain: true,
    version: '1.2.3',
    freeBytes: 5,
    cameras: [
      { name: 'gate', epoch: 4, state: 'Recording' },
      { name: 'yard', epoch: 2, state: 'Failed', reason: 'DiskFull' },
    ],
    standbys: [{ name: 'hall', epoch: 1, state: 'Holding' }],
    peers: [{ node: 'b', reachable: true }],
    requests: [{ id: '2', kind: 'Leave', time: '2026-01-01T00:00:00Z' }],
  },
};

type Path = readonly (string | number)[];

/** The paths below spec and status. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  const own = path.length > 1 ? [path] : [];
  if (typeof value !== 'object' || value === null) return own;
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  const below = [...keys].flatMap((key) => pathsOf((value as Record<string | number, unknown>)[key], [...path, key]));
  return [...own, ...below].filter(([first]) => first === 'spec' || first === 'status');
}

function withValue<T extends object>(whole: T, path: Path, value: unknown): T {
  const changed = structuredClone(whole);
  const parent = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], changed);
  (parent as Record<string | number, unknown>)[path.at(-1) ?? ''] = value;
  return changed;
}

/** Fields without which nobody may decide about the camera, or about the node. */
const ESSENTIAL = /^(status\.assignment(\.node|\.epoch)?|spec\.(nodeName|poolRef(\.name)?|role|refusedReports))$/;

test('a value that is not understood, at any path, costs an object no more than what contains it', () => {
  for (const [whole, parse] of [
    [WHOLE_CAMERA, parseCamera],
    [WHOLE_POOL, parseRecorderPool],
    [WHOLE_NODE, parseRecorderNode],
  ] as const) {
    const expected = parse(whole);
    assert.equal(expected.unread, undefined);
    fc.assert(
      fc.property(fc.constantFrom(...pathsOf(whole)), fc.jsonValue(), (path, value) => {
        let read: ReturnType<typeof parse>;
        try {
          read = parse(withValue(whole, path, value));
        } catch (err) {
          assert.ok(err instanceof ResourceError);
          assert.match(path.slice(0, 3).join('.'), ESSENTIAL, path.join('.'));
          return;
        }
        if (read.unread)
          assert.ok(
            read.unread.every((field) => field.startsWith(`${path[0]}.${path[1]}`)),
            String(read.unread),
          );
        const others = ({ spec, status }: typeof read): unknown => {
          const parts = { spec: { ...spec }, status: { ...status } } as Record<string, Record<string, unknown>>;
          delete parts[String(path[0])]?.[String(path[1])];
          return parts;
        };
        assert.deepEqual(others(read), others(expected), 'everything else is as it was');
      }),
    );
  }
});

test('a check of identity that is not understood is one that the camera fails, and not none', () => {
  const { spec, unread } = parseCamera(withValue(WHOLE_CAMERA, ['spec', 'tls', 'fingerprint'], 'sha512:ab'));
  assert.deepEqual([spec.tls, unread], [{ verify: true }, ['spec.tls']]);
});

test('a node whose vote, pool or refused reports are not understood is not read, one with a report of another kind is', () => {
  for (const path of [
    ['spec', 'role'],
    ['spec', 'poolRef', 'name'],
    ['spec', 'nodeName'],
    ['spec', 'refusedReports'],
  ]) {
    assert.throws(() => parseRecorderNode(withValue(WHOLE_NODE, path, 5)), ResourceError, path.join('.'));
  }
  const { status, unread } = parseRecorderNode(withValue(WHOLE_NODE, ['status', 'cameras', 0, 'epoch'], 'four'));
  assert.deepEqual(
    [status?.cameras?.map(({ name }) => name), unread?.[0]?.startsWith('status.cameras[0]')],
    [['yard'], true],
  );
});

test('a camera with an address of an unknown kind is read, and has no address', () => {
  const read = parseCamera(camera({ spec: { source: 'srt://10.0.0.9/' } }));
  assert.deepEqual([lacksSource(read), read.unread], [true, ['spec.source']]);
  assert.equal(lacksSource(parseCamera(camera({}))), false);
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
