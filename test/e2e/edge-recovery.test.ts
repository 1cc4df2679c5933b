// Gaps are filled from the memory of the camera: decoded over live footage, filled footage and live footage, the numbers of the
// pictures go on without a hole or a double.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { EdgeCamera } from '../camera/edge-camera.ts';
import { decodePictures } from '../camera/frame-numbers.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { MemoryOptions } from '../camera/memory.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { closedFootage } from '../support/closed-footage.ts';
import type { GapsAnswer } from '../support/invariants.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const NAME = 'h264';
/** Causes of a gap while the link is down. */
const LINK = ['connection-lost', 'camera-unreachable'];

interface Stage {
  readonly edge: EdgeCamera;
  readonly config: Readonly<Record<string, unknown>>;
  readonly directory: string;
  recorder: RecorderProcess;
}

async function stage(t: TestContext, memory: MemoryOptions = {}): Promise<Stage> {
  const tracks = [videoTrack(await videoMedia(NAME)), audioTrack(await audioMedia('aac'))];
  const edge = await EdgeCamera.start({ pace: 'realtime', tracks, memory });
  t.after(() => edge.close());
  const config = {
    archive: { segmentDuration: '4s' },
    cameras: [{ id: 'gate', source: edge.camera.url, onvif: edge.device.url, edge: { onvif: true, maxBitrate: 100 } }],
  };
  const directory = workspace(t);
  const recorder = await RecorderProcess.start({ directory, config });
  const made: Stage = { edge, config, directory, recorder };
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
    60_000,
  ).catch((err: unknown) => {
    throw new Error(`${JSON.stringify(gaps)} ${recorder.child.output}`, { cause: err });
  });
}

/** The numbers of all pictures in all files, by time. */
async function numbersOf(recorder: RecorderProcess): Promise<number[]> {
  const files = await closedFootage((await recorder.files()).map((file) => join(recorder.recordPath, file)));
  const all: number[] = [];
  for (const { path } of files) {
    const { numbers, complaints } = await decodePictures(path);
    assert.equal(complaints, '', path);
    all.push(...numbers);
  }
  return all;
}

/** Test pictures are repeated, each time from the first number on. */
async function assertWhole(numbers: readonly number[]): Promise<void> {
  const count = (await videoMedia(NAME)).frames.length;
  for (const [i, number] of numbers.entries()) {
    if (i > 0) assert.equal(number, ((numbers[i - 1] as number) + 1) % count, `picture ${i} of ${numbers.join()}`);
  }
}

describe('gaps are filled from the memory of a camera', { concurrency: true }, () => {
  test('after the network was cut', async (t) => {
    const { edge, recorder } = await stage(t, { clockOffsetMs: 37_000 });
    await edge.cut();
    await until('the gap begins', async () => (await gapsOf(recorder)).gaps.some((gap) => gap.is_open));
    const cutMs = Date.now();
    await until('it lasts', () => Date.now() - cutMs > 15_000, 60_000);
    await edge.mend();
    await untilFilled(recorder, ...LINK);
    const { gaps, missing_seconds: missing, filled_seconds: filled } = await gapsOf(recorder);
    assert.ok(filled >= 15, `${filled} s were filled`);
    assert.ok(missing < 10, `${missing} s before the first picture`);
    assert.ok(
      gaps.filter((gap) => gap.filled_from).every(({ seam }) => seam === 'bytes'),
      JSON.stringify(gaps),
    );
    const listed = (await recorder.get('/api/archive/gate/segments')) as { archive: { origin?: string }[] };
    assert.ok(listed.archive.some(({ origin }) => origin === 'edge'));
    await recorder.stop();
    await assertWhole(await numbersOf(recorder));
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
    const { edge, recorder } = await stage(t);
    await edge.cut();
    await until('the gap begins', async () => (await gapsOf(recorder)).gaps.some((gap) => gap.is_open));
    const cutMs = Date.now();
    await until('it lasts', () => Date.now() - cutMs > 8_000, 60_000);
    // The places of the gap are looked for first.
    edge.memory.cuts.push(10_000, 10_000, 100);
    await edge.mend();
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
