import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cameraCause, diskCause, isGapCause } from './gap-cause.ts';

test('a camera that refuses the login, or wants the password in readable form, is a gap of that cause', () => {
  assert.deepEqual(['refused-login', 'login-downgraded'].map(cameraCause), ['refused-login', 'refused-login']);
});

test('a camera without an answer is unreachable, and one that hangs up was lost', () => {
  assert.deepEqual(['unreachable', 'no-answer'].map(cameraCause), ['camera-unreachable', 'camera-unreachable']);
  assert.equal(cameraCause('closed-by-camera'), 'connection-lost');
});

test('what the status says of a stream is the cause of the gap, and every other fault is one of the camera', () => {
  for (const code of ['stream-silent', 'no-key-frame', 'not-decodable', 'bitrate-exceeded']) {
    assert.ok(isGapCause(code));
    assert.equal(cameraCause(code), code);
  }
  assert.equal(cameraCause('something-new'), 'camera-error');
});

test('a process that can open no more blames neither the camera nor the disk', () => {
  assert.deepEqual([cameraCause('no-descriptors'), diskCause('no-descriptors')], ['no-descriptors', 'no-descriptors']);
});

test('a disk is full, slow, or has failed; what cannot be written at all is a fault of the camera', () => {
  assert.deepEqual(['disk-full', 'disk-slow', 'EIO'].map(diskCause), ['disk-full', 'disk-slow', 'disk-error']);
  assert.equal(diskCause('unsupported-parameters'), 'camera-error');
});
