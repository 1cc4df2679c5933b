// Who is signed in, and what that person may do.

import { effect, signal } from '@preact/signals';
import { api, keepToken, Problem, refusals } from './api.ts';
import { learnClock } from './clock.ts';
import { go, hashOf, route } from './router.ts';

type Role = 'viewer' | 'operator' | 'admin';

interface Session {
  /** Empty where the recorder asks nobody who they are. */
  readonly name: string;
  readonly role: Role;
  readonly mayExport: boolean;
  /** IANA name of the recorder's time zone. */
  readonly timeZone: string;
  readonly node: string;
  readonly version: string;
  readonly site: string;
  readonly features: Readonly<Record<'export' | 'timelapse' | 'thumbnails' | 'ptz' | 'discover' | 'cluster', boolean>>;
}

/** `undefined`: not known yet. `null`: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);

const RANKS: readonly Role[] = ['viewer', 'operator', 'admin'];

/** Whether the person has this role or a higher one. */
export const may = (role: Role): boolean =>
  session.value ? RANKS.indexOf(session.value.role) >= RANKS.indexOf(role) : false;

const DEVICE_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

interface Answer {
  readonly timestamp: string;
  readonly version: string;
  readonly checks?: unknown;
}

/** Asks who is signed in. Rejects when the recorder does not answer. */
export async function loadSession(): Promise<void> {
  const sentMs = Date.now();
  try {
    await api('/api/cameras');
    const { timestamp, version } = await api<Answer>('/api/health/ready').catch((): Answer => ({
      timestamp: new Date().toISOString(),
      version: '',
    }));
    learnClock(Date.parse(timestamp), sentMs, Date.now());
    session.value = {
      name: '',
      role: 'admin',
      mayExport: true,
      timeZone: DEVICE_ZONE,
      node: '',
      version,
      site: '',
      features: { export: true, timelapse: true, thumbnails: true, ptz: true, discover: false, cluster: false },
    };
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 401 && error.status !== 403)) throw error;
    session.value = null;
  }
}

export type Credentials = { readonly name: string; readonly password: string } | { readonly token: string };

/** Rejects with Problem for wrong credentials. */
export async function signIn(credentials: Credentials): Promise<void> {
  keepToken('token' in credentials ? credentials.token : credentials.password);
  await loadSession();
  if (session.value) return;
  keepToken('');
  throw new Problem(401, 'unauthorized', 'wrong');
}

export async function signOut(): Promise<void> {
  keepToken('');
  session.value = null;
  go('login');
}

/** What to show after signing in: kept in the address of the sign-in page. */
export function watchSession(): void {
  effect(() => {
    if (session.value !== null || route.value.view === 'login' || route.value.view === 'welcome') return;
    const { hash } = window.location;
    go('login', { to: hash.length > 2 ? hash : undefined }, { replace: true });
  });
  effect(() => {
    if (!session.value || (route.value.view !== 'login' && route.value.view !== 'welcome')) return;
    const to = route.value.params.get('to');
    window.history.replaceState(null, '', to?.startsWith('#/') ? to : hashOf('live'));
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  });
  let seen = refusals.peek();
  effect(() => {
    if (refusals.value === seen) return;
    seen = refusals.value;
    // A right or a session that ended while the page was open.
    if (session.peek()) session.value = null;
  });
}

/** As earlier versions took it: `#access_token=…`, which no server receives, and which is gone from the address at once. */
export function takeTokenFromAddress(): void {
  const given = new URLSearchParams(window.location.hash.slice(1)).get('access_token');
  if (!given) return;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  keepToken(given);
}
