import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { Archive } from '../archive.ts';
import { formatPath } from '../disk/names.ts';
import { readSegment, segmentPaths, TestCamera, temporaryDirectory } from '../test-support.ts';
import type { SegmentObserver } from './observer.ts';
import type { ClosedSegment } from './segment.ts';

class Notes implements SegmentObserver {
  readonly closedSegments: ClosedSegment[] = [];
  readonly gone: string[] = [];
  closed(segment: ClosedSegment): void {
    this.closedSegments.push(segment);
  }
  removed(segment: ClosedSegment['segment']): void {
    this.gone.push(formatPath(segment));
  }
}

async function recorded(root: string, observer: SegmentObserver, clock: VirtualClock): Promise<Archive> {
  const archive = new Archive({ root, clock, log: silentLog, syncIntervalMs: 5_000, observer });
  await archive.recover();
  return archive;
}

test('an observer is notified of each closed segment with the data of its file', async (t) => {
  const root = temporaryDirectory(t);
  const clock = new VirtualClock();
  const notes = new Notes();
  const archive = await recorded(root, notes, clock);
  const options = { cameraId: 'gate', name: 'Gate', format: 'fmp4', segmentDurationMs: 2_000 } as const;
  const recording = archive.sinkFor(options, { needKeyFrame() {} });
  const camera = new TestCamera(clock, recording, () => recording.tick());
  camera.begin();
  await camera.play(5);
  camera.end();
  await archive.close();

  const paths = segmentPaths(root);
  assert.equal(paths.length, 3);
  assert.deepEqual(notes.closedSegments.map(({ path }) => path).sort(), paths);
  for (const closed of notes.closedSegments) {
    const { meta } = await readSegment(root, closed.path);
    const { size, mtimeMs } = statSync(join(root, closed.path));
    const endMs = meta.wallStartMs + meta.wallDurationMs;
    const { segment, path } = closed;
    const { sequence } = meta;
    const ofFile = { sizeBytes: size, mtimeMs, sequence, endMs, meta };
    assert.deepEqual(closed, { segment, path, startMs: segment.startMs, isOpen: false, ...ofFile });
    assert.equal(formatPath(segment), path);
  }
  assert.deepEqual(notes.gone, []);

  // The rows of the newest may have been lost with the process.
  const again = new Notes();
  await (await recorded(root, again, clock)).close();
  assert.deepEqual(again.closedSegments.map(({ path }) => path).sort(), paths);
});
