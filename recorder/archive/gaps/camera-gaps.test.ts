import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { newCounters } from '../../contract/camera-status.ts';
import { CameraGaps } from './camera-gaps.ts';
import { CameraLedger } from './camera-ledger.ts';
import type { LedgerRecord } from './record.ts';

const S = 1_000;

test('a file that ends before its last picture was thought to be: the same account now and after a restart', () => {
  const clock = new VirtualClock();
  const startMs = clock.wallMs();
  const records: LedgerRecord[] = [];
  const gaps = new CameraGaps({ clock, log: silentLog, journal: (record) => records.push(record) });
  gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  const observe = (...written: { fromMs: number; toMs: number }[]): void =>
    gaps.observe({
      camera: { state: 'recording', reason: undefined, counters: newCounters() },
      archive: { state: 'writing', reason: undefined, framesWritten: 1, framesDropped: new Map() },
      written,
    });
  const first = { fromMs: startMs + 0.25, toMs: startMs + 46 * S };
  const next = { fromMs: startMs + 45 * S, toMs: startMs + 60 * S };
  observe();
  clock.advance(60 * S);
  observe(first);
  gaps.recorded(first.fromMs, startMs + 31 * S);
  observe(next);
  gaps.recorded(next.fromMs, next.toMs);
  const expected = [[31, 45, 'clock-step']];
  const again = new CameraLedger();
  for (const record of records) again.apply(record);
  for (const ledger of [gaps.ledger, again]) {
    const { gaps: told } = ledger.report(startMs, startMs + 60 * S, startMs + 60 * S);
    assert.deepEqual(
      told.map(({ fromMs, toMs, cause }) => [(fromMs - startMs) / S, (toMs - startMs) / S, cause]),
      expected,
    );
  }
});

test('what the disk lost of a file is missing because of the disk', () => {
  const clock = new VirtualClock();
  const startMs = clock.wallMs();
  const gaps = new CameraGaps({ clock, log: silentLog, journal: () => {} });
  gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  clock.advance(60 * S);
  gaps.observe({
    camera: { state: 'recording', reason: undefined, counters: newCounters() },
    archive: { state: 'writing', reason: undefined, framesWritten: 1, framesDropped: new Map() },
    written: [{ fromMs: startMs, toMs: startMs + 60 * S }],
  });
  gaps.recorded(startMs, startMs + 55 * S, 'disk-error');
  const { gaps: told } = gaps.report(startMs, startMs + 60 * S);
  assert.deepEqual(
    told.map(({ fromMs, toMs, cause }) => [(fromMs - startMs) / S, (toMs - startMs) / S, cause]),
    [[55, 60, 'disk-error']],
  );
});

/** A node that takes over a camera 17 s after its node was lost, and holds its pictures since `heldForMs` ago. */
function takingOver(heldForMs: number) {
  const clock = new VirtualClock();
  const told: string[] = [];
  const gaps = new CameraGaps({
    clock,
    log: silentLog,
    journal: () => {},
    observer: {
      openBefore: undefined,
      silent: () => {},
      heard: () => {},
      filled: () => {},
      removed: () => {},
      opened: ({ cause }) => void told.push(`opened ${cause}`),
      closed: ({ fromMs, toMs, cause }) => void told.push(`${Math.round((toMs - fromMs) / S)} s ${cause}`),
    },
  });
  const lostMs = clock.wallMs() - 17 * S;
  gaps.takeOver(lostMs, clock.wallMs() - heldForMs);
  gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  let framesWritten = 0;
  const counters = { ...newCounters(), leadFrames: 400 };
  return {
    told,
    gaps,
    /** `written`: seconds since the node was lost, up to which pictures are in the file. */
    observe(written?: number): void {
      clock.advance(250);
      counters.leadFrames += 6;
      if (written !== undefined) framesWritten += 100;
      gaps.observe({
        camera: { state: 'recording', reason: undefined, counters },
        archive: { state: 'writing', reason: undefined, framesWritten, framesDropped: new Map() },
        written: written === undefined ? [] : [{ fromMs: lostMs - 5 * S, toMs: lostMs + written * S }],
      });
      gaps.tellGaps();
      gaps.seconds();
    },
    missing: (): [number, string][] =>
      gaps
        .report(lostMs - 60 * S, clock.wallMs())
        .gaps.filter(({ isProvisional }) => !isProvisional)
        .map(({ fromMs, toMs, cause }) => [Math.round((toMs - fromMs) / S), cause]),
  };
}

test('a node that held the camera when its node was lost misses nothing, and tells of no gap while it writes', () => {
  const node = takingOver(30 * S);
  node.observe();
  assert.equal(node.gaps.state, 'recording', 'pictures that arrived before show no slow disk');
  for (const written of [4, 10, 17.2, 17.4, 17.6]) node.observe(written);
  assert.deepEqual([node.missing(), node.told], [[], []]);
  assert.deepEqual([...node.gaps.seconds().values()], []);
});

test('a node that held the camera for less than that misses the rest', () => {
  const node = takingOver(6 * S);
  node.observe(17.5);
  node.gaps.recorded(0, 1);
  assert.deepEqual(node.missing(), []);
  const late = takingOver(6 * S);
  late.observe();
  assert.deepEqual(late.missing(), [[11, 'moved']]);
});

test('what was held and is not written within twenty seconds is missing', () => {
  const node = takingOver(30 * S);
  for (let i = 0; i < 100; i++) node.observe();
  assert.deepEqual(node.missing()[0]?.[1], 'moved');
  assert.ok((node.missing()[0]?.[0] ?? 0) >= 17);
});

/** A camera that sends 4 pictures between observations, or only packets. */
function sending() {
  const clock = new VirtualClock();
  const gaps = new CameraGaps({ clock, log: silentLog, journal: () => {} });
  gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  const counters = newCounters();
  let framesWritten = 0;
  return {
    gaps,
    counters,
    observe: (pictures: number, reason?: 'no-key-frame' | 'stream-silent'): void => {
      clock.advance(250);
      counters.leadFrames += pictures;
      framesWritten += pictures;
      gaps.observe({
        camera: reason
          ? { state: 'connecting', reason: { code: reason, message: '' }, counters }
          : { state: 'recording', reason: undefined, counters },
        archive: { state: 'writing', reason: undefined, framesWritten, framesDropped: new Map() },
        written: [],
      });
    },
  };
}

test('a picture that is missing because the kernel dropped its packets is missing because of this machine', () => {
  const { gaps, counters, observe } = sending();
  observe(0);
  counters.packetsLost += 300;
  observe(0, 'no-key-frame');
  assert.equal(gaps.state, 'no-key-frame', 'lost on the way');
  counters.packetsDropped += 300;
  observe(0, 'no-key-frame');
  assert.equal(gaps.state, 'machine-dropped');
  observe(0, 'stream-silent');
  assert.equal(gaps.state, 'stream-silent', 'then nothing came');
  observe(4);
  observe(4);
  observe(0, 'no-key-frame');
  assert.equal(gaps.state, 'no-key-frame', 'what was dropped before the last pictures does not count');
});

test('a break of the stream has the cause machine-dropped if the kernel dropped packets when it began', () => {
  const { gaps, counters, observe } = sending();
  observe(4);
  // The drop is counted with the last picture.
  counters.packetsDropped += 300;
  gaps.sink.end('gap');
  observe(1);
  assert.equal(gaps.state, 'machine-dropped');
});
