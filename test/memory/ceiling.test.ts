// Memory has a ceiling: whatever viewers and disks do, the process is not killed, and what it loses is what its pages say.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Mount } from '../support/mount.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { lazyViewer, setStage, type Gap, type Stage } from './stage.ts';

const run = promisify(execFile);
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** Of what waits for the disk: docs/sizing.md. */
const FOR_WRITING = 7 / 8;
const MOST_SECONDS = 60;

const missing = (gaps: readonly Gap[]): number => gaps.reduce((sum, gap) => sum + gap.seconds, 0);

test('40 viewers that do not read and 40 cameras in 512 MiB: nothing is killed and nothing is lost', async (t) => {
  const stage = await setStage(t, { cameras: 40 });
  if (!stage) return;
  const { recorder, group, ids } = stage;
  await untilSettled(stage);
  const sinceMs = Date.now();
  stage.tell('recording');
  for (const id of ids) lazyViewer(t, recorder.url, id);
  for (let seconds = 0; seconds < (LONG ? 90 : 40); seconds += 10) {
    // Lasts: the viewers read nothing.
    await sleep(10_000);
    assert.equal(group.kills, 0);
    assert.ok(!recorder.child.ended, recorder.child.output.slice(-2_000));
    const waiting = await stage.metric('kube_nvr_memory_budget_used_bytes', 'viewers');
    stage.tell(`${seconds + 10} s of viewers, ${Math.round(waiting / MIB)} MiB wait for them`);
  }
  await until(
    'who takes nothing for half a minute is let go',
    async () => (await stage.metric('kube_nvr_camera_viewers', ids[0])) === 0,
  );
  for (const [id, gaps] of await stage.gaps(sinceMs)) assert.equal(missing(gaps), 0, `${id}: ${JSON.stringify(gaps)}`);
});

/** Memory of what waits for the disk: a twentieth of all is that of pictures that have just come. */
async function untilNothingWaits(stage: Stage): Promise<void> {
  const limit = await stage.metric('kube_nvr_memory_budget_limit_bytes');
  await until('what waited is written', async () => {
    return (await stage.metric('kube_nvr_memory_budget_used_bytes', 'writing')) < limit / 20;
  });
}

/** Of every camera there are pictures on the disk that have just come, and nothing waits. */
async function untilWritten(stage: Stage): Promise<void> {
  await until('every camera is written', async () => {
    const text = await (await fetch(stage.recorder.metricsUrl)).text();
    const lines = text.matchAll(/^kube_nvr_camera_last_written_age_seconds\{.*\} (.*)$/gm);
    const ages = [...lines].map(([, age]) => Number(age));
    return ages.length === stage.ids.length && ages.every((age) => age < 3);
  });
  await untilNothingWaits(stage);
}

/** All that the start leaves behind is on the disk, too. */
async function untilSettled(stage: Stage): Promise<void> {
  await untilWritten(stage);
  await run('sync', ['--file-system', stage.recorder.recordPath]);
  // A sync on a busy machine holds up writes as well: what waited meanwhile belongs to no outage of a test.
  await untilWritten(stage);
}

async function stall(t: TestContext, cameras: number, seconds: number): Promise<void> {
  const mount = Mount.make(t, 'ext4', 6 * GIB);
  if (!mount) return;
  const stage = await setStage(t, { cameras, recordPath: mount.path });
  if (!stage) return;
  const { recorder, group } = stage;
  await untilSettled(stage);
  const sinceMs = Date.now();
  const frozenMs = performance.now();
  mount.freeze();
  let isFrozen = true;
  const thaw = (): void => {
    if (isFrozen) mount.thaw();
    isFrozen = false;
  };
  t.after(thaw);
  const memory = await stage.metric('kube_nvr_memory_budget_limit_bytes');
  try {
    while (performance.now() - frozenMs < seconds * 1000) {
      // Lasts: the disk stands still.
      await sleep(1_000);
      assert.equal(group.kills, 0);
      assert.ok(!recorder.child.ended, recorder.child.output.slice(-2_000));
    }
    stage.tell(`${cameras} cameras, frozen for ${seconds} s`);
  } finally {
    thaw();
  }
  await untilNothingWaits(stage);
  const stalled = (performance.now() - frozenMs) / 1000;
  const endedMs = Date.now();
  await untilWritten(stage);
  const thawedMs = Date.now();
  await until('the ledger is certain of the outage', async () => (await stage.knownUntilMs()) > thawedMs);
  assert.equal(group.kills, 0);
  // docs/sizing.md; memory is counted in blocks.
  const forAll = 0.9 * Math.min(memory * FOR_WRITING, memory - cameras * MIB);
  const forOne = Math.min(forAll, (memory * FOR_WRITING) / 4);
  const safe = Math.min(MOST_SECONDS, forAll / stage.bytesPerSecond, forOne / (stage.bytesPerSecond / cameras));
  // A gap that begins when nothing waits any more is of another outage: of a machine whose disk is busy with other things.
  const since = await stage.gaps(sinceMs);
  const gaps = new Map([...since].map(([id, list]) => [id, list.filter(({ start_ms }) => start_ms < endedMs)]));
  const worst = Math.max(...[...gaps.values()].map(missing));
  t.diagnostic(
    `${stalled.toFixed(1)} s until all was written, ${safe.toFixed(1)} s are safe, at most ${worst.toFixed(1)} s of a camera are missing`,
  );
  for (const [id, list] of gaps) {
    for (const { cause } of list) assert.equal(cause, 'disk-slow', `${id}: ${JSON.stringify(list)}`);
    // Recording goes on at a key frame, of which there is one each two seconds, when a quarter of all is written.
    const allowed = stalled <= safe ? 0 : stalled - safe + 8;
    assert.ok(missing(list) <= allowed, `${id}: ${missing(list)} of ${allowed} s: ${JSON.stringify(list)}`);
  }
}

const CAMERAS = LONG ? [1, 50, 100] : [50];
const SECONDS = LONG ? [5, 15, 30, 60] : [5, 25];

for (const cameras of CAMERAS) {
  for (const seconds of SECONDS) {
    test(`a disk that stands still for ${seconds} s under ${cameras} cameras in 512 MiB: nothing is killed, and lost is only what has no room`, async (t) => {
      await stall(t, cameras, seconds);
    });
  }
}
