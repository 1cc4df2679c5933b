// Loads the page again if one of its scripts did not arrive: browsers do not ask for a module twice, and nothing would be shown.

const RETRY_MS = 2_000;
let isWaiting = false;

async function reload() {
  try {
    await fetch('/api/health/live', { cache: 'no-store' });
    window.location.reload();
  } catch {
    setTimeout(() => void reload(), RETRY_MS);
  }
}

window.addEventListener(
  'error',
  ({ target }) => {
    if (isWaiting || !(target instanceof HTMLScriptElement)) return;
    isWaiting = true;
    setTimeout(() => void reload(), RETRY_MS);
  },
  // An error of an element does not bubble.
  { capture: true },
);
