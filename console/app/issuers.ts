// Links to the issuers at which people sign in, and what was wrong when an issuer has sent somebody back.

import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { html } from '../parts/html.ts';
import type { Issuer, SignInProblem } from './answers.ts';
import { api } from './api.ts';
import { route } from './router.ts';

const issuers = signal<readonly Issuer[]>([]);

const PROBLEMS: Readonly<Record<SignInProblem, (label: string) => string>> = {
  expired: () => 'That took too long, or another window was used. Sign in again.',
  'no-role': (label) =>
    `${label} knows you, but nobody has given you a role here. Ask the people who run the recorder.`,
  refused: (label) => `${label} has not signed you in.`,
  away: (label) => `${label} cannot be asked now.`,
  invalid: (label) => `What ${label} has answered is not valid.`,
};

/** What the address of the page says of the last attempt at an issuer; undefined if nothing. */
export function issuerProblem(): string | undefined {
  const { params } = route.value;
  const words = PROBLEMS[params.get('problem') as SignInProblem];
  const found = issuers.value.find(({ name }) => name === params.get('issuer'));
  return words?.(found?.label ?? 'The issuer');
}

export function Issuers(): VNode | null {
  useEffect(() => {
    // Without an answer there is still the form.
    api<{ readonly issuers: readonly Issuer[] }>('/api/sign-in').then(
      (answer) => (issuers.value = answer.issuers),
      () => {},
    );
  }, []);
  if (issuers.value.length === 0) return null;
  const to = route.value.params.get('to');
  const query = to?.startsWith('#/') ? `?to=${encodeURIComponent(to)}` : '';
  return html`<div class="login-issuers">
    ${issuers.value.map(
      ({ name, label }) => html`<a class="button" href=${`/api/sign-in/${name}${query}`}>Sign in with ${label}</a>`,
    )}
  </div>`;
}
