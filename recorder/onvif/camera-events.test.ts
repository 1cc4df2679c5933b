// Events of cameras over ONVIF, against devices that are real servers: pull points that end, states that are lost, floods, clocks.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { OnvifDevice, type Behaviour, type DeviceOptions } from '../../test/onvif/device.ts';
import type { EventOptions, EventService } from '../../test/onvif/events.ts';
import { until } from '../../test/support/until.ts';
import { anywhere } from '../reach/reach.ts';
import { CameraEvents, type EventsCamera } from './camera-events.ts';
import type { Occurrence } from '../contract/occurrence.ts';

const CREDENTIALS = { username: 'operator', password: 'secret' };
const NOON_MS = Date.UTC(2026, 10, 21, 12);
const HOUR_MS = 3_600_000;
/** A five-hundredth of the time limit of a question, which the device answers in the same process. */
const STEP_MS = 20;
const MOTION = 'RuleEngine/CellMotionDetector/Motion';

const motion = (isActive: boolean, input = 'vsc') =>
  ({
    topic: MOTION,
    source: { VideoSourceConfigurationToken: input },
    data: { IsMotion: String(isActive) },
    operation: 'Changed',
  }) as const;

interface Stage {
  readonly device: OnvifDevice;
  readonly service: EventService;
  readonly clock: VirtualClock;
  readonly told: Occurrence[];
  readonly cameraEvents: CameraEvents;
  readonly camera: EventsCamera;
  /** Waits for a fact while time goes by. */
  readonly passing: (what: string, ask: () => boolean) => Promise<unknown>;
  /** Waits until the recorder pulls. */
  readonly pulls: () => Promise<unknown>;
  /** Lets time go by while the camera has nothing to tell. */
  readonly quiet: (ms: number) => Promise<void>;
  readonly count: (operation: string) => number;
}

async function stage(
  t: TestContext,
  events: EventOptions = {},
  options: DeviceOptions = {},
  changes: Partial<EventsCamera> = {},
): Promise<Stage> {
  const clock = new VirtualClock(NOON_MS);
  const device = await OnvifDevice.start({ credentials: CREDENTIALS, nowMs: () => clock.wallMs(), events, ...options });
  t.after(() => device.close());
  const service = device.events as EventService;
  const told: Occurrence[] = [];
  const tell = async (_: string, occurrences: readonly Occurrence[]) => void told.push(...occurrences);
  const cameraEvents = new CameraEvents({ clock, log: silentLog, reach: anywhere(), tell });
  t.after(async () => {
    device.release();
    await cameraEvents.close();
  });
  const source = `rtsp://${CREDENTIALS.username}:${CREDENTIALS.password}@127.0.0.1/main`;
  const camera: EventsCamera = {
    id: 'gate',
    source,
    onvif: device.url,
    tls: { verify: false },
    enabled: true,
    events: 'auto',
    ...changes,
  };
  cameraEvents.configure([camera]);
  const passing: Stage['passing'] = (what, ask) => {
    const look = (): boolean => {
      if (ask()) return true;
      clock.advance(STEP_MS);
      return false;
    };
    return until(what, look, undefined, 2);
  };
  const pulls = () => passing('the recorder pulls', () => service.waiting === 1);
  const quiet = async (ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= 20_000) {
      await pulls();
      clock.advance(Math.min(leftMs, 20_000));
      cameraEvents.tick();
      service.release();
    }
    await pulls();
  };
  const count = (operation: string) => device.operations().filter((name) => name === operation).length;
  return { device, service, clock, told, cameraEvents, camera, passing, pulls, quiet, count };
}

/** A state that begins and ends, as told. */
async function oneMotion({ service, clock, told, cameraEvents, pulls }: Stage): Promise<readonly Occurrence[]> {
  const before = told.length;
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === before + 1);
  await pulls();
  service.tell(motion(false));
  await pulls();
  clock.advance(5_000);
  cameraEvents.tick();
  await until('the end is told', () => told.length === before + 2);
  return told.slice(before);
}

for (const [name, events, options] of [
  ['as the standard wants it', {}, {}],
  ['pull points at one address, told apart in the header (Axis)', { byReference: true }, {}],
  ['no time in the creation of a pull point', { refusesTimes: true }, {}],
  ['an answer at once, also without anything to tell', { answersAtOnce: true }, {}],
  ['HTTP Digest', {}, { login: 'digest-md5' }],
  ['GetCapabilities only', {}, { withoutGetServices: true }],
] as [string, EventOptions, DeviceOptions][]) {
  test(`motion is told when it begins and again with its end: ${name}`, async (t) => {
    if (events.answersAtOnce === true) {
      const { service, told, passing } = await stage(t, events, options);
      await until('it has a pull point', () => service.points === 1);
      service.tell(motion(true));
      await passing('the begin is told', () => told.length === 1);
      return;
    }
    const staged = await stage(t, events, options);
    const [begin, end] = await oneMotion(staged);
    assert.equal(begin?.type, 'motion');
    assert.equal(begin.endMs, null);
    assert.deepEqual(begin.data, { topic: MOTION, VideoSourceConfigurationToken: 'vsc', IsMotion: 'true' });
    assert.deepEqual({ ...end, endMs: null }, begin);
    assert.ok((end?.endMs ?? 0) >= begin.startMs);
    assert.equal(staged.device.refusedLogins, 0);
  });
}

