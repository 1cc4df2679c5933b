import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { chmodSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { NodeKey } from './node-key.ts';

test('a key is made once, for its owner alone, and signs what its public half verifies', async (t) => {
  const directory = join(workspace(t), 'signing');
  const made = await NodeKey.open(directory);
  assert.deepEqual(readdirSync(directory), ['key.pem']);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, 'key.pem')).mode & 0o777, 0o600);
  const kept = await NodeKey.open(directory);
  assert.deepEqual([kept.fingerprint, kept.publicKey], [made.fingerprint, made.publicKey]);
  assert.match(kept.fingerprint, /^[0-9a-f]{64}$/);
  const text = Buffer.from('what happened');
  assert.ok(verify(null, text, createPublicKey(kept.publicKey), made.sign(text)));
  assert.notEqual((await NodeKey.open(join(directory, 'of-another-node'))).fingerprint, made.fingerprint);
});

test('a key that others may know, that is a link, or that is none, is not taken; it is named and stays', async (t) => {
  const directory = workspace(t);
  const { fingerprint } = await NodeKey.open(directory);
  const path = join(directory, 'key.pem');
  chmodSync(path, 0o640);
  const refused = (message: RegExp) => assert.rejects(NodeKey.open(directory), { name: 'NodeKeyError', message });
  await refused(/key\.pem can be read or written by others/);
  chmodSync(path, 0o600);
  assert.equal((await NodeKey.open(directory)).fingerprint, fingerprint);
  renameSync(path, `${path}.old`);
  symlinkSync(`${path}.old`, path);
  await refused(/key\.pem is a link/);
  renameSync(`${path}.old`, path);
  writeFileSync(path, 'no key');
  await refused(/key\.pem is not an Ed25519 key: restore the right one, or remove it/);
});
