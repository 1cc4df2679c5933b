import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import {
  MAX_NAME_BYTES,
  baseNameInDay,
  dayPath,
  dayStartMs,
  fileNameOf,
  formatPath,
  parseBaseName,
  parseDay,
  parsePath,
  readNamesOfDay,
} from './names.ts';

const START_MS = Date.UTC(2026, 10, 21, 2, 45, 7, 123);
const PATH = '2026/11/21/Front-Gate_gate.1-a_20261121_024507123.mp4';

const segment = fc.record(
  {
    name: fc.string().map(fileNameOf),
    cameraId: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/),
    startMs: fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) }),
  },
  { noNullPrototype: true },
);

test('a segment lies in the directory of its UTC day under name, camera id, date and time', () => {
  assert.equal(formatPath({ name: 'Front-Gate', cameraId: 'gate.1-a', startMs: START_MS }), PATH);
  assert.deepEqual(parsePath(PATH), { name: 'Front-Gate', cameraId: 'gate.1-a', startMs: START_MS });
});

test('every segment name is read back as it was written, also by the reader of whole directories', () => {
  fc.assert(
    fc.property(segment, (written) => {
      const path = formatPath(written);
      assert.deepEqual(parsePath(path), written);
      const baseName = path.slice(path.lastIndexOf('/') + 1);
      const dayMs = dayStartMs(written.startMs);
      const { name, cameraId, startMs } = written;
      assert.deepEqual(readNamesOfDay(dayMs, [baseName]), [{ name, cameraId, timesMs: [startMs - dayMs] }]);
    }),
  );
});

test('a file name fits the 255 bytes of common file systems, with a marker prefix of 16 digits', () => {
  const path = formatPath({ name: fileNameOf('N'.repeat(500)), cameraId: 'i'.repeat(63), startMs: START_MS });
  assert.ok(path.length - '2026/11/21/'.length + 17 <= 255);
});

const displayNames = [
  ['Gate', 'Gate'],
  ['Front Gate_2', 'Front-Gate-2'],
  ['Tür/Hof', 'T-r-Hof'],
  ['../../etc', '-.-..-etc'],
  ['.hidden', '-hidden'],
  ['📷', '-'],
  ['', '-'],
  ['x'.repeat(200), 'x'.repeat(MAX_NAME_BYTES)],
] as const;
for (const [displayName, expected] of displayNames) {
  test(`the display name ${JSON.stringify(displayName.slice(0, 20))} becomes ${expected.slice(0, 20)}`, () => {
    assert.equal(fileNameOf(displayName), expected);
  });
}

const strangers = [
  'README.md',
  'gate_20261121_024507123.mp4',
  'a_b_c_20261121_024507123.mp4',
  'Gate_gate_20261121_024507123.mp4.part',
  'Gate_gate_20261131_024507123.mp4',
  'Gate_gate_20261121_246000000.mp4',
  'Gate_gate_20261121_02450712.mp4',
  'Gate_-gate_20261121_024507123.mp4',
  'G te_gate_20261121_024507123.mp4',
  'Gate_gate_00001121_024507123.mkv',
  `Gate_${'i'.repeat(64)}_20261121_024507123.mp4`,
];
for (const name of strangers) {
  test(`${name.slice(0, 50)} is no segment`, () => {
    assert.equal(parseBaseName(name), undefined);
    assert.deepEqual(readNamesOfDay(dayStartMs(START_MS), [name]), []);
  });
}

test('any text is read or refused, and what is read is written again as it was', () => {
  const mutated = fc
    .tuple(fc.nat(PATH.length), fc.string({ maxLength: 3 }), fc.nat(3))
    .map(([at, put, cut]) => PATH.slice(0, at) + put + PATH.slice(at + cut));
  fc.assert(
    fc.property(fc.oneof(fc.string(), mutated), (text) => {
      const read = parsePath(text);
      if (read) assert.equal(formatPath(read), text);
      const name = text.slice(text.lastIndexOf('/') + 1);
      const [ofDay] = readNamesOfDay(dayStartMs(START_MS), [name]);
      const startMs = dayStartMs(START_MS) + (ofDay?.timesMs[0] ?? NaN);
      assert.deepEqual(
        ofDay && { name: ofDay.name, cameraId: ofDay.cameraId, startMs },
        parsePath(`2026/11/21/${name}`),
      );
    }),
  );
});

test('a segment in the directory of another day is no segment', () => {
  assert.equal(parsePath(PATH.replace('/21/', '/22/')), undefined);
});

test('days are those of the calendar', () => {
  assert.equal(parseDay('2028', '02', '29'), Date.UTC(2028, 1, 29));
  for (const [year, month, day] of [
    ['2027', '02', '29'],
    ['2027', '13', '01'],
    ['2027', '00', '10'],
    ['0027', '1', '10'],
    ['20270', '01', '10'],
  ] as const)
    assert.equal(parseDay(year, month, day), undefined, `${year}/${month}/${day}`);
});

test('a name formed within its day is the name formed from its start', () => {
  fc.assert(
    fc.property(segment, (written) => {
      const day = dayPath(written.startMs);
      const timeMs = written.startMs - dayStartMs(written.startMs);
      assert.equal(`${day}/${baseNameInDay(day, timeMs, written)}`, formatPath(written));
    }),
  );
});

test('footage of a preview has the name of its camera with an end that no camera has', () => {
  const segment = { name: 'Gate', cameraId: 'gate~preview', startMs: Date.UTC(2026, 10, 25, 9, 30, 1, 5) };
  const path = '2026/11/25/Gate_gate~preview_20261125_093001005.mp4';
  assert.equal(formatPath(segment), path);
  assert.deepEqual(parsePath(path), segment);
  assert.deepEqual(readNamesOfDay(Date.UTC(2026, 10, 25), [path.slice(11)]), [
    { name: 'Gate', cameraId: 'gate~preview', timesMs: [34_201_005] },
  ]);
  for (const id of ['gate~', '~preview', 'gate~preview~preview', 'gate~other', 'ga~te']) {
    assert.equal(parsePath(path.replace('gate~preview', id)), undefined, id);
  }
});
