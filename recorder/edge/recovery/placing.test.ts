import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUDIO, VIDEO } from '../../archive/test-support.ts';
import type { SampleSink } from '../../contract/sink.ts';
import type { AudioParameters, VideoParameters } from '../../codec/access-unit.ts';
import { SlabPool, SlabWriter, type MediaData } from '../../codec/slab.ts';
import type { EdgePicture, EdgeSound } from '../memory.ts';
import { Placing, ticksBetween } from './placing.ts';

const START_MS = 50_000;
const TICKS = 3_600;
const RUN_START = 900_000;
const H265: VideoParameters = { ...VIDEO, codec: 'h265', codecString: 'hvc1.1.6.L30.B0', reorderDepth: undefined };

function data(): MediaData {
  const writer = new SlabWriter(new SlabPool());
  writer.append(Buffer.of(1, 2, 3), 0, 3);
  return writer.finish();
}

/** The `shown`-th picture in output order, of 40 ms each. */
const picture = (shown: number, parameters: VideoParameters = VIDEO, first = 0xffff_ff00): EdgePicture => ({
  kind: 'video',
  parameters,
  clockRate: 90_000,
  cameraMs: START_MS + shown * 40,
  dated: 'unit',
  cleanPoint: shown === 0,
  endsSection: false,
  discontinuity: false,
  unit: {
    data: data(),
    timestamp: (first + shown * TICKS) >>> 0,
    randomAccess: shown === 0,
    lostPackets: 0,
    durationTicks: 0,
    bidirectional: false,
  },
});

const sound = (cameraMs: number, parameters: AudioParameters = AUDIO): EdgeSound => ({
  ...picture(1),
  kind: 'audio',
  parameters,
  clockRate: 48_000,
  cameraMs,
  unit: { ...picture(1).unit, durationTicks: 1_024 },
});

/** A run from this picture on, dated an hour later than by the camera, and its calls as text: dts, composition offset, duration, time. */
function placed(first: EdgePicture, depth = 0): { readonly run: Placing; readonly calls: string[] } {
  const calls: string[] = [];
  const sink: SampleSink = {
    begin: ({ lead, audio }) => calls.push(`begin ${lead.codecString} ${audio?.codecString}`),
    change: ({ lead }) => calls.push(`change ${lead.codecString}`),
    sample: ({ kind, dts, compositionOffset, usualDuration, wallMs }) =>
      calls.push(
        `${kind} ${kind === 'video' ? dts - RUN_START : dts} ${compositionOffset} ${usualDuration} ${wallMs - 3_600_000 - START_MS}`,
      ),
    end: (reason) => calls.push(`end ${reason}`),
  };
  return { run: new Placing(sink, first, AUDIO, (cameraMs) => cameraMs + 3_600_000, depth), calls };
}

test('the distance of two RTP timestamps is in ticks of 90 kHz, also where they wrap', () => {
  assert.equal(ticksBetween(0xffff_ff00, 0x100, 90_000), 512);
  assert.equal(ticksBetween(0x100, 0xffff_ff00, 90_000), -512);
  assert.equal(ticksBetween(0, 4_000, 8_000), 45_000);
});

test('pictures last until the next one, and the last one to the end of the gap', () => {
  const first = picture(0);
  const { run, calls } = placed(first);
  for (const one of [first, picture(1), picture(3)]) run.picture(one);
  run.end('stopped', START_MS + 3_600_000 + 3 * 40 + 50, true);
  assert.deepEqual(calls, [
    'begin avc1.42c00a mp4a.40.2',
    'video 0 0 3600 0',
    'video 3600 0 7200 40',
    'video 10800 0 4500 120',
    'end stopped',
  ]);
});

test('an end of the gap that is far away does not stretch the last picture', () => {
  const first = picture(0);
  const { run, calls } = placed(first);
  for (const one of [first, picture(1)]) run.picture(one);
  run.end('stopped', START_MS + 3_600_000 + 1_000, true);
  assert.equal(calls.at(-2), 'video 3600 0 3600 40');
});

test('a replay that is cut does not cover the footage after the gap, and does not reach it', () => {
  for (const [endMs, ticks] of [
    [27, 27 * 90],
    [80, 3_600],
  ] as const) {
    const first = picture(0);
    const { run, calls } = placed(first);
    for (const one of [first, picture(1)]) run.picture(one);
    run.end('stopped', START_MS + 3_600_000 + 40 + endMs);
    assert.equal(calls.at(-2), `video 3600 0 ${ticks} 40`);
  }
});

test('H.265 whose pictures are shown in another order is noticed, and placed by a run that knows', () => {
  const order = [0, 2, 1, 4, 3];
  const shallow = placed(picture(0, H265));
  for (const shown of order) shallow.run.picture(picture(shown, H265));
  assert.deepEqual([shallow.run.depth, shallow.run.isTooShallow], [1, true]);
  shallow.run.end('parameters');
  const deep = placed(picture(0, H265), 1);
  const units = order.map((shown) => picture(shown, H265));
  for (const unit of units) deep.run.picture(unit);
  assert.equal(deep.run.isTooShallow, false);
  deep.run.end('stopped');
  assert.deepEqual(deep.calls, [
    'begin hvc1.1.6.L30.B0 mp4a.40.2',
    'video -3600 3600 3600 0',
    'video 0 7200 3600 80',
    'video 3600 0 3600 40',
    'video 7200 7200 3600 160',
    'video 10800 0 3600 120',
    'end stopped',
  ]);
});

test('a picture that is shown before the key frame is left out', () => {
  const first = picture(0);
  const { run, calls } = placed(first);
  assert.equal(run.picture(first), true);
  assert.equal(run.picture(picture(-1)), false);
  assert.equal(run.picture(picture(1)), true);
  run.end('stopped');
  assert.deepEqual(calls.slice(1, -1), ['video 0 0 3600 0', 'video 3600 0 3600 40']);
});

test('sound goes on without a hole where its stated times jump by less than 100 ms', () => {
  const { run, calls } = placed(picture(0));
  for (const cameraMs of [START_MS, START_MS + 21 + 90, START_MS + 43 - 40, START_MS + 1_000]) {
    run.sound(sound(cameraMs));
  }
  // From 10 s on, at 48 kHz.
  assert.deepEqual(
    calls.slice(1).map((call) => Number(call.split(' ')[1]) - 480_000),
    [0, 1_024, 2_048, 48_000],
  );
});

test('sound from before the run, and of another format, is left out', () => {
  const { run, calls } = placed(picture(0));
  run.sound(sound(START_MS - 1));
  run.sound(sound(START_MS + 20, { ...AUDIO, channels: 2 }));
  assert.equal(calls.length, 1);
});
