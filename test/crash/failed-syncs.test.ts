// Linux reports once that a sync failed, and may have dropped what it should have saved; later syncs succeed. What is told to be
// safe after that must have been written again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { Turns } from '../../base/turns.ts';
import { Archive } from '../../recorder/archive/archive.ts';
import type { ClosedSegment } from '../../recorder/archive/catalogue/segment.ts';
import { Journal } from '../../recorder/archive/gaps/journal.ts';
import { parseJournal, type LedgerRecord } from '../../recorder/archive/gaps/record.ts';
import { runOf, TestCamera } from '../../recorder/archive/test-support.ts';
import { RowQueue } from '../../recorder/database/row-queue.ts';
import type { RowChange } from '../../recorder/database/row.ts';
import { DayLog, readDay } from '../../recorder/happenings/day-log.ts';
import type { Happening } from '../../recorder/happenings/happening.ts';
import { CrashDisk } from '../support/crash-disk.ts';
import { crashState, DISK_MODELS, lost } from '../support/crash-states.ts';

/** A disk of which the next operations succeed or fail. */
function failingDisk() {
  const next: Record<'write' | 'sync', ('fails' | 'works')[]> = { write: [], sync: [] };
  const disk = new CrashDisk({ fails: (what) => next[what].shift() === 'fails' });
  /** What a power cut leaves at least. */
  const least = (): CrashDisk[] =>
    DISK_MODELS.map(
      (model) => new CrashDisk({ image: crashState(disk.image, disk.log, disk.log.length, model, lost) }),
    );
  return { disk, next, least };
}

test('a line of a gap journal is written again after a sync that failed', async () => {
  const { disk, next, least } = failingDisk();
  await disk.makeDirectory('/.kube-nvr');
  await disk.syncDirectory('/');
  const records: LedgerRecord[] = [1, 2].map((n) => ({ kind: 'recorded', fromMs: n * 1_000, toMs: n * 1_000 + 500 }));
  const journal = new Journal({
    fs: disk,
    directory: '/.kube-nvr/gaps',
    name: 'gate.jsonl',
    log: silentLog,
    isHeld: () => false,
    checkDisk: async () => {},
    snapshot: () => records,
  });
  for (const record of records) journal.append(record);
  next.sync = ['fails'];
  await journal.flush();
  assert.ok(journal.dirty);
  await journal.flush();
  assert.ok(!journal.dirty);
  for (const left of least())
    assert.deepEqual(parseJournal(left.bytesOf('/.kube-nvr/gaps/gate.jsonl').toString()), records);
});

test('a row that waits for the database is written again after a sync that failed', async () => {
  const { disk, next, least } = failingDisk();
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const open = (fs: CrashDisk): RowQueue => new RowQueue({ directory: '/rows', fs, clock, log: silentLog });
  const queue = open(disk);
  await queue.open();
  const changes: RowChange[] = ['a', 'b', 'c'].map((filename) => ({ kind: 'remove', filename, cameraId: 'gate' }));
  for (const [i, change] of changes.entries()) {
    if (i === 1) next.sync = ['fails'];
    queue.push(change);
    await queue.settled();
    await disk.idle();
    clock.advance(6_000);
    await queue.settled();
  }
  for (const left of least()) {
    const again = open(left);
    await again.open();
    const found: string[] = [];
    for (let taken = again.peek(9); taken.length > 0; taken = again.peek(9)) {
      found.push(...taken.map(({ change }) => JSON.stringify(change)));
      again.applied(taken);
      await again.settled();
    }
    assert.deepEqual(new Set(found), new Set(changes.map((change) => JSON.stringify(change))));
  }
});

test('an event that is reported again after a sync that failed is written again', async () => {
  const { disk, next, least } = failingDisk();
  const day = { directory: '/events', name: 'day.jsonl' };
  const log = new DayLog({ fs: disk, ...day, checkDisk: async () => {}, turns: new Turns(1) });
  const event = (id: string): Happening => ({
    camera_id: 'gate',
    id,
    source: 'frigate',
    type: 'person',
    start_ms: 1,
    end_ms: null,
    reported_by: 'frigate',
    received_ms: 1,
  });
  await log.add([event('first')]);
  next.sync = ['fails'];
  await assert.rejects(log.add([event('second')]), { code: 'EIO' });
  await log.add([event('second')]);
  for (const left of least()) {
    const events = await readDay(left, '/events/day.jsonl');
    assert.deepEqual(
      events.map(({ id }) => id),
      ['first', 'second'],
    );
  }
});

const ENDS = {
  'the sync of its index': { sync: ['fails'], write: [] },
  'the sync of what declares it finished': { sync: ['works', 'fails'], write: [] },
  'the first two syncs': { sync: ['fails', 'fails'], write: [] },
  'the first sync, and that of what declares it finished,': { sync: ['fails', 'works', 'fails'], write: [] },
  'the last write, and the sync after it,': { sync: ['fails'], write: ['fails'] },
  'the last write, and the sync of what declares it finished,': { sync: ['works', 'fails'], write: ['fails'] },
} as const;

for (const [what, operations] of Object.entries(ENDS)) {
  test(`a file is what was told of it although ${what} failed at its end`, async () => {
    const { disk, next, least } = failingDisk();
    const clock = new VirtualClock(Date.UTC(2026, 0, 1, 12));
    const closed: ClosedSegment[] = [];
    const archive = new Archive({
      root: '/recordings',
      workDir: '/state',
      fs: disk,
      clock,
      log: silentLog,
      syncIntervalMs: 2_000,
      limits: () => ({ node: {}, cameras: new Map() }),
      observer: { closed: (segment) => void closed.push(segment), removed() {} },
    });
    await archive.recover();
    const record = { cameraId: 'gate', name: 'Gate', format: 'fmp4', segmentDurationMs: 60_000 } as const;
    const recording = archive.sinkFor(record, { needKeyFrame() {} });
    const camera = new TestCamera(clock, recording, () => {});
    camera.bytesPerFrame = 3_000;
    camera.begin(runOf({}));
    const tick = async (): Promise<void> => {
      recording.tick();
      archive.tick();
      await disk.idle();
    };
    const play = async (quarters: number): Promise<void> => {
      for (let quarter = 0; quarter < quarters && closed.length === 0; quarter++) {
        await camera.play(0.24);
        await tick();
      }
    };
    await play(22);
    next.sync = [...operations.sync];
    next.write = [...operations.write];
    camera.end('camera-lost');
    await disk.idle();
    // It is repaired when the disk works again.
    camera.begin(runOf({ runId: '00000000000000bb' }));
    await play(220);
    const [segment] = closed;
    assert.ok(segment);
    const path = `/recordings/${segment.path}`;
    assert.equal(segment.sizeBytes, disk.bytesOf(path).length);
    for (const left of least()) assert.ok(left.bytesOf(path).equals(disk.bytesOf(path)), 'the file is another one now');
    await archive.close();
  });
}
