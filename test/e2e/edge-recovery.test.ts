// Gaps are filled from the memory of the camera: decoded over live footage, filled footage and live footage, the numbers of the
// pictures go on without a hole or a double.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EdgeCamera } from '../camera/edge-camera.ts';
import { decodeFiles } from '../camera/frame-numbers.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { MemoryOptions } from '../camera/memory.ts';
import type { CameraOptions } from '../camera/options.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { closedFootage } from '../support/closed-footage.ts';
import type { GapsAnswer } from '../support/invariants.ts';
import { Mount, Stranger } from '../support/mount.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';

/** Causes of a gap while the link is down. */
const LINK = ['connection-lost', 'camera-unreachable'];

type VideoName = Parameters<typeof videoMedia>[0];

interface StageOptions extends CameraOptions {
  readonly name?: VideoName;
  /** An address with times, instead of ONVIF. */
  readonly replay?: string;
  readonly recordPath?: string;
}

interface Stage {
  readonly name: VideoName;
  readonly edge: EdgeCamera;
  readonly config: Readonly<Record<string, unknown>>;
  readonly directory: string;
  recorder: RecorderProcess;
}

/** A camera with picture and sound, recorded, and so much of it on the disk that a gap has footage before it. */
async function stage(
  t: TestContext,
  memory: MemoryOptions = {},
  { name = 'h264', replay, recordPath, ...options }: StageOptions = {},
): Promise<Stage> {
  const tracks = [videoTrack(await videoMedia(name)), audioTrack(await audioMedia('aac'))];
  const edge = await EdgeCamera.start({ pace: 'realtime', tracks, memory, ...options });
  t.after(() => edge.close());
  const how =
    replay === undefined
      ? { onvif: edge.device.url, edge: { onvif: true, maxBitrate: 100 } }
      : { edge: { replay: edge.camera.url.replace(/\/stream$/, replay), maxBitrate: 100 } };
  const config = {
    ...(recordPath === undefined ? {} : { record_path: recordPath }),
    archive: { segmentDuration: '4s' },
    cameras: [{ id: 'gate', source: edge.camera.url, ...how }],
  };
  const directory = workspace(t);
  const recorder = await RecorderProcess.start({ directory, config });
  const made: Stage = { name, edge, config, directory, recorder };
  t.after(() => made.recorder.child[Symbol.asyncDispose]());
  await recorder.untilRecording('gate');
  await untilWritten(recorder, 3);
  return made;
}

/** Until so many files of the camera are there. */
async function untilWritten(recorder: RecorderProcess, count: number): Promise<void> {
  await until('footage is written', async () => (await recorder.files()).length >= count);
}

const gapsOf = async (recorder: RecorderProcess): Promise<GapsAnswer> =>
  (await recorder.get('/api/archive/gate/gaps')) as GapsAnswer;

/** Gaps that are over, other than before the first picture. */
async function lost(recorder: RecorderProcess): Promise<GapsAnswer['gaps']> {
  const { gaps } = await gapsOf(recorder);
  const [first] = gaps;
  return gaps.filter((gap) => gap !== first || gap.cause !== 'starting');
}

async function untilFilled(recorder: RecorderProcess, ...causes: readonly string[]): Promise<void> {
  let gaps: GapsAnswer['gaps'] = [];
  await until(
    'the gap is filled',
    async () => {
      gaps = await lost(recorder);
      return gaps.some((gap) => causes.includes(gap.cause)) && gaps.every((gap) => gap.filled_from === 'edge');
    },
    180_000,
  ).catch((err: unknown) => {
    throw new Error(`${JSON.stringify(gaps)} ${recorder.child.output}`, { cause: err });
  });
}

/** The numbers of all pictures in all files, by time. */
async function numbersOf(recorder: RecorderProcess): Promise<number[]> {
  const files = await closedFootage((await recorder.files()).map((file) => join(recorder.recordPath, file)));
  const { numbers, complaints } = await decodeFiles(files.map(({ path }) => path));
  assert.equal(complaints, '');
  return numbers.flat();
}

/** From the first picture on. Test pictures are repeated, each time from the first number on. */
async function assertWhole(numbers: readonly number[], name: VideoName = 'h264'): Promise<void> {
  const count = (await videoMedia(name)).frames.length;
  assert.equal(numbers[0], 0);
  for (const [i, number] of numbers.entries()) {
    if (i > 0) assert.equal(number, ((numbers[i - 1] as number) + 1) % count, `picture ${i} of ${numbers.join()}`);
  }
}

/** Cuts the link for so long. */
async function cut({ edge, recorder }: Stage, seconds: number): Promise<void> {
  await edge.cut();
  await until('the gap begins', async () => (await gapsOf(recorder)).gaps.some((gap) => gap.is_open));
  // Lasts: the camera is away.
  await sleep(seconds * 1000);
  await edge.mend();
}

