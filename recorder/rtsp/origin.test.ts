import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSameHost, staysAtCamera } from './origin.ts';

const at = (host: string, port: number, secure = false) => ({ host, port, secure });

test('a host is the same in every spelling, and no other', () => {
  for (const [a, b] of [
    ['Camera.Example', 'camera.example.'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['[::1]', '::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['10.0.0.9', '10.0.0.9'],
  ] as const) {
    assert.ok(isSameHost(a, b), `${a} ${b}`);
  }
  for (const [a, b] of [
    ['camera.example', 'camera.example.org'],
    ['10.0.0.9', '10.0.0.90'],
    ['camera', 'camera.example'],
    ['a b', 'a'],
  ] as const) {
    assert.ok(!isSameHost(a, b), `${a} ${b}`);
  }
});

test('a camera stays itself on its port, and when it turns to TLS', () => {
  assert.ok(staysAtCamera(at('a', 554), at('A', 554)));
  assert.ok(staysAtCamera(at('a', 554), at('a', 322, true)));
  assert.ok(!staysAtCamera(at('a', 554), at('a', 555)));
  assert.ok(!staysAtCamera(at('a', 554), at('b', 554)));
  assert.ok(!staysAtCamera(at('a', 554), at('b', 322, true)));
  assert.ok(!staysAtCamera(at('a', 322, true), at('a', 322)));
  assert.ok(!staysAtCamera(at('a', 322, true), at('a', 323, true)));
});
