// The gap ledger against the files: cameras that fail in each of their ways, a recorder that is killed and started
// again, and a camera that a user stops. What the files do not hold, the ledger lists, with the cause.

import { describe, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCamera, type Camera } from '../camera/camera.ts';
import type { Report } from '../../recorder/objectives/report.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import type { CameraOptions } from '../camera/options.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { browserMissing, launchBrowser } from '../support/browser.ts';
import { closedFootage, type Interval } from '../support/closed-footage.ts';
import { ACCOUNT_TOLERANCE_MS, assertAccount as assertWhole, type GapsAnswer } from '../support/invariants.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const HOUR_SECONDS = 3_600;

async function gapsOf(recorder: RecorderProcess, camera: string, untilMs?: number): Promise<GapsAnswer> {
  const now = Date.now() / 1000;
  const until = untilMs === undefined ? now + HOUR_SECONDS : untilMs / 1000;
  const interval = `from=${(now - HOUR_SECONDS).toFixed(3)}&to=${until.toFixed(3)}`;
  return (await recorder.get(`/api/archive/${camera}/gaps?${interval}`)) as GapsAnswer;
}

const causes = ({ gaps }: GapsAnswer): string[] => gaps.map((gap) => gap.cause);

/** When the pictures of a camera's files were captured, as the files say. */
async function footageOf(recorder: RecorderProcess, camera: string): Promise<readonly Interval[]> {
  const files = (await recorder.files()).filter((file) => file.includes(`_${camera}_`));
  return closedFootage(files.map((file) => join(recorder.recordPath, file)));
}

/**
 * Footage and gaps lie side by side from when the recorder was started, without overlap and with nothing between. `untilMs`: when it was
 * stopped; the file that is written now is not closed.
 */
async function assertAccount(
  recorder: RecorderProcess,
  camera: string,
  startedMs: readonly [number, number],
  untilMs?: number,
): Promise<void> {
  const answer = await gapsOf(recorder, camera, untilMs);
  const footage = await footageOf(recorder, camera);
  assertWhole(answer, footage, camera);
  const firstMs = Math.min(...footage.map(({ fromMs }) => fromMs), ...answer.gaps.map(({ start_ms }) => start_ms));
  between(firstMs, ...startedMs);
}

/** Seconds of one gap, as it should be the only one of its cause. */
function secondsOf(answer: GapsAnswer, cause: string): number {
  const found = answer.gaps.filter((gap) => gap.cause === cause);
  assert.equal(found.length, 1, `one gap of ${cause} in ${JSON.stringify(answer.gaps)}`);
  return found[0]!.seconds;
}

const between = (value: number, from: number, to: number): void =>
  assert.ok(value >= from && value <= to, `${value} is not between ${from} and ${to}`);

/** A counter of Prometheus. */
async function counted(recorder: RecorderProcess, camera: string, cause: string): Promise<number> {
  const text = await (await fetch(recorder.metricsUrl)).text();
  const line = text
    .split('\n')
    .find((line) => line.startsWith(`kube_nvr_gap_seconds_total{camera="${camera}",cause="${cause}"}`));
  assert.ok(line, `${camera} has a counter for ${cause}`);
  return Number(line.split(' ')[1]);
}

/** What the page says is wrong with the camera: empty for nothing; undefined where there is no browser. */
async function onThePage(t: TestContext, url: string): Promise<string | undefined> {
  const missing = browserMissing();
  if (missing !== false) {
    t.skip(missing);
    return undefined;
  }
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  await page.goto(`${url}/`);
  await page.locator('.tile').waitFor();
  return (await page.locator('.tile .badge').allTextContents()).join();
}

const sumOf = (gaps: GapsAnswer['gaps']): number => gaps.reduce((sum, gap) => sum + gap.end_ms - gap.start_ms, 0);

