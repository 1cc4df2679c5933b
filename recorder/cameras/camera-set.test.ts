import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import { startCamera } from '../../test/camera/camera.ts';
import { Footage } from '../../test/support/footage.ts';
import { until } from '../../test/support/until.ts';
import { CameraSet, type CameraSetDeps, type WantedCamera } from './camera-set.ts';
import { GapLedger } from '../archive/gaps/ledger.ts';
import { previewSource } from '../camera/preview-source.ts';
import { ReadPacer } from '../camera/read-pacer.ts';
import { SlabPool } from '../codec/slab.ts';
import { LiveLimits } from '../live/limits.ts';
import { SourceLimits } from '../live/source-limits.ts';
import type { LiveHub } from '../live/hub.ts';
import { FakeSocket, hubOf } from '../live/test-support.ts';
import { CLOSE } from '../live/close.ts';
import { Registry } from 'prom-client';
import { anywhere } from '../reach/reach.ts';

async function open(t: TestContext, changes: Partial<CameraSetDeps> = {}): Promise<CameraSet> {
  const { archive, root } = await Footage.open(t);
  const gaps = new GapLedger({
    root,
    clock: systemClock,
    log: silentLog,
    bootId: 'boot',
    registry: new Registry(),
    checkDisk: () => archive.checkDisk(),
  });
  await gaps.load();
  const cameras = new CameraSet({
    reach: anywhere(),
    clock: systemClock,
    log: silentLog,
    archive,
    gaps,
    pool: new SlabPool(),
    pacer: new ReadPacer(),
    receiveBuffer: Buffer.alloc(65_536),
    liveLimits: new SourceLimits(),
    ...changes,
  });
  t.after(async () => {
    await cameras.close();
    await gaps.close();
  });
  return cameras;
}

const wanted = (source: string): WantedCamera => ({
  id: 'gate',
  name: 'Gate',
  source,
  transport: 'tcp',
  maxBitrate: 1e8,
  tls: { verify: false },
  allowPlaintextLogin: false,
  preview: undefined,
  edge: undefined,
  snapshot: undefined,
  onvif: undefined,
  events: 'auto',
  activity: false,
  ptz: false,
  enabled: true,
  record: {
    format: 'fmp4',
    segmentDurationMs: 60_000,
    retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
  },
});

const UNLIMITED = { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined };
const previewAt = (source: string, recorded = false): WantedCamera['preview'] => ({
  source,
  recorded,
  retention: UNLIMITED,
});

function previewOf(cameras: CameraSet): LiveHub {
  const feed = cameras.feed('gate', 'preview');
  assert.ok(feed);
  return hubOf(feed, new LiveLimits(), systemClock);
}

test('a camera that goes and comes back while another change is carried out is never stopped', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const cameras = await open(t);
  await cameras.apply([wanted(camera.url)]);
  const live = cameras.feed('gate', 'main');
  await Promise.all([cameras.apply([]), cameras.apply([wanted(camera.url)])]);
  assert.ok(live);
  assert.equal(cameras.feed('gate', 'main'), live);
  await cameras.apply([]);
  assert.equal(cameras.get('gate'), undefined);
});

test('a camera that is being stopped is not said to record', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const cameras = await open(t);
  await cameras.apply([wanted(camera.url)]);
  await until('it records', () => cameras.get('gate')?.status.state === 'recording');
  const stopped = cameras.apply([]);
  const states: (string | undefined)[] = [];
  const over = new AbortController();
  void stopped.then(() => over.abort());
  while (!over.signal.aborted) {
    await new Promise((resolve) => setImmediate(resolve));
    states.push(cameras.get('gate')?.status.state);
  }
  assert.ok(states.includes('stopped'), 'it could be asked for while it was stopped');
  assert.ok(!states.includes('recording'), states.join(' '));
});

