// The cost of retention: a removed segment compared with a bare unlink.

import { unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { Archive } from '../../../recorder/archive/archive.ts';
import type { SegmentName } from '../../../recorder/archive/disk/names.ts';
import { writeSegments } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';

const SEGMENT_BYTES = 1024 * 1024;

export async function measureRetention(bench: Bench): Promise<void> {
  const count = bench.quick ? 200 : 1_000;
  const clock = new VirtualClock(Date.UTC(2026, 5, 1));
  const root = emptyDirectory(bench, 'retention');
  const bare = writeSegments(join(root, 'bare'), 20, count, clock.wallMs(), SEGMENT_BYTES);
  const startMs = performance.now();
  for (const path of bare) await unlink(path);
  const bareMs = (performance.now() - startMs) / count;

  const recordings = join(root, 'recordings');
  writeSegments(recordings, 20, count, clock.wallMs(), SEGMENT_BYTES);
  const removed: SegmentName[] = [];
  let maxSizeBytes: number | undefined;
  const archive = new Archive({
    root: recordings,
    clock,
    log: silentLog,
    syncIntervalMs: 5_000,
    limits: () => ({ node: { maxSizeBytes }, cameras: new Map() }),
    observer: { closed() {}, removed: (segment) => void removed.push(segment) },
  });
  await archive.recover();
  // Sizes are read first; then everything exceeds the limit.
  for (let i = 0; i < 200; i++) await look(archive, clock);
  maxSizeBytes = 0;

  const cpu = process.cpuUsage();
  const fromMs = performance.now();
  while (removed.length < count) await look(archive, clock);
  const wallMs = (performance.now() - fromMs) / count;
  const { user, system } = process.cpuUsage(cpu);
  await archive.close();
  bench.figure({
    figure: 'retention: time for a segment of 1 MiB removed',
    unit: 'ms',
    measured: wallMs,
    note: `a bare unlink of the same: ${bareMs.toFixed(3)} ms; ${count} segments of 20 cameras`,
  });
  bench.figure({ figure: '  CPU time of it', unit: 'ms', measured: (user + system) / 1000 / count });
}

/** Advances an archive by a quarter of a second, as fast as possible. */
async function look(archive: Archive, clock: VirtualClock): Promise<void> {
  clock.advance(250);
  archive.tick();
  await archive.settled();
}
