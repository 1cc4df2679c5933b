import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { startCamera } from '../test/camera/camera.ts';
import { Footage } from '../test/support/footage.ts';
import { until } from '../test/support/until.ts';
import { CameraSet, type WantedCamera } from './camera-set.ts';
import { GapLedger } from './archive/gaps/ledger.ts';
import { ReadPacer } from './camera/read-pacer.ts';
import { SlabPool } from './codec/slab.ts';
import { LiveLimits } from './live/limits.ts';
import { Registry } from 'prom-client';

async function open(t: TestContext): Promise<CameraSet> {
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
    clock: systemClock,
    log: silentLog,
    archive,
    gaps,
    pool: new SlabPool(),
    pacer: new ReadPacer(),
    receiveBuffer: Buffer.alloc(65_536),
    liveLimits: new LiveLimits(),
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
  tls: { verify: false },
  snapshot: undefined,
  onvif: undefined,
  ptz: false,
  enabled: true,
  record: {
    format: 'fmp4',
    segmentDurationMs: 60_000,
    retention: { maxAgeMs: undefined, maxSizeBytes: undefined, minFree: undefined },
  },
});

test('a camera that goes and comes back while another change is carried out is never stopped', async (t) => {
  await using camera = await startCamera({ pace: 'realtime' });
  const cameras = await open(t);
  await cameras.apply([wanted(camera.url)]);
  const live = cameras.get('gate')?.live;
  await Promise.all([cameras.apply([]), cameras.apply([wanted(camera.url)])]);
  assert.ok(live);
  assert.equal(cameras.get('gate')?.live, live);
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
