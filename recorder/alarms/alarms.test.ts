import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { makeEvent, type NodeEvent, type EventReport } from '../contract/event.ts';
import { byStart, HappeningError, type Happening } from '../happenings/happening.ts';
import { Alarms } from './alarms.ts';

const NOON_MS = Date.UTC(2026, 0, 10, 12);

/** A node: what its journal and its disk have outlives a process. */
function stage(t: TestContext) {
  const clock = new VirtualClock(NOON_MS);
  const kept: Happening[] = [];
  let isBroken = false;
  const lines = {
    async add(events: readonly Happening[]) {
      if (isBroken) throw new HappeningError('not-kept', 'the disk hangs');
      kept.push(...events);
      return events;
    },
    cameras: async () => [...new Set(kept.map(({ camera_id }) => camera_id))],
    find: async () => [...kept].sort(byStart),
  };
  let events: NodeEvent[] = [];
  const followers = new Set<() => void>();
  const reported: unknown[] = [];
  const journal = {
    tell: ({ type, cameraId, data }: EventReport) => void reported.push([type, cameraId, data['code'], data['by']]),
    after: function* (id: number) {
      yield* events.filter((event) => event.id > id);
    },
    follow: (listener: () => void) => (followers.add(listener), () => void followers.delete(listener)),
  };
  const tell = (told: EventReport): void => {
    events.push(makeEvent(clock.wallMs() * 1000 + events.length, told, clock.wallMs(), 'rack-1'));
    for (const follower of followers) follower();
  };
  const begin = async (): Promise<Alarms> => {
    const alarms = new Alarms({ journal, lines, clock, log: silentLog });
    t.after(() => alarms.close());
    await alarms.start();
    return alarms;
  };
  const opened = (cause = 'camera-unreachable', cameraId = 'gate'): void =>
    tell({ type: 'gap.opened', cameraId, data: { start_ms: clock.wallMs(), cause } });
  const closed = (seconds: number, cause = 'camera-unreachable', cameraId = 'gate'): void =>
    tell({
      type: 'gap.closed',
      cameraId,
      data: { start_ms: clock.wallMs() - seconds * 1000, end_ms: clock.wallMs(), cause },
    });
  return {
    clock,
    kept,
    reported,
    tell,
    begin,
    opened,
    closed,
    breakDisk: () => void (isBroken = true),
    forgetJournal: () => void (events = []),
  };
}

const shown = (alarms: Alarms): unknown[] =>
  alarms.list.map(({ cameraId, code, startMs, endMs, count }) => [
    cameraId,
    code,
    (startMs - NOON_MS) / 1000,
    endMs === undefined ? 'lasts' : (endMs - NOON_MS) / 1000,
    count,
  ]);

test('a gap is an alarm when it has lasted ten seconds, from its beginning to its end', async (t) => {
  const { clock, begin, opened, closed } = stage(t);
  const alarms = await begin();
  opened();
  clock.advance(9_000);
  assert.deepEqual(shown(alarms), []);
  clock.advance(1_000);
  assert.deepEqual(shown(alarms), [['gate', 'camera-unreachable', 0, 'lasts', 1]]);
  clock.advance(20_000);
  closed(30);
  assert.deepEqual(shown(alarms), [['gate', 'camera-unreachable', 0, 30, 1]]);
});

test('a short gap, and one that somebody wanted, is no alarm; a long one that is told when it is over is', async (t) => {
  const { clock, begin, opened, closed } = stage(t);
  const alarms = await begin();
  opened();
  clock.advance(5_000);
  closed(5);
  opened('stopped');
  clock.advance(60_000);
  closed(60, 'stopped');
  assert.deepEqual(shown(alarms), []);
  closed(40, 'process-down');
  assert.deepEqual(shown(alarms), [['gate', 'process-down', 25, 65, 1]]);
  alarms.close();
  assert.deepEqual((await begin()).list, alarms.list);
});

test('what comes again within ten minutes is the same alarm, later it is another one', async (t) => {
  const { clock, begin, opened, closed } = stage(t);
  const alarms = await begin();
  for (const pauseS of [0, 599, 601]) {
    clock.advance(pauseS * 1000);
    opened();
    clock.advance(20_000);
    closed(20);
  }
  assert.deepEqual(shown(alarms), [
    ['gate', 'camera-unreachable', 1_240, 1_260, 1],
    ['gate', 'camera-unreachable', 0, 639, 2],
  ]);
});

