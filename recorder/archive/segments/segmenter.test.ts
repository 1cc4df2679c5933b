import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../../test/support/fast-check.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { MemoryBudget } from '../../../base/memory-budget.ts';
import type { EndReason, Run } from '../../contract/sink.ts';
import { Slab, type SlabPool } from '../../codec/slab.ts';
import type { Sample } from '../../mp4/sample.ts';
import { AUDIO, VIDEO, runOf } from '../test-support.ts';
import type { Fragment } from './fragment-builder.ts';
import { newHistory } from './history.ts';
import type { SegmentAction } from './segment-action.ts';
import { TablePool, type SegmentPlan } from './segment-plan.ts';
import { Segmenter } from './segmenter.ts';
import { WriteBudget } from './write-budget.ts';

const START_DTS = 900_000;
const FRAME_TICKS = 3600;

interface StageOptions {
  readonly run?: Partial<Run>;
  readonly segmentDurationMs?: number;
  /** How many fragments may wait for the disk. */
  readonly maxFragments?: number;
}

/** A segmenter with a camera of 25 pictures a second, and a key frame a second unless the test sends its own. */
class Stage {
  readonly clock = new VirtualClock();
  readonly history = newHistory();
  readonly memory = new MemoryBudget(Infinity).open('writing', { maxBytes: Infinity });
  readonly budget: WriteBudget;
  readonly segmenter: Segmenter;
  readonly run: Run;
  readonly #notes: { readonly words: string; pictures: number | undefined }[] = [];
  readonly plans: SegmentPlan[] = [];
  readonly closed = new Set<SegmentPlan>();
  readonly failed = new Set<SegmentPlan>();
  readonly waiting: { readonly plan: SegmentPlan; readonly fragment: Fragment }[] = [];
  /** The disk takes every fragment at once. */
  diskWorks = true;
  mayOpen = true;
  pausedUntilMs = -Infinity;
  readonly pictures = { sent: 0, written: 0, dropped: 0, lost: 0 };
  readonly samples = { taken: 0, released: 0 };
  videoDts = START_DTS;
  audioDts = (START_DTS * 48) / 90;
  #wallOffsetMs = 0;

  constructor({ run = {}, segmentDurationMs = 2_000, maxFragments }: StageOptions = {}) {
    const { clock, history } = this;
    this.run = runOf(run);
    this.budget = new WriteBudget(this.memory, maxFragments, () => 0);
    this.segmenter = new Segmenter({
      cameraId: 'gate',
      name: 'Front Gate',
      record: { format: 'fmp4', segmentDurationMs },
      clock,
      history,
      budget: this.budget,
      tables: new TablePool(),
    });
    this.begin();
  }

  begin(run = this.run): void {
    this.#wallOffsetMs = this.clock.wallMs() - this.videoDts / 90;
    this.perform(this.segmenter.begin(run));
  }

  /** How far the clock advances with a picture. */
  frameMs = 40;
  /** One picture. */
  video(sync = (this.videoDts - START_DTS) % 90_000 === 0): readonly SegmentAction[] {
    this.pictures.sent++;
    const actions = this.#push('video', this.videoDts, FRAME_TICKS, sync, this.videoDts / 90);
    this.videoDts += FRAME_TICKS;
    this.clock.advance(this.frameMs);
    return actions;
  }

  /** One audio frame, which takes no time. */
  audio(): void {
    this.#push('audio', this.audioDts, 1024, true, this.audioDts / 48);
    this.audioDts += 1024;
  }

  play(pictures: number): void {
    for (let i = 0; i < pictures; i++) {
      this.video();
      while (this.run.audio && this.audioDts / 48 < this.videoDts / 90) this.audio();
    }
  }

