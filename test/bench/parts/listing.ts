// Listing one camera's day among 100 000 files over HTTP, while twenty cameras record.

import { Agent, get } from 'node:http';
import { writeArchive } from '../archive.ts';
import { CAMERAS, emptyDirectory, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';
import { cameraId, startRecorder } from '../recorder.ts';
import { summarize } from '../report.ts';
import { startSender } from '../sender.ts';

const FILES = 100_000;
const DAY_SECONDS = 86_400;
const SEGMENTS_A_DAY = 288;

/** One request on a persistent connection, as browsers and proxies use; resolves with the time to the last byte. */
export function request(agent: Agent, url: string): Promise<{ ms: number; status: number; body: string }> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          ms: performance.now() - startMs,
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    }).on('error', reject);
  });
}

export async function measureListing(bench: Bench): Promise<void> {
  const directory = emptyDirectory(bench, 'listing');
  const sender = await startSender({ media: bench.media, cameras: CAMERAS, mode: 'wire', directory });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const files = bench.quick ? FILES / 10 : FILES;
    const archive = writeArchive(`${directory}/recordings`, CAMERAS, files, Date.now());
    const startMs = performance.now();
    const recorder = await startRecorder({ urls: sender.urls, directory });
    const readyMs = performance.now() - startMs;
    try {
      await sleep(5_000);
      const url = (camera: number, dayStart: number): string =>
        `http://${recorder.address}/api/archive/${cameraId(camera)}/segments?from=${dayStart}&to=${dayStart + DAY_SECONDS}`;
      const first = await request(agent, url(0, archive.dayStart));
      check(first.status, first.body);
      // Every camera with a day not requested since the start; then the same days again.
      const days = Math.max(1, Math.floor(files / CAMERAS / SEGMENTS_A_DAY) - 1);
      const cold: number[] = [];
      const again: number[] = [];
      for (const times of [cold, again]) {
        for (let i = 0; i < Math.min(bench.quick ? 100 : 400, days * CAMERAS); i++) {
          const day = archive.dayStart - Math.floor(i / CAMERAS) * DAY_SECONDS;
          const answer = await request(agent, url(i % CAMERAS, day));
          check(answer.status, answer.body);
          times.push(answer.ms);
        }
      }
      const asked = summarize(cold);
      const second = summarize(again);
      bench.figure({
        figure: `listing one day among ${archive.files} files, p99`,
        unit: 'ms',
        measured: asked.p99,
        must: 20,
        aim: 5,
        note: `days not asked for before: p50 ${asked.p50.toFixed(2)} ms, worst ${asked.max.toFixed(1)} ms of ${cold.length}`,
      });
      bench.figure({
        figure: '  the same days again, p99',
        unit: 'ms',
        measured: second.p99,
        must: 20,
        aim: 5,
        note: `p50 ${second.p50.toFixed(2)} ms, worst ${second.max.toFixed(1)} ms; the very first took ${first.ms.toFixed(1)} ms`,
      });
      bench.figure({
        figure: '  start to ready with that archive',
        unit: 'ms',
        measured: Math.round(readyMs),
      });
    } finally {
      await recorder.stop();
    }
  } finally {
    agent.destroy();
    await sender.stop();
  }
}

/** A response counts only if it contains the day. */
function check(status: number, body: string): void {
  const listed = status === 200 ? (JSON.parse(body) as { archive: unknown[] }).archive.length : 0;
  if (listed < SEGMENTS_A_DAY || listed > SEGMENTS_A_DAY + 2) {
    throw new Error(`the listing answered ${status} with ${listed} segments: ${body.slice(0, 200)}`);
  }
}
