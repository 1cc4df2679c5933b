import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAmong } from './login-hosts.ts';

const among: readonly (readonly [string, string, boolean])[] = [
  ['10.20.0.0/16', '10.20.3.4', true],
  ['10.20.0.0/16', '10.21.0.1', false],
  ['10.20.0.0/16', '::ffff:10.20.3.4', true],
  ['10.20.0.9', '10.20.0.9', true],
  ['10.20.0.9', '10.20.0.90', false],
  ['fd00::/8', 'FD00:1::9', true],
  ['fd00::9', 'fd00:0::9%eth0', true],
  ['fd00::/8', '10.0.0.1', false],
  ['gate.example', 'Gate.Example.', true],
  ['gate.example', 'evil.gate.example', false],
  ['gate.example', 'gate.example.evil', false],
  ['*.example', 'gate.yard.example', true],
  ['*.example', 'example', false],
  ['*.example', 'evilexample', false],
  ['0.0.0.0/0', 'gate.example', false],
  ['*', 'anything.at.all', true],
  ['10.0.0.0/33', '10.0.0.1', false],
  ['10.0.0.0/', '10.0.0.0', false],
  ['10.0.0', '10.0.0.0', false],
  ['0.0.0.0/0', '0x7f.1', false],
];
for (const [hosts, host, expected] of among) {
  test(`${host} is ${expected ? '' : 'not '}among ${hosts}`, () => {
    assert.equal(isAmong(['unknown.example', hosts], host), expected);
  });
}
