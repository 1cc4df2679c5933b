import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hidePassword, keepPassword, PasswordNeeded } from './passwords.ts';

const SHOWN = [
  ['rtsp://admin:secret@10.0.0.9/live', 'rtsp://admin@10.0.0.9/live'],
  ['rtsp://admin@10.0.0.9/live', 'rtsp://admin@10.0.0.9/live'],
  ['rtsp://10.0.0.9/live', 'rtsp://10.0.0.9/live'],
  ['rtsps://a:s:e@ret@[fe80::1%25eth0]:8322/live?x=1', 'rtsps://a@[fe80::1%25eth0]:8322/live?x=1'],
  ['rtsp://admin:pa/ss#word@10.0.0.9/live', 'rtsp://admin@10.0.0.9/live'],
  ['http://admin:secret@10.0.0.9/snap.jpg', 'http://admin@10.0.0.9/snap.jpg'],
  ['http://10.0.0.9/snap?user=a&password=secret&w=1', 'http://10.0.0.9/snap?user=a&password=***&w=1'],
  ['rtsp://10.0.0.9/user=a_password=secret_channel=1.sdp', 'rtsp://10.0.0.9/user=a_password=***'],
  // Whether host and path are a part of the password, nobody knows.
  ['rtsp://user:p@host/secret@x/y', 'rtsp://…'],
  ['rtsp://user:p@ss/word#1@10.0.0.9/live', 'rtsp://…'],
  ['nonsense secret', '…'],
] as const;

test('an address is shown with its user and without its passwords', () => {
  for (const [address, shown] of SHOWN) {
    assert.equal(hidePassword(address), shown);
    assert.doesNotMatch(hidePassword(address), /secret/);
  }
});

test('what was shown and comes back is what it was', () => {
  for (const [address, shown] of SHOWN) assert.equal(keepPassword(shown, address), address);
});

const BEFORE = 'rtsp://admin:se%40cret@10.0.0.9/live';

for (const { name, now, kept } of [
  { name: 'another path keeps it', now: 'rtsp://admin@10.0.0.9/other', kept: 'rtsp://admin:se%40cret@10.0.0.9/other' },
  { name: 'no user keeps the login', now: 'rtsp://10.0.0.9/other', kept: 'rtsp://admin:se%40cret@10.0.0.9/other' },
  {
    name: 'the default port is the same port',
    now: 'rtsp://10.0.0.9:554/',
    kept: 'rtsp://admin:se%40cret@10.0.0.9:554/',
  },
  { name: 'a new password counts', now: 'rtsp://admin:new@10.0.0.9/live', kept: 'rtsp://admin:new@10.0.0.9/live' },
  { name: 'an empty password counts', now: 'rtsp://admin:@10.0.0.9/live', kept: 'rtsp://admin:@10.0.0.9/live' },
  { name: 'an empty user takes the login away', now: 'rtsp://@10.0.0.9/live', kept: 'rtsp://@10.0.0.9/live' },
  { name: 'another host without a user has none', now: 'rtsp://10.0.0.8/live', kept: 'rtsp://10.0.0.8/live' },
  { name: 'what is no address is told elsewhere', now: 'nonsense', kept: 'nonsense' },
]) {
  test(`the password of before: ${name}`, () => assert.equal(keepPassword(now, BEFORE), kept));
}

test('a password goes to no other host, port or user, and a mask is none', () => {
  for (const now of [
    'rtsp://admin@10.0.0.8/live',
    'rtsp://admin@10.0.0.9:8554/live',
    'rtsps://admin@10.0.0.9/live',
    'rtsp://root@10.0.0.9/live',
    'rtsp://10.0.0.9/live?password=***',
  ]) {
    assert.throws(() => keepPassword(now, BEFORE), PasswordNeeded, now);
  }
});
