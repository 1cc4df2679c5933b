// The first camera: an empty console finds the cameras of its network, shows what they see, and records one.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../../recorder/config/load.ts';
import { street, streetMissing } from '../../onvif/street.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { openPage, signIn } from './console.ts';

const PASSWORD = 'the password';
const AXE = readFileSync(new URL('../../../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const SLOW_MS = 120_000;

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });

test(
  'an admin finds the cameras of the network with pictures, and records one by a button; a viewer cannot',
  { skip: browserMissing() || streetMissing() },
  async (t) => {
    const directory = workspace(t);
    const still = join(directory, 'still.jpg');
    execFileSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc=size=320x180', '-frames:v', '1', still]);
    const namespace = await street(t, still);
    const recorder = await RecorderProcess.start({
      directory,
      config: { auth: { mode: 'token', tokens: [token('admin'), token('viewer')] } },
      through: ['ip', 'netns', 'exec', namespace],
      waitUntilReady: false,
    });
    t.after(() => recorder.child[Symbol.asyncDispose]());
    // The page has the address of the recorder's namespace, so the browser runs there.
    const script = join(directory, 'browser');
    const through = (path: string): string => {
      writeFileSync(script, `#!/bin/sh\nexec ip netns exec ${namespace} ${path} "$@"\n`);
      chmodSync(script, 0o755);
      return script;
    };
    await using browser = await launchBrowser({ through });
    const open = async (role: string) => {
      const page = await (await browser.newContext({ bypassCSP: true })).newPage();
      page.setDefaultTimeout(SLOW_MS);
      await openPage(page, recorder.url);
      await signIn(page, role);
      await page.getByRole('heading', { name: 'No cameras yet' }).waitFor();
      return page;
    };
    const viewer = await open('viewer');
    assert.equal(await viewer.getByRole('button', { name: 'Find cameras' }).count(), 0);

    const page = await open('admin');
    await page.getByLabel('User of the cameras').fill('admin');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Find cameras' }).click();
    const gate = page.locator('[data-found=dome-1-10-77-0-11]');
    await gate.waitFor();
    assert.match(await gate.innerText(), /Front gate\s+Acme Dome 1 · H\.264 1920×1080 · 10\.77\.0\.11/);
    await until('its picture', () =>
      gate.locator('img').evaluate<boolean, { naturalWidth: number }>((image) => image.naturalWidth === 320),
    );
    assert.match(await page.locator('.add-problems').innerText(), /10\.77\.0\.12: .*refuses the login/);
    await gate.locator('summary').click();
    const text = await gate.locator('pre').innerText();
    const copied = join(directory, 'copied.yaml');
    writeFileSync(copied, text);
    const { cameras } = await loadConfig(copied);
    assert.deepEqual(
      cameras.map(({ id, source }) => [id, source]),
      [['dome-1-10-77-0-11', 'rtsp://admin:PASSWORD@10.77.0.11:554/main']],
    );
    await page.evaluate(AXE);
    assert.deepEqual(
      await page.evaluate(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
      ),
      [],
    );

    await gate.getByRole('button', { name: 'Record' }).click();
    await gate.getByText('Recorded', { exact: true }).waitFor();
    const shots = process.env['KUBE_NVR_SCREENSHOTS'];
    if (shots) await page.screenshot({ path: join(shots, 'add.png'), fullPage: true });
    await gate.getByRole('link', { name: 'Show live' }).click();
    await page.locator('.screen.playing[data-camera=dome-1-10-77-0-11]').waitFor();
    await until('the pill', async () => (await page.locator('.pill').innerText()) === 'All 1 recorded', SLOW_MS);
    assert.ok(!recorder.child.output.includes(PASSWORD), 'the log has no password');
    const stored = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])',
    );
    assert.ok(!stored.includes('the'), stored);
  },
);
