// Listing one camera's day among 100 000 files over HTTP, while twenty cameras record.

import { writeArchive } from '../archive.ts';
import { CAMERAS, emptyDirectory, type Bench } from '../bench.ts';
import { askInTurns, pairedFigure, ratioFigure, type Answer } from '../paired.ts';
import { sleep } from '../processes.ts';
import { cameraId, startRecorder } from '../recorder.ts';
import { startSender } from '../sender.ts';

const FILES = 100_000;
const DAY_SECONDS = 86_400;
const SEGMENTS_A_DAY = 288;
const MUST_MS = 20;

export async function measureListing(bench: Bench): Promise<void> {
  const directory = emptyDirectory(bench, 'listing');
  const sender = await startSender({ media: bench.media, cameras: CAMERAS, mode: 'wire', directory });
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
      // Every camera with a day not requested since the start; then the same days again.
      const days = Math.max(1, Math.floor(files / CAMERAS / SEGMENTS_A_DAY) - 1);
      const count = Math.min(bench.quick ? 100 : 400, days * CAMERAS);
      const urls = Array.from({ length: count }, (_, i) =>
        url(i % CAMERAS, archive.dayStart - Math.floor(i / CAMERAS) * DAY_SECONDS),
      );
      const asked = await askInTurns(bench, urls, check);
      const again = await askInTurns(bench, urls, check);
      const name = `listing one day among ${archive.files} files, p99`;
      const note = `days not asked for before; the very first took ${asked.first.ms.toFixed(1)} ms`;
      bench.figure(ratioFigure(name, asked, note));
      bench.figure(pairedFigure('  the same days again, p99', again, MUST_MS, { aim: 5 }));
      bench.figure({
        figure: '  start to ready with that archive',
        unit: 'ms',
        measured: Math.round(readyMs),
      });
    } finally {
      await recorder.stop();
    }
  } finally {
    await sender.stop();
  }
}

/** A response counts only if it contains the day. */
function check({ status, body }: Answer): void {
  const listed = status === 200 ? (JSON.parse(body) as { archive: unknown[] }).archive.length : 0;
  if (listed < SEGMENTS_A_DAY || listed > SEGMENTS_A_DAY + 2) {
    throw new Error(`the listing answered ${status} with ${listed} segments: ${body.slice(0, 200)}`);
  }
}
