import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CameraConfig } from '../config/schema.ts';
import { mergeCameras } from '../config/camera-list.ts';
import { toCameras, type CameraRow } from './camera-rows.ts';

const DEFAULTS = { segmentDurationMs: 300_000, maxBitrate: 1e8 };
const row = (changes: Partial<CameraRow> = {}): CameraRow => ({
  id: 'gate',
  name: 'Front gate',
  source: 'rtsp://user:hidden@10.0.0.9/stream1',
  snapuri: null,
  ptz: false,
  record: {},
  enabled: true,
  ...changes,
});

const one = (changes: Partial<CameraRow>, before: readonly CameraConfig[] = []) =>
  toCameras([row(changes)], DEFAULTS, before);

test('a row becomes a camera in the words of the configuration', () => {
  const record = { format: 'mp4', segmentDuration: '1m', retention: { maxAge: '7d' } };
  const { cameras, refused } = one({
    group: 'Entrances',
    preview: { source: 'rtsp://10.0.0.9/stream2' },
    snapuri: 'http://10.0.0.9/snap.jpg',
    ptz: true,
    onvif: 'http://10.0.0.9:8000/onvif/device_service',
    edge: { onvif: true, maxBitrate: 20 },
    events: 'always',
    activity: true,
    record,
  });
  assert.deepEqual(refused, []);
  assert.deepEqual(cameras, [
    {
      id: 'gate',
      name: 'Front gate',
      group: 'Entrances',
      source: 'rtsp://user:hidden@10.0.0.9/stream1',
      transport: 'auto',
      maxBitrate: 1e8,
      preview: {
        source: 'rtsp://10.0.0.9/stream2',
        recorded: false,
        retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
      },
      snapshot: 'http://10.0.0.9/snap.jpg',
      tls: { verify: false },
      allowPlaintextLogin: false,
      ptz: true,
      onvif: 'http://10.0.0.9:8000/onvif/device_service',
      events: 'always',
      activity: true,
      edge: { source: { kind: 'onvif', recording: undefined }, maxBitrate: 20_000_000 },
      enabled: true,
      record: {
        format: 'mp4',
        segmentDurationMs: 60_000,
        retention: { maxAgeMs: 7 * 86_400_000, maxSizeBytes: undefined, minFree: undefined },
      },
    },
  ]);
});

test('a row without name, still image and settings has their defaults', () => {
  const [camera] = one({ name: '', snapuri: '' }).cameras;
  assert.equal(camera?.name, 'gate');
  assert.equal(camera?.snapshot, undefined);
  assert.equal(camera?.onvif, undefined);
  assert.equal(one({ onvif: '' }).cameras[0]?.onvif, undefined);
  for (const group of ['', null]) assert.equal(one({ group }).cameras[0]?.group, undefined);
  assert.equal(camera?.record.segmentDurationMs, 300_000);
});

test('a mistake in a setting costs that setting, not the footage', () => {
  for (const [changes, column] of [
    [{ snapuri: 'file:///etc/passwd' }, 'snapuri'],
    [{ onvif: 'rtsp://10.0.0.9/' }, 'onvif'],
    [{ preview: { source: 'http://10.0.0.9/' } }, 'preview.source'],
    [{ edge: { onvif: true, replay: 'rtsp://10.0.0.9/{start}/{end}' } }, 'edge.onvif'],
    [{ record: { segmentDuration: 'soon' } }, 'record.segmentDuration'],
    [{ record: { fromat: 'mp4' } }, 'record.fromat'],
    [{ record: null }, 'record'],
    [{ name: 'x'.repeat(200) }, 'name'],
    [{ group: 'x'.repeat(200) }, 'group'],
  ] as const) {
    const { cameras, refused } = one(changes);
    assert.equal(cameras.length, 1, column);
    assert.match(
      refused[0]?.reason.message ?? '',
      new RegExp(`^cameras\\.${column.replace('.', '\\.')}: .*without this`),
    );
  }
  // The valid parts of the row are used.
  assert.equal(one({ record: 7, snapuri: 'http://10.0.0.9/a' }).cameras[0]?.snapshot, 'http://10.0.0.9/a');
});

test('a row that cannot be recorded is refused without its password, or stays as it was before', () => {
  const before = one({}).cameras;
  for (const changes of [{ source: 'http://user:hidden@10.0.0.9/' }, { source: '' }]) {
    const fresh = one(changes);
    assert.deepEqual(fresh.cameras, []);
    assert.match(fresh.refused[0]?.reason.message ?? '', /it is not recorded$/);
    assert.doesNotMatch(JSON.stringify(fresh), /hidden/);
    const known = one(changes, before);
    assert.deepEqual(known.cameras, before);
    assert.match(known.refused[0]?.reason.message ?? '', /as it was before$/);
    assert.equal(one({ ...changes, enabled: false }, before).cameras[0]?.enabled, false, 'but it can be stopped');
  }
  const odd = one({ id: '../../etc\n' });
  assert.deepEqual(odd.cameras, []);
  assert.equal(odd.refused[0]?.id, '../../etc?');
  const taken = one({ id: 'jobs' });
  assert.deepEqual(taken.cameras, []);
  assert.match(taken.refused[0]?.reason.message ?? '', /^cameras\.id: "jobs" is taken/);
});

test('of two cameras with one id that of the files is recorded, and the other is named', () => {
  const files = one({ name: 'Of the files' }).cameras;
  const database = toCameras([row(), row({ id: 'yard' })], DEFAULTS, []);
  const { cameras, refused } = mergeCameras(files, database);
  assert.deepEqual(
    cameras.map(({ id, name }) => [id, name]),
    [
      ['gate', 'Of the files'],
      ['yard', 'Front gate'],
    ],
  );
  assert.deepEqual(
    refused.map(({ id, reason }) => [id, reason.code]),
    [['gate', 'id-taken']],
  );
});
