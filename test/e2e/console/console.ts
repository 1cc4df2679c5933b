// What the tests of the console share: signing in, and what a tile says.

import type { Page } from 'playwright-core';

/** With a token, on the screen for it. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByRole('tab', { name: 'Token' }).click();
  await page.locator('input[name=token]').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** The badge of a tile; undefined for a camera with which nothing is wrong, or that is not shown. */
export async function badgeOf(page: Page, cameraId: string): Promise<string | undefined> {
  const badge = page.locator(`[data-camera="${cameraId}"] .badge`);
  return (await badge.count()) === 0 ? undefined : ((await badge.textContent()) ?? undefined);
}