test('a camera that switches to and fro while one thing moves tells one event', async (t) => {
  const { service, told, clock, cameraEvents, pulls } = await stage(t);
  for (let i = 0; i < 5; i++) {
    await pulls();
    service.tell(motion(true));
    service.tell(motion(false));
    await pulls();
    clock.advance(1_000);
    cameraEvents.tick();
  }
  clock.advance(5_000);
  cameraEvents.tick();
  assert.equal(told.length, 2);
});

test('a camera that answers at once without anything to tell is asked every two seconds', async (t) => {
  const { clock, count, passing } = await stage(t, { answersAtOnce: true });
  await until('it was pulled from', () => count('PullMessages') === 1);
  const fromMs = clock.monotonicMs();
  await passing('and again', () => count('PullMessages') === 5);
  assert.ok(clock.monotonicMs() - fromMs >= 8_000, `${clock.monotonicMs() - fromMs}`);
});

test('a pull point is renewed before its life ends', async (t) => {
  const { service, count, quiet } = await stage(t);
  await quiet(1_200_000);
  assert.equal(count('CreatePullPointSubscription'), 1);
  assert.ok(count('Renew') >= 4, String(count('Renew')));
  assert.equal(service.points, 1);
});

test('a pull point whose life each pull extends is never renewed', async (t) => {
  const { count, quiet } = await stage(t, { pullExtends: true });
  await quiet(1_200_000);
  assert.deepEqual([count('CreatePullPointSubscription'), count('Renew')], [1, 0]);
});

test('a camera that answers 400 to Renew gets other pull points, one at a time, and nothing that goes on is told twice', async (t) => {
  const staged = await stage(t);
  const { device, service, told, count, quiet, pulls } = staged;
  device.behave('Renew', [{ kind: 'raw', status: 400, body: 'Bad Request' }]);
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === 1);
  await quiet(1_200_000);
  assert.equal(count('Renew'), 1, 'it is not asked again');
  assert.ok(count('CreatePullPointSubscription') >= 4);
  assert.equal(count('Unsubscribe'), count('CreatePullPointSubscription') - 1);
  assert.deepEqual([service.points, told.length], [1, 1]);
});

test('a camera that was started again has forgotten the pull point: another is made, and the state is taken from it', async (t) => {
  const { device, service, told, cameraEvents, passing, pulls } = await stage(t);
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === 1);
  await pulls();
  const { port } = device;
  await device.close();
  service.lose(motion(false));
  await device.listen(port);
  await pulls();
  await passing('it ends', () => {
    cameraEvents.tick();
    return told.length === 2;
  });
  assert.equal(told[1]?.data['end'], undefined);
});

test('a clear that the camera loses is asked for after a minute', async (t) => {
  const { service, told, quiet, pulls, count } = await stage(t);
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === 1);
  service.lose(motion(false));
  await quiet(100_000);
  assert.ok(count('SetSynchronizationPoint') >= 1);
  assert.equal(told.length, 2);
  assert.equal(told[1]?.data['end'], undefined);
});

test('what goes on for hours stays one event as long as the camera says so', async (t) => {
  const { service, told, quiet, pulls } = await stage(t, { pullExtends: true });
  await pulls();
  service.tell(motion(true));
  await quiet(1_200_000);
  assert.equal(told.length, 1);
});

test('a camera that cannot tell its states again ends what it did not speak of for three minutes', async (t) => {
  const { service, told, clock, quiet, pulls } = await stage(t, { withoutSynchronization: true });
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === 1);
  const heardMs = clock.wallMs();
  await quiet(220_000);
  assert.equal(told.length, 2);
  assert.equal(told[1]?.data['end'], 'not told');
  assert.ok(Math.abs((told[1]?.endMs ?? 0) - heardMs) < 1_000);
});

test('a camera that tells a thousand events at once gets its answers taken slowly, and sixty of them kept', async (t) => {
  const { service, told, clock, count, pulls } = await stage(t);
  await pulls();
  const fromMs = clock.monotonicMs();
  for (let i = 0; i < 1_000; i++)
    service.tell({ topic: 'RuleEngine/LineDetector/Crossed', data: { ObjectId: String(i) } });
  for (let i = 0; i < 1_000; i++) {
    service.tell({
      topic: 'Device/Trigger/DigitalInput',
      source: { InputToken: String(i) },
      data: { LogicalState: 'true' },
    });
  }
  const before = count('PullMessages');
  await pulls();
  const asked = count('PullMessages') - before;
  assert.ok(clock.monotonicMs() - fromMs >= (asked - 2) * 1_000, 'a hundred a second');
  const mostTold = 60 + Math.ceil((clock.monotonicMs() - fromMs) / 20_000);
  assert.ok(told.length >= 60 && told.length <= mostTold, `${told.length}, at most ${mostTold}`);
});