test('another way of recording, of its own or inherited, cuts no connection and no live stream', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const cameras = await open(t);
  await cameras.apply([wanted(camera.url)]);
  await until('it records', () => cameras.get('gate')?.archive?.currentFile !== undefined);
  const live = cameras.feed('gate', 'main');
  const { record, ...rest } = wanted(camera.url);
  await cameras.apply([{ ...rest, record: { ...record, segmentDurationMs: 1_000 } }]);
  await until('files are of a second now', () => (cameras.get('gate')?.archive?.segmentsClosed ?? 0) >= 2);
  assert.equal(cameras.feed('gate', 'main'), live);
  assert.equal(camera.connections.length, 1);
  assert.equal(cameras.config('gate')?.record.segmentDurationMs, 1_000);
});

test('the preview is connected while somebody watches it, once for all, and its settings cut no recording', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const credentials = { username: 'viewer', password: 'p@ss word' };
  await using small = await startCamera({ pace: 'realtime', credentials });
  const [cameras, other] = [await open(t), { ...wanted(camera.url) }];
  await cameras.apply([{ ...other, preview: previewAt(small.urlWithLogin) }]);
  await until('it records', () => cameras.get('gate')?.archive?.currentFile !== undefined);
  assert.equal(small.connections.length, 0, 'nobody watches');
  const hub = previewOf(cameras);
  const watch = () => {
    const socket = new FakeSocket();
    hub.add(socket);
    return socket;
  };
  const sockets = [watch(), watch()];
  await until('both see it', () => sockets.every(({ messages }) => messages.length > 3));
  assert.equal(small.connections.length, 1);
  assert.equal(small.playing.length, 1);

  await cameras.apply([{ ...other, preview: previewAt(`${small.urlWithLogin}?2`) }]);
  assert.ok(sockets.every((socket) => socket.closeCode() === CLOSE.goingAway));
  await until('it left', () => small.playing.length === 0);
  await cameras.apply([other]);
  assert.equal(cameras.get('gate')?.preview, undefined);
  assert.equal(camera.connections.length, 1);
  assert.equal(cameras.get('gate')?.status.state, 'recording');
});

test('a preview that is recorded has files of its own, and its settings change neither those of the camera nor its connection', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  await using small = await startCamera({ pace: 'realtime' });
  const cameras = await open(t);
  await cameras.apply([{ ...wanted(camera.url), preview: previewAt(small.url, true) }]);
  const files = () => [cameras.get('gate')?.archive?.currentFile, cameras.get('gate')?.previewArchive?.currentFile];
  await until('both are recorded', () => files().every((file) => file !== undefined));
  const [main, preview] = files();
  assert.match(main ?? '', /\/Gate_gate_\d{8}_\d{9}\.mp4$/);
  assert.match(preview ?? '', /\/Gate_gate~preview_\d{8}_\d{9}\.mp4$/);
  assert.equal(small.playing.length, 1);

  const limits = { ...UNLIMITED, maxAgeMs: 60_000 };
  await cameras.apply([{ ...wanted(camera.url), preview: { source: small.url, recorded: true, retention: limits } }]);
  assert.deepEqual([small.connections.length, files()], [1, [main, preview]], 'limits cut no file');
  await cameras.apply([{ ...wanted(camera.url), preview: previewAt(small.url) }]);
  assert.equal(cameras.get('gate')?.previewArchive, undefined);
  await until('nobody watches', () => small.playing.length === 0);
  assert.deepEqual([camera.connections.length, files()[0]], [1, main]);
  await cameras.apply([{ ...wanted(camera.url), preview: previewAt(small.url, true) }]);
  await until('it is recorded again', () => files()[1] !== undefined && files()[1] !== preview);
});

test('a camera that has no second connection goes on recording, and says why there is no preview', async (t) => {
  await using camera = await startCamera({ pace: 'realtime', maxSessions: 1 });
  const cameras = await open(t);
  await cameras.apply([{ ...wanted(camera.url), preview: previewAt(camera.url) }]);
  await until('it records', () => cameras.get('gate')?.archive?.currentFile !== undefined);
  const socket = new FakeSocket();
  previewOf(cameras).add(socket);
  await until('the viewer is let go', () => socket.closed);
  assert.deepEqual(socket.closed, {
    code: CLOSE.offline,
    reason: 'the camera does not deliver its preview (too-many-streams)',
  });
  assert.equal(cameras.get('gate')?.preview?.state, 'failed');
  assert.equal(camera.playing.length, 1);
  const written = cameras.get('gate')?.archive?.framesWritten ?? 0;
  await until('it writes on', () => (cameras.get('gate')?.archive?.framesWritten ?? 0) > written + 10);
  assert.equal(cameras.get('gate')?.status.counters.reconnects.size, 0);
});

