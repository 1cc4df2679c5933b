// Loads the page again if one of its scripts did not arrive, with an error or without: browsers do not ask for a module twice, and
// nothing would be shown.

const RETRY_MS = 2_000;
/** Nothing is on the page, and nothing has arrived for this long. */
const STUCK_MS = 30_000;
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

let arrived = -1;
function watch() {
  const { length } = performance.getEntriesByType('resource');
  if (document.querySelector('#app')?.hasChildNodes() || isWaiting) return;
  if (length === arrived) {
    isWaiting = true;
    void reload();
    return;
  }
  arrived = length;
  setTimeout(watch, STUCK_MS);
}
setTimeout(watch, STUCK_MS);
