import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { formatListen, parseDuration, parseListen, parseSize, parseSpace, ValueError } from './values.ts';

const durations: [string, number][] = [
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5m', 90_000],
  ['1h30m', 5_400_000],
  ['7d', 604_800_000],
  ['2w', 1_209_600_000],
];
for (const [text, ms] of durations) test(`duration ${text}`, () => assert.equal(parseDuration(text), ms));

const sizes: [string, number][] = [
  ['1024', 1024],
  ['1B', 1],
  ['500GiB', 500 * 2 ** 30],
  ['200Gi', 200 * 2 ** 30],
  ['2TB', 2e12],
  ['1.5 MB', 1.5e6],
  ['4k', 4000],
];
for (const [text, bytes] of sizes) test(`size ${text}`, () => assert.equal(parseSize(text), bytes));

test('space is a percentage or a size', () => {
  assert.deepEqual(parseSpace('5%'), { kind: 'percent', percent: 5 });
  assert.deepEqual(parseSpace('20GiB'), { kind: 'bytes', bytes: 20 * 2 ** 30 });
  assert.throws(() => parseSpace('95%'), ValueError);
});

const addresses: [string, string, number][] = [
  ['0.0.0.0:9997', '0.0.0.0', 9997],
  ['[::1]:80', '::1', 80],
  ['[fe80::1%eth0]:80', 'fe80::1%eth0', 80],
  [':0', '::', 0],
  ['nvr-1.example:65535', 'nvr-1.example', 65_535],
];
for (const [text, host, port] of addresses) {
  test(`address ${text}`, () => assert.deepEqual(parseListen(text), { host, port }));
}

const wrong: [(text: string) => unknown, string[]][] = [
  [parseDuration, ['', '5', 'm', '5 m', '-5m', '5x', '5m!', '99999999999999999w']],
  [parseSize, ['', 'GiB', '5XB', '-1', '1e3', '99999999PB']],
  [parseSpace, ['', '%', '101%', 'many']],
  [parseListen, ['', '9997', 'host', 'host:', 'host:65536', '::1:80', '[::1]', 'a b:80', 'http://x:80']],
];
for (const [parse, texts] of wrong) {
  test(`${parse.name} refuses what is none`, () => {
    for (const text of texts) assert.throws(() => parse(text), ValueError, text);
  });
}

test('whatever is written parses or is refused, and addresses survive being written', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      for (const parse of [parseDuration, parseSize, parseSpace]) {
        try {
          parse(text);
        } catch (err) {
          assert.ok(err instanceof ValueError);
        }
      }
      try {
        const address = parseListen(text);
        assert.deepEqual(parseListen(formatListen(address)), address);
      } catch (err) {
        assert.ok(err instanceof ValueError);
      }
    }),
  );
});
