import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostIn, hostsNamedBy } from './login-hosts.ts';

const named = (text: string): readonly string[] | undefined => hostsNamedBy({ 'kube-nvr.dev/camera-hosts': text });

test('a Secret names hosts with commas or blanks between; one that names none is no login of a camera', () => {
  assert.deepEqual(named(' Gate.example,10.0.0.0/8  fd00::/8\n'), ['gate.example', '10.0.0.0/8', 'fd00::/8']);
  for (const annotations of [undefined, {}, { hosts: '*' }]) assert.equal(hostsNamedBy(annotations), undefined);
  assert.deepEqual([named(''), named(' , ')], [undefined, undefined]);
});

test('the host of an address is returned only if it can be read in one way', () => {
  assert.equal(hostIn('rtsp://Gate.example:554/a@b?c'), 'gate.example');
  assert.equal(hostIn('rtsp+https://[FD00::9]/1'), 'fd00::9');
  assert.equal(hostIn('http://10.0.0.9'), '10.0.0.9');
  for (const address of ['rtsp://a:b@c/', 'rtsp://a\\b/', 'rtsp://good:99999999/@evil/', 'rtsp://a#b', 'rtsp:///a']) {
    assert.equal(hostIn(address), undefined, address);
  }
});