describe('gaps are filled from the memory of a camera', { concurrency: true }, () => {
  test('after the network was cut', async (t) => {
    const made = await stage(t, { clockOffsetMs: 37_000 });
    const { recorder } = made;
    const seconds = LONG ? 90 : 15;
    await cut(made, seconds);
    await untilFilled(recorder, ...LINK);
    const { gaps, missing_seconds: missing, filled_seconds: filled } = await gapsOf(recorder);
    assert.ok(filled >= seconds, `${filled} s were filled`);
    const [first] = gaps;
    const beforeFirst = first?.cause === 'starting' ? (first.end_ms - first.start_ms) / 1000 : 0;
    assert.ok(Math.abs(missing - beforeFirst) < 0.01, `${missing} s, and ${beforeFirst} s before the first picture`);
    assert.ok(
      gaps.filter((gap) => gap.filled_from).every(({ seam }) => seam === 'bytes'),
      JSON.stringify(gaps),
    );
    const listed = (await recorder.get('/api/archive/gate/segments')) as { archive: { origin?: string }[] };
    assert.ok(listed.archive.some(({ origin }) => origin === 'edge'));
    await recorder.stop();
    await assertWhole(await numbersOf(recorder));
  });

  test('after the network was cut, of a camera that sends H.265', async (t) => {
    const made = await stage(t, {}, { name: 'h265' });
    await cut(made, 5);
    await untilFilled(made.recorder, ...LINK);
    await made.recorder.stop();
    await assertWhole(await numbersOf(made.recorder), 'h265');
  });

  test('after the disk was full', async (t) => {
    const mount = Mount.make(t, 'tmpfs', 24 * 1024 * 1024);
    if (!mount) return;
    const { recorder } = await stage(t, {}, { recordPath: mount.path });
    // Otherwise retention makes room with the oldest footage.
    const nowSeconds = Math.round(Date.now() / 1000);
    const query = `from=${nowSeconds - 600}&to=${nowSeconds + 3_600}`;
    const kept = await fetch(`${recorder.url}/api/archive/gate/protect?${query}`, { method: 'POST' });
    assert.ok(kept.ok, await kept.text());
    const stranger = new Stranger(mount);
    const isFull = async (): Promise<boolean> => {
      stranger.fillTo(0);
      return (await gapsOf(recorder)).gaps.some((gap) => gap.cause === 'disk-full');
    };
    await until('the disk is full', isFull);
    const fullMs = Date.now();
    await until(
      'it stays full',
      async () => (await isFull()) && Date.now() - fullMs > (LONG ? 60_000 : 4_000),
      240_000,
    );
    stranger.leave();
    await untilFilled(recorder, 'disk-full');
    await recorder.stop();
    await assertWhole(await numbersOf(recorder));
  });

  test('by the sender reports of a camera that states no time and stores other pictures than it streams', async (t) => {
    // Of the same size at the same times, from another encoder.
    const tracks = [videoTrack(await videoMedia('h264-main')), audioTrack(await audioMedia('aac'))];
    const made = await stage(
      t,
      { clockOffsetMs: 37_000, tracks },
      { replay: '/Streaming/tracks/101?starttime={start}&endtime={end}', reportClockOffsetMs: 37_000 },
    );
    const { recorder } = made;
    await cut(made, 5);
    let gaps: GapsAnswer['gaps'] = [];
    await until('it is filled, and why the rest is not is known', async () => {
      gaps = (await lost(recorder)).filter(({ cause }) => LINK.includes(cause));
      const isDone = gaps.every(({ filled_from: from, not_filled: why }) => from !== undefined || why !== undefined);
      return isDone && gaps.some(({ filled_from: from }) => from === 'edge');
    });
    assert.deepEqual([...new Set(gaps.flatMap(({ seam }) => seam ?? []))], ['time']);
    // No picture before the first key frame in the gap can be decoded without a seam.
    const left = gaps.filter(({ filled_from: from }) => from === undefined);
    assert.ok(
      left.every(({ seconds, not_filled: why }) => seconds < 2 && why?.reason === 'starts-at-key-frame'),
      JSON.stringify(gaps),
    );
    await recorder.stop();
    const numbers = await numbersOf(recorder);
    const breaks = numbers.flatMap((number, i) =>
      i > 0 && number !== ((numbers[i - 1] as number) + 1) % 250 ? [i] : [],
    );
    // Where the filled footage begins, and at its end as far as the clocks are not known. In the first second there may be one more: the memory
    // has pictures from before the first one that the recorder got.
    assert.ok(breaks.filter((i) => i > 25).length <= 2, numbers.join());
    assert.ok(breaks.filter((i) => i <= 25).length <= 1, numbers.join());
  });

  test('after the recorder was killed, also while a gap was being filled', async (t) => {
    const made = await stage(t);
    for (let kills = 0; kills < 2; kills++) {
      await made.recorder.child.stop('SIGKILL');
      made.recorder = await RecorderProcess.start({ directory: made.directory, config: made.config });
      await made.recorder.untilRecording('gate');
    }
    await untilFilled(made.recorder, 'process-down');
    await made.recorder.stop();
    await assertWhole(await numbersOf(made.recorder));
  });

  test('after a replay that was cut', async (t) => {
    const made = await stage(t);
    const { edge, recorder } = made;
    // The places of the gap are looked for first.
    edge.memory.cuts.push(10_000, 10_000, 100);
    await cut(made, 8);
    await untilFilled(recorder, ...LINK);
    await recorder.stop();
    await assertWhole(await numbersOf(recorder));
  });

  test('a memory that failed is named in the gap', async (t) => {
    const { edge, recorder } = await stage(t);
    edge.memory.failed = true;
    await edge.cut();
    await until('the gap begins', async () => (await gapsOf(recorder)).gaps.some((gap) => gap.is_open));
    await edge.mend();
    await until('the reason is told', async () =>
      (await lost(recorder)).some(({ not_filled: notFilled }) => notFilled?.reason === 'card-failed'),
    );
    await recorder.stop();
  });
});