  #push(kind: 'video' | 'audio', dts: number, usualDuration: number, sync: boolean, atMs: number) {
    const pool = { giveBack: () => this.samples.released++ } as unknown as SlabPool;
    const slab = new Slab(Buffer.alloc(100, 0x55), pool);
    this.samples.taken++;
    const data = { slab, offset: 0, size: 100 };
    const wallMs = this.#wallOffsetMs + atMs;
    const sample: Sample = { kind, dts, compositionOffset: 0, usualDuration, sync, data, wallMs, lostPackets: 0 };
    const actions = this.segmenter.push(sample, this.mayOpen);
    slab.release();
    this.perform(actions);
    return actions;
  }

  tick(ms = 0): void {
    this.clock.advance(ms);
    this.perform(this.segmenter.tick());
  }

  pause(ms: number): void {
    this.pausedUntilMs = this.clock.monotonicMs() + ms;
    this.segmenter.pause(this.pausedUntilMs);
  }

  end(reason: EndReason = 'stopped'): void {
    this.perform(this.segmenter.end(reason));
  }

  /** The disk stops a file; what waits in its queue is lost. */
  fail(plan: SegmentPlan, writtenEndMs?: number): void {
    this.failed.add(plan);
    for (const one of this.waiting.filter((other) => other.plan === plan)) {
      this.pictures.lost += one.fragment.videoFrames;
      this.#giveBack(one.fragment);
      this.waiting.splice(this.waiting.indexOf(one), 1);
    }
    this.perform(this.segmenter.fileFailed(plan, writtenEndMs));
  }

  /** The disk writes what waits. */
  write(): void {
    for (const { fragment } of this.waiting.splice(0)) {
      this.pictures.written += fragment.videoFrames;
      this.#giveBack(fragment);
    }
  }

  #giveBack(fragment: Fragment): void {
    this.budget.giveBack(fragment);
    fragment.release();
  }

  /** Does what the actions say, and checks that they make sense. */
  perform(actions: readonly SegmentAction[]): void {
    for (const [i, action] of actions.entries()) {
      if ('plan' in action && action.kind !== 'open') {
        assert.ok(this.plans.includes(action.plan), `${action.kind} of a file that was never opened`);
        assert.ok(!this.closed.has(action.plan), `${action.kind} of a file that is closed`);
        assert.ok(!this.failed.has(action.plan), `${action.kind} of a file that has failed`);
      }
      switch (action.kind) {
        case 'open':
          assert.ok(this.mayOpen, 'no file is allowed now');
          assert.ok(this.clock.monotonicMs() >= this.pausedUntilMs, 'no file may begin yet');
          assert.equal(action.plan.meta.sequence, this.plans.length);
          this.plans.push(action.plan);
          this.#note(`open ${action.plan.meta.sequence}${action.audioFault ? ' without audio' : ''}`);
          break;
        case 'write':
          this.waiting.push(action);
          this.#note(`write ${action.plan.meta.sequence}`, action.fragment.videoFrames);
          break;
        case 'ended':
          this.#note(action.goesOn ? 'ended, goes on' : 'ended');
          break;
        case 'close': {
          const { plan, closing, noSpace } = action;
          this.closed.add(plan);
          const seconds = (closing.wallDurationMs ?? NaN) / 1000;
          this.#note(`close ${plan.meta.sequence}: ${seconds.toFixed(2)} s${noSpace ? ', no space' : ''}`);
          break;
        }
        case 'drop':
          assert.ok(action.videoFrames > 0);
          this.pictures.dropped += action.videoFrames;
          this.#note(`drop, ${action.cause}`, action.videoFrames);
          break;
        case 'refused':
        case 'unsupported':
          this.#note(action.kind);
          break;
        case 'askKeyFrame':
          assert.equal(i, actions.length - 1, 'the camera may end the run at once');
          this.#note(action.kind);
      }
    }
    if (this.diskWorks) this.write();
  }

  #note(words: string, pictures?: number): void {
    const last = this.#notes.at(-1);
    if (pictures !== undefined && last?.words === words) last.pictures = (last.pictures ?? 0) + pictures;
    else this.#notes.push({ words, pictures });
  }

  /** The actions since the last call as words; equal ones in a row as one, with the sum of their pictures. */
  done(): string[] {
    const notes = this.#notes.splice(0);
    return notes.map(({ words, pictures }) => (pictures === undefined ? words : `${words}: ${pictures}`));
  }

  /** After the end: every picture is in a file or counted, all memory is given back, and every file has ended. */
  assertAllAccountedFor(): void {
    this.write();
    const { sent, written, dropped, lost } = this.pictures;
    assert.equal(written + dropped + lost, sent, 'every picture is written or counted, once');
    assert.equal(this.samples.released, this.samples.taken, 'no sample is held any more');
    assert.equal(this.memory.usedBytes, 0, 'all space is given back');
    for (const plan of this.plans) {
      assert.ok(this.closed.has(plan) || this.failed.has(plan), 'every file has ended');
    }
  }
}

