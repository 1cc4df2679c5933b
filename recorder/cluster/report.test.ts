import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { RecorderNodeStatus } from '../../crds/recorder-node.ts';
import { BURST, Report } from './report.ts';

const TICK_MS = 250;

/** A node that checks its state four times a second. */
function setup() {
  const clock = new VirtualClock();
  const written: RecorderNodeStatus[] = [];
  let status: RecorderNodeStatus = {};
  const mayTell = { now: true };
  const report = new Report({
    api: {
      apply: async (_path, _manager, object) => {
        written.push((object as { status: RecorderNodeStatus }).status);
        return { metadata: { name: 'a', resourceVersion: '1' } };
      },
    },
    namespace: 'video',
    nodeId: 'a',
    status: async () => status,
    mayTell: () => mayTell.now,
    clock,
    log: silentLog,
  });
  const pass = async (seconds: number, change: (i: number) => RecorderNodeStatus = () => status): Promise<number> => {
    const before = written.length;
    for (let i = 0; i < (seconds * 1_000) / TICK_MS; i++) {
      status = change(i);
      report.touch();
      clock.advance(TICK_MS);
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
    return written.length - before;
  };
  return { pass, written, mayTell };
}

const camera = (name: string, epoch: number, state: 'Connecting' | 'Recording', at = 0) => ({
  name,
  epoch,
  state,
  lastWrittenTime: new Date(at).toISOString(),
});

test('what changes all the time is written every five minutes only: times of pictures, free bytes, how far footage reaches', async () => {
  const { pass } = setup();
  const busy = (i: number): RecorderNodeStatus => ({
    freeBytes: 1_000_000 - i,
    cameras: [camera('gate', 1, 'Recording', i * TICK_MS)],
    archives: [{ camera: 'gate', newestTime: new Date(i * TICK_MS).toISOString() }],
  });
  await pass(10, busy);
  assert.equal(await pass(280, busy), 0);
  assert.equal(await pass(20, busy), 1);
});

test('footage of a camera that the node does not record is reported at once: it has bridged a restart of the one that does', async () => {
  const { pass, written } = setup();
  const bridged = (atMs: number): RecorderNodeStatus => ({
    cameras: [],
    archives: [{ camera: 'gate', newestTime: new Date(atMs).toISOString() }],
  });
  await pass(10, () => bridged(0));
  assert.equal(await pass(10, () => bridged(500_000)), 1);
  assert.equal(written.at(-1)?.archives?.[0]?.newestTime, new Date(500_000).toISOString());
});

test('nothing is reported of a node that may be of another pool; what was held back is reported afterwards', async () => {
  const { pass, mayTell } = setup();
  mayTell.now = false;
  assert.equal(await pass(10, () => ({ cameras: [camera('gate', 1, 'Recording')] })), 0);
  mayTell.now = true;
  assert.equal(await pass(10), 1);
});

test('states that change are written once a second at most, and the last one is', async () => {
  const { pass, written } = setup();
  const flapping = (i: number): RecorderNodeStatus => ({
    cameras: [camera('gate', 1, i % 2 === 0 ? 'Connecting' : 'Recording')],
  });
  await pass(10, flapping);
  const count = await pass(60, flapping);
  assert.ok(count <= 61 && count >= 30, `${count}`);
  await pass(3, () => ({ cameras: [camera('gate', 1, 'Recording')] }));
  assert.equal(written.at(-1)?.cameras?.[0]?.state, 'Recording');
});

test('cameras that are newly named are told at once, twenty times in a row, and then once a second', async () => {
  const { pass } = setup();
  await pass(30);
  const naming = (i: number): RecorderNodeStatus => ({
    cameras: Array.from({ length: i + 1 }, (_, n) => camera(`camera-${n}`, 1, 'Connecting')),
  });
  const first = await pass(BURST * (TICK_MS / 1_000), naming);
  assert.ok(first >= BURST - 2, `${first} of ${BURST}`);
  const later = await pass(60, (i) => naming(BURST + i));
  assert.ok(later >= 50 && later <= 70, `${later}`);
});
