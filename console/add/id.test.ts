// The ids of cameras that are added by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { CAMERA_ID } from '../../base/camera-id.ts';
import { idOf } from './id.ts';

test('an id is the name in small letters without accents, and numbered where it is taken', () => {
  const ids = ['Front gate', 'Hof Süd', '  ', '北門', 'Gate!'].map((name) => idOf(name, ['gate', 'gate-2']));
  assert.deepEqual(ids, ['front-gate', 'hof-sud', 'camera', 'camera', 'gate-3']);
});

test('every name has an id that the configuration accepts', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (name) => assert.match(idOf(name, []), CAMERA_ID)),
  );
});
