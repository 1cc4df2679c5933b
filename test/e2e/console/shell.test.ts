// What is around every view of the console: signing in, tabs, the address, themes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, suite, test, type TestContext } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { RecorderProcess } from '../../support/recorder-process.ts';
import { until } from '../../support/until.ts';
import { workspace } from '../../support/workspace.ts';
import { signIn } from './console.ts';

const token = (role: string) => ({ name: role, role, sha256: createHash('sha256').update(role).digest('hex') });

suite('around every view of the console', { skip: browserMissing() }, () => {
  const ends = new AsyncDisposableStack();
  let recorder: RecorderProcess;
  let browser: Browser;
  before(async () => {
    const directory = workspace({ after: (end) => ends.defer(end as () => void) });
    const camera = ends.use(await startCamera({ pace: 'realtime' }));
    recorder = await RecorderProcess.start({
      directory,
      config: {
        auth: { mode: 'token', tokens: [token('operator'), token('viewer')] },
        cameras: [{ id: 'gate', name: 'The gate', source: camera.url }],
      },
    });
    ends.defer(async () => void (await recorder.stop()));
    browser = ends.use(await launchBrowser());
  });
  after(() => ends.disposeAsync());

  /** A page of a person who has not been there before. `complaints`: errors of scripts. */
  async function open(t: TestContext): Promise<{ page: Page; url: string; complaints: string[] }> {
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    return { page, url: recorder.url, complaints };
  }

  test('after signing in the page shows what the address names, and each tab has an address', async (t) => {
    const { page, url, complaints } = await open(t);
    await page.goto(`${url}/#/health`);
    await signIn(page, 'guess');
    await until('the refusal', async () => /does not accept/.test(await page.locator('[role=alert]').innerText()));
    await signIn(page, 'viewer');
    await until('the requested view', () => page.url().endsWith('#/health'));
    for (const view of ['Live', 'Playback', 'Exports', 'Health']) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await until(`the address of ${view}`, () => page.url().includes(`#/${view.toLowerCase()}`));
      const link = page.getByRole('link', { name: view, exact: true });
      // The address changes before the page is drawn.
      await until(`${view} is the current one`, async () => (await link.getAttribute('aria-current')) === 'page');
    }
    await page.goBack();
    await until('back', () => page.url().endsWith('#/exports'));
    assert.deepEqual(complaints, []);
  });

  test('Escape leaves the screen for signing in where it is', async (t) => {
    const { page, url } = await open(t);
    await page.goto(url);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    for (let i = 0; i < 4; i++) await page.keyboard.press('Escape');
    assert.ok(await page.getByRole('heading', { name: 'Sign in' }).isVisible());
  });

  test('a theme that was chosen stays after the page is loaded again', async (t) => {
    const { page, url } = await open(t);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.goto(url);
    await signIn(page, 'viewer');
    await page.getByRole('button', { name: 'viewer, viewer' }).click();
    await page.getByRole('button', { name: 'Dark' }).click();
    const ground = (): Promise<string> =>
      page.evaluate("getComputedStyle(document.querySelector('.bar')).backgroundColor");
    await until('dark', async () => (await ground()) === 'rgb(21, 25, 31)');
    await page.reload();
    await until('still dark', async () => (await ground()) === 'rgb(21, 25, 31)');
  });

  test('a user stays signed in after the page is loaded again, until signing out', async (t) => {
    const { page, url } = await open(t);
    await page.goto(url);
    await signIn(page, 'viewer');
    await page.locator('[data-camera=gate]').waitFor();
    await page.reload();
    await page.locator('[data-camera=gate]').waitFor();
    await page.getByRole('button', { name: 'viewer, viewer' }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  test('no token is in an address, in the storage of the browser or where scripts can read it', async (t) => {
    const { page, url } = await open(t);
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    page.on('websocket', (socket) => addresses.push(socket.url()));
    await page.goto(url);
    await signIn(page, 'operator');
    await page.locator('.tile.playing').waitFor();
    const kept = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    );
    assert.doesNotMatch(kept, /operator/);
    assert.ok(addresses.some((address) => address.startsWith('ws:')));
    assert.deepEqual(
      addresses.filter((address) => /operator|access_token/.test(address)),
      [],
    );
  });

  test('too many attempts: the screen counts the seconds that the recorder asks to wait', async (t) => {
    const { page, url } = await open(t);
    await page.route('**/api/session', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({
            status: 429,
            headers: { 'retry-after': '3', 'content-type': 'application/problem+json' },
            body: '{"code":"too-many-attempts","detail":"too many"}',
          })
        : route.continue(),
    );
    await page.goto(url);
    await signIn(page, 'guess');
    const alert = page.locator('.login-card [role=alert]');
    const shown = (): Promise<string> => alert.innerText();
    await until('the seconds', async () => (await shown()) === 'Too many attempts, try again in 3 s');
    assert.ok(await page.getByRole('button', { name: 'Sign in' }).isDisabled());
    await until('fewer seconds', async () => (await shown()) === 'Too many attempts, try again in 2 s');
    await until('another attempt', async () => (await shown()) === '');
    assert.ok(await page.getByRole('button', { name: 'Sign in' }).isEnabled());
  });

  test('while the recorder is away, what was typed stays and is tried again', async (t) => {
    const { page, url } = await open(t);
    await page.goto(url);
    // A page that lost an answer when the network changed, which tests that make networks cause, asks again for the form first.
    await page.getByRole('tab', { name: 'Token' }).waitFor();
    await page.context().route('**/api/**', (route) => route.abort());
    await signIn(page, 'viewer');
    await until('it says so', async () =>
      /does not answer. Trying again/.test(await page.locator('.login-card [role=alert]').innerText()),
    );
    assert.equal(await page.locator('input[name=token]').inputValue(), 'viewer');
    await page.context().unroute('**/api/**');
    await page.locator('[data-camera=gate]').waitFor();
  });

  test('a session that ends leads to the screen for signing in, and back to the same place', async (t) => {
    const { page, url } = await open(t);
    await page.goto(`${url}/#/live?c=gate`);
    await signIn(page, 'viewer');
    await page.getByRole('heading', { name: 'The gate' }).waitFor();
    await page.context().clearCookies();
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await signIn(page, 'viewer');
    await page.getByRole('heading', { name: 'The gate' }).waitFor();
  });

  test('who is signed in, and the cameras, are asked for once, before the scripts have come', async (t) => {
    const { page, url } = await open(t);
    await page.goto(url);
    await signIn(page, 'viewer');
    await page.locator('[data-camera=gate]').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const both = (): string[] => asked.filter((path) => path === '/api/session' || path === '/api/cameras');
    await page.route(/\/app\/main\.ts$/, async (route) => {
      await until('both are asked for', () => both().length === 2);
      await route.continue();
    });
    await page.reload();
    await page.locator('.tile[data-camera=gate]').waitFor();
    assert.deepEqual(both(), ['/api/session', '/api/cameras']);
  });
});
