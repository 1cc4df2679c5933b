// Exports: as fast as ffmpeg and cp with the same files, in limited memory; and how six jobs affect twenty cameras.

import { execFile } from 'node:child_process';
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { encodeVideo } from '../../support/encoded-samples.ts';
import { SEGMENT_SECONDS, writeFootage } from '../archive.ts';
import { CAMERAS, emptyDirectory, recording, type Bench } from '../bench.ts';
import { memoryOf, sleep } from '../processes.ts';
import { cameraId, startRecorder } from '../recorder.ts';
import { median } from '../report.ts';
import { viewLatency } from './live.ts';

const run = promisify(execFile);
/** Not one of the recording cameras. */
const EXPORT_CAMERA = 900;
/** The longest possible window: four hours. */
const FILES = 48;
const QUICK_FILES = 6;
const MEBIBYTE = 1024 * 1024;

export async function measureExport(bench: Bench): Promise<void> {
  const files = bench.quick ? QUICK_FILES : FILES;
  await measureTime(bench, files);
  await measureWhileRecording(bench, files);
}

interface Footage {
  /** Epoch seconds. */
  readonly from: number;
  readonly to: number;
}

/** 1080p at 4 Mbit/s, eight seconds repeated: decodable pictures. */
function footage(bench: Bench, archive: string, files: number): Footage {
  const encoderParameters =
    'keyint=50:min-keyint=50:scenecut=0:bframes=0:bitrate=4000:vbv-maxrate=4000:vbv-bufsize=2000';
  const extra = ['-vf', 'noise=alls=12:allf=t,format=yuv420p', '-preset', 'superfast'];
  const video = encodeVideo(bench.directory, {
    codec: 'h264',
    encoderParameters,
    size: '1920x1080',
    frames: 200,
    extra,
  });
  const startMs = Date.UTC(2026, 0, 1);
  writeFootage(archive, EXPORT_CAMERA, files, startMs, video);
  return { from: startMs / 1000, to: startMs / 1000 + files * SEGMENT_SECONDS };
}

interface Job {
  readonly job_id: string;
  readonly state: string;
  readonly size_bytes?: number;
  readonly reason?: string;
}

class Jobs {
  readonly #url: string;

  constructor(address: string) {
    this.#url = `http://${address}/api/archive`;
  }

