// What a configuration may say of copies in object storage.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { workspace } from '../../test/support/workspace.ts';
import { messageOf } from '../../base/error.ts';
import { loadConfig } from './load.ts';
import type { Config } from './schema.ts';

const TARGET = {
  name: 'offsite',
  endpoint: 'https://s3.example/',
  bucket: 'footage',
  accessKeyId: 'id',
  secretAccessKeyFile: '/secret',
};

async function load(t: TestContext, archive: object, cameras: readonly object[] = []): Promise<Config> {
  const file = join(workspace(t), 'config.yaml');
  writeFileSync(file, JSON.stringify({ archive, cameras }));
  return loadConfig(file, { hostName: 'node' });
}

test('targets and rules of copies are read with their units', async (t) => {
  const objectLock = { mode: 'compliance', for: '30d' };
  const target = { ...TARGET, prefix: '/site/7/', maxBitrate: 8, hours: '22:00-06:30', objectLock };
  const { archive } = await load(t, {
    targets: [target],
    copies: [{ targets: ['offsite'], after: '1h', keep: '60d' }],
  });
  const [read] = archive.targets;
  assert.deepEqual(
    [read?.endpoint, read?.prefix, read?.region, read?.maxBitrate, read?.hours, read?.objectLock],
    [
      'https://s3.example',
      'site/7/',
      'us-east-1',
      8_000_000,
      { from: 1320, to: 390 },
      { mode: 'compliance', forMs: 30 * 86_400_000 },
    ],
  );
  assert.deepEqual(archive.copies, [{ targets: ['offsite'], afterMs: 3_600_000, keepMs: 60 * 86_400_000 }]);
});

const lock = { objectLock: { mode: 'governance', for: '30d' } };
const rule = { targets: ['offsite'] };
const gate = { id: 'gate', source: 'rtsp://10.0.0.9/', record: { retention: { maxAge: '7d' } } };
for (const [what, archive, cameras, problem] of [
  [
    'a rule for a target that is missing',
    { targets: [TARGET], copies: [{ targets: ['onsite'] }] },
    [],
    /archive\.copies\[0\]\.targets.* has no target "onsite"/,
  ],
  [
    'a lock that is longer than maxAge',
    { targets: [{ ...TARGET, ...lock }], copies: [rule], retention: { maxAge: '29d' } },
    [],
    /archive\.targets\[0\]\.objectLock\.for.* is longer than archive\.retention\.maxAge/,
  ],
  [
    'a lock that is longer than maxAge of a camera',
    { targets: [{ ...TARGET, ...lock }], copies: [rule] },
    [gate],
    /objectLock\.for.* is longer than maxAge of the camera gate/,
  ],
  [
    'a lock that is longer than the copy is kept',
    { targets: [{ ...TARGET, ...lock }], copies: [{ ...rule, keep: '10d' }] },
    [],
    /objectLock\.for.* is longer than archive\.copies\[0\]\.keep/,
  ],
  [
    'copies that are kept for longer than maxAge',
    { targets: [TARGET], copies: [{ ...rule, keep: '30d' }], retention: { maxAge: '29d' } },
    [],
    /archive\.copies\[0\]\.keep.* is longer than archive\.retention\.maxAge/,
  ],
  ['a target without a secret', { targets: [{ ...TARGET, secretAccessKeyFile: undefined }] }, [], /secretAccessKey/],
  [
    'an endpoint with a path',
    { targets: [{ ...TARGET, endpoint: 'https://s3.example/footage' }] },
    [],
    /without a path/,
  ],
  ['two targets of one name', { targets: [TARGET, TARGET] }, [], /two targets have the same name/],
  ['hours without an end', { targets: [{ ...TARGET, hours: '22:00' }] }, [], /hours.* expected two times of a day/],
] as const) {
  test(`${what} is refused, and the key is named`, async (t) => {
    const message = await load(t, archive, cameras).then(() => 'accepted', messageOf);
    assert.match(message, problem);
  });
}

test('a lock may be longer than maxAge of a camera that is not copied there', async (t) => {
  const copies = [{ ...rule, cameras: ['yard'] }];
  await load(t, { targets: [{ ...TARGET, ...lock }], copies }, [gate]);
});