const failNewest = (stage: Stage, writtenEndMs?: number): void =>
  stage.fail(stage.plans.at(-1) as SegmentPlan, writtenEndMs);

test('a file opens at a key frame, and ends at the first one after its duration, where the next opens', () => {
  const stage = new Stage();
  stage.play(25);
  assert.deepEqual(stage.done(), ['open 0', 'write 0: 22']);
  stage.play(26);
  assert.deepEqual(stage.done(), ['write 0: 22', 'ended, goes on', 'write 0: 6', 'close 0: 2.00 s', 'open 1']);
  const { wallEndMs, nextSequence } = stage.history;
  assert.deepEqual([wallEndMs, nextSequence], [stage.plans[1]?.meta.wallStartMs, 2]);
  stage.end();
  assert.deepEqual(stage.done(), ['ended', 'write 1: 1', 'close 1: 0.04 s']);
  stage.assertAllAccountedFor();
});

test('for most samples nothing has to be done, and the same empty list says so', () => {
  const stage = new Stage();
  const lists = new Set<readonly SegmentAction[]>();
  let empty = 0;
  for (let i = 0; i < 100; i++) {
    const actions = stage.video();
    if (actions.length > 0) continue;
    empty++;
    lists.add(actions);
  }
  assert.deepEqual([lists.size, empty], [1, 94]);
  const [nothing] = lists;
  for (const actions of [stage.segmenter.tick(), stage.segmenter.fileFailed(stage.plans[0] as SegmentPlan, 0)]) {
    assert.equal(actions, nothing);
  }
  stage.end();
  stage.assertAllAccountedFor();
});

test('without a run there is nothing to do', () => {
  const stage = new Stage();
  stage.end();
  assert.equal(stage.segmenter.active, false);
  stage.pictures.sent--; // this one belongs to no run
  stage.video();
  stage.tick(5_000);
  stage.segmenter.change(runOf());
  stage.end();
  assert.deepEqual(stage.done(), []);
  stage.assertAllAccountedFor();
});

test('a new run ends the file of the last one, which was not ended', () => {
  const stage = new Stage();
  stage.play(10);
  stage.videoDts = START_DTS;
  stage.begin(runOf({ runId: '00000000000000bb' }));
  stage.play(2);
  assert.deepEqual(stage.done(), ['open 0', 'ended', 'write 0: 10', 'close 0: 0.40 s', 'open 1']);
  assert.deepEqual(
    stage.plans.map(({ meta: { clock, runId } }) => [clock, runId]),
    [
      ['settling', '00000000000000aa'],
      ['settling', '00000000000000bb'],
    ],
  );
  stage.end();
  stage.assertAllAccountedFor();
});

for (const [reason, goesOn] of [
  ['gap', true],
  ['clock', true],
  ['parameters', true],
  ['stalled', true],
  ['stopped', false],
  ['camera-lost', false],
  ['no-key-frame', false],
] as const) {
  test(`after the end of a run for ${reason}, recording ${goesOn ? 'continues' : 'is over'}`, () => {
    const stage = new Stage();
    stage.play(2);
    stage.end(reason);
    assert.deepEqual(stage.done(), ['open 0', goesOn ? 'ended, goes on' : 'ended', 'write 0: 2', 'close 0: 0.08 s']);
    stage.assertAllAccountedFor();
  });
}

