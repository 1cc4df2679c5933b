// PTZ control against ONVIF devices that are real servers: logins, clocks, profiles, order of commands, silence, invalid
// responses.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { OnvifDevice, type Behaviour, type DeviceOptions } from '../../test/onvif/device.ts';
import { selfSignedCertificate } from '../../test/camera/certificate.ts';
import { until } from '../../test/support/until.ts';
import type { PtzCommand } from './camera-ptz.ts';
import { OnvifError } from './error.ts';
import { Ptz, type MovableCamera } from './ptz.ts';
import { textAt } from '../../base/xml.ts';
import { anywhere, type Reach } from '../reach/reach.ts';

const CREDENTIALS = { username: 'operator', password: 'pässwörd & <1>' };
const HOUR_MS = 3_600_000;
const LEFT: PtzCommand = { kind: 'move', movement: { pan: -0.5, tilt: 0, zoom: 0 } };
const RIGHT: PtzCommand = { kind: 'move', movement: { pan: 0.5, tilt: 0, zoom: 0 } };
const IN: PtzCommand = { kind: 'move', movement: { pan: 0, tilt: 0, zoom: 1 } };
const STOP: PtzCommand = { kind: 'stop' };

const source = ({ username, password } = CREDENTIALS): string =>
  `rtsp://${encodeURIComponent(username)}:${encodeURIComponent(password)}@127.0.0.1/main`;

interface Stage {
  readonly device: OnvifDevice;
  readonly clock: VirtualClock;
  readonly ptz: Ptz;
  readonly reach: Reach;
  readonly camera: MovableCamera;
}

const hasIpv6 = (): boolean =>
  Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));

function movable(ptz: Ptz, id: string): MovableCamera {
  const camera = ptz.get(id);
  if (typeof camera === 'string') throw new Error(`${id} is ${camera}`);
  return camera;
}

async function stage(t: TestContext, options: DeviceOptions = {}, login = CREDENTIALS): Promise<Stage> {
  const device = await OnvifDevice.start({ credentials: CREDENTIALS, ...options });
  t.after(() => device.close());
  const clock = new VirtualClock();
  const reach = anywhere();
  const ptz = new Ptz({
    reach,
    clock,
    log: silentLog,
    limits: { moveTimeoutMs: 10_000, answerTimeoutMs: 10_000 },
  });
  t.after(async () => {
    device.release();
    await ptz.close();
  });
  const from = source(login).replace('127.0.0.1', options.host === '::1' ? '[0::1]' : '127.0.0.1');
  ptz.configure([{ id: 'gate', ptz: true, source: from, onvif: device.url, tls: { verify: false } }]);
  return { device, clock, ptz, reach, camera: movable(ptz, 'gate') };
}

const fails = (promise: Promise<unknown>, code: string, words: RegExp): Promise<void> =>
  assert.rejects(promise, (err: unknown) => {
    assert.ok(err instanceof OnvifError, String(err));
    assert.equal(err.code, code, err.message);
    assert.match(err.message, words);
    return true;
  });

const commands = (device: OnvifDevice): string[] =>
  device.operations().filter((name) => ['ContinuousMove', 'Stop', 'GotoPreset'].includes(name));

for (const [name, options] of [
  ['WS-Security', {}],
  ['WS-Security, and a clock that is five hours behind', { clockOffsetMs: -5 * HOUR_MS }],
  ['WS-Security, and a clock in another century', { clockOffsetMs: -40 * 365 * 24 * HOUR_MS }],
  ['HTTP Digest (MD5)', { login: 'digest-md5' }],
  ['HTTP Digest (SHA-256)', { login: 'digest-sha256' }],
  ['HTTP Digest, also for the time', { login: 'digest-md5', timeNeedsLogin: true }],
  ['GetCapabilities only', { withoutGetServices: true }],
  ['the newer media service only', { media: 'media2' }],
  ['both media services', { media: 'both' }],
  ['tokens that look like numbers', { profiles: [{ token: '1.50', ptz: true }] }],
  ['tokens with characters of XML', { profiles: [{ token: `a<b>&"'`, ptz: true }] }],
] as [string, DeviceOptions][]) {
  test(`a camera moves and stops: ${name}`, async (t) => {
    const { device, camera } = await stage(t, options);
    assert.equal(await camera.run(LEFT), 'done');
    assert.deepEqual(device.motion, { pan: -0.5, tilt: 0, zoom: 0 });
    assert.equal(await camera.run(STOP), 'done');
    assert.equal(device.motion, undefined);
    assert.equal(device.refusedLogins, 0);
  });
}

