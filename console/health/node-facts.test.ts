// What the health screen says of a node.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aCamera } from '../app/camera.support.ts';
import { failedChecks, freeDays, isSpaceShort, placesOf, wantedDays } from './node-facts.ts';

test('a node that is not ready says which checks fail, with the reason of the licence, and with checks of later versions', () => {
  assert.deepEqual(failedChecks({ status: 'ready' }), []);
  const reason = { message: 'the licence ended on 1 November' };
  assert.deepEqual(
    failedChecks({ status: 'not_ready', failed: ['storage', 'license', 'moon'], checks: { license: { reason } } }),
    ['the database does not answer', 'the licence ended on 1 November', 'moon'],
  );
  assert.deepEqual(failedChecks({ status: 'not_ready', failed: ['license'] }), ['the licence is not valid']);
  assert.deepEqual(failedChecks({ status: 'not_ready' }), ['not ready']);
});

test('the free space suffices for as many days as the bit rates of what is recorded now allow', () => {
  const codecs = { video: null, audio: null };
  const preview = { state: 'live', reason: null, codecs, bitrate: 1_000_000, recording: {} } as const;
  // 1 TiB at 10 Mbit/s.
  const recorded = [
    aCamera({ bitrate: 4_000_000, preview }),
    aCamera({ bitrate: 5_000_000, preview: { ...preview, recording: null } }),
    aCamera({ bitrate: 9_000_000, state: 'stopped' }),
  ];
  assert.equal(freeDays(1024, recorded)?.toFixed(1), '10.2');
  assert.equal(freeDays(1024, [aCamera({ state: 'retrying', bitrate: 0 })]), undefined);
});

test('the space of a node is too small if a camera is to be kept for longer than it allows', () => {
  const wanted = wantedDays([7, 30].map((days) => aCamera({ max_age_seconds: days * 86_400 })));
  assert.equal(wanted, 30);
  assert.deepEqual(
    [12, 29.9, 31].map((days) => isSpaceShort(days, wanted)),
    [true, false, false],
  );
  assert.equal(wantedDays([aCamera({ max_age_seconds: null }), aCamera()]), undefined);
  assert.equal(isSpaceShort(1, undefined), false);
});

test('each disk and each target has a line, and what has one copy only is counted', () => {
  const disks = [
    { path: '/mnt/a', state: 'in-use', free_gb: 10, total_gb: 20 },
    { path: '/mnt/b', state: 'failing', problem: 'the file system is read-only (EROFS)', free_gb: 0, total_gb: 0 },
    { path: '/mnt/c', state: 'leaving', free_gb: 5, total_gb: 9 },
  ] as const;
  const targets = [
    { name: 'offsite', lacking_files: 0, lag_seconds: 0, keeps_days: 60 },
    { name: 'nas', problem: 'it cannot be reached', lacking_files: 1, lag_seconds: 7_200, keeps_days: null },
  ];
  assert.deepEqual(
    placesOf({ disks, targets, uncopied_cameras: 3 }).map(({ name, text, isWeak }) => [name, text, isWeak]),
    [
      ['/mnt/a', '10 of 20 GiB free', false],
      ['/mnt/b', 'the file system is read-only (EROFS)', true],
      ['/mnt/c', '5 of 9 GiB free, its files move to the other disks', false],
      ['offsite', 'keeps copies for 60 d', false],
      [
        'nas',
        'it cannot be reached; keeps all copies, 1 file is on this node alone, the oldest has waited for 2 h',
        true,
      ],
      ['Without copies', '3 cameras', false],
    ],
  );
  assert.deepEqual(placesOf({}), []);
});