  async ask(what: string, { from, to }: Footage, more = ''): Promise<string> {
    const path = `${cameraId(EXPORT_CAMERA)}/${what}?from=${from}&to=${to}${more}`;
    const answer = await fetch(`${this.#url}/${path}`, { method: 'POST' });
    if (answer.status !== 202) throw new Error(`${what}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as Job).job_id;
  }

  async get(id: string): Promise<Job> {
    return (await (await fetch(`${this.#url}/jobs/${id}`)).json()) as Job;
  }

  async done(id: string, meanwhile: () => void = () => {}): Promise<Job> {
    for (;;) {
      const job = await this.get(id);
      if (job.state === 'failed') throw new Error(`the job failed: ${job.reason}`);
      if (job.state === 'done') return job;
      meanwhile();
      await sleep(20);
    }
  }

  async remove(id: string): Promise<void> {
    await fetch(`${this.#url}/jobs/${id}`, { method: 'DELETE' });
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (performance.now() - startMs) / 1000;
}

/** All three end with the movie on disk: an export is synced, so the others are too. */
async function measureTime(bench: Bench, files: number): Promise<void> {
  const directory = emptyDirectory(bench, 'export');
  const archive = join(directory, 'recordings');
  const window = footage(bench, archive, files);
  const paths = readdirSync(archive, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.mp4'))
    .sort()
    .map((path) => join(archive, path));
  const list = join(directory, 'list.txt');
  writeFileSync(list, paths.map((path) => `file '${path}'\n`).join(''));
  const result = join(directory, 'result.mp4');
  const recorder = await startRecorder({ urls: [], directory });
  const jobs = new Jobs(recorder.address);
  const times = { export: [] as number[], ffmpeg: [] as number[], cp: [] as number[] };
  const memory: number[] = [];
  let size = 0;
  try {
    // Redis starts with the first job.
    const first = await jobs.ask('export', { from: window.from, to: window.from + 10 });
    await jobs.done(first);
    for (let round = 0; round < (bench.quick ? 1 : 3); round++) {
      const before = memoryOf(recorder.pid).resident;
      let most = before;
      times.export.push(
        await seconds(async () => {
          const id = await jobs.ask('export', window);
          const job = await jobs.done(id, () => (most = Math.max(most, memoryOf(recorder.pid).resident)));
          size = job.size_bytes ?? 0;
          await jobs.remove(id);
        }),
      );
      memory.push((most - before) / MEBIBYTE);
      times.ffmpeg.push(
        await seconds(async () => {
          const copy = ['-f', 'concat', '-safe', '0', '-i', list, '-map', '0', '-c', 'copy', result];
          await run('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...copy]);
          await run('sync', [result]);
        }),
      );
      const total = paths.reduce((sum, path) => sum + statSync(path).size, 0);
      if (Math.abs(statSync(result).size / size - 1) > 0.02) throw new Error('ffmpeg made another movie');
      rmSync(result);
      const copies = join(directory, 'copies');
      times.cp.push(
        await seconds(async () => {
          await run('sh', ['-c', 'mkdir "$0" && cp "$@" "$0" && sync "$0"/*', copies, ...paths]);
        }),
      );
      rmSync(copies, { recursive: true });
      bench.say(
        `round ${round + 1}: export ${times.export.at(-1)?.toFixed(2)} s, ffmpeg ${times.ffmpeg.at(-1)?.toFixed(2)} s, ` +
          `cp ${times.cp.at(-1)?.toFixed(2)} s, ${(total / 1e9).toFixed(2)} GB`,
      );
    }
  } finally {
    await recorder.stop();
    rmSync(directory, { recursive: true, force: true });
  }
  const hours = (files * SEGMENT_SECONDS) / 3600;
  const note = (other: readonly number[], name: string): string =>
    `${hours} h, ${(size / 1e9).toFixed(1)} GB: export ${median(times.export).toFixed(1)} s, ${name} ${median(other).toFixed(1)} s`;
  const ratio = (other: readonly number[]): number => median(times.export) / median(other);
  const figure = 'export: time / that of ffmpeg -f concat -c copy';
  bench.figure({ figure, unit: 'times', measured: ratio(times.ffmpeg), must: 1, note: note(times.ffmpeg, 'ffmpeg') });
  bench.figure({
    figure: 'export: time / that of cp',
    unit: 'times',
    measured: ratio(times.cp),
    must: 2,
    aim: 1.2,
    note: note(times.cp, 'cp'),
  });
  bench.figure({
    figure: 'export: memory of a job',
    unit: 'MB',
    measured: Math.max(...memory),
    must: 64,
    note: `growth of the resident memory over ${hours} h of footage, worst of ${memory.length}`,
  });
}

async function measureWhileRecording(bench: Bench, files: number): Promise<void> {
  let window: Footage = { from: 0, to: 0 };
  const viewed = bench.quick ? 5 : 20;
  const prepare = (directory: string): void => {
    window = footage(bench, join(directory, 'recordings'), files);
  };
  const { result, verdict } = await recording(bench, { cameras: CAMERAS, prepare }, async ({ recorder }) => {
    const jobs = new Jobs(recorder.address);
    await sleep(3_000);
    const over = new AbortController();
    let exports = 0;
    /** Each window is different, because equal ones would be shared. */
    const exporting = async (lane: number): Promise<void> => {
      for (let i = 0; !over.signal.aborted; i++) {
        const id = await jobs.ask('export', { from: window.from + lane + i * 0.1, to: window.to });
        await jobs.done(id);
        await jobs.remove(id);
        exports++;
      }
    };
    const lapses = [];
    for (const lane of [0, 1])
      lapses.push(await jobs.ask('timelapse', { ...window, from: window.from + lane }, '&speed=2'));
    const lanes = [0, 1, 2, 3].map((lane) => exporting(lane));
    const latency = await viewLatency(bench, recorder.address, viewed);
    const states = await Promise.all(lapses.map(async (id) => (await jobs.get(id)).state));
    over.abort();
    await Promise.all(lanes);
    for (const id of lapses) await jobs.remove(id);
    return { latency, exports, states };
  });
  const { latency, exports, states } = result;
  const note = `4 exports at once, ${exports} in all; time-lapses ${states.join(', ')} at the end`;
  const bad = verdict.lost + verdict.torn + verdict.disordered + verdict.audioLost;
  bench.figure({
    figure: `pictures lost, torn or out of order while 4 exports and 2 time-lapses run`,
    unit: `of ${verdict.sent}`,
    measured: bad,
    must: 0,
    aim: 0,
    note,
  });
  bench.figure({
    figure: '  live meanwhile: packet sent to message, p99',
    unit: 'ms',
    measured: latency.ages.p99,
    must: 100,
    aim: 60,
    note: `p50 ${latency.ages.p50.toFixed(1)} ms, worst ${latency.ages.max.toFixed(1)} ms of ${latency.ages.count} pictures`,
  });
}
