// What each role has in the console, and that no secret is in what the browser sends, keeps, logs or is told.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { before, suite, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startCamera } from '../../camera/camera.ts';
import { browserMissing, launchBrowser } from '../../support/browser.ts';
import { until } from '../../support/until.ts';
import { suiteScope } from '../../support/suite-scope.ts';
import { signIn } from './console.ts';
import { footageStage, type FootageStage } from './footage-stage.ts';

const SLOW_MS = 120_000;
const START_MS = Math.floor(Date.now() / 60_000 - 30) * 60_000;
const VIEWS = [
  '#/live',
  '#/live?c=gate',
  '#/playback?c=gate',
  '#/exports',
  '#/exports?list=protected',
  '#/health',
  '#/add',
];

/** Which controls a caller has. */
const CONTROLS = {
  more: ['#/live?c=gate', (page: Page) => page.getByRole('button', { name: 'More' })],
  exports: ['#/playback?c=gate', (page: Page) => page.getByRole('button', { name: 'Export MP4' })],
  window: ['#/playback?c=gate', (page: Page) => page.getByRole('link', { name: /^\s*Download/ })],
  protect: ['#/playback?c=gate', (page: Page) => page.getByRole('button', { name: 'Protect from deletion' })],
  accounts: ['#/health', (page: Page) => page.getByRole('heading', { name: 'Users and tokens' })],
  find: ['#/add', (page: Page) => page.getByRole('button', { name: 'Find cameras' })],
} as const;
type Control = keyof typeof CONTROLS;

const CALLERS: readonly (readonly [name: string, rights: object, has: readonly Control[]])[] = [
  ['viewer', { role: 'viewer' }, ['window']],
  ['guard', { role: 'viewer', export: true }, ['exports']],
  ['operator', { role: 'operator' }, ['more', 'exports', 'protect']],
  ['admin', { role: 'admin' }, ['more', 'exports', 'protect', 'accounts', 'find']],
];

suite('roles in the console', { skip: browserMissing() }, () => {
  const scope = suiteScope();
  const secrets = new Map(CALLERS.map(([name]) => [name, randomBytes(24).toString('base64url')]));
  /** The password of the camera, which the configuration has. */
  const password = randomBytes(24).toString('base64url');
  const secretOf = (name: string): string => secrets.get(name) as string;
  let stage: FootageStage;
  let browser: Browser;

  before(async () => {
    const camera = await startCamera({ pace: 'realtime' });
    scope.after(() => camera.close());
    const source = camera.url.replace('://', `://admin:${password}@`);
    const tokens = CALLERS.map(([name, rights]) => ({
      name,
      ...rights,
      sha256: createHash('sha256').update(secretOf(name)).digest('hex'),
    }));
    stage = await footageStage(scope, {
      cameras: [{ id: 'gate', name: 'Gate' }],
      startMs: START_MS,
      seconds: 60,
      config: {
        auth: { mode: 'token', tokens },
        cameras: [{ id: 'gate', name: 'Gate', source, preview: { source, recorded: true } }],
      },
    });
    browser = await launchBrowser();
    scope.after(() => browser.close());
  });

  async function open(name: string, prepare?: (context: BrowserContext, page: Page) => unknown): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    page.setDefaultTimeout(SLOW_MS);
    await prepare?.(context, page);
    await page.goto(stage.recorder.url);
    await signIn(page, secretOf(name));
    await page.locator('.tile.playing').waitFor();
    return page;
  }

  /** Shows a view, and waits until all that it has is there. */
  async function show(page: Page, hash: string): Promise<void> {
    await page.evaluate(`window.location.hash = ${JSON.stringify(hash)}`);
    await page.locator('main.view:not([aria-busy])').waitFor();
    await until('nothing is loading', () => page.evaluate<boolean>("!document.querySelector('[aria-busy=true]')"));
    await until('the view rests', () =>
      page.evaluate<boolean>(`new Promise((done) => {
        const before = document.body.innerHTML.length;
        setTimeout(() => done(document.body.innerHTML.length === before), 250);
      })`),
    );
  }

  for (const [name, , has] of CALLERS) {
    test(`${name}: controls for what it may do, and no others`, async () => {
      const page = await open(name);
      const found: Control[] = [];
      for (const [control, [hash, locate]] of Object.entries(CONTROLS)) {
        await show(page, hash);
        if ((await locate(page).count()) > 0) found.push(control as Control);
      }
      assert.deepEqual(found, has);
      await page.context().close();
    });
  }

  test('no secret is in an address, a header, an answer, the log or the storage of the browser', async () => {
    const told: string[] = [];
    const page = await open('admin', (context, one) => {
      one.on('console', (message) => told.push(`console: ${message.text()}`));
      one.on('websocket', (socket) => told.push(`websocket: ${socket.url()}`));
      context.on('request', (request) => {
        const isSignIn = request.method() === 'POST' && request.url().endsWith('/api/session');
        told.push(`${request.method()} ${request.url()} ${JSON.stringify(request.headers())}`);
        if (!isSignIn) told.push(`body: ${request.postData() ?? ''}`);
      });
      context.on('response', async (response) => {
        const isText = /json|javascript|html|mpegurl/.test(response.headers()['content-type'] ?? '');
        told.push(`${response.url()} ${JSON.stringify(response.headers())}`);
        if (isText) told.push(await response.text().catch(() => ''));
      });
    });
    for (const hash of VIEWS) await show(page, hash);
    told.push(
      await page.evaluate<string>(
        'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.referrer])',
      ),
    );
    assert.ok(told.length > 50, `${told.length} texts`);
    for (const [name, secret] of [...secrets, ['the camera', password] as const]) {
      assert.deepEqual(
        told.filter((text) => text.includes(secret)),
        [],
        name,
      );
    }
    const [cookie] = await page.context().cookies();
    assert.ok(cookie?.httpOnly && cookie.sameSite === 'Strict', JSON.stringify(cookie));
    // Scripts cannot read the session; only the browser sends it.
    const value = cookie.value;
    const leaks = told.filter((text) => text.includes(value) && !/"cookie":|set-cookie/.test(text));
    assert.deepEqual(leaks, []);
    await page.context().close();
  });
});
