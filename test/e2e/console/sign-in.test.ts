// People sign in at an issuer, in a browser, and the console says what was wrong when they cannot.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { CLIENT, startIssuer } from '../../support/issuer.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { assertSeen, SIZES, useOneFont } from './console.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

test(
  'a person signs in at the issuer and comes back to the same view; one without a role is told so',
  { skip: browserMissing() },
  async (t) => {
    const issuer = await startIssuer(t);
    const recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: {
        auth: {
          mode: 'token',
          issuers: [
            {
              name: 'plant',
              label: 'Plant account',
              issuer: issuer.url,
              clientId: CLIENT.id,
              clientSecret: CLIENT.secret,
              rules: [{ claim: 'groups', value: 'nvr-admins', role: 'admin' }],
            },
          ],
        },
      },
    });
    t.after(() => recorder[Symbol.asyncDispose]());
    issuer.serve(recorder.url);
    await using browser = await launchBrowser();
    const page = await browser.newPage({ bypassCSP: true });
    page.setDefaultTimeout(60_000);
    await useOneFont(page);
    await page.goto(`${recorder.url}/#/health`);
    const link = page.getByRole('link', { name: 'Sign in with Plant account' });
    await link.waitFor();
    for (const [size, width, height] of SIZES) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme });
        await assertSeen(page, `issuers-${size}-${colorScheme}`);
      }
    }
    await page.evaluate(AXE);
    const faults = await page.evaluate<string[]>(
      'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))',
    );
    assert.deepEqual(faults, []);

    issuer.person = { sub: 'u-2', preferred_username: 'guest' };
    await link.click();
    const alert = page.locator('.login-card [role=alert]');
    await until('the page says what is missing', async () =>
      (await alert.innerText()).startsWith('Plant account knows you, but nobody has given you a role here.'),
    );

    // Another person: the issuer knows this browser by its cookie.
    await page.context().clearCookies();
    issuer.person = { sub: 'u-1', preferred_username: 'anna', groups: ['nvr-admins'] };
    await link.click();
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    assert.match(page.url(), /#\/health$/);
    const session = await page.evaluate<string>("fetch('/api/session').then((answer) => answer.text())");
    assert.equal((JSON.parse(session) as { name: string }).name, 'plant/anna');
  },
);
