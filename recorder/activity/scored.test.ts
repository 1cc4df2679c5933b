// Scored clips: what is found, what is marked without cause, and what cannot be told, scene by scene. docs/events.md has the table.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LONG } from '../../test/support/variant.ts';
import { temporaryDirectory } from '../archive/test-support.ts';
import { decodeGrids } from './decoder.ts';
import { CELLS, looksAt, SURE, type Look } from './grid.ts';

const SECONDS = 240;
const STEP_MS = 2_000;
/** Width and height in pixels of 640 x 360, begin and length in seconds, y: 3 % of the picture, then 0.5 %. */
const CROSSINGS = [
  [96, 72, 30, 6, 200],
  [96, 72, 90.6, 2, 150],
  [96, 72, 180, 4, 220],
  [40, 29, 60, 6, 230],
  [40, 29, 130, 4, 180],
  [40, 29, 210, 6, 240],
] as const;

interface Scene {
  readonly name: string;
  /** Filters between the picture `[b0]` and `[b1]`. */
  readonly scene?: string;
  /** Filters of the whole picture. */
  readonly light?: string;
  readonly noise?: number;
  readonly rate: readonly string[];
  readonly codec?: 'hevc';
  /** Found of the large and of the small objects at least, of three each; marks without cause at most; of the looks, which cannot be told at most, in percent. */
  readonly bounds: readonly [large: number, small: number, without: number, unclear: number];
}

const VBR = ['-crf', '27'];
const cbr = (kbit: number): string[] => ['-b:v', `${kbit}k`, '-maxrate', `${kbit}k`, '-bufsize', `${kbit / 2}k`];
const LEAVES = "[2:v]crop=200:115:100:100[lf];[b0][lf]overlay=x='420+4*sin(2*PI*t/1.7)':y='20+3*sin(2*PI*t/1.1)'[b1]";
const RAIN =
  'cellauto=s=640x360:rate=12.5:scroll=1:random_fill_ratio=0.05,format=yuv420p[rn];[b0][rn]blend=all_mode=screen:all_opacity=0.25[b1]';

const SCENES: readonly Scene[] = [
  { name: 'day, rate floats', rate: VBR, bounds: [3, 3, 1, 8] },
  { name: 'day, constant rate', rate: cbr(500), bounds: [3, 3, 1, 8] },
  { name: 'day, constant rate, H.265', rate: cbr(400), codec: 'hevc', bounds: [3, 3, 2, 8] },
  { name: 'night, much noise', noise: 24, rate: ['-crf', '30'], bounds: [3, 3, 1, 10] },
  { name: 'night, starved to 60 kbit/s', noise: 24, rate: cbr(60), bounds: [2, 2, 12, 95] },
  { name: 'leaves', scene: LEAVES, rate: VBR, bounds: [3, 3, 3, 60] },
  { name: 'rain', scene: RAIN, rate: VBR, bounds: [3, 3, 3, 8] },
  {
    name: 'a light is switched',
    light: "eq=brightness='if(gt(t,110),0.12,0)':eval=frame,",
    rate: VBR,
    bounds: [3, 3, 1, 8],
  },
  {
    name: 'the camera turns',
    scene: "[b0]scale=800:450,crop=640:360:x='if(gt(t,110),min(160,(t-110)*40),0)':y=40[b1]",
    rate: VBR,
    bounds: [3, 3, 1, 8],
  },
];