test('a preview on the same host has the login of the main stream, and none on another host', () => {
  const of = (preview: string, source = 'rtsp://admin:p%40ss@10.0.0.9/main'): string =>
    previewSource({ ...wanted(source) }, preview).source;
  assert.equal(of('rtsp://10.0.0.9/small'), 'rtsp://admin:p%40ss@10.0.0.9/small');
  assert.equal(of('rtsp+http://10.0.0.9:8080/small'), 'rtsp+http://admin:p%40ss@10.0.0.9:8080/small');
  assert.equal(of('rtsp://guest@10.0.0.9/small'), 'rtsp://guest@10.0.0.9/small');
  assert.equal(of('rtsp://10.0.0.10/small'), 'rtsp://10.0.0.10/small');
  assert.equal(of('rtsp://10.0.0.9/small', 'rtsp://10.0.0.9/main'), 'rtsp://10.0.0.9/small');
  assert.equal(of('rtsp://[fe80::1%eth0]/small', 'rtsp://a:b@[fe80::1%eth0]/'), 'rtsp://a:b@[fe80::1%eth0]/small');
});

test('a set whose change failed can be changed and closed', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  let fault: Error | undefined;
  const refusals = (): ReadonlyMap<string, Reason> => {
    if (fault) throw fault;
    return new Map();
  };
  const cameras = await open(t, { refusals });
  await cameras.apply([wanted(camera.url)]);
  await until('it records', () => cameras.get('gate')?.status.state === 'recording');
  fault = new Error('no answer');
  await assert.rejects(cameras.apply([]), fault);
  assert.equal(cameras.get('gate')?.status.state, 'recording');
  fault = undefined;
  await cameras.apply([]);
  assert.equal(cameras.get('gate'), undefined);
  await cameras.apply([wanted(camera.url)]);
  await until('it records again', () => cameras.get('gate')?.archive?.currentFile !== undefined);
  fault = new Error('no answer');
  await assert.rejects(cameras.apply([]), fault);
  await cameras.close();
  assert.equal(cameras.get('gate')?.status.state, 'stopped');
  assert.equal(cameras.get('gate')?.archive?.segmentsClosed, 1);
});

test('a camera that cannot be started or stopped holds up no other, and is tried again', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const { archive } = await Footage.open(t);
  let broken = true;
  const sinkFor: typeof archive.sinkFor = (options, callbacks) => {
    if (options.cameraId !== 'gate') return archive.sinkFor(options, callbacks);
    if (broken) throw new Error('no place for it');
    const recording = archive.sinkFor(options, callbacks);
    const close = recording.close.bind(recording);
    recording.close = async () => {
      await close();
      throw new Error('it closes badly');
    };
    return recording;
  };
  const cameras = await open(t, {
    archive: new Proxy(archive, { get: (of, key) => (key === 'sinkFor' ? sinkFor : Reflect.get(of, key)) }),
  });
  const both = [wanted(camera.url), { ...wanted(camera.url), id: 'yard', name: 'Yard' }];
  await cameras.apply(both);
  assert.equal(cameras.get('gate')?.status.reason?.code, 'start-failed');
  await until('the other records', () => cameras.get('yard')?.archive?.currentFile !== undefined);
  broken = false;
  await cameras.apply(both);
  await until('it records, too', () => cameras.get('gate')?.archive?.currentFile !== undefined);
  await cameras.close();
  for (const id of ['gate', 'yard']) assert.equal(cameras.get(id)?.archive?.segmentsClosed, 1, id);
});