test('a camera over HTTPS with a certificate of its own, and one that must have another', async (t) => {
  const tls = selfSignedCertificate('camera');
  const { device, camera, ptz } = await stage(t, { tls });
  assert.match(device.url, /^https:/);
  assert.equal(await camera.run(LEFT), 'done');
  ptz.configure([{ id: 'gate', ptz: true, source: source(), onvif: device.url, tls: { verify: true } }]);
  await fails(movable(ptz, 'gate').run(LEFT), 'unreachable', /self-signed certificate/);
});

test('a camera at an IPv6 address', { skip: !hasIpv6() && 'this machine has no IPv6' }, async (t) => {
  const { device, camera } = await stage(t, { host: '::1' });
  assert.equal(await camera.run(LEFT), 'done');
  assert.deepEqual([...device.hosts], [`[::1]:${device.port}`]);
});

test('a camera that was never reached is not told to stop', async (t) => {
  const { device, camera, clock, ptz } = await stage(t);
  const { port } = device;
  await device.close();
  await fails(camera.run(LEFT), 'unreachable', /refuses the connection/);
  await device.listen(port);
  clock.advance(60_000);
  await camera.presets();
  await ptz.close();
  assert.deepEqual(commands(device), []);
});

test('a camera that tells its time only to those who log in, with a clock that is right', async (t) => {
  const { device, camera, clock } = await stage(t, { timeNeedsLogin: true });
  clock.stepWall(Date.now() - clock.wallMs());
  await camera.run(LEFT);
  assert.ok(device.motion);
});

test('connecting is done once', async (t) => {
  const { device, camera } = await stage(t);
  for (const command of [LEFT, RIGHT, STOP]) await camera.run(command);
  assert.deepEqual(device.operations(), [
    'GetSystemDateAndTime',
    'GetServices',
    'GetProfiles',
    'ContinuousMove',
    'ContinuousMove',
    'Stop',
  ]);
});

test('the profile that can be moved is moved, not the first', async (t) => {
  const profiles = [{ token: 'still' }, { token: 'second', ptz: true }, { token: 'third', ptz: true }];
  const { device, camera } = await stage(t, { profiles });
  await camera.run(LEFT);
  assert.equal(textAt(device.calls.at(-1)!.content, 'ProfileToken'), 'second');
});

test('a newer media service that fails is left for the older one', async (t) => {
  const { device, camera } = await stage(t, { media: 'both' });
  device.behave('GetProfiles', [{ kind: 'fault', reason: 'Internal error', status: 500 }]);
  await camera.run(LEFT);
  assert.ok(device.motion);
  const paths = device.calls.filter(({ operation }) => operation === 'GetProfiles').map(({ path }) => path);
  assert.deepEqual(paths, ['/onvif/media2_service', '/onvif/Media']);
});

for (const [name, options, words] of [
  ['no profile with PTZ', { profiles: [{ token: 'still' }] }, /none of its profiles has PTZ/],
  ['no profile at all', { profiles: [] }, /none of its profiles has PTZ/],
  ['no PTZ service', { withoutPtzService: true }, /no PTZ service/],
] as [string, DeviceOptions, RegExp][]) {
  test(`a camera that cannot be moved says so: ${name}`, async (t) => {
    const { camera } = await stage(t, options);
    await fails(camera.run(LEFT), 'no-ptz', words);
  });
}

