// Playback: files as fast as nginx serves them, a hundred readers while twenty cameras record, and a day's playlist.

import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { writeDay, writeFullFiles } from '../archive.ts';
import { CAMERAS, emptyDirectory, recording, type Bench } from '../bench.ts';
import { request } from '../paired.ts';
import { startNginx } from '../nginx.ts';
import { sleep, start } from '../processes.ts';
import type { ReadResult } from '../reader.ts';
import { cameraId, startRecorder, type RunningRecorder } from '../recorder.ts';
import { median, summarize } from '../report.ts';

const READER = join(import.meta.dirname, '..', 'reader.ts');
const READERS = 100;
/** Not one of the recording cameras. */
const READ_CAMERA = 900;
const FILES = 4;
const DAY_SECONDS = 86_400;
const SEGMENTS_A_DAY = 288;

export async function measurePlayback(bench: Bench): Promise<void> {
  await measureThroughput(bench);
  await measurePlaylists(bench);
  await measureReaders(bench);
}

async function readFiles(
  bench: Bench,
  address: string,
  count: number,
  seconds: number,
  paths: readonly string[],
): Promise<ReadResult> {
  const log = join(bench.directory, 'reader.log');
  const child = start(process.execPath, [READER, address, String(count), String(seconds), ...paths], log);
  const [line] = await child.line(/^\{.*/);
  return JSON.parse(line) as ReadResult;
}

/** Measures the recorder alone and nginx alone, alternately, so that other load on the machine affects both. */
async function measureThroughput(bench: Bench): Promise<void> {
  const directory = emptyDirectory(bench, 'playback');
  const archive = join(directory, 'recordings');
  const paths = writeFullFiles(archive, READ_CAMERA, FILES, randomBytes(1024 * 1024));
  const nginx = await startNginx(archive, directory);
  const recorder = await startRecorder({ urls: [], directory });
  try {
    for (const clients of [1, 20, READERS]) {
      const own: number[] = [];
      const other: number[] = [];
      const spreads: number[] = [];
      for (let round = 0; round < (bench.quick ? 1 : 5); round++) {
        const seconds = bench.quick ? 2 : 3;
        const read = await readFiles(bench, recorder.playback, clients, seconds, paths);
        if (read.broken > 0) throw new Error(`${read.broken} answers were not whole`);
        own.push(read.megabytesPerSecond);
        spreads.push(read.shares.max / read.shares.min);
        if (nginx) other.push((await readFiles(bench, nginx.address, clients, seconds, paths)).megabytesPerSecond);
      }
      bench.figure({
        figure: `reading files, ${clients} ${clients === 1 ? 'client' : 'clients'}: nginx in the same run / recorder`,
        unit: 'times',
        measured: nginx ? median(other) / median(own) : NaN,
        ...(nginx ? { must: 2, aim: 1 } : {}),
        note: nginx
          ? `recorder ${median(own).toFixed(0)} MB/s, nginx ${median(other).toFixed(0)} MB/s`
          : `recorder ${median(own).toFixed(0)} MB/s; nginx is not installed`,
      });
      if (clients > 1) {
        bench.figure({
          figure: '  most served client / least served',
          unit: 'times',
          measured: median(spreads),
          must: 2,
          aim: 1.2,
        });
      }
    }
  } finally {
    await recorder.stop();
    await nginx?.stop();
  }
}

async function measurePlaylists(bench: Bench): Promise<void> {
  const directory = emptyDirectory(bench, 'playlists');
  const cameras = bench.quick ? 1 : 4;
  const dayStart = Math.floor(Date.now() / 1000 / DAY_SECONDS - 1) * DAY_SECONDS;
  for (let camera = 0; camera < cameras; camera++) {
    writeDay(join(directory, 'recordings'), camera, dayStart * 1000, SEGMENTS_A_DAY);
  }
  const recorder = await startRecorder({ urls: [], directory });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const ask = async (camera: number): Promise<number> => {
      const url = `http://${recorder.playback}/hls/${cameraId(camera)}/index.m3u8?from=${dayStart}&to=${dayStart + DAY_SECONDS}`;
      const answer = await request(agent, url);
      const files = answer.body.split('#EXT-X-PROGRAM-DATE-TIME:').length - 1;
      if (files !== SEGMENTS_A_DAY) throw new Error(`a playlist of ${files} files: ${answer.status}`);
      return answer.ms;
    };
    const first: number[] = [];
    for (let camera = 0; camera < cameras; camera++) first.push(await ask(camera));
    const times: number[] = [];
    for (let i = 0; i < (bench.quick ? 100 : 1000); i++) times.push(await ask(i % cameras));
    const { p50, p99, max } = summarize(times);
    bench.figure({
      figure: 'HLS playlist of a day, p99',
      unit: 'ms',
      measured: p99,
      must: 30,
      aim: 10,
      note: `p50 ${p50.toFixed(1)} ms, worst ${max.toFixed(1)} ms of ${times.length}; 288 files`,
    });
    bench.figure({
      figure: '  the first of a camera since the start, median',
      unit: 'ms',
      measured: median(first),
      note: `worst ${Math.max(...first).toFixed(0)} ms of ${first.length}: each file's index is read once`,
    });
  } finally {
    agent.destroy();
    await recorder.stop();
  }
}

async function measureReaders(bench: Bench): Promise<void> {
  const seconds = bench.quick ? 5 : 20;
  const { result, verdict } = await recording(bench, { cameras: CAMERAS }, async ({ recorder }) => {
    const paths = writeFullFiles(recorder.archive, READ_CAMERA, FILES, randomBytes(1024 * 1024));
    await sleep(3_000);
    const read = await readFiles(bench, recorder.playback, READERS, seconds, [...paths, ...growing(recorder)]);
    return read;
  });
  const { megabytesPerSecond, shares, broken } = result;
  bench.figure({
    figure: `pictures lost, torn or out of order with ${READERS} readers`,
    unit: `of ${verdict.sent}`,
    measured: verdict.lost + verdict.torn + verdict.disordered + verdict.audioLost,
    must: 0,
    aim: 0,
    note: `${CAMERAS} cameras record while ${megabytesPerSecond.toFixed(0)} MB/s are read`,
  });
  bench.figure({
    figure: '  most served reader / least served',
    unit: 'times',
    measured: shares.max / shares.min,
    must: 2,
    aim: 1.2,
    note: `${shares.min.toFixed(1)} to ${shares.max.toFixed(1)} MB/s a reader`,
  });
  bench.figure({ figure: '  answers cut short', unit: 'answers', measured: broken, must: 0, aim: 0 });
}

/** The files that are being written, relative to the record path. */
const growing = (recorder: RunningRecorder): string[] =>
  Array.from({ length: CAMERAS }, (_, camera) => recorder.files(camera).at(-1))
    .filter((path) => path !== undefined)
    .map((path) => path.slice(recorder.archive.length + 1));
