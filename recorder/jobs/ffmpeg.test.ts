// Time-lapses by the installed ffmpeg.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { test } from 'node:test';
import { join, numberedVideo, recordedPart, wallWindow, WALL_START_MS } from '../../test/support/joined-file.ts';
import { probe } from '../../test/support/probe.ts';
import { workspace } from '../../test/support/workspace.ts';
import { makeTimelapse } from './ffmpeg.ts';

test('a time-lapse over a change of resolution keeps its length and its first size, and small pictures stay small', async (t) => {
  const directory = workspace(t);
  const [input, output] = [joinPath(directory, 'in.mp4'), joinPath(directory, 'out.mp4')];
  const larger = numberedVideo(directory, { size: '320x192' });
  const parts = [
    recordedPart(numberedVideo(directory)),
    recordedPart(larger, { run: 'b', wallStartMs: WALL_START_MS + 10_000 }),
  ];
  const { bytes, plan } = await join(parts, wallWindow(1_530, 14_000));
  writeFileSync(input, bytes);
  for (const speed of [2, 7, 120]) {
    const run = { program: 'ffmpeg', input, output, speed, durationMs: plan.durationMs, progress: () => {} };
    await makeTimelapse(run, new AbortController().signal);
    const { streams, durationSeconds } = await probe(output);
    assert.deepEqual([streams.length, streams[0]?.width, streams[0]?.height], [1, 160, 96]);
    const wanted = plan.durationMs / 1000 / speed;
    assert.ok(Math.abs(durationSeconds - wanted) <= 1 / 30 + 0.001, `${durationSeconds} s for ${wanted}`);
  }
});

test('what ffmpeg says becomes the reason; without it, its absence; a cancelled run is killed', async (t) => {
  const directory = workspace(t);
  const input = joinPath(directory, 'in.mp4');
  writeFileSync(input, 'no movie');
  const run = { program: 'ffmpeg', input, output: joinPath(directory, 'out.mp4'), speed: 2, durationMs: 1_000 };
  const progress = (): void => {};
  const { signal } = new AbortController();
  await assert.rejects(makeTimelapse({ ...run, progress }, signal), {
    code: 'ffmpeg-failed',
    message: /^ffmpeg failed: .*Invalid data found/,
  });
  await assert.rejects(makeTimelapse({ ...run, progress, program: 'no-ffmpeg' }, signal), { code: 'ffmpeg-missing' });
  const cancel = new AbortController();
  const cancelled = makeTimelapse({ ...run, progress }, cancel.signal);
  cancel.abort(new Error('cancelled'));
  // Not what ffmpeg said when it was killed.
  await assert.rejects(cancelled, { message: 'cancelled' });
});