test('axes that stand still are left out, unless they moved before', async (t) => {
  const { device, camera } = await stage(t);
  await camera.run(LEFT);
  await camera.run(IN);
  await camera.run(STOP);
  await camera.run(IN);
  const sent = device.calls
    .filter(({ operation }) => operation === 'ContinuousMove')
    .map(({ content }) => content.children.find(({ name }) => name === 'Velocity')!.children)
    .map((axes) => axes.map(({ name, attributes }) => `${name} ${[...attributes].map(([k, v]) => k + v).join(' ')}`));
  assert.deepEqual(sent, [['PanTilt x-0.5 y0'], ['PanTilt x0 y0', 'Zoom x1'], ['Zoom x1']]);
});

test('a move of nothing is a stop', async (t) => {
  const { device, camera } = await stage(t);
  await camera.run(LEFT);
  await camera.run({ kind: 'move', movement: { pan: 0, tilt: 0, zoom: 0 } });
  assert.deepEqual(commands(device), ['ContinuousMove', 'Stop']);
});

test('presets are listed and gone to', async (t) => {
  const presets = [
    { token: '1', name: 'Gate\u0007\u202e' },
    { token: 'a & b', name: '' },
  ];
  const { device, camera } = await stage(t, { presets });
  assert.deepEqual(await camera.presets(), [
    { token: '1', name: 'Gate' },
    { token: 'a & b', name: 'a & b' },
  ]);
  await camera.run({ kind: 'goto', preset: 'a & b', speed: 0.25 });
  const { content } = device.calls.at(-1)!;
  assert.equal(textAt(content, 'PresetToken'), 'a & b');
  const speed = content.children.find(({ name }) => name === 'Speed')!;
  assert.deepEqual(
    speed.children.map(({ attributes }) => attributes.get('x')),
    ['0.25', '0.25'],
  );
  await fails(camera.run({ kind: 'goto', preset: '7', speed: undefined }), 'fault', /preset token does not exist/);
});

test('a preset is no way to say something else to the camera', async (t) => {
  const { device, camera } = await stage(t);
  const preset = '</PresetToken></GotoPreset><SystemReboot/><x>';
  await fails(camera.run({ kind: 'goto', preset, speed: undefined }), 'fault', /does not exist/);
  assert.equal(textAt(device.calls.at(-1)!.content, 'PresetToken'), preset);
});

test('a move ends by itself', async (t) => {
  const { device, camera, clock } = await stage(t);
  await camera.run(LEFT);
  clock.advance(6_000);
  await camera.run(RIGHT);
  clock.advance(9_999);
  await camera.presets();
  assert.ok(device.motion, 'the second move has its own ten seconds');
  clock.advance(1);
  await until('it stands', () => device.motion === undefined);
});

test('a camera that was stopped is not stopped again', async (t) => {
  const { device, camera, clock } = await stage(t);
  await camera.run(LEFT);
  await camera.run(STOP);
  clock.advance(60_000);
  await camera.presets();
  assert.deepEqual(commands(device), ['ContinuousMove', 'Stop']);
});

test('a stop that failed is tried again', async (t) => {
  const { device, camera, clock } = await stage(t);
  await camera.run(LEFT);
  device.behave('Stop', [
    { kind: 'fault', reason: 'busy' },
    { kind: 'fault', reason: 'busy' },
  ]);
  await fails(camera.run(STOP), 'fault', /busy/);
  clock.advance(2_000);
  await until('the second try', () => commands(device).length === 3);
  await camera.presets();
  clock.advance(2_000);
  await until('it stands', () => device.motion === undefined);
});

test('the move says itself when it ends, and is sent without where a camera refuses that', async (t) => {
  const { device, camera } = await stage(t);
  const refusal = {
    kind: 'fault',
    reason: 'The specified timeout argument is not within the supported range',
  } as const;
  device.behave('ContinuousMove', [refusal]);
  await camera.run(LEFT);
  await camera.run(RIGHT);
  const timeouts = device.calls
    .filter(({ operation }) => operation === 'ContinuousMove')
    .map(({ content }) => textAt(content, 'Timeout'));
  assert.deepEqual(timeouts, ['PT10S', undefined, undefined]);
});

