// The first start: a link in the log, or from the command, makes the first admin on the page.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { MAIN, RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { assertSeen, SIZES, useOneFont } from './console.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LINK = /http:\/\/127\.0\.0\.1:\d+\/#\/welcome\?code=[\w-]{43}/;

test(
  'a link makes the first admin, once; the next start has none, and the command makes another',
  { skip: browserMissing() },
  async (t) => {
    const recorder = await RecorderProcess.start({ directory: workspace(t), config: { auth: { mode: 'token' } } });
    t.after(() => recorder[Symbol.asyncDispose]());
    await until('the log has the link', () => LINK.test(recorder.child.output));
    const [link = ''] = LINK.exec(recorder.child.output) ?? [];
    await using browser = await launchBrowser();
    const page = await browser.newPage({ bypassCSP: true });
    page.setDefaultTimeout(60_000);
    await useOneFont(page);
    await page.goto(link);
    await page.getByRole('heading', { name: 'Welcome' }).waitFor();
    for (const [size, width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme });
        await assertSeen(page, `welcome-${size}-${colorScheme}`);
        await page.evaluate("window.location.hash = ''");
        await page.getByRole('heading', { name: 'Sign in' }).waitFor();
        await assertSeen(page, `sign-in-${size}-${colorScheme}`);
        await page.goBack();
        await page.getByRole('heading', { name: 'Welcome' }).waitFor();
      }
    }
    await page.evaluate(AXE);
    const faults = await page.evaluate<string[]>(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
    );
    assert.deepEqual(faults, []);
    await page.getByLabel('Name').fill('anna');
    await page.getByLabel('Password', { exact: true }).fill('correct horse');
    await page.getByLabel('Password, once more').fill('correct house');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('The passwords differ.').waitFor();
    await page.getByLabel('Password, once more').fill('correct horse');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('heading', { name: 'No cameras yet' }).waitFor();
    assert.ok(!page.url().includes('code='), page.url());

    const stranger = await (await browser.newContext()).newPage();
    stranger.setDefaultTimeout(60_000);
    await stranger.goto(link);
    await stranger.getByLabel('Name').fill('bert');
    await stranger.getByLabel('Password', { exact: true }).fill('battery staple');
    await stranger.getByLabel('Password, once more').fill('battery staple');
    await stranger.getByRole('button', { name: 'Start' }).click();
    await stranger.getByText('This link was used or has expired').waitFor();

    await recorder.stop();
    const again = await recorder.restart();
    t.after(() => again[Symbol.asyncDispose]());
    assert.doesNotMatch(again.child.output, LINK);
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'admin-link', '--config', again.configFile]);
    assert.match(stdout, LINK);
    const code = stdout.trim().split('code=')[1];
    const made = await again.fetch('/api/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'carl', password: 'correct horse', code }),
    });
    assert.equal(made.status, 200);
  },
);
