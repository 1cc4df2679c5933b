// Settings of a camera in the page: a camera of `recorder setup` is corrected and removed there, what is wrong is told at its field,
// a test says what to do, and a camera that people wrote says in which file it is.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { openPage, signIn } from './console.ts';

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });
const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const SLOW_MS = 120_000;

test(
  'an admin corrects the password of a camera in the page, and removes the camera; a viewer cannot',
  { skip: browserMissing() },
  async (t) => {
    const credentials = { username: 'eve', password: 'p@ss:w/rd' };
    await using camera = await startCamera({ pace: 'realtime', credentials });
    const wrong = camera.url.replace('://', '://eve:typo@');
    const directory = workspace(t);
    const setup = join(directory, 'conf.d/setup.yaml');
    mkdirSync(dirname(setup));
    const first = '# Written by recorder setup.\n# 10.0.0.7: left out, it offers no H.264 or H.265\n';
    writeFileSync(setup, `${first}cameras:\n  - id: gate\n    name: 前门\n    source: ${wrong}\n`);
    await using recorder = await RecorderProcess.start({
      directory,
      config: {
        auth: { mode: 'token', tokens: [token('admin'), token('viewer')] },
        cameras: [{ id: 'yard', name: 'The yard', source: camera.url, enabled: false }],
      },
      waitUntilReady: false,
    });
    await using browser = await launchBrowser();
    const open = async (role: string, view: string) => {
      const page = await (await browser.newContext({ bypassCSP: true })).newPage();
      page.setDefaultTimeout(SLOW_MS);
      await openPage(page, `${recorder.url}/#/${view}`);
      await signIn(page, role);
      return page;
    };
    const viewer = await open('viewer', 'camera?c=gate');
    await viewer.getByText('Somebody with the role admin can change cameras here.').waitFor();

    const page = await open('admin', 'health');
    // The title of the window says what is wrong.
    await until('the title', async () => (await page.title()).startsWith('1 camera not recorded · Health'), SLOW_MS);
    await page.locator('.warnings li', { hasText: '前门' }).getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { name: '前门' }).waitFor();
    assert.equal(await page.getByLabel('User').inputValue(), 'eve');
    await page.evaluate(AXE);
    const violations =
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))';
    assert.deepEqual(await page.evaluate(violations), []);
    await page.getByRole('button', { name: 'Test the address' }).click();
    await page.getByText(/refuses.*password\..*password/is).waitFor();
    await page.getByLabel('Keep for', { exact: true }).fill('30');
    await page.getByLabel('New password').fill(credentials.password);
    await page.getByRole('button', { name: 'Test the address' }).click();
    await page.getByText(/^The camera answers: H\.264 \d+×\d+\.$/).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    const age = page.locator('.camera-field', { has: page.getByLabel('Keep for', { exact: true }) });
    await age.getByText(/^Expected a duration/).waitFor();
    await page.getByLabel('Keep for', { exact: true }).fill('30d');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await until('the pill', async () => (await page.locator('.pill').innerText()) === '1 of 2 recorded', SLOW_MS);
    const text = readFileSync(setup, 'utf8');
    assert.ok(text.startsWith(first), text);
    assert.match(text, /maxAge: 30d/);

    await page.goto(`${recorder.url}/#/camera?c=yard`);
    await page.getByText(`This camera is in a file that was written by hand: ${recorder.configFile}`).waitFor();
    assert.ok(await page.getByLabel('Name').isDisabled());
    assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);

    await page.goto(`${recorder.url}/#/live?c=gate`);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('link', { name: 'Settings …' }).click();
    await page.getByRole('button', { name: 'Remove …' }).click();
    const question = page.getByRole('dialog', { name: 'Remove 前门?' });
    const remove = question.getByRole('button', { name: 'Remove the camera' });
    assert.ok(await remove.isDisabled(), 'not without its name');
    await question.getByRole('textbox').fill('前门');
    await remove.click();
    await until('it is gone', () => !readFileSync(setup, 'utf8').includes('gate'));
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    await page.getByRole('rowheader', { name: '前门' }).waitFor({ state: 'detached' });
    assert.ok(!recorder.child.output.includes('w/rd'), 'the log has no password');
  },
);

test(
  'an admin adds, changes and removes a user in the page, and the user chooses another password',
  { skip: browserMissing() },
  async (t) => {
    await using recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: { auth: { mode: 'token', tokens: [token('admin')] } },
    });
    await using browser = await launchBrowser();
    const open = async () => {
      const page = await (await browser.newContext({ bypassCSP: true })).newPage();
      page.setDefaultTimeout(SLOW_MS);
      await openPage(page, `${recorder.url}/#/health`);
      return page;
    };
    const admin = await open();
    await signIn(admin, 'admin');
    await admin.getByRole('button', { name: 'Add a user' }).click();
    const dialog = admin.getByRole('dialog');
    await dialog.getByLabel('Name').fill('guard');
    await dialog.getByLabel('Cameras').fill('gate, dock-*');
    await dialog.getByLabel('May export footage').check();
    await dialog.getByLabel('Password').fill('sunshine');
    await dialog.getByRole('button', { name: 'Add' }).click();
    await dialog.getByText(/most common passwords/).waitFor();
    await admin.evaluate(AXE);
    const violations =
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))';
    assert.deepEqual(await admin.evaluate(violations), []);
    await dialog.getByLabel('Password').fill('correct horse');
    await dialog.getByRole('button', { name: 'Add' }).click();
    const row = admin.locator('#accounts tr', { hasText: 'guard' });
    await row.getByText('viewer, may export').waitFor();
    await row.getByText('gate, dock-*').waitFor();
    await admin.locator('#accounts tr', { hasText: 'Token' }).getByText('in the configuration').waitFor();

    const guard = await open();
    const enter = async (password: string): Promise<void> => {
      await guard.locator('input[name=username]').fill('guard');
      await guard.locator('input[type=password]').fill(password);
      await guard.getByRole('button', { name: 'Sign in' }).click();
    };
    await enter('correct horse');
    await guard.getByRole('button', { name: 'guard, viewer' }).click();
    await guard.getByRole('button', { name: 'Change your password …' }).click();
    await guard.getByLabel('Present password').fill('wrong horse');
    await guard.getByLabel('New password', { exact: true }).fill('battery staple');
    await guard.getByLabel('Confirm the new password').fill('battery staple');
    await guard.getByRole('button', { name: 'Change the password' }).click();
    await guard.getByText('Is not the present password.').waitFor();
    await guard.getByLabel('Present password').fill('correct horse');
    await guard.getByRole('button', { name: 'Change the password' }).click();
    await guard.getByText('The password is changed.').waitFor();
    await guard.locator('.dialog-body .actions').getByRole('button', { name: 'Close' }).click();
    await guard.getByRole('heading', { name: 'Health' }).waitFor();

    await admin.getByRole('button', { name: 'Remove guard' }).click();
    await dialog.getByRole('button', { name: 'Remove the user' }).click();
    await row.waitFor({ state: 'detached' });
    await guard.reload();
    await guard.locator('input[name=username]').waitFor();
    await enter('battery staple');
    await guard.getByText(/wrong/i).waitFor();
  },
);
