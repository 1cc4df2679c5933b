// A camera that moves, from the page and over the API, with a recorder as users run it: it stops when a button is let go
// of, and when the recorder ends.

import { test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { startCamera } from '../camera/camera.ts';
import { videoMedia } from '../camera/media.ts';
import { videoTrack } from '../camera/tracks.ts';
import { OnvifDevice } from '../onvif/device.ts';
import { browserMissing, launchBrowser, videoState } from '../support/browser.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const CREDENTIALS = { username: 'admin', password: 'a b@c' };

/** A recorder with a camera that streams, and an ONVIF device beside it that moves. */
async function stage(t: TestContext) {
  const camera = await startCamera({ tracks: [videoTrack(await videoMedia('h264'))], pace: 'realtime' });
  t.after(() => camera.close());
  const device = await OnvifDevice.start({ credentials: CREDENTIALS, clockOffsetMs: -7_200_000 });
  t.after(() => device.close());
  const source = camera.url.replace('rtsp://', 'rtsp://admin:a%20b%40c@');
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      ptz: { moveTimeout: '3s' },
      cameras: [
        { id: 'dome', name: 'Dome', source, ptz: true, onvif: device.url },
        { id: 'fixed', name: 'Fixed', source },
      ],
    },
  });
  t.after(() => recorder.child[Symbol.asyncDispose]());
  return { device, recorder };
}

async function move(recorder: RecorderProcess, movement: object): Promise<void> {
  const body = JSON.stringify({ camera_id: 'dome', pan: 0, tilt: 0, zoom: 0, ...movement });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${recorder.url}/api/ptz/move`, { method: 'POST', headers, body });
  assert.equal(answer.status, 200, await answer.text());
}

test('a moving camera stops after its time, and when the recorder ends', async (t) => {
  const { device, recorder } = await stage(t);
  await move(recorder, { pan: -0.5, speed: 0.5 });
  assert.deepEqual(device.motion, { pan: -0.25, tilt: 0, zoom: 0 });
  await until('it stopped by itself', () => device.motion === undefined);
  await move(recorder, { zoom: 1 });
  assert.ok(device.motion);
  recorder.child.signal('SIGTERM');
  const { code } = await recorder.child.exit();
  assert.equal(code, 0, recorder.child.output);
  assert.equal(device.motion, undefined);
  assert.deepEqual(
    device.operations().filter((name) => name === 'ContinuousMove' || name === 'Stop'),
    ['ContinuousMove', 'Stop', 'ContinuousMove', 'Stop'],
  );
  assert.ok(!recorder.child.output.includes('a b@c') && !recorder.child.output.includes('a%20b'));
});

test('the page moves a camera while a button is held', { skip: browserMissing() }, async (t) => {
  const { device, recorder } = await stage(t);
  await using browser = await launchBrowser();
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${recorder.url}/#/live?c=fixed`);
  await until(
    'the other picture plays',
    async () => (await videoState(page, '[data-camera=fixed] video')).currentTime > 0,
  );
  assert.equal(await page.getByRole('button', { name: 'Turn and zoom' }).count(), 0);
  await page.goto(`${recorder.url}/#/live?c=dome`);
  await until('the picture plays', async () => (await videoState(page, '[data-camera=dome] video')).currentTime > 0);
  const tile = page.locator('[data-camera=dome]');
  await page.getByRole('button', { name: 'Turn and zoom' }).click();
  await tile.getByRole('button', { name: 'Left' }).hover();
  await page.mouse.down();
  await until('it turns left', () => device.motion?.pan === -1);
  const moves = () => device.operations().filter((name) => name === 'ContinuousMove').length;
  await until('the move is renewed while the button is held', () => moves() >= 3);
  assert.ok(device.motion, 'held for longer than moveTimeout');
  await page.mouse.up();
  await until('it stands', () => device.motion === undefined);

  await tile.getByRole('button', { name: 'Zoom in' }).focus();
  await page.keyboard.down('Enter');
  await until('it zooms', () => device.motion?.zoom === 1);
  await page.keyboard.up('Enter');
  await until('it stands again', () => device.motion === undefined);

  device.behave('ContinuousMove', [{ kind: 'fault', reason: 'The motor is too hot' }]);
  await tile.getByRole('button', { name: 'Up' }).click();
  await until('the refusal is shown', async () =>
    ((await tile.locator('.ptz-problem').textContent()) ?? '').includes('The motor is too hot'),
  );
  assert.deepEqual(complaints, []);
});