test('a file whose last audio may still arrive closes when audio has passed it, or a second later', () => {
  const stage = new Stage({ run: { audio: AUDIO } });
  stage.play(50);
  stage.done();
  stage.video();
  assert.deepEqual(stage.done(), ['ended, goes on', 'write 0: 6', 'open 1']);
  while (stage.audioDts / 48 < stage.videoDts / 90 - 40) stage.audio();
  assert.deepEqual(stage.done(), [], 'this audio begins before the border');
  stage.audio();
  stage.video();
  assert.deepEqual(stage.done(), ['write 0: 0', 'close 0: 2.00 s'], 'the last audio of the file, without a picture');
  for (let i = 0; i < 48; i++) stage.video();
  stage.done();
  stage.video();
  assert.deepEqual(stage.done(), ['ended, goes on', 'write 1: 6', 'open 2']);
  stage.clock.advance(959);
  stage.tick();
  assert.ok(!stage.done().some((words) => words.startsWith('close')));
  stage.tick(1);
  assert.deepEqual(stage.done(), ['write 1: 0', 'close 1: 2.00 s']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('a file waits for its last audio until the video is a second further, however fast that comes', () => {
  const stage = new Stage({ run: { audio: AUDIO }, segmentDurationMs: 60_000 });
  stage.play(24);
  stage.segmenter.change(runOf({ audio: AUDIO, lead: { ...VIDEO, width: 320 } }));
  stage.frameMs = 0;
  stage.video();
  stage.video();
  stage.done();
  for (let i = 0; i < 25; i++) stage.video();
  assert.ok(!stage.done().some((words) => words.startsWith('close')));
  stage.video();
  assert.deepEqual(stage.done(), ['write 0: 0', 'close 0: 1.00 s']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('at most eight files wait for their last audio', () => {
  const stage = new Stage({ run: { audio: AUDIO }, segmentDurationMs: 40 });
  for (let i = 0; i < 9; i++) stage.video(true);
  assert.equal(stage.closed.size, 0);
  stage.video(true);
  assert.deepEqual([...stage.closed], stage.plans.slice(0, 1));
  stage.end();
  stage.assertAllAccountedFor();
});

test('other audio, another picture size or profile ends the file at the next key frame, another level or parameter set does not', () => {
  const stage = new Stage({ segmentDurationMs: 60_000 });
  const changes: Partial<Run>[] = [
    { lead: { ...VIDEO, pps: [Buffer.from('68cb83cb21', 'hex')] } },
    { lead: { ...VIDEO, codecString: 'avc1.42c01f' } },
    { lead: { ...VIDEO, codecString: 'avc1.4dc01f' } },
    { lead: { ...VIDEO, codecString: 'hvc1.1.6.L60.90' } },
    { lead: { ...VIDEO, codecString: 'hvc1.1.6.H120.90' } },
    { lead: { ...VIDEO, codecString: 'hvc1.2.6.H120.90' } },
    { lead: VIDEO },
    { lead: { ...VIDEO, width: 320 } },
    { lead: { ...VIDEO, width: 320 }, audio: AUDIO },
  ];
  const opens = changes.map((change) => {
    stage.play(24);
    stage.segmenter.change(runOf(change));
    stage.play(1);
    stage.done();
    stage.play(1);
    const opened = stage.done().includes(`open ${stage.plans.length - 1}`);
    stage.play(24);
    return opened;
  });
  assert.deepEqual(opens, [false, false, true, true, false, true, true, true, true]);
  stage.end();
  stage.assertAllAccountedFor();
});

test('footage that a wrong clock dated in the future does not date what follows', () => {
  for (const aheadMs of [2_000, 3_600_000, 400 * 86_400_000]) {
    const stage = new Stage();
    stage.clock.stepWall(aheadMs);
    stage.begin();
    stage.play(25);
    stage.end();
    stage.clock.stepWall(-aheadMs);
    // The run in which the clock is right again, and those after it.
    for (const runId of ['00000000000000bb', '00000000000000cc']) {
      const nowMs = stage.clock.wallMs();
      stage.videoDts = START_DTS;
      stage.begin(runOf({ runId }));
      stage.play(25);
      stage.end();
      assert.equal(stage.plans.at(-1)?.meta.wallStartMs, nowMs);
      assert.equal(stage.history.wallEndMs, nowMs + 1_000);
    }
    stage.assertAllAccountedFor();
  }
});

test('sound that comes without pictures is written a second later', () => {
  const stage = new Stage({ run: { audio: AUDIO } });
  stage.play(25);
  stage.done();
  for (let i = 0; i < 20; i++) stage.audio();
  stage.tick(1_000);
  assert.deepEqual(stage.done(), ['write 0: 2'], 'of 25 pictures 22 were written before');
  const { taken, released } = stage.samples;
  assert.equal(taken - released, 2, 'the last picture and the last sound wait for what follows them');
  stage.end();
  stage.assertAllAccountedFor();
});

test('another duration counts for the open file as well, another format from the next one on', () => {
  const stage = new Stage({ segmentDurationMs: 60_000 });
  stage.play(60);
  stage.segmenter.configure({ format: 'mp4', segmentDurationMs: 1_000 });
  stage.play(16);
  assert.deepEqual(
    stage.plans.map(({ format }) => format),
    ['fmp4', 'mp4'],
  );
  assert.equal(stage.plans[1]?.name.name, 'Front-Gate');
  stage.end();
  stage.assertAllAccountedFor();
});

test('a file without a key frame ends after its longest time, and a key frame is asked for once', () => {
  const stage = new Stage({ segmentDurationMs: 10_000 });
  stage.video(true);
  for (let i = 0; i < 130 * 25; i++) stage.video(false);
  const before = stage.done();
  assert.equal(before.length, 2, 'one file so far');
  stage.video(false);
  const end = ['ended', 'write 0: 17', 'close 0: 130.04 s', 'drop, no-key-frame: 1', 'askKeyFrame'];
  assert.deepEqual(stage.done(), end);
  for (let i = 0; i < 5_000; i++) stage.video(false);
  assert.deepEqual(stage.done(), ['drop, no-key-frame: 5000']);
  stage.video(true);
  assert.deepEqual(stage.done(), ['open 1']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('a camera that sends no key frame after a fault is asked for one, once the disk works', () => {
  const stage = new Stage({ segmentDurationMs: 10_000 });
  stage.play(3);
  failNewest(stage);
  stage.mayOpen = false;
  stage.done();
  for (let i = 0; i < 130 * 25; i++) stage.video(false);
  assert.deepEqual(stage.done(), ['drop, last-fault: 3250'], 'it is not overdue yet');
  stage.video(false);
  assert.deepEqual(stage.done(), ['drop, last-fault: 1', 'refused'], 'a key frame would be of no use');
  stage.mayOpen = true;
  stage.video(false);
  stage.video(false);
  assert.deepEqual(stage.done(), ['drop, last-fault: 1', 'askKeyFrame', 'drop, last-fault: 1']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('while the archive allows no file, each key frame tries again; none is begun before the pause is over', () => {
  const stage = new Stage();
  stage.mayOpen = false;
  stage.play(26);
  assert.deepEqual(stage.done(), ['refused', 'drop, last-fault: 25', 'refused', 'drop, last-fault: 1']);
  stage.mayOpen = true;
  stage.pause(1_000);
  stage.play(25);
  assert.deepEqual(stage.done(), ['drop, last-fault: 25']);
  stage.video(true);
  assert.deepEqual(stage.done(), ['open 0']);
  assert.equal(stage.plans[0]?.meta.clock, 'settling', 'no file of this run was there before');
  stage.end();
  stage.assertAllAccountedFor();
});

test('audio that no file can hold is left out; video that none can hold is dropped', () => {
  const bad = { ...VIDEO, sps: [Buffer.from('6742', 'hex')] };
  const deaf = new Stage({ run: { audio: { ...AUDIO, config: Buffer.alloc(70_000) } } });
  deaf.play(51);
  deaf.end();
  deaf.assertAllAccountedFor();
  const blind = new Stage({ run: { lead: bad, audio: AUDIO } });
  blind.play(26);
  assert.deepEqual(blind.done(), ['unsupported', 'drop, last-fault: 25', 'unsupported', 'drop, last-fault: 1']);
  assert.equal(blind.history.nextSequence, 0);
  blind.end();
  blind.assertAllAccountedFor();
  assert.deepEqual(deaf.done().slice(0, 2), ['open 0 without audio', 'write 0: 44']);
});

for (const [point, pictures, unwritten] of [
  ['with its first picture held back', 1, 1],
  ['before its first fragment', 10, 10],
  ['after a fragment, while the next one gathers', 30, 8],
] as const) {
  test(`a file fails ${point}: its pictures are counted, and the next key frame opens another`, () => {
    const stage = new Stage({ run: { audio: AUDIO } });
    stage.play(pictures);
    stage.done();
    const [plan] = stage.plans as [SegmentPlan];
    const writtenEndMs = plan.meta.wallStartMs + 720;
    stage.fail(plan, writtenEndMs);
    assert.deepEqual(stage.done(), [`drop, last-fault: ${unwritten}`]);
    assert.equal(stage.history.wallEndMs, writtenEndMs);
    const droppedUntil = Math.ceil((stage.videoDts - START_DTS) / 90_000) * 25;
    const more = droppedUntil - stage.pictures.sent;
    stage.play(more);
    assert.deepEqual(stage.done(), [`drop, last-fault: ${more}`]);
    stage.play(1);
    assert.deepEqual(stage.done(), ['open 1']);
    const gapMs = droppedUntil * 40 - 720;
    assert.ok(Math.abs((stage.plans[1]?.meta.gapBeforeMs ?? 0) - gapMs) < 1, 'the gap is known');
    assert.equal(stage.plans[1]?.meta.clock, 'settled');
    stage.end();
    stage.assertAllAccountedFor();
  });
}

test('a file that fails before its first picture is written leaves the end of the last one as it was', () => {
  const stage = new Stage();
  stage.play(51);
  const { wallEndMs } = stage.history;
  failNewest(stage);
  assert.equal(stage.history.wallEndMs, wallEndMs);
  stage.end();
  stage.assertAllAccountedFor();
});

test('a file fails while it waits for audio: the file after it continues, and where that ends is not touched', () => {
  const stage = new Stage({ run: { audio: AUDIO } });
  stage.play(50);
  stage.diskWorks = false;
  for (let i = 0; i < 20; i++) stage.video();
  stage.done();
  const { wallEndMs } = stage.history;
  stage.fail(stage.plans[0] as SegmentPlan, 1_000);
  assert.deepEqual(stage.done(), [], 'its pictures had been handed out');
  assert.equal(stage.pictures.lost, 6);
  assert.equal(stage.history.wallEndMs, wallEndMs);
  stage.play(24);
  assert.deepEqual(stage.done().slice(0, 1), ['write 1: 22']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('a file fails while it waits for audio and no file follows: recording had ended with it', () => {
  const stage = new Stage({ run: { audio: AUDIO } });
  stage.play(50);
  stage.mayOpen = false;
  stage.video();
  assert.deepEqual(stage.done().slice(-4), ['ended, goes on', 'write 0: 6', 'refused', 'drop, last-fault: 1']);
  stage.fail(stage.plans[0] as SegmentPlan, 1_000);
  assert.equal(stage.history.wallEndMs, 1_000);
  stage.end();
  stage.assertAllAccountedFor();
});

test('a file fails that is closed: the segmenter has nothing left of it', () => {
  const stage = new Stage();
  stage.play(52);
  stage.done();
  const { wallEndMs } = stage.history;
  const [closed] = stage.plans as [SegmentPlan];
  assert.deepEqual(stage.segmenter.fileFailed(closed, 1_000), []);
  stage.end();
  assert.deepEqual(stage.segmenter.fileFailed(stage.plans[1] as SegmentPlan, 1_000), [], 'nor after the run');
  assert.ok((stage.history.wallEndMs ?? 0) > (wallEndMs ?? Infinity));
  stage.assertAllAccountedFor();
});

test('a fragment that finds no space ends the file after what it took; the next one opens at a key frame with space', () => {
  const stage = new Stage({ maxFragments: 1, segmentDurationMs: 60_000 });
  stage.diskWorks = false;
  stage.play(44);
  assert.deepEqual(stage.done(), ['open 0', 'write 0: 22']);
  stage.play(12);
  // The picture that did not fit, those that waited with it, and those that came before the disk was ready.
  assert.deepEqual(stage.done(), ['ended', 'drop, disk-slow: 22', 'close 0: 0.88 s, no space', 'drop, last-fault: 12']);
  assert.equal(stage.history.wallEndMs, (stage.plans[0]?.meta.wallStartMs ?? 0) + 880);
  stage.write();
  stage.play(19);
  assert.deepEqual(stage.done(), ['drop, last-fault: 19']);
  stage.play(1);
  assert.deepEqual(stage.done(), ['open 1']);
  stage.end();
  stage.assertAllAccountedFor();
});

test('no space for what a silent camera has sent: the file ends when the time is over', () => {
  const stage = new Stage({ maxFragments: 1, segmentDurationMs: 60_000 });
  stage.diskWorks = false;
  stage.play(32);
  stage.done();
  stage.tick(1_000);
  assert.deepEqual(stage.done(), ['ended', 'drop, disk-slow: 10', 'close 0: 0.88 s, no space']);
  stage.tick(1_000);
  assert.deepEqual(stage.done(), []);
  stage.end();
  stage.assertAllAccountedFor();
});

for (const audio of [undefined, AUDIO]) {
  test(`no space for the last fragment of a file, ${audio ? 'which waits for audio' : 'which ends at once'}`, () => {
    const stage = new Stage({ maxFragments: 1, ...(audio ? { run: { audio } } : {}) });
    stage.diskWorks = false;
    stage.play(24);
    stage.write();
    stage.play(22);
    assert.equal(stage.waiting.length, 1, 'the queue is full');
    stage.done();
    stage.play(5);
    stage.end();
    stage.assertAllAccountedFor();
    const words = stage.done();
    assert.ok(words.includes('close 0: 2.00 s, no space'), words.join('; '));
    assert.equal(stage.plans.length, 1, 'no file opens without space');
  });
}

test('no space at the end of a run: the file closes, and what it could not take is counted', () => {
  const stage = new Stage({ maxFragments: 1 });
  stage.diskWorks = false;
  stage.play(30);
  stage.done();
  stage.end();
  assert.deepEqual(stage.done(), ['ended', 'drop, disk-slow: 8', 'close 0: 1.20 s, no space']);
  stage.assertAllAccountedFor();
});

test('whatever happens, whenever: every picture is written or counted once, and nothing follows the end of a file', () => {
  const pick = fc.nat({ max: 3 });
  const step = fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record({ kind: fc.constant('video' as const), count: fc.integer({ min: 1, max: 12 }) }),
    },
    { weight: 4, arbitrary: fc.constant({ kind: 'key' as const }) },
    {
      weight: 12,
      arbitrary: fc.record({ kind: fc.constant('audio' as const), count: fc.integer({ min: 1, max: 12 }) }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick' as const), ms: fc.integer({ min: 0, max: 1_500 }) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('fail' as const), pick }) },
    { weight: 2, arbitrary: fc.constant({ kind: 'stall' as const }) },
    { weight: 3, arbitrary: fc.constant({ kind: 'work' as const }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('allow' as const), mayOpen: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.nat({ max: 3_000 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('change' as const), pick }) },
    { weight: 1, arbitrary: fc.constantFrom({ kind: 'begin' as const }, { kind: 'end' as const }) },
  );
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
  const runs = [
    { audio: AUDIO },
    {},
    { audio: AUDIO, lead: { ...VIDEO, width: 320 } },
    { lead: { ...VIDEO, pps: [Buffer.from('68cb83cb21', 'hex')] } },
  ];
  const perform = (stage: Stage, one: Step): void => {
    switch (one.kind) {
      case 'video':
        for (let i = 0; i < one.count; i++) stage.video();
        break;
      case 'key':
        stage.video(true);
        break;
      case 'audio':
        for (let i = 0; i < one.count && stage.segmenter.active; i++) stage.audio();
        break;
      case 'tick':
        stage.tick(one.ms);
        break;
      case 'fail': {
        const plan = stage.plans.at(-1 - one.pick);
        if (plan && !stage.failed.has(plan)) stage.fail(plan, one.pick === 0 ? undefined : plan.meta.wallStartMs);
        break;
      }
      case 'stall':
        stage.diskWorks = false;
        break;
      case 'work':
        stage.diskWorks = true;
        stage.write();
        break;
      case 'allow':
        stage.mayOpen = one.mayOpen;
        break;
      case 'pause':
        stage.pause(one.ms);
        break;
      case 'change':
        stage.segmenter.change(runOf(runs[one.pick]));
        break;
      case 'begin':
        stage.begin();
        break;
      case 'end':
        stage.end('gap');
        stage.begin();
    }
  };
  const property = fc.property(
    fc.array(step, { minLength: 20, maxLength: 150 }),
    fc.integer({ min: 1, max: 4 }),
    (steps, maxFragments) => {
      const stage = new Stage({ run: { audio: AUDIO }, segmentDurationMs: 500, maxFragments });
      for (const one of steps) perform(stage, one);
      stage.end();
      stage.assertAllAccountedFor();
    },
  );
  fc.assert(property, { numRuns: 200 });
});
