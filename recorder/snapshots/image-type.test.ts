import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jpeg } from '../../test/camera/still-camera.ts';
import { imageTypeOf } from './image-type.ts';

const bytes = (text: string): Buffer => Buffer.from(text.padEnd(40, '\0'), 'latin1');

test('images are told by their first bytes, and pages and documents with scripts are none', () => {
  assert.equal(imageTypeOf(jpeg()), 'image/jpeg');
  assert.equal(imageTypeOf(bytes('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')), 'image/png');
  assert.equal(imageTypeOf(bytes('GIF89a')), 'image/gif');
  assert.equal(imageTypeOf(bytes('RIFF\0\0\0\0WEBPVP8 ')), 'image/webp');
  assert.equal(imageTypeOf(bytes('\0\0\0\x20ftypavif')), 'image/avif');
  for (const text of ['<html>', '<?xml version="1.0"?><svg>', 'RIFF\0\0\0\0WAVE', '\0\0\0\x20ftypisom', '--boundary']) {
    assert.equal(imageTypeOf(bytes(text)), undefined, text);
  }
  assert.equal(imageTypeOf(jpeg().subarray(0, 11)), undefined);
  assert.equal(imageTypeOf(Buffer.alloc(0)), undefined);
});
