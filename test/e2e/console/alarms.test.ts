// Alarms in the page: a camera that cannot be reached is one, an operator takes note of it and writes into the log of the shift, the
// other pages learn of it, and a restart forgets nothing.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { openPage, signIn, SIZES } from './console.ts';

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });
const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const SLOW_MS = 120_000;
test('an alarm is acknowledged in the page and in the log of the shift', { skip: browserMissing() }, async (t) => {
  const directory = workspace(t);
  const config = {
    auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
    // Nothing answers at this port.
    cameras: [{ id: 'gate', name: 'Front gate', source: 'rtsp://127.0.0.1:9/' }],
  };
  let recorder = await RecorderProcess.start({ directory, config, waitUntilReady: false });
  t.after(() => recorder[Symbol.asyncDispose]());
  await using browser = await launchBrowser();
  const open = async (role: string) => {
    const page = await (await browser.newContext({ bypassCSP: true })).newPage();
    page.setDefaultTimeout(SLOW_MS);
    page.on('pageerror', (error) => assert.fail(error.stack ?? error.message));
    await openPage(page, `${recorder.url}/#/alarms`);
    await signIn(page, role);
    return page;
  };
  const viewer = await open('viewer');
  const page = await open('operator');
  const alarm = page.locator('.alarm', { hasText: 'Front gate: Not recorded: camera does not answer.' });
  await alarm.waitFor();
  // Warnings of the machine are alarms, too.
  const countOf = async (): Promise<number> => Number.parseInt(await page.locator('.tab-count').innerText(), 10);
  await until('the tab counts them', async () => (await countOf()) === (await page.locator('.alarm').count()));
  const before = await countOf();
  for (const [name, width, height] of SIZES) {
    await page.setViewportSize({ width, height });
    await page.evaluate(AXE);
    const tags = "{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }";
    const violations = `axe.run(${tags}).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`;
    assert.deepEqual(await page.evaluate(violations), [], name);
    const shots = process.env['KUBE_NVR_SHOTS'];
    if (shots !== undefined) await page.screenshot({ path: `${shots}/alarms-${name}.png` });
  }
  await alarm.getByRole('button', { name: /^Acknowledge Front gate/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Acknowledge the alarm' });
  await dialog.getByLabel('Note').fill('the cable was cut');
  await dialog.getByRole('button', { name: 'Acknowledge' }).click();
  const noted = 'the cable was cut';
  await page.getByRole('region', { name: 'Acknowledged' }).getByText(noted).waitFor();
  await until('the tab counts one less', async () => {
    const [text = '0'] = await page.locator('.tab-count').allInnerTexts();
    return Number.parseInt(text, 10) < before;
  });
  await page.getByLabel('New entry').fill('round made');
  await page.getByRole('button', { name: 'Write' }).click();
  await page.getByText('round made', { exact: true }).waitFor();

  // Told by events, without a reload.
  await viewer.getByText(`Acknowledged by operator`).waitFor();
  await viewer.getByText('round made', { exact: true }).waitFor();
  assert.equal(await viewer.getByRole('button', { name: /Acknowledge|note/i }).count(), 0);
  assert.equal(await viewer.getByLabel('New entry').count(), 0);

  await recorder.child.stop('SIGKILL');
  recorder = await recorder.restart({ waitUntilReady: false });
  const again = await open('viewer');
  await again.getByText(noted).waitFor();
  await again.getByText('round made', { exact: true }).waitFor();
  assert.equal(await again.locator('.alarm', { hasText: 'Front gate: Not recorded' }).count(), 1);
});