/** The key frames of a clip, as a byte stream. */
function clip(directory: string, { scene = '[b0]null[b1]', light = '', noise = 6, rate, codec }: Scene): Buffer {
  const run = (args: string[]): unknown => execFileSync('nice', ['ffmpeg', '-v', 'error', '-y', ...args]);
  const still = join(directory, 'still.png');
  run(['-f', 'lavfi', '-i', 'mandelbrot=size=640x360:start_scale=0.02', '-frames:v', '1', still]);
  let graph = `[0:v]format=yuv420p[bg];[1:v]scale=64:12[clock];[bg][clock]overlay=8:8[b0];${scene};[3:v]split=${CROSSINGS.length}`;
  graph += `${CROSSINGS.map((_, i) => `[o${i}]`).join('')};`;
  for (const [i, [w, h, begin, length, y]] of CROSSINGS.entries()) {
    const x = `if(between(t,${begin},${begin + length}),-${w}+(W+${w})*(t-${begin})/${length},-2*${w})`;
    graph += `[o${i}]scale=${w}:${h}[p${i}];[b${i + 1}][p${i}]overlay=x='${x}':y=${y}[b${i + 2}];`;
  }
  graph += `[b${CROSSINGS.length + 1}]${light}noise=alls=${noise}:allf=t+u[v]`;
  if (!scene.includes('[2:v]')) graph = `[2:v]nullsink;${graph}`;
  const looped = ['-loop', '1', '-framerate', '12.5', '-t', `${SECONDS}`, '-i', still];
  const encoder =
    codec === 'hevc'
      ? ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=none:keyint=25:min-keyint=25:scenecut=0']
      : ['-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '0', '-g', '25', '-keyint_min', '25', '-sc_threshold', '0'];
  const [all, keys] = [join(directory, 'all.mp4'), join(directory, 'keys')];
  // prettier-ignore
  run([...looped, '-f', 'lavfi', '-i', 'testsrc=size=128x24:rate=1', ...looped, '-f', 'lavfi', '-i', 'testsrc2=size=160x120:rate=12.5',
    '-filter_complex', graph, '-map', '[v]', '-r', '12.5', '-t', `${SECONDS}`, ...encoder, ...rate, all]);
  const format = codec ?? 'h264';
  run(['-i', all, '-c', 'copy', '-bsf:v', `${format}_mp4toannexb,noise=drop=not(key)`, '-f', format, keys]);
  return readFileSync(keys);
}

interface Score {
  readonly large: number;
  readonly small: number;
  readonly without: number;
  readonly unclear: number;
}

function scoreOf(looks: readonly Look[]): Score {
  const isMark = ({ level, confidence }: Look): boolean => level > 0 && confidence >= SURE;
  const within = (beforeS: number, afterS: number) => (look: Look) =>
    CROSSINGS.findIndex(([, , begin, length]) => {
      const s = look.timeMs / 1000;
      return s >= begin - beforeS && s <= begin + length + afterS;
    });
  const found = new Set(looks.filter(isMark).map(within(0, 1)));
  // What has passed is one of the pictures with which the next ones are compared.
  const causeless = looks.filter((look) => isMark(look) && within(2, 18)(look) < 0);
  const runs = causeless.filter(({ timeMs }, i) => timeMs - (causeless[i - 1]?.timeMs ?? -Infinity) > 10_000);
  return {
    large: [0, 1, 2].filter((i) => found.has(i)).length,
    small: [3, 4, 5].filter((i) => found.has(i)).length,
    without: runs.length,
    unclear: Math.round((looks.filter(({ confidence }) => confidence < SURE).length / looks.length) * 100),
  };
}

for (const scene of SCENES) {
  const skip = !LONG && 'encodes four minutes; LONG=1 runs it';
  test(`scored clip: ${scene.name}`, { skip }, async (t) => {
    const bytes = clip(temporaryDirectory(t), scene);
    async function* pictures(): AsyncGenerator<Buffer> {
      yield bytes;
    }
    const most = SECONDS;
    const grids = await decodeGrids('ffmpeg', scene.codec ?? 'h264', pictures(), most, new AbortController().signal);
    const frames = Array.from({ length: grids.length / CELLS }, (_, i) => {
      const at = i * CELLS;
      return { timeMs: i * STEP_MS, cells: grids.subarray(at, at + CELLS) };
    });
    assert.equal(frames.length, (SECONDS * 1000) / STEP_MS);
    const score = scoreOf(looksAt(frames));
    t.diagnostic(`${scene.name} ${JSON.stringify(score)}`);
    const [large, small, without, unclear] = scene.bounds;
    assert.ok(score.large >= large && score.small >= small, 'objects are found');
    assert.ok(score.without <= without, 'no marks without cause');
    assert.ok(score.unclear <= unclear, 'the rest can be told');
  });
}