test('a camera that does not answer: 10 seconds, and it is stopped in case it moves', async (t) => {
  const { device, camera, clock } = await stage(t);
  device.behave('ContinuousMove', [{ kind: 'hold' }]);
  const move = camera.run(LEFT);
  await until('the camera was told', () => device.held.length === 1);
  clock.advance(9_999);
  clock.advance(1);
  await fails(move, 'timeout', /did not answer within 10 seconds/);
  await until('it was stopped', () => commands(device).includes('Stop'));
  device.release();
  await until('it moves after all', () => device.motion !== undefined);
  clock.advance(10_000);
  await until('it stands', () => device.motion === undefined);
});

test('a slow camera does not delay another', async (t) => {
  const { device, camera, ptz } = await stage(t);
  const other = await OnvifDevice.start({ credentials: CREDENTIALS });
  t.after(() => other.close());
  ptz.configure([
    { id: 'gate', ptz: true, source: source(), onvif: device.url, tls: { verify: false } },
    { id: 'yard', ptz: true, source: source(), onvif: other.url, tls: { verify: false } },
  ]);
  device.behave('ContinuousMove', [{ kind: 'hold' }]);
  const slow = camera.run(LEFT);
  await until('the slow one was told', () => device.held.length === 1);
  assert.equal(await movable(ptz, 'yard').run(LEFT), 'done');
  assert.deepEqual(device.held, ['ContinuousMove']);
  device.release();
  assert.equal(await slow, 'done');
});

test('commands keep their order, and of those that wait the latest counts', async (t) => {
  const { device, camera } = await stage(t);
  device.behave('ContinuousMove', [{ kind: 'hold' }]);
  const first = camera.run(LEFT);
  await until('the first was sent', () => device.held.length === 1);
  const waiting = [camera.run(RIGHT), camera.run(IN), camera.run(STOP)];
  device.release();
  assert.deepEqual(await Promise.all([first, ...waiting]), ['done', 'replaced', 'replaced', 'done']);
  assert.deepEqual(commands(device), ['ContinuousMove', 'Stop']);
});

test('a stop does not wait behind a list of presets that nobody has sent yet', async (t) => {
  const { device, camera } = await stage(t);
  device.behave('ContinuousMove', [{ kind: 'hold' }]);
  const move = camera.run(LEFT);
  await until('the move was sent', () => device.held.length === 1);
  const answers = [camera.presets(), camera.presets(), camera.run(STOP)];
  device.release();
  await Promise.all([move, ...answers]);
  assert.deepEqual(device.operations().slice(-3), ['ContinuousMove', 'Stop', 'GetPresets']);
});

test('a wrong password: the refusal, after one attempt', async (t) => {
  const { device, camera } = await stage(t, {}, { username: 'operator', password: 'wrong' });
  await fails(camera.run(LEFT), 'unauthorized', /refuses the login: Sender not authorized/);
  assert.equal(device.refusedLogins, 1);
});

test('a password that the camera refused is not sent again, also in place of its stream or still images', async (t) => {
  const { device, camera, reach } = await stage(t, {}, { username: 'operator', password: 'wrong' });
  await fails(camera.run(LEFT), 'unauthorized', /refuses the login/);
  const { length } = device.operations();
  await fails(camera.presets(), 'unauthorized', /refused this user and password before/);
  assert.deepEqual([device.refusedLogins, device.operations().length], [1, length]);
  const credentials = { username: 'operator', password: 'wrong' };
  assert.equal(reach.logins.at({ kind: 'still', host: '127.0.0.1', port: 80 }, credentials).mayTry, false);
});

test('the login of the stream is not sent to another host, in no form', async (t) => {
  const { device, ptz } = await stage(t, { login: 'digest-md5' });
  ptz.configure([
    {
      id: 'gate',
      ptz: true,
      source: source().replace('127.0.0.1', '127.0.0.2'),
      onvif: device.url,
      tls: { verify: false },
    },
  ]);
  await fails(movable(ptz, 'gate').run(LEFT), 'unauthorized', /./);
  assert.equal(device.refusedLogins, 0);
});

test('HTTP Digest with a wrong password is given up after one attempt a question', async (t) => {
  const { device, camera } = await stage(t, { login: 'digest-md5' }, { username: 'operator', password: 'wrong' });
  await fails(camera.run(LEFT), 'unauthorized', /refuses the login \(HTTP 401\)/);
  assert.equal(device.refusedLogins, 1);
});

