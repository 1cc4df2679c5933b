// Runs before the page's modules are there: asks for what they need first, so that they find the answers, and loads the page again
// if one of its scripts did not arrive, with an error or without: browsers do not ask for a module twice, and nothing would be shown.
// This script itself is in the document (api/routes/page.ts), so that it is there whenever the page is.

/** Answers that modules take in place of asking (app/early.ts), by path. */
window.early = new Map();

async function ask(path) {
  const sentMs = Date.now();
  const answer = fetch(path, { signal: AbortSignal.timeout(30_000) }).then((response) => ({
    response,
    receivedMs: Date.now(),
  }));
  window.early.set(path, { sentMs, answer });
  return (await answer).response.ok;
}

async function askFirst() {
  if (await ask('/api/session')) await ask('/api/cameras');
}
// The module that takes the answer deals with a failure.
askFirst().catch(() => {});

// The library that plays recordings is a quarter of all scripts: views that do not need it do not wait for it.
if (window.location.hash.startsWith('#/playback')) {
  const link = document.createElement('link');
  link.rel = 'modulepreload';
  link.href = `${document.currentScript.dataset.page}vendor/hls.js`;
  document.head.append(link);
}

const RETRY_MS = 2_000;
/** Nothing is on the page, and nothing has arrived for this long. */
const STUCK_MS = 30_000;
/** Until a page that is loaded again is given up: longer each time, for slow links. */
let patienceMs = 4_000;
let isWaiting = false;

async function reload() {
  try {
    await fetch('/api/health/live', { cache: 'no-store', signal: AbortSignal.timeout(10_000) });
    window.location.reload();
    // This page stays until the next one begins to arrive, and that may get no answer either.
    setTimeout(() => void reload(), patienceMs);
    patienceMs = Math.min(STUCK_MS, patienceMs * 2);
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
