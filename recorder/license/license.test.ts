import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { License } from './license.ts';
import { formatPublicKey, signLicense } from './statement.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const TODAY = Date.UTC(2026, 10, 21, 12);
const DAY_MS = 86_400_000;
const cameras = (...ids: string[]): { id: string }[] => ids.map((id) => ({ id }));

interface Setting {
  readonly license: License;
  readonly clock: VirtualClock;
  readonly registry: Registry;
  /** How often `changed` was called. */
  readonly changes: () => number;
  readonly sign: (changes?: { cameras?: number; expires?: string }, key?: KeyObject) => Promise<void>;
  readonly write: (text: string) => Promise<void>;
  readonly remove: () => Promise<void>;
  /** Resolves when the file has been checked once more. */
  readonly later: (ms?: number) => Promise<void>;
}

async function setting(
  t: TestContext,
  options: { required?: boolean; publicKey?: string; wanted?: number } = {},
): Promise<Setting> {
  const directory = await mkdtemp(join(tmpdir(), 'license-test-'));
  t.after(() => rm(directory, { recursive: true }));
  const file = join(directory, 'recorder.lic');
  const clock = new VirtualClock(TODAY);
  const registry = new Registry();
  let changes = 0;
  const license = new License({
    file,
    publicKey: options.publicKey ?? formatPublicKey(publicKey),
    required: options.required ?? true,
    wanted: () => options.wanted ?? 1,
    changed: () => changes++,
    registry,
    clock,
    log: silentLog,
  });
  t.after(() => license.close());
  return {
    license,
    clock,
    registry,
    changes: () => changes,
    sign: (changes = {}, key = privateKey) =>
      writeFile(file, signLicense({ holder: 'Example', cameras: 2, expires: '2026-11-30', ...changes }, key)),
    write: (text) => writeFile(file, text),
    remove: () => rm(file),
    later: async (ms = 5_000) => {
      clock.advance(ms);
      await license.look();
    },
  };
}

test('without a key nothing is read, all is valid and any number of cameras is recorded', async (t) => {
  const { license, registry } = await setting(t, { required: false, publicKey: '', wanted: 1000 });
  await license.start();
  assert.deepEqual(license.check(), { valid: true });
  assert.equal(license.refusals(cameras('a', 'b'), new Set()).size, 0);
  const text = await registry.metrics();
  assert.match(text, /^kube_nvr_license_valid 1$/m);
  assert.doesNotMatch(text, /^kube_nvr_license_expiry_timestamp_seconds \d/m);
});

test('with a key, but none required, a licence that is missing or bad refuses nothing', async (t) => {
  const { license, write, later } = await setting(t, { required: false });
  await license.start();
  assert.deepEqual(license.check(), { valid: true });
  await write('nonsense');
  await later();
  assert.deepEqual(license.check(), { valid: true });
  assert.equal(license.refusals(cameras('a'), new Set()).size, 0);
});

test('a required licence that is missing, forged, no licence or expired: not valid, and no camera starts', async (t) => {
  const s = await setting(t);
  const { license } = s;
  await license.start();
  const cases: [string, () => Promise<void>][] = [
    ['license-missing', async () => {}],
    ['license-malformed', () => s.write('nonsense')],
    ['license-forged', () => s.sign({}, generateKeyPairSync('ed25519').privateKey)],
    ['license-expired', () => s.sign({ expires: '2026-11-20' })],
  ];
  for (const [code, make] of cases) {
    await make();
    await s.later();
    const { valid, reason } = license.check();
    assert.deepEqual([valid, reason?.code], [false, code]);
    const refused = license.refusals(cameras('a', 'b'), new Set());
    assert.deepEqual([...refused.keys()], ['a', 'b']);
    assert.equal(refused.get('a')?.code, code);
  }
});

test('a licence for fewer cameras: the first ones are recorded, the others refused, and it is not valid', async (t) => {
  const { license, sign } = await setting(t, { wanted: 3 });
  await sign({ cameras: 2 });
  await license.start();
  assert.deepEqual(license.check(), {
    valid: false,
    reason: { code: 'license-exceeded', message: 'the licence allows 2 cameras' },
  });
  const refused = license.refusals(cameras('a', 'b', 'c'), new Set());
  assert.deepEqual([...refused], [['c', { code: 'license-exceeded', message: 'the licence allows 2 cameras' }]]);
});

test('cameras that run continue, and count: a new one before them in the list takes nothing from them', async (t) => {
  const { license, sign } = await setting(t, { wanted: 3 });
  await sign({ cameras: 2 });
  await license.start();
  assert.deepEqual([...license.refusals(cameras('new', 'b', 'c'), new Set(['b', 'c'])).keys()], ['new']);
  // One more camera runs than the licence allows, because the licence was changed meanwhile.
  await sign({ cameras: 1 });
  await license.look();
  assert.deepEqual([...license.refusals(cameras('new', 'b', 'c'), new Set(['b', 'c'])).keys()], ['new']);
  // A camera that runs but is no longer wanted makes room.
  await sign({ cameras: 2 });
  await license.look();
  assert.equal(license.refusals(cameras('new', 'b'), new Set(['b', 'c'])).size, 0);
});

test('a licence that expires while the recorder runs is not valid from that instant on', async (t) => {
  const { license, sign, clock, changes, later } = await setting(t);
  await sign({ expires: '2026-11-21' });
  await license.start();
  clock.advance(DAY_MS / 2 - 1);
  assert.equal(license.check().valid, true);
  clock.advance(1);
  assert.equal(license.check().reason?.code, 'license-expired');
  assert.deepEqual([...license.refusals(cameras('a', 'b'), new Set(['a'])).keys()], ['b']);
  await later();
  assert.equal(changes(), 1, 'and the cameras are applied again');
});

test('a licence is taken within seconds of its being put there, and its loss is noticed', async (t) => {
  const { license, sign, remove, changes, later } = await setting(t);
  await license.start();
  assert.equal(license.check().valid, false);
  await sign();
  await later();
  assert.equal(license.check().valid, true);
  assert.equal(license.statement?.holder, 'Example');
  assert.equal(changes(), 1);
  await later();
  assert.equal(changes(), 1, 'the same one is no change');
  await remove();
  await later();
  assert.equal(license.check().reason?.code, 'license-missing');
  assert.equal(changes(), 2);
});

test('metrics say when the licence ends and whether it is valid', async (t) => {
  const { license, registry, sign, remove, later } = await setting(t);
  await sign({ expires: '2026-11-30' });
  await license.start();
  const endSeconds = Date.UTC(2026, 11, 1) / 1000;
  assert.match(await registry.metrics(), new RegExp(`^kube_nvr_license_expiry_timestamp_seconds ${endSeconds}$`, 'm'));
  assert.match(await registry.metrics(), /^kube_nvr_license_valid 1$/m);
  await remove();
  await later();
  assert.doesNotMatch(await registry.metrics(), /^kube_nvr_license_expiry_timestamp_seconds \d/m);
  assert.match(await registry.metrics(), /^kube_nvr_license_valid 0$/m);
});
