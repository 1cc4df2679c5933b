// The console as a remote control: a camera is stopped, with a reason, and started again, by whoever may.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { badgeOf, signIn } from './console.ts';

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
    await past.waitFor();
    const width = await past.evaluate<number, { naturalWidth: number }>((image) => image.naturalWidth);
    assert.ok(width > 0 && width <= 640, `${width}`);

    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('button', { name: 'Start recording' }).click();
    for (const one of [page, viewer]) await one.locator('.screen.playing').waitFor();
    assert.equal(await badgeOf(page, 'gate'), undefined);
    assert.equal((await recorder.stop()).code, 0);
  },
);
