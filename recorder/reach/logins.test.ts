import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { CameraLogins, type BetterLogins } from './logins.ts';

const right = { username: 'user', password: 'secret' };
const stream = { kind: 'rtsp', host: '10.0.0.9', port: 554 } as const;
const still = { kind: 'still', host: '10.0.0.9', port: 80 } as const;
const onvif = { kind: 'onvif', host: '10.0.0.9', port: 80 } as const;

const open = (kept?: BetterLogins) => {
  const clock = new VirtualClock();
  let written: BetterLogins = new Map();
  let writes = 0;
  const logins = new CameraLogins({
    clock,
    ...(kept ? { kept } : {}),
    changed(better) {
      written = better;
      writes++;
    },
  });
  return { logins, clock, written: () => new Map(written), writes: () => writes };
};

test('a place that took Digest or led to TLS is remembered, each by itself, over restarts, and kept once', () => {
  const { logins, written, writes } = open();
  for (let i = 0; i < 3; i++) logins.at(stream, right).accepted('Digest');
  logins.at(still, right).ledToTls();
  logins.at(onvif, right).accepted();
  assert.equal(writes(), 2);
  const next = open(written()).logins;
  // The password may have changed: only the place that asks for it matters.
  const other = { username: 'user', password: 'another' };
  assert.deepEqual(
    [stream, still, onvif, { ...stream, port: 8554 }].map((at) => next.at(at, other).better),
    ['Digest', 'TLS', undefined, undefined],
  );
});

test('a login that one place of a camera refused is tried at none of its places', () => {
  const { logins } = open();
  logins.at(stream, right).refused();
  const mayTry = (credentials = right, host = '10.0.0.9') =>
    [stream, still, onvif].map((at) => logins.at({ ...at, host }, credentials).mayTry);
  assert.deepEqual(mayTry(), [false, false, false]);
  assert.deepEqual(mayTry({ ...right, password: 'another' }), [true, true, true], 'another password');
  assert.deepEqual(mayTry(right, '10.0.0.10'), [true, true, true], 'another camera');
});

test('a login that is right for the stream is tried elsewhere, once', () => {
  const { logins } = open();
  logins.at(stream, right).accepted('Digest');
  logins.at(still, right).refused();
  assert.equal(logins.at(still, right).mayTry, false);
  assert.equal(logins.at(onvif, right).mayTry, true);
  // Sessions come and go.
  logins.at(stream, right).accepted('Digest');
  assert.equal(logins.at(still, right).mayTry, false);
});

test('a refused login rests for 1, 5, 15 and 30 minutes, and is never refused for good', () => {
  const { logins, clock } = open();
  const minutes: number[] = [];
  for (let i = 0; i < 5; i++) {
    logins.at(still, right).refused();
    let waited = 0;
    for (; !logins.at(still, right).mayTry; waited++) clock.advance(60_000);
    minutes.push(waited);
  }
  assert.deepEqual(minutes, [1, 5, 15, 30, 30]);
  logins.at(still, right).accepted();
  logins.at(still, right).refused();
  clock.advance(60_000);
  assert.equal(logins.at(still, right).mayTry, true, 'the first pause again');
});

test('one channel of a device that refuses a login takes it from no other, while the stream uses it', () => {
  const { logins } = open();
  const channel = (path: string) => ({ ...still, path, cameraId: path.slice(1) });
  logins.at({ ...stream, path: '/one' }, right).accepted('Digest');
  logins.at({ ...stream, path: '/two' }, right).accepted('Digest');
  logins.at(channel('/one'), right).refused();
  assert.deepEqual(
    [channel('/one'), channel('/two'), onvif].map((at) => logins.at(at, right).mayTry),
    [false, true, true],
  );
  const [warning, ...more] = logins.warnings();
  assert.deepEqual([warning?.code, warning?.cameraId, more.length], ['login-rests', 'one', 0]);
  assert.match(warning?.message ?? '', /still images \(1 times in a row\): tried again in 1 min/);
  logins.at({ ...stream, path: '/two' }, right).refused();
  assert.equal(logins.at(onvif, right).mayTry, true, 'the stream of the first uses it');
});

test('a person ends the rests of one camera, and another refusal rests longer than the last', () => {
  const { logins, clock } = open();
  const [gate, yard] = [
    { ...still, path: '/gate', cameraId: 'gate' },
    { ...still, host: '10.0.0.10', cameraId: 'yard' },
  ];
  for (const at of [gate, { ...onvif, cameraId: 'gate' }, yard]) logins.at(at, right).refused();
  assert.equal(logins.tryAgain('gate'), 2);
  assert.deepEqual(
    [gate, onvif, yard].map((at) => logins.at(at, right).mayTry),
    [true, true, false],
  );
  assert.deepEqual(
    logins.warnings().map(({ cameraId }) => cameraId),
    ['yard'],
  );
  assert.equal(logins.tryAgain('gate'), 0);
  logins.at(gate, right).refused();
  clock.advance(60_000);
  assert.equal(logins.at(gate, right).mayTry, false, 'the second rest is five minutes');
});

test('a login that becomes right has another try everywhere', () => {
  const { logins } = open();
  logins.at(still, right).refused();
  logins.at(stream, right).refused();
  logins.at(stream, right).accepted();
  assert.deepEqual(
    [still, onvif].map((at) => logins.at(at, right).mayTry),
    [true, true],
  );
});

test('ten thousand places are remembered, the oldest is forgotten first', () => {
  const { logins } = open();
  for (let port = 1; port <= 10_001; port++) logins.at({ ...stream, port }, right).accepted('Digest');
  assert.deepEqual(
    [1, 2, 10_001].map((port) => logins.at({ ...stream, port }, right).better),
    [undefined, 'Digest', 'Digest'],
  );
});
