import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostInUrl, hostOfUrl } from './host.ts';

test('an IPv6 address has brackets in a URL, also with a zone, and nothing else has them', () => {
  const written = ['fd00::5', '::', 'fe80::1%eth0', '192.0.2.1', 'gate.example', ''].map(hostInUrl);
  assert.deepEqual(written, ['[fd00::5]', '[::]', '[fe80::1%eth0]', '192.0.2.1', 'gate.example', '']);
});

test('the host of a URL has no brackets', () => {
  const hosts = ['http://[fd00::5]:80/', 'https://gate.example/', 'rtsp://192.0.2.1:554/'].map((url) =>
    hostOfUrl(new URL(url)),
  );
  assert.deepEqual(hosts, ['fd00::5', 'gate.example', '192.0.2.1']);
});
