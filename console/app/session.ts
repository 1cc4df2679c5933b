// Who is signed in, and what that person may do.

import { effect, signal } from '@preact/signals';
import type { SessionItem } from './answers.ts';
import { api, Problem, refusals, timedRequest } from './api.ts';
import { learnClock } from './clock.ts';
import { go, hashOf, route } from './router.ts';

type Role = SessionItem['role'];

interface Session extends Pick<SessionItem, 'name' | 'role' | 'node' | 'version' | 'site' | 'features'> {
  readonly mayExport: boolean;
  /** IANA name of the recorder's time zone. */
  readonly timeZone: string;
  /** False if the recorder requires no sign-in: then there is no way to sign out. */
  readonly hasEnd: boolean;
}

/** `undefined`: not known yet. `null`: nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);

const RANKS: readonly Role[] = ['viewer', 'operator', 'admin'];

/** Whether the person has this role or a higher one. */
export const may = (role: Role): boolean =>
  session.value ? RANKS.indexOf(session.value.role) >= RANKS.indexOf(role) : false;

async function ask(method: 'GET' | 'POST', body?: unknown): Promise<void> {
  const asked = { method, ...(body === undefined ? {} : { body }) };
  const { response, sentMs, receivedMs } = await timedRequest('/api/session', asked);
  const answer = (await response.json()) as SessionItem;
  learnClock(answer.server_time_ms, sentMs, receivedMs);
  const { name, role, site, node, version, features } = answer;
  session.value = {
    name,
    role,
    site,
    node,
    version,
    features,
    mayExport: answer.may_export,
    timeZone: answer.time_zone,
    hasEnd: answer.expires_ms !== null,
  };
}

/** Asks who is signed in. Rejects when the recorder does not answer. */
export async function loadSession(): Promise<void> {
  try {
    await ask('GET');
  } catch (error) {
    if (!(error instanceof Problem) || (error.status !== 401 && error.status !== 403)) throw error;
    session.value = null;
  }
}

/** The code is in the link that creates the first admin. */
export type Credentials =
  { readonly name: string; readonly password: string; readonly code?: string } | { readonly token: string };

/** Rejects with Problem for wrong credentials. The session is a cookie that scripts cannot read. */
export const signIn = (credentials: Credentials): Promise<void> => ask('POST', credentials);

export async function signOut(): Promise<void> {
  await api('/api/session', { method: 'DELETE' });
  session.value = null;
  go('login');
}

/** Shows the sign-in page while no user is signed in. Its address keeps the view to show afterwards. */
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
    // A right was withdrawn, or the session ended, while the page was open.
    if (session.peek()) session.value = null;
  });
}