test('a camera whose clock was set meanwhile is asked for its time again', async (t) => {
  const { device, camera } = await stage(t);
  await camera.run(LEFT);
  device.clockOffsetMs = 3 * HOUR_MS;
  assert.equal(await camera.run(RIGHT), 'done');
  assert.equal(device.motion?.pan, 0.5);
});

test('a camera that was started again is connected again', async (t) => {
  const { device, camera, clock } = await stage(t);
  await camera.run(LEFT);
  const { port } = device;
  await device.close();
  await fails(camera.run(RIGHT), 'unreachable', /refuses the connection/);
  await device.listen(port);
  device.motion = undefined;
  assert.equal(await camera.run(RIGHT), 'done');
  assert.deepEqual(device.motion, { pan: 0.5, tilt: 0, zoom: 0 });
  assert.ok(clock.monotonicMs() < 10_000);
});

test('a camera that is configured elsewhere now is stopped where it was', async (t) => {
  const { device, camera, ptz } = await stage(t);
  await camera.run(LEFT);
  ptz.configure([
    { id: 'gate', ptz: true, source: source(), onvif: 'http://127.0.0.1:9/onvif', tls: { verify: false } },
  ]);
  await until('it stands', () => device.motion === undefined);
  await fails(camera.run(LEFT), 'unreachable', /being removed/);
});

test('ptz: false and cameras that are not there', async (t) => {
  const { device, ptz } = await stage(t);
  ptz.configure([{ id: 'gate', ptz: false, source: source(), onvif: device.url, tls: { verify: false } }]);
  assert.equal(ptz.get('gate'), 'disabled');
  assert.equal(ptz.get('yard'), 'unknown');
});

test('the end of the recorder stops what moves, and asks nothing of what stands', async (t) => {
  const { device, camera, ptz } = await stage(t);
  await camera.run(LEFT);
  await ptz.close();
  assert.equal(device.motion, undefined);
  const before = device.calls.length;
  await ptz.close();
  assert.equal(device.calls.length, before);
});

test('the end of the recorder waits two seconds for a camera that does not stop', async (t) => {
  const { device, camera, ptz, clock } = await stage(t);
  await camera.run(LEFT);
  device.behave('Stop', [{ kind: 'hold' }]);
  const closed = ptz.close();
  await until('it was told', () => device.held.length === 1);
  clock.advance(2_000);
  await closed;
});

test('whatever host a camera names, only the configured one is asked', async (t) => {
  const asked: string[] = [];
  const trap = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.2', resolve));
  t.after(() => trap.close());
  const believes = `http://127.0.0.2:${(trap.address() as AddressInfo).port}`;
  const { device, camera } = await stage(t, { believes });
  await camera.run(LEFT);
  assert.ok(device.motion);
  assert.deepEqual(asked, []);
  assert.deepEqual([...device.hosts], [`127.0.0.1:${device.port}`]);
});

test('an answer that is no HTTP', async (t) => {
  const { device, camera } = await stage(t);
  // TP-Link and Tapo send the request back.
  const echo: Behaviour = { kind: 'bytes', bytes: 'POST /onvif/service\0HTTP/1.1\0\0' };
  device.behave('ContinuousMove', [echo, echo]);
  await fails(camera.run(LEFT), 'bad-answer', /does not speak HTTP as it should/);
});

test('a redirect is not followed', async (t) => {
  const { device, camera } = await stage(t);
  device.behave('ContinuousMove', [
    { kind: 'raw', status: 307, body: '', headers: { location: `http://127.0.0.1:${device.port}/elsewhere` } },
  ]);
  await fails(camera.run(LEFT), 'bad-answer', /HTTP 307/);
  assert.ok(device.calls.every(({ path }) => path !== '/elsewhere'));
});

const envelope = (body: string): string => `<s:Envelope xmlns:s="x"><s:Body>${body}</s:Body></s:Envelope>`;
const raw = (body: string | Buffer, status = 200): Behaviour => ({ kind: 'raw', body, status });

