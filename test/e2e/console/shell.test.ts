// What is around every view of the console: signing in, tabs, the address, themes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';

const skip = browserMissing();
const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });

/** A recorder with one camera, for whoever has a token, and its page. `complaints`: errors of scripts. */
async function open(t: TestContext): Promise<{ page: Page; url: string; complaints: string[] }> {
  const camera = await startCamera({ pace: 'realtime' });
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
      cameras: [{ id: 'gate', name: 'The gate', source: camera.url }],
    },
  });
  const browser = await launchBrowser();
  t.after(async () => {
    await browser.close();
    await recorder.stop();
    await camera.close();
  });
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, url: recorder.url, complaints };
}

async function signIn(page: Page, text: string): Promise<void> {
  await page.getByRole('tab', { name: 'Token' }).click();
  await page.getByLabel('Token', { exact: true }).last().fill(text);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('whoever signs in is where the address said, and each tab has an address', { skip }, async (t) => {
  const { page, url, complaints } = await open(t);
  await page.goto(`${url}/#/health`);
  await signIn(page, 'guess');
  await until('the refusal', async () => /does not accept/.test(await page.locator('[role=alert]').innerText()));
  await signIn(page, 'viewer');
  await until('the requested view', () => page.url().endsWith('#/health'));
  for (const view of ['Live', 'Playback', 'Exports', 'Health']) {
    await page.getByRole('link', { name: view, exact: true }).click();
    await until(`the address of ${view}`, () => page.url().endsWith(`#/${view.toLowerCase()}`));
    assert.equal(await page.getByRole('link', { name: view, exact: true }).getAttribute('aria-current'), 'page');
  }
  await page.goBack();
  await until('back', () => page.url().endsWith('#/exports'));
  assert.deepEqual(complaints, []);
});

test('Escape leaves the screen for signing in where it is', { skip }, async (t) => {
  const { page, url } = await open(t);
  await page.goto(url);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  for (let i = 0; i < 4; i++) await page.keyboard.press('Escape');
  assert.ok(await page.getByRole('heading', { name: 'Sign in' }).isVisible());
});

test('a theme that was chosen stays after the page is loaded again', { skip }, async (t) => {
  const { page, url } = await open(t);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.goto(url);
  await signIn(page, 'viewer');
  await page.getByRole('button', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Dark' }).click();
  const ground = (): Promise<string> =>
    page.evaluate("getComputedStyle(document.querySelector('.bar')).backgroundColor");
  await until('dark', async () => (await ground()) === 'rgb(21, 25, 31)');
  await page.reload();
  await until('still dark', async () => (await ground()) === 'rgb(21, 25, 31)');
});
