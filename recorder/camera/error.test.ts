import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CameraError, NoConnection } from './error.ts';
import { unreachable } from './tcp-transport.ts';

const at = { ssrc: 0xabcd, sequenceNumber: 4711 };

test('an error of a camera names the last packet by source, sequence number, and channel or port', () => {
  const error = new CameraError('stream-silent', 'no video for 10 s');
  const messages = [{ rtspChannel: 0 }, { udpPort: 50_000 }, undefined].map(
    (carrier) => error.after({ ...at, carrier }).message,
  );
  assert.deepEqual(messages, [
    'no video for 10 s; last packet: SSRC 0x0000abcd, sequence number 4711, RTSP channel 0',
    'no video for 10 s; last packet: SSRC 0x0000abcd, sequence number 4711, UDP port 50000',
    'no video for 10 s; last packet: SSRC 0x0000abcd, sequence number 4711',
  ]);
  assert.equal(error.after({ ...at, carrier: undefined }).code, 'stream-silent');
});

test('an error before the first packet stays what it is, and so does one of a port that does not answer', () => {
  const error = new CameraError('no-answer', 'no reply to DESCRIBE');
  assert.equal(error.after(undefined), error);
  const away: CameraError = new NoConnection('10.0.0.9:554 refuses connections');
  assert.equal(away.after({ ...at, carrier: { rtspChannel: 0 } }), away);
});

test('a process that can open no more connections does not say that the camera is away', () => {
  const target = { host: 'gate.example', port: 554, tls: false } as unknown as Parameters<typeof unreachable>[1];
  const error = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' });
  assert.equal(unreachable(error, target, false).code, 'no-descriptors');
});
