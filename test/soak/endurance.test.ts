// Reconnects, viewers, range requests, playlists and reloads in one process, on a virtual clock: what hundreds of each leave
// is what twenty leave, counted. In short sixty rounds; LONG=1 is three hundred.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Slab } from '../../recorder/codec/slab.ts';
import { videoMedia } from '../camera/media.ts';
import { random } from '../support/random.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { workspace } from '../support/workspace.ts';
import { Site } from './site.ts';
import { SiteCamera } from './site-camera.ts';

const FEW = 20;
const MANY = LONG ? 300 : 60;
const STEP_MS = 500;
const TURNS = 20;
const SHORT_FILES_MS = 60_000;
const LONG_FILES_MS = 300_000;
/** Playback remembers each file that it listed, some 3 KB, up to a number of them; nothing else stays of a round. */
const MAX_BYTES_A_ROUND = 8192;
/** Counted one by one: whatever is never let go of holds some of these, or is one. */
const KINDS = [Slab, EventEmitter, EventTarget, Promise, Map, Function] as const;

setFlagsFromString('--expose-gc');
// Optimized code grows for as long as more of the code gets hot, and says nothing of the recorder.
setFlagsFromString('--no-opt');
setFlagsFromString('--no-maglev');
const collect = runInNewContext('gc') as (options: { type: 'major'; flavor: 'last-resort' }) => void;

/** What keeps the process running, but timers: those of the recorder are on the virtual clock. */
const resources = (): string[] =>
  process
    .getActiveResourcesInfo()
    .filter((name) => name !== 'Timeout')
    .sort();

interface Usage {
  readonly objects: Record<string, number>;
  readonly resources: readonly string[];
  readonly descriptors: number;
  readonly timers: number;
  /** Blocks of memory for media that wait for reuse. */
  readonly freeBlocks: number;
}

test(`${MANY} reconnects, viewers, ranges and reloads leave what ${FEW} leave`, async (t) => {
  const media = await videoMedia('h264');
  const camera = new SiteCamera('gate', media, { intervalMs: STEP_MS, groupLength: 4, random: random(1) });
  await camera.start();
  t.after(() => camera.stop());
  const site = new Site({
    directory: workspace(t),
    cameras: [camera],
    stepMs: STEP_MS,
    // Of some dozens of rounds: retention is at work.
    maxSizeBytes: 1_000_000,
    startMs: Date.UTC(2026, 0, 1, 6),
  });
  await site.open();
  const { cameras, viewersOf, playback, pool } = site.recorder;

  async function untilRecording(): Promise<void> {
    for (let tries = 0; cameras.get('gate')?.status.state !== 'recording'; tries++) {
      assert.ok(tries < 60, 'it does not record');
      await site.pass(1_000);
    }
  }

  async function reconnect(): Promise<void> {
    camera.cut();
    await site.pass(2_000);
    await untilRecording();
  }

  async function round(number: number): Promise<void> {
    await reconnect();
    const hub = viewersOf('gate');
    const viewer = hub?.add({
      send: () => {},
      bufferedBytes: 0,
      isCopying: false,
      close: () => {},
      terminate: () => {},
    });
    assert.ok(hub && viewer);
    await site.apply([], number % 2 === 0 ? SHORT_FILES_MS : LONG_FILES_MS);
    await site.pass(2_000);
    hub.remove(viewer);
    // The oldest; by its day, since what is not closed yet has a second name elsewhere.
    const names = readdirSync(site.root, { recursive: true, encoding: 'utf8' }).sort();
    const path = names.find((name) => name.startsWith('2026') && name.endsWith('.mp4')) ?? '';
    const answer = await playback.inject({ url: `/${path}`, headers: { range: 'bytes=0-99' } });
    assert.equal(answer.statusCode, 206, path);
    const playlist = await playback.inject('/hls/gate/index.m3u8');
    assert.equal(playlist.statusCode, 200, playlist.body);
  }

  /** Of a camera that is recorded, ten seconds after it connected, and of the recorder once that camera is left out. */
  async function look(): Promise<{ recording: Usage; idle: Usage; bytes: number }> {
    await site.apply([], LONG_FILES_MS);
    await reconnect();
    await site.pass(10_000);
    const recording = await usage();
    await site.apply(['gate']);
    await site.pass(120_000);
    const idle = await usage();
    const { heapUsed, external } = process.memoryUsage();
    await site.apply([]);
    await untilRecording();
    return { recording, idle, bytes: heapUsed + external };
  }

  async function usage(): Promise<Usage> {
    await until('nothing is under way', () => !/Immediate|Req/.test(resources().join()));
    // What ended a moment ago has callbacks that are still to be called.
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
    collect({ type: 'major', flavor: 'last-resort' });
    return {
      objects: Object.fromEntries(KINDS.map((kind) => [kind.name, Number(queryObjects(kind))])),
      resources: resources(),
      descriptors: readdirSync('/proc/self/fd').length,
      timers: site.clock.timers,
      freeBlocks: pool.freeBlocks,
    };
  }

  // Round 1 finds a file that is closed.
  await untilRecording();
  await reconnect();
  await site.pass(10_000);
  for (let number = 1; number <= FEW; number++) {
    await round(number);
    // V8 lets go of what it compiled for the start.
    if (number === FEW / 2) await look();
  }
  const few = await look();
  for (let number = FEW + 1; number <= MANY; number++) await round(number);
  const many = await look();
  const bytesARound = (many.bytes - few.bytes) / (MANY - FEW);
  t.diagnostic(`idle after ${MANY} rounds: ${JSON.stringify(many.idle)}`);
  t.diagnostic(`recording after ${MANY} rounds: ${JSON.stringify(many.recording)}`);
  t.diagnostic(`${few.bytes} bytes, then ${many.bytes}: ${bytesARound.toFixed(0)} a round`);
  assert.deepEqual(many.recording, few.recording);
  assert.deepEqual(many.idle, few.idle);
  assert.equal(many.idle.objects['Slab'], 0);
  assert.ok(bytesARound < MAX_BYTES_A_ROUND, `${few.bytes} bytes, then ${many.bytes}: ${bytesARound} a round`);
  await site.close();
});
