// The console: starts what watches the recorder, and shows the views.

import { render } from 'preact';
import { html } from '../parts/html.ts';
import { watchAlarms } from './alarms.ts';
import { watchCameras } from './cameras.ts';
import { startClock } from './clock.ts';
import { watchContact } from './contact.ts';
import { watchEvents } from './events.ts';
import { watchHappenings } from './happening.ts';
import { startKeyboard } from './keyboard.ts';
import { route, startRouter } from './router.ts';
import { loadSession, session, watchSession } from './session.ts';
import { App } from './shell.ts';
import { watchTheme } from './theme.ts';

const RETRY_MS = 2_000;

startRouter();
// Evaluated while the session is asked for.
if (route.peek().view === 'playback') void import('hls.js').catch(() => {});
startClock();
startKeyboard();
watchTheme();
watchContact();
watchSession();
watchEvents();
watchHappenings();
watchCameras();
watchAlarms();
render(html`<${App} />`, document.querySelector('#app') as HTMLElement);

async function begin(): Promise<void> {
  try {
    await loadSession();
  } catch {
    // Tried again.
    if (session.peek() === undefined) setTimeout(() => void begin(), RETRY_MS);
  }
}
void begin();
