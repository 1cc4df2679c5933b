import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainListeners, reachedAs } from './exposure.ts';

const at = (host: string, port = 9997) => ({ host, port });
const codes = (listen: string, playback: string, tls?: 'auto') =>
  plainListeners({ listen: at(listen), playback: { listen: at(playback, 9996), advertise: '' }, tls }).map(
    ({ code, message }) => [code, message.includes(`${listen}:9997`), message.includes(`${playback}:9996`)],
  );

test('listeners that other machines reach without TLS are named; loopback and TLS are no reason to worry', () => {
  assert.deepEqual(codes('0.0.0.0', '192.0.2.1'), [['no-tls', true, true]]);
  assert.deepEqual(codes('127.0.0.1', '0.0.0.0'), [['no-tls', false, true]]);
  assert.deepEqual(codes('127.0.0.1', '127.0.0.2'), []);
  assert.deepEqual(codes('0.0.0.0', '0.0.0.0', 'auto'), []);
});

test('a certificate names the machine, what it is advertised as, and the addresses of its interfaces', () => {
  const names = reachedAs({
    nodeName: 'rack-1',
    cluster: { advertise: 'nvr.example:9997' },
    playback: { advertise: 'https://[2001:db8::7]:9996' },
  } as unknown as Parameters<typeof reachedAs>[0]);
  for (const name of ['rack-1', 'nvr.example', '2001:db8::7', 'localhost', '127.0.0.1']) {
    assert.ok(names.includes(name), `${name} is not in ${names.join(' ')}`);
  }
  const odd = { nodeName: 'Küche 1', cluster: { advertise: '' }, playback: { advertise: '' } };
  assert.ok(!reachedAs(odd as unknown as Parameters<typeof reachedAs>[0]).includes('Küche 1'));
});