test('a warning is an alarm with its words until it is cleared, and a node that was lost is one alarm for all its cameras', async (t) => {
  const { clock, begin, tell } = stage(t);
  const alarms = await begin();
  tell({ type: 'warning.raised', data: { code: 'disk-full', detail: 'the disk is full' } });
  clock.advance(5_000);
  for (const cameraId of ['gate', 'yard']) tell({ type: 'camera.taken', cameraId, data: { node_lost: true } });
  tell({ type: 'camera.taken', cameraId: 'dock', data: { node_lost: false } });
  tell({ type: 'warning.cleared', data: { code: 'disk-full' } });
  assert.equal(alarms.list.at(-1)?.message, 'the disk is full');
  assert.deepEqual(shown(alarms), [
    [undefined, 'node-lost', 5, 5, 2],
    [undefined, 'disk-full', 0, 5, 1],
  ]);
});

test('who has taken note, and the log of the shift, are there for the next process', async (t) => {
  const { clock, begin, opened } = stage(t);
  const first = await begin();
  opened();
  clock.advance(10_000);
  const { id } = first.list[0]!;
  await first.acknowledge(id, 'anna', undefined);
  clock.advance(1_000);
  await first.acknowledge(id, 'bert', 'the cable was cut');
  await first.write('anna', 'round made');
  await first.write('bert', 'all quiet');
  first.close();
  const second = await begin();
  assert.deepEqual(second.list, first.list);
  assert.deepEqual(second.list[0]?.acknowledged, { by: 'bert', atMs: NOON_MS + 11_000, note: 'the cable was cut' });
  assert.deepEqual(
    second.notes.map(({ by, note }) => [by, note]),
    [
      ['bert', 'all quiet'],
      ['anna', 'round made'],
    ],
  );
  assert.equal(await second.acknowledge('none', 'anna', undefined), undefined);
});

test('a journal that is read again after a restart tells nothing twice, and a short gap goes on to become an alarm', async (t) => {
  const { clock, begin, opened, closed, kept } = stage(t);
  const first = await begin();
  opened();
  clock.advance(20_000);
  closed(20);
  opened('disk-full', 'yard');
  first.close();
  const count = kept.length;
  const second = await begin();
  assert.equal(kept.length, count);
  clock.advance(10_000);
  assert.deepEqual(shown(second), [
    ['yard', 'disk-full', 20, 'lasts', 1],
    ['gate', 'camera-unreachable', 0, 20, 1],
  ]);
});

test('an alarm of which the journal knows nothing any more is over until it is told again', async (t) => {
  const { clock, begin, opened, forgetJournal } = stage(t);
  (await begin()).close();
  const first = await begin();
  opened();
  clock.advance(10_000);
  first.close();
  forgetJournal();
  clock.advance(5_000);
  const second = await begin();
  assert.deepEqual(shown(second), [['gate', 'camera-unreachable', 0, 15, 1]]);
  opened();
  clock.advance(10_000);
  assert.deepEqual(shown(second), [['gate', 'camera-unreachable', 0, 'lasts', 2]]);
});

test('each change is reported to who follows the events, once', async (t) => {
  const { clock, begin, opened, closed, reported } = stage(t);
  const alarms = await begin();
  opened();
  clock.advance(10_000);
  await alarms.acknowledge(alarms.list[0]!.id, 'anna', undefined);
  closed(10);
  await alarms.write('anna', 'x');
  alarms.close();
  await begin();
  assert.deepEqual(reported, [
    ['alarm.raised', 'gate', 'camera-unreachable', null],
    ['alarm.acknowledged', 'gate', 'camera-unreachable', 'anna'],
    ['alarm.ended', 'gate', 'camera-unreachable', null],
    ['alarm.noted', undefined, null, 'anna'],
  ]);
});

test('a disk that hangs hides no alarm, and refuses what people write', async (t) => {
  const { clock, begin, opened, breakDisk } = stage(t);
  const alarms = await begin();
  breakDisk();
  opened();
  clock.advance(10_000);
  assert.equal(alarms.list.length, 1);
  await assert.rejects(alarms.acknowledge(alarms.list[0]!.id, 'anna', undefined), HappeningError);
  await assert.rejects(alarms.write('anna', 'x'), HappeningError);
  assert.equal(alarms.list[0]?.acknowledged, undefined);
  assert.deepEqual(alarms.notes, []);
});
