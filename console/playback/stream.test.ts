// Which recorded stream of a camera playback shows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { footageIdOf, streamOf, type Stream } from './stream.ts';

const choose = (changes: Partial<Parameters<typeof streamOf>[0]>): Stream =>
  streamOf({ hasMain: true, hasPreview: true, unplayable: new Set(), width: 1280, ...changes });
const cannotPlay = (...streams: Stream[]) => ({ unplayable: new Set(streams) });

test('a large picture shows the main stream, a small one the preview', () => {
  assert.deepEqual([choose({}), choose({ width: 640 }), choose({ width: 639 })], ['main', 'main', 'preview']);
  assert.equal(choose({ width: 0 }), 'main', 'not laid out yet');
});

test('where only one stream has footage, it is shown, however large the picture is', () => {
  assert.equal(choose({ hasMain: false }), 'preview');
  assert.equal(choose({ hasMain: false, ...cannotPlay('preview') }), 'preview');
  for (const width of [320, 1280]) assert.equal(choose({ hasPreview: false, width }), 'main');
});

test('a browser that cannot play the main stream shows the preview, and stills of the main stream if it can play neither', () => {
  assert.equal(choose(cannotPlay('main')), 'preview');
  assert.equal(choose({ ...cannotPlay('main', 'preview'), width: 320 }), 'main');
  assert.equal(choose({ ...cannotPlay('preview'), width: 320 }), 'main');
});

test('the footage of a preview has an id of its own', () => {
  assert.deepEqual([footageIdOf('gate', 'main'), footageIdOf('gate', 'preview')], ['gate', 'gate~preview']);
});