for (const [name, clockOffsetMs, messageOffsetMs] of [
  ['five hours ahead', 5 * HOUR_MS, 0],
  ['in another century', -40 * 365 * 24 * HOUR_MS, 0],
  ['of another zone in its messages', 0, -2 * HOUR_MS],
] as const) {
  test(`a camera whose clock is wrong, ${name}: the event has our time`, async (t) => {
    const { service, told, clock, pulls } = await stage(t, { messageOffsetMs }, { clockOffsetMs });
    await pulls();
    service.tell({ ...motion(true), agoMs: 3_000 });
    await until('it is told', () => told.length === 1);
    const expected = messageOffsetMs === 0 ? clock.wallMs() - 3_000 : clock.wallMs();
    assert.ok(Math.abs((told[0]?.startMs ?? 0) - expected) < 500, new Date(told[0]?.startMs ?? 0).toISOString());
  });
}

test('of a device with two inputs only the events of the recorded one are taken', async (t) => {
  const profiles = [
    { token: 'a', source: 'in-1', sourceConfiguration: 'vsc-1' },
    { token: 'b', source: 'in-2', sourceConfiguration: 'vsc-2' },
  ];
  const streamUri = (token: string): string => `rtsp://127.0.0.1/${token === 'b' ? 'main' : 'other'}`;
  const { service, told, pulls } = await stage(t, {}, { profiles, streamUri });
  await pulls();
  service.tell(motion(true, 'vsc-1'));
  service.tell({ topic: 'VideoSource/MotionAlarm', source: { Source: 'in-1' }, data: { State: 'true' } });
  service.tell(motion(true, 'vsc-2'));
  await until('it is told', () => told.length > 0);
  await pulls();
  assert.deepEqual(
    told.map(({ data }) => data['VideoSourceConfigurationToken']),
    ['vsc-2'],
  );
});

test('a wrong password is tried once, and not again for ten minutes', async (t) => {
  const { device, clock } = await stage(t, {}, {}, { source: `rtsp://${CREDENTIALS.username}:wrong@127.0.0.1/main` });
  await until('it was refused', () => device.refusedLogins === 1);
  for (let i = 0; i < 20; i++) {
    clock.advance(25_000);
    await new Promise((resolve) => void setImmediate(resolve));
  }
  assert.equal(device.refusedLogins, 1);
});

test('a camera without events is seldom asked, and one that may not be asked never', async (t) => {
  const { device, clock, count, cameraEvents, camera } = await stage(t, undefined, { events: undefined as never });
  await until('it was asked', () => count('GetProfiles') >= 1);
  // Of the first question.
  await until('it was answered', () => device.calls.length >= 3);
  const before = device.calls.length;
  for (let i = 0; i < 200; i++) {
    clock.advance(2_500);
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => void setImmediate(resolve));
  }
  assert.equal(device.calls.length, before);
  cameraEvents.configure([{ ...camera, events: 'never' }]);
  await cameraEvents.close();
  const after = device.calls.length;
  for (const changes of [{ events: 'never' }, { enabled: false }, { onvif: undefined }] as const) {
    cameraEvents.configure([{ ...camera, ...changes }]);
  }
  clock.advance(HOUR_MS);
  assert.equal(device.calls.length, after);
});

test('a camera that is no longer wanted is left: its pull point goes, and what went on has ended', async (t) => {
  const { service, told, cameraEvents, camera, pulls } = await stage(t);
  await pulls();
  service.tell(motion(true));
  await until('the begin is told', () => told.length === 1);
  cameraEvents.configure([{ ...camera, events: 'never' }]);
  await until('it ends', () => told.length === 2);
  assert.equal(service.points, 0);
  assert.equal(told[1]?.data['end'], 'not told');
});

const raw = (body: string, status = 200): Behaviour => ({ kind: 'raw', body, status });
for (const [name, behaviour] of [
  ['an HTML page', raw('<!DOCTYPE html><html></html>')],
  ['a pull point nowhere', raw('<s:Envelope xmlns:s="x"><s:Body><a/></s:Body></s:Envelope>')],
  ['a fault', { kind: 'fault', reason: 'no more subscriptions' }],
  ['HTTP 500', raw('', 500)],
  ['two megabytes', raw(' '.repeat(2_000_000))],
  ['bytes', { kind: 'bytes', bytes: 'x' }],
  ['the end of the connection', { kind: 'close', after: 'half-an-answer' }],
] as [string, Behaviour][]) {
  test(`instead of an answer: ${name}. The camera is asked again, and its events come`, async (t) => {
    const staged = await stage(t);
    for (const operation of ['CreatePullPointSubscription', 'PullMessages', 'GetServices', 'GetProfiles']) {
      staged.device.behave(operation, [behaviour]);
    }
    const [begin] = await oneMotion(staged);
    assert.equal(begin?.type, 'motion');
  });
}