for (const [name, behaviour, code, words] of [
  ['an HTML page', raw('<!DOCTYPE html><html><body>Camera</body></html>'), 'bad-answer', /not SOAP: a document type/],
  ['nothing', raw(''), 'bad-answer', /not SOAP: empty/],
  ['bytes', raw(Buffer.from([0xff, 0xfe, 0, 1, 2])), 'bad-answer', /not SOAP/],
  ['XML that is not SOAP', raw('<a><b/></a>'), 'bad-answer', /no envelope with a body/],
  ['an empty body', raw(envelope('')), 'bad-answer', /no envelope with a body/],
  ['half an envelope', raw('<s:Envelope><s:Body>'), 'bad-answer', /not SOAP/],
  ['a wrong path', raw('not found', 404), 'bad-answer', /HTTP 404/],
  ['a locked account', raw('<html>locked</html>', 403), 'unauthorized', /HTTP 403/],
  ['two megabytes', raw(Buffer.alloc(2_000_000, 0x20)), 'bad-answer', /too long/],
  ['a hundred thousand elements', raw(envelope('<a/>'.repeat(100_000))), 'bad-answer', /too many elements/],
  ['a deep nest', raw(envelope('<a>'.repeat(100_000))), 'bad-answer', /nested too deeply/],
  ['entities of its own', raw('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), 'bad-answer', /document type/],
  ['an unknown entity', raw(envelope('<a>&nbsp;</a>')), 'bad-answer', /not well-formed/],
  [
    'a fault in plain words',
    { kind: 'fault', reason: 'The PTZ is calibrating' },
    'fault',
    /refuses: The PTZ is calibrating/,
  ],
  ['a fault with escapes', { kind: 'fault', reason: 'a\u202eb\tc' }, 'fault', /refuses: a b c/],
  ['a fault without words', raw(envelope('<s:Fault/>'), 500), 'fault', /refuses: no reason/],
  [
    'a SOAP 1.1 fault',
    raw(envelope('<s:Fault><faultcode>c:Busy</faultcode><faultstring>busy</faultstring></s:Fault>'), 500),
    'fault',
    /busy \(Busy\)/,
  ],
  ['an end before the answer', { kind: 'close', after: 'request' }, 'unreachable', /closed the connection|hang up/],
  ['an end within the answer', { kind: 'close', after: 'half-an-answer' }, 'unreachable', /./],
] as [string, Behaviour, string, RegExp][]) {
  test(`instead of an answer: ${name}`, async (t) => {
    const { device, camera } = await stage(t);
    for (const operation of [
      'ContinuousMove',
      'GetProfiles',
      'GetServices',
      'GetCapabilities',
      'GetSystemDateAndTime',
    ]) {
      if (operation === 'GetSystemDateAndTime' && (code === 'fault' || code === 'unauthorized')) continue;
      device.behave(operation, Array<Behaviour>(4).fill(behaviour));
      await fails(camera.run(LEFT), code, words);
    }
    for (const operation of [
      'ContinuousMove',
      'GetProfiles',
      'GetServices',
      'GetCapabilities',
      'GetSystemDateAndTime',
    ]) {
      device.behave(operation, []);
    }
    assert.equal(await camera.run(RIGHT), 'done', 'the next command finds it well');
  });
}

for (const [name, answer] of [
  ['no date', '<x:SystemDateAndTime/>'],
  [
    'a date of words',
    '<x:SystemDateAndTime><x:UTCDateTime><Date><Year>now</Year></Date></x:UTCDateTime></x:SystemDateAndTime>',
  ],
] as const) {
  test(`a camera that does not know its time is believed to have ours: ${name}`, async (t) => {
    const { device, camera, clock } = await stage(t);
    clock.stepWall(Date.now() - clock.wallMs());
    device.behave('GetSystemDateAndTime', [
      raw(envelope(`<x:GetSystemDateAndTimeResponse>${answer}</x:GetSystemDateAndTimeResponse>`)),
    ]);
    assert.equal(await camera.run(LEFT), 'done');
  });
}