describe('the gap ledger', { concurrency: true }, () => {
  test('footage and gaps are the time that was wanted, through all that goes wrong', async (t) => {
    const cameras = new Map<string, Camera>();
    const start = async (id: string, options: CameraOptions = {}): Promise<Camera> => {
      const camera = await startCamera({ pace: 'realtime', ...options });
      t.after(() => camera.close());
      cameras.set(id, camera);
      return camera;
    };
    const credentials = { username: 'gate', password: 'right' };
    const login = await start('login', { credentials });
    const sources = new Map([['login', login.urlWithLogin]]);
    for (const id of ['steady', 'outage', 'cut', 'loss', 'off']) sources.set(id, (await start(id)).url);
    const camera = (id: string): Camera => cameras.get(id) as Camera;
    const config = (off: boolean) => ({
      archive: { segmentDuration: '3s' },
      cameras: Array.from(sources, ([id, source]) => ({ id, source, enabled: id !== 'off' || !off })),
    });
    const spawnedMs = Date.now();
    let recorder = await RecorderProcess.start({ directory: workspace(t), config: config(false) });
    const startedMs: readonly [number, number] = [spawnedMs, Date.now()];
    t.after(() => recorder.child[Symbol.asyncDispose]());
    await recorder.untilRecording(...cameras.keys());
    await recorder.untilMoreFiles(1, ...cameras.keys());

    /** How long each lasted, in seconds: a busy machine wakes this process late. */
    const lasted = new Map<string, number>();
    const last = async (id: string, ms: number): Promise<void> => {
      const fromMs = performance.now();
      // Lasts: the outage of this camera.
      await sleep(ms);
      lasted.set(id, (lasted.get(id) ?? 0) + (performance.now() - fromMs) / 1000);
    };
    // Each in its own way, at the same time.
    const outage = async (): Promise<void> => {
      const { port } = camera('outage');
      await camera('outage').close();
      await last('outage', 5_000);
      const before = await counted(recorder, 'outage', 'camera-unreachable');
      const fromMs = performance.now();
      await last('outage', 2_000);
      const more = (await counted(recorder, 'outage', 'camera-unreachable')) - before;
      between(more, 1, (performance.now() - fromMs) / 1000 + 2);
      await start('outage', { port });
    };
    const wrongPassword = async (): Promise<void> => {
      login.options.credentials = { ...credentials, password: 'other' };
      login.disconnect();
      await last('login', 6_000);
      login.options.credentials = credentials;
    };
    const cut = async (): Promise<void> => {
      camera('cut').silent = true;
      await last('cut', 14_000);
      camera('cut').silent = false;
    };
    const loss = async (): Promise<void> => {
      camera('loss').options.onPacket = () => [];
      await last('loss', 3_000);
      delete camera('loss').options.onPacket;
    };
    const off = async (): Promise<void> => {
      recorder.rewriteConfig(config(true));
      recorder.child.signal('SIGHUP');
      await until('off is stopped', async () =>
        (await recorder.cameras()).some(({ id, state }) => id === 'off' && state === 'stopped'),
      );
    };
    await Promise.all([outage(), wrongPassword(), cut(), loss(), off()]);
    await recorder.untilRecording('steady', 'outage', 'login', 'cut', 'loss');
    await recorder.untilMoreFiles(1, 'steady', 'outage', 'login', 'cut', 'loss');

    const killedMs = Date.now();
    await recorder.child.stop('SIGKILL');
    // Lasts: the recorder does not run.
    await sleep(4_000);
    const restartMs = Date.now();
    recorder = await recorder.restart();
    const restartedMs = Date.now();
    await recorder.untilRecording('steady', 'outage', 'login', 'cut', 'loss');
    recorder.rewriteConfig(config(false));
    recorder.child.signal('SIGHUP');
    await recorder.untilRecording(...cameras.keys());
    await recorder.untilMoreFiles(1, ...cameras.keys());

    // While it runs, and as the next process finds it.
    const answers = new Map<string, GapsAnswer>();
    for (const id of cameras.keys()) answers.set(id, await gapsOf(recorder, id));
    const answer = (id: string): GapsAnswer => answers.get(id) as GapsAnswer;
    const months = new Set([spawnedMs, Date.now()].map((ms) => new Date(ms).toISOString().slice(0, 7)));
    await until('the report of the month has the milliseconds of the gaps', async () => {
      const reported = new Map<string, number>();
      for (const month of months) {
        const { cameras: all } = (await recorder.get(`/api/reports/${month}?tz=UTC`)) as Report;
        for (const { camera_id: id, missing_ms: ms } of all) reported.set(id, (reported.get(id) ?? 0) + ms);
      }
      const lists = await Promise.all([...cameras.keys()].map(async (id) => [id, await gapsOf(recorder, id)] as const));
      return lists.every(([id, { gaps }]) => reported.get(id) === sumOf(gaps));
    });
    const restart = ['process-down', 'starting'];
    assert.deepEqual(causes(answer('steady')), ['starting', ...restart]);
    assert.deepEqual(causes(answer('outage')), ['starting', 'camera-unreachable', ...restart]);
    assert.deepEqual(causes(answer('login')), ['starting', 'refused-login', ...restart]);
    assert.deepEqual(causes(answer('cut')), ['starting', 'stream-silent', ...restart]);
    assert.deepEqual(causes(answer('loss')), ['starting', 'packets-lost', ...restart]);
    assert.deepEqual(causes(answer('off')), ['starting', 'stopped', 'starting']);
    // The last fragment before the end was of the last two seconds.
    between(
      secondsOf(answer('steady'), 'process-down'),
      (restartMs - killedMs) / 1000,
      (restartedMs - killedMs) / 1000 + 2.5,
    );
    const gapLasted = (id: string, cause: string, least: number, most: number): void => {
      const seconds = lasted.get(id) ?? NaN;
      between(secondsOf(answer(id), cause), seconds + least, seconds + most);
    };
    gapLasted('outage', 'camera-unreachable', -0.5, 13);
    gapLasted('login', 'refused-login', -0.5, 14);
    gapLasted('cut', 'stream-silent', -0.5, 26);
    gapLasted('loss', 'packets-lost', -0.1, 2);
    between(
      await counted(recorder, 'steady', 'process-down'),
      (restartMs - killedMs) / 1000 - 0.1,
      (restartedMs - killedMs) / 1000 + 2.5,
    );
    assert.equal(await counted(recorder, 'steady', 'disk-full'), 0);

    assert.equal((await recorder.stop()).code, 0);
    const stoppedMs = Date.now();
    recorder = await recorder.restart();
    for (const id of cameras.keys()) {
      await assertAccount(recorder, id, startedMs, stoppedMs);
      const { gaps } = await gapsOf(recorder, id);
      const before = answer(id).gaps;
      for (const [i, gap] of before.entries()) {
        const again = gaps[i];
        assert.equal(again?.cause, gap.cause, `${id}: the next process tells the same`);
        assert.ok(Math.abs(again.start_ms - gap.start_ms) <= ACCOUNT_TOLERANCE_MS, id);
        assert.ok(Math.abs(again.end_ms - gap.end_ms) <= ACCOUNT_TOLERANCE_MS, id);
      }
      assert.equal(gaps[before.length]?.cause, 'process-down');
    }
  });

  test('a camera that sends sound and no picture is silent after 15 s, everywhere, and no longer when pictures come', async (t) => {
    const camera = await startCamera({
      pace: 'realtime',
      tracks: [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))],
    });
    t.after(() => camera.close());
    const recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: { cameras: [{ id: 'gate', source: camera.url }] },
    });
    t.after(() => recorder.child[Symbol.asyncDispose]());
    await recorder.untilRecording('gate');
    type State = { id: string; silent: boolean; silent_since: string | null; recording: { last_written: string } };
    const state = async () => (await recorder.get('/api/cameras/gate')) as State;
    type Ready = { status: string; silent_cameras: { id: string; cause: string }[] };
    const ready = async () => (await recorder.get('/api/health/ready')) as Ready;
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(recorder.metricsUrl)).text();
      return Number(
        / (\S+)$/.exec(text.split('\n').find((line) => line.startsWith(`${name}{camera="gate"}`)) ?? '')?.[1],
      );
    };
    await until('something is written', async () => (await state()).recording.last_written !== null);
    assert.deepEqual([(await state()).silent, (await ready()).silent_cameras], [false, []]);
    assert.equal(await metric('kube_nvr_camera_silent'), 0);

    camera.options.onFrame = (frame) => (frame.track === 0 ? undefined : frame);
    await until('it is silent', async () => (await state()).silent);
    // Not by this process's clock: on a busy machine the last pictures, and this look, come late.
    const seenMs = Date.now();
    const { silent_since: since, recording } = await state();
    between(Date.parse(since ?? ''), Date.parse(recording.last_written) - 1_000, seenMs - 15_000);
    const { status, silent_cameras: silent } = await ready();
    assert.deepEqual([status, silent.map(({ id, cause }) => [id, cause])], ['ready', [['gate', 'stream-silent']]]);
    assert.equal(await metric('kube_nvr_camera_silent'), 1);
    assert.ok((await metric('kube_nvr_camera_silence_seconds')) >= 15);
    assert.equal(recorder.child.output.split('camera is silent').length, 2, 'one line says so');
    const shown = await onThePage(t, recorder.url);
    if (shown !== undefined) assert.match(shown, /^Not recorded since \d\d:\d\d – camera sends no video$/);

    delete camera.options.onFrame;
    await until('it is no longer silent', async () => !(await state()).silent);
    assert.deepEqual((await ready()).silent_cameras, []);
    assert.equal(await metric('kube_nvr_camera_silent'), 0);
    assert.equal(recorder.child.output.split('camera is no longer silent').length, 2, 'and one that it is over');
    if (shown !== undefined) assert.equal(await onThePage(t, recorder.url), '');
  });
});
