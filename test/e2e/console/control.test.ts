// The console as a remote control: a camera is stopped, with a reason, and started again, and a refused login is tried again, by
// callers who may.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { startCamera } from '../../camera/camera.ts';
import { image, startStillCamera } from '../../camera/still-camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { badgeOf, signIn, untilNoBadge } from './console.ts';

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });

test(
  'an operator stops and starts a camera, a viewer sees who did it and has no such control',
  { skip: browserMissing() },
  async (t) => {
    await using camera = await startCamera({ pace: 'realtime' });
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
        cameras: [{ id: 'gate', name: 'The gate', source: camera.url }],
      },
    });
    await using browser = await launchBrowser();
    const open = async (role: string) => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${recorder.url}/#/live?c=gate`);
      await signIn(page, role);
      await page.locator('.screen.playing').waitFor();
      return page;
    };
    const [page, viewer] = await Promise.all([open('operator'), open('viewer')]);
    assert.equal(await viewer.getByRole('button', { name: 'More' }).count(), 0);

    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Stop recording …' }).click();
    const question = page.getByRole('dialog', { name: 'Stop recording The gate?' });
    const stop = question.getByRole('button', { name: 'Stop recording' });
    assert.ok(await stop.isDisabled(), 'not without a reason');
    await question.getByLabel('Reason').fill('works in the yard');
    await stop.click();
    for (const one of [page, viewer]) {
      await until(
        'who stopped it',
        async () => (await badgeOf(one, 'gate'))?.startsWith('Stopped by operator') ?? false,
      );
    }
    await until('the camera is let go of', () => camera.sessions.size === 0);
    await until('the gap says who and why', async () => {
      const now = Date.now() / 1000;
      const path = `/api/archive/gate/gaps?from=${now - 60}&to=${now}`;
      const answer = await fetch(`${recorder.url}${path}`, { headers: { authorization: 'Bearer operator' } });
      const { gaps } = (await answer.json()) as {
        readonly gaps: readonly { readonly cause: string; readonly detail?: string }[];
      };
      const gap = gaps.find(({ cause }) => cause === 'stopped');
      return gap?.detail === 'stopped by operator: works in the yard';
    });
    const past = page.locator('.screen img.past');
    const width = await until('its last picture', () =>
      past.evaluate<number | false, { naturalWidth: number }>(({ naturalWidth }) => naturalWidth > 0 && naturalWidth),
    );
    assert.ok(width <= 640, `${width}`);

    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Start recording' }).click();
    for (const one of [page, viewer]) await one.locator('.screen.playing').waitFor();
    await untilNoBadge(page, 'gate');
    assert.equal((await recorder.stop()).code, 0);
  },
);

test(
  'an operator has a login tried again that the camera refused; a viewer sees the warning and has no such control',
  { skip: browserMissing() },
  async (t) => {
    let isLocked = true;
    const still = await startStillCamera({
      answer: (request, response) => {
        if (isLocked || !request.headers.authorization)
          response.writeHead(401, { 'www-authenticate': 'Basic realm="camera"' }).end();
        else image()(request, response);
      },
    });
    t.after(() => still.close());
    await using camera = await startCamera({ pace: 'realtime' });
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
        cameras: [
          {
            id: 'gate',
            name: 'The gate',
            source: camera.url,
            snapshot: still.url.replace('://', '://user:secret@'),
          },
        ],
      },
    });
    const ask = (path: string, method = 'GET'): Promise<Response> =>
      fetch(`${recorder.url}/api/${path}`, { method, headers: { authorization: 'Bearer operator' } });
    const snapshot = async (): Promise<number> => (await ask('cameras/gate/snapshot')).status;
    await until('it rests for a quarter of an hour, longer than this test lasts', async () => {
      assert.ok((await ask('cameras/gate/try-login', 'POST')).ok);
      assert.equal(await snapshot(), 502);
      return /\((?:[3-9]|\d\d+) times in a row\)/.test(await (await ask('health/ready')).text());
    });
    isLocked = false;
    await using browser = await launchBrowser();
    const open = async (role: string) => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`${recorder.url}/#/health`);
      await signIn(page, role);
      await page.locator('.warnings', { hasText: 'The gate: It refused user and password for still images' }).waitFor();
      return page;
    };
    const [page, viewer] = await Promise.all([open('operator'), open('viewer')]);
    assert.equal(await viewer.getByRole('button', { name: 'Try again' }).count(), 0);
    assert.equal(await snapshot(), 502, 'it rests');
    await page.getByRole('button', { name: 'Try again' }).click();
    for (const one of [page, viewer]) {
      await one.locator('.warnings', { hasText: 'still images' }).waitFor({ state: 'detached' });
    }
    assert.equal(await snapshot(), 200);
  },
);
