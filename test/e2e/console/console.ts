// What the tests of the console share: signing in, what a tile says, and what a screen looks like.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { assertPicture } from '../../support/compare-pictures.ts';
import { until } from '../../support/until.ts';

/**
 * Opens an address in the browser. Its scripts may come later: the page loads itself again when one of them gets no answer, for which
 * the `load` event would wait.
 */
export async function openPage(page: Page, address: string): Promise<void> {
  await until('the page', () => page.goto(address, { waitUntil: 'commit', timeout: 30_000 }).then(Boolean));
}

/** With a token, on the screen for it. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByRole('tab', { name: 'Token' }).click();
  await page.locator('input[name=token]').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** The badge of a tile; undefined for a camera with which nothing is wrong, or that is not shown. */
export async function badgeOf(page: Page, cameraId: string): Promise<string | undefined> {
  // One look: `textContent` waits for a badge, also for one that has just gone.
  const [badge] = await page.locator(`[data-camera="${cameraId}"] .badge`).allTextContents();
  return badge;
}

/** The state that a page has of a camera may be older than the picture that it shows. */
export async function untilNoBadge(page: Page, ...cameraIds: readonly string[]): Promise<void> {
  for (const id of cameraIds) await until(`${id} has no badge`, async () => (await badgeOf(page, id)) === undefined);
}

/** The screens of a phone, a laptop and a wall of a control room, in pixels. */
export const SIZES = [
  ['phone', 390, 844],
  ['laptop', 1440, 900],
  ['wall', 3840, 2160],
] as const;

/** So that text is equally wide on machines with other fonts. */
const FONTS = `
  :root { font-family: 'DejaVu Sans' !important }
  :is(pre, code, .clock time) { font-family: 'DejaVu Sans Mono' !important }`;

/** From its next load on, a page has the fonts that `hack/setup browser` installs. It has to be opened with `bypassCSP`. */
export async function useOneFont(page: Page): Promise<void> {
  await page.addInitScript(`
    document.addEventListener('DOMContentLoaded', () => document.head.append(
      Object.assign(document.createElement('style'), { textContent: ${JSON.stringify(FONTS)} }),
    ));`);
}

/** Pictures of cameras move, and arrive later when the machine is busy. */
const STILL = `video, .ptile img, .screen img { visibility: hidden } .stage-clock b ~ .quiet { display: none }`;

/** Fails if a page does not look as the picture `seen/NAME.png`; `KUBE_NVR_UPDATE=1` writes it. The page has used one font. */
export async function assertSeen(page: Page, name: string): Promise<void> {
  await assertPicture(join(import.meta.dirname, 'seen', `${name}.png`), () =>
    page.screenshot({ animations: 'disabled', caret: 'hide', style: STILL }),
  );
  assert.deepEqual(await fontsOf(page), ['DejaVu Sans'], 'hack/setup browser installs it');
}

/** The fonts in which the text of a page is drawn. */
async function fontsOf(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send('DOM.enable');
  await session.send('CSS.enable');
  const { root } = await session.send('DOM.getDocument');
  const { nodeId } = await session.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'h1' });
  const { fonts } = await session.send('CSS.getPlatformFontsForNode', { nodeId });
  await session.detach();
  return fonts.map(({ familyName }) => familyName);
}
