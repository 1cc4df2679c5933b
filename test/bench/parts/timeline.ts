// Timelines of many cameras over HTTP: fifty for a day, nine for a month, as pages ask for them.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatRecord, type LedgerRecord } from '../../../recorder/archive/gaps/record.ts';
import { SEGMENT_SECONDS, writeArchive } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { askInTurns, pairedFigure, type Answer } from '../paired.ts';
import { cameraId, startRecorder } from '../recorder.ts';

const DAY_SECONDS = 86_400;
const SEGMENTS_A_DAY = DAY_SECONDS / SEGMENT_SECONDS;
const MONTH_DAYS = 31;
/** In the ledger, for each camera and day. */
const GAPS_A_DAY = 24;
const GAP_MS = 2_000;

const STAGES = [
  { name: 'timeline of 50 cameras for a day, p99', cameras: 50, days: 1, mustMs: 50 },
  { name: 'timeline of 9 cameras for a month, p99', cameras: 9, days: MONTH_DAYS, mustMs: 100 },
];

export async function measureTimeline(bench: Bench): Promise<void> {
  for (const { name, cameras, days, mustMs } of STAGES) {
    const directory = emptyDirectory(bench, `timeline-${cameras}`);
    const recordPath = `${directory}/recordings`;
    // Two days more than are asked for: the first and the last are not whole.
    const { dayStart } = writeArchive(recordPath, cameras, cameras * SEGMENTS_A_DAY * (days + 2), Date.now());
    const to = dayStart + DAY_SECONDS;
    const from = to - days * DAY_SECONDS;
    for (let camera = 0; camera < cameras; camera++) writeLedger(recordPath, camera, from, to);
    const recorder = await startRecorder({ urls: [], directory });
    try {
      const asked = Array.from({ length: cameras }, (_, camera) => `camera=${cameraId(camera)}`).join('&');
      const url = `http://${recorder.address}/api/archive/timeline?${asked}&from=${from}&to=${to}&resolution_ms=1000`;
      const count = bench.quick ? 50 : 300;
      const pair = await askInTurns(bench, Array<string>(count).fill(url), (answer) => check(answer, cameras, days));
      const note = `the very first took ${pair.first.ms.toFixed(1)} ms, ${pair.first.body.length} bytes`;
      bench.figure(pairedFigure(name, pair, mustMs, { note }));
    } finally {
      await recorder.stop();
    }
  }
}

/** The journal of a camera that was away for a moment once an hour. */
function writeLedger(recordPath: string, camera: number, from: number, to: number): void {
  const lengthMs = (DAY_SECONDS / GAPS_A_DAY) * 1000;
  const records: LedgerRecord[] = [{ kind: 'state', state: 'recording', atMs: from * 1000 }];
  for (let fromMs = from * 1000; fromMs < to * 1000; fromMs += lengthMs) {
    const toMs = fromMs + lengthMs;
    records.push({ kind: 'recorded', fromMs, toMs: toMs - GAP_MS });
    records.push({ kind: 'missed', fromMs: toMs - GAP_MS, toMs, cause: 'camera-unreachable' });
  }
  const path = join(recordPath, '.kube-nvr', 'gaps');
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, `${cameraId(camera)}.jsonl`), records.map(formatRecord).join(''));
}

/** A response counts only if it has the gaps of every camera. */
function check({ status, body }: Answer, cameras: number, days: number): void {
  if (status !== 200) throw new Error(`the timeline answered ${status}: ${body.slice(0, 200)}`);
  const { cameras: found } = JSON.parse(body) as { cameras: { spans: unknown[]; gaps: unknown[] }[] };
  const wrong = found.find(({ spans, gaps }) => spans.length === 0 || gaps.length < days * GAPS_A_DAY);
  if (found.length !== cameras || wrong) {
    throw new Error(`${found.length} cameras, ${wrong?.spans.length} spans, ${wrong?.gaps.length} gaps`);
  }
}
