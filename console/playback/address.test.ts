import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { addressFields, parseAddress, type PlaybackAddress } from './address.ts';
import { Zone } from './zone.ts';

function formatAddress(address: PlaybackAddress, zone: Zone): string {
  const fields = Object.entries(addressFields(address, zone)).filter(
    (field): field is [string, string] => field[1] !== undefined,
  );
  return new URLSearchParams(fields).toString();
}

const moments = fc.option(fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2040, 0) }), { nil: undefined });
const parse = (query: string) => parseAddress(new URLSearchParams(query));
const zones = fc.constantFrom('Europe/Berlin', 'Asia/Kolkata', 'America/Los_Angeles').map((name) => new Zone(name));

test('an address that was written is read as the same', () => {
  const addresses = fc.record(
    {
      cameras: fc.uniqueArray(
        fc.string({ unit: fc.constantFrom('a', 'B', '7', '-', '_', '.'), minLength: 1, maxLength: 20 }),
        { maxLength: 9 },
      ),
      atMs: moments,
      widthMs: fc.option(
        fc.integer({ min: 10, max: 31 * 86_400 }).map((seconds) => seconds * 1000),
        { nil: undefined },
      ),
      inMs: moments,
      outMs: moments,
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(addresses, zones, (address, zone) => {
      assert.deepEqual(parseAddress(new URLSearchParams(formatAddress(address, zone))), address);
    }),
  );
});

test('it can be read by people', () => {
  const address = parse('c=cam4,cam5&t=2026-11-22T02:13:00+01:00&z=1h');
  assert.deepEqual(address, {
    cameras: ['cam4', 'cam5'],
    atMs: Date.UTC(2026, 10, 22, 1, 13),
    widthMs: 3_600_000,
    inMs: undefined,
    outMs: undefined,
  });
  const { c, t, z } = addressFields(address, new Zone('Europe/Berlin'));
  assert.deepEqual([c, t, z], ['cam4,cam5', '2026-11-22T02:13:00+01:00', '1h']);
});

test('what cannot be understood is as if it were not there', () => {
  const nothing = { cameras: [], atMs: undefined, widthMs: undefined, inMs: undefined, outMs: undefined };
  for (const query of ['', 'x=1', 't=02:13', 't=2026-11-22T02:13:00', 'z=1y&c=', 't=%', 't=2026-99-99T02:13:00Z']) {
    assert.deepEqual(parse(query), nothing, query);
  }
  assert.equal(parse('t=2026-11-22T02:13:00 01:00').atMs, Date.UTC(2026, 10, 22, 1, 13));
  assert.equal(parse('c=1,2,3,4,5,6,7,8,9,10').cameras.length, 9);
  assert.equal(parse('z=1s').widthMs, 10_000);
});
