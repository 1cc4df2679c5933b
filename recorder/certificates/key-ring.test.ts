import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyRing, SealError } from './key-ring.ts';
import { NodeFileError } from './node-files.ts';

const NAME = '/kube-nvr/objects/secrets/default/logins';
const PLAIN = Buffer.from('{"data":{"password":"aHVudGVyMg=="}}');

test('what a ring sealed it opens, and the sealed value shows nothing of it', () => {
  const ring = KeyRing.new();
  const sealed = ring.seal(PLAIN, NAME);
  assert.deepEqual(ring.open(sealed, NAME), PLAIN);
  assert.equal(sealed.includes('aHVudGVyMg'), false);
  assert.notDeepEqual(ring.seal(PLAIN, NAME), sealed, 'each time with another nonce');
  assert.deepEqual(ring.open(ring.seal(Buffer.alloc(0), NAME), NAME), Buffer.alloc(0));
});

test('a ring that was written to a file and read again opens the same values', () => {
  const ring = KeyRing.new();
  assert.deepEqual(KeyRing.parse(ring.format()).open(ring.seal(PLAIN, NAME), NAME), PLAIN);
});

test('a new key opens values before it seals any, and older values can still be opened', () => {
  const before = KeyRing.new();
  const grown = before.grown();
  const sealed = grown.seal(PLAIN, NAME);
  assert.deepEqual(before.open(sealed, NAME), PLAIN);
  const turned = grown.ordered([...grown.ids].reverse());
  assert.deepEqual(turned.ids, [...grown.ids].reverse());
  const next = turned.seal(PLAIN, NAME);
  for (const ring of [grown, turned, before.with(KeyRing.parse(turned.format()))]) {
    assert.deepEqual(ring.open(sealed, NAME), PLAIN);
    assert.deepEqual(ring.open(next, NAME), PLAIN);
  }
  assert.deepEqual(before.with(turned).ids, grown.ids);
  assert.throws(() => before.open(next, NAME), /which this node does not have/);
});

test('a value that was changed, moved to another name or sealed by another cluster is refused', () => {
  const ring = KeyRing.new();
  const sealed = ring.seal(PLAIN, NAME);
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed);
    changed[i] = (changed[i] as number) ^ 1;
    assert.throws(() => ring.open(changed, NAME), SealError, `byte ${i}`);
    assert.throws(() => ring.open(sealed.subarray(0, i), NAME), SealError, `${i} bytes`);
  }
  assert.throws(() => ring.open(sealed, `${NAME}2`), /was changed since it was encrypted/);
  assert.throws(() => KeyRing.new().open(sealed, NAME), SealError);
  assert.throws(() => ring.open(PLAIN, NAME), /is not encrypted with a key of the cluster/);
});

test('a file of keys that is damaged is refused, and the error shows nothing of it', () => {
  const text = KeyRing.new().format();
  for (const wrong of ['', '[]', '{}', text.slice(0, -9), text.replace(/"key":"..../, '"key":"')]) {
    assert.throws(
      () => KeyRing.parse(wrong),
      (err) => err instanceof NodeFileError && !err.message.includes('key":'),
    );
  }
});
