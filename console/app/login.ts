// The screen for signing in: with name and password, or with a token.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../parts/html.ts';
import { isStale } from './contact.ts';
import { issuerProblem, Issuers } from './issuers.ts';
import { NameField, type Typed } from './name-field.ts';
import { useSigningIn } from './signing-in.ts';

type Way = 'password' | 'token';

export function Login(): VNode {
  const [way, setWay] = useState<Way>('password');
  const [name, setName] = useState('');
  const [secret, setSecret] = useState('');
  const credentials = way === 'token' ? { token: secret.trim() } : { name: name.trim(), password: secret };
  const { state, secondsLeft, attempt, reset } = useSigningIn(credentials, () => setSecret(''));
  const choose = (next: Way): void => {
    setWay(next);
    setSecret('');
    reset();
  };
  const tab = (which: Way, label: string): VNode =>
    html`<button type="button" role="tab" aria-selected=${way === which} onClick=${() => choose(which)}>
      ${label}
    </button>`;
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    void attempt();
  };
  const isBusy = state.kind === 'checking' || state.kind === 'away' || state.kind === 'locked';
  return html`<main class="login">
    <form class="login-card" onSubmit=${onSubmit}>
      <h1>Sign in</h1>
      <${Issuers} />
      <div class="login-tabs" role="tablist" aria-label="How to sign in">
        ${tab('password', 'Name')}${tab('token', 'Token')}
      </div>
      ${
        way === 'password'
          ? html`<${PasswordFields} name=${name} setName=${setName} secret=${secret} setSecret=${setSecret} />`
          : html`<${TokenFields} secret=${secret} setSecret=${setSecret} />`
      }
      <p class="login-problem" role="alert">${problemText(state, secondsLeft)}</p>
      <button type="submit" class="primary" disabled=${isBusy}>
        ${state.kind === 'checking' ? 'Checking …' : 'Sign in'}
      </button>
    </form>
  </main>`;
}

interface SecretProps {
  readonly secret: string;
  readonly setSecret: (secret: string) => void;
}

interface PasswordProps extends SecretProps {
  readonly name: string;
  readonly setName: (name: string) => void;
}

const PasswordFields = ({ name, setName, secret, setSecret }: PasswordProps): VNode =>
  html`<${NameField} name=${name} setName=${setName} />
    <label>
      Password
      <input
        type="password"
        name="password"
        autocomplete="current-password"
        required
        value=${secret}
        onInput=${({ currentTarget }: Typed) => setSecret(currentTarget.value)}
      />
    </label>`;

const TokenFields = ({ secret, setSecret }: SecretProps): VNode =>
  html`<label>
      Token
      <input
        type="password"
        name="token"
        autocomplete="off"
        required
        autofocus
        value=${secret}
        onInput=${({ currentTarget }: Typed) => setSecret(currentTarget.value)}
      />
    </label>
    <p class="quiet">
      Without a token of your own, take the one in the file <code>admin.token</code> in the recorder’s working
      directory.
    </p>`;

function problemText(state: ReturnType<typeof useSigningIn>['state'], secondsLeft: number): string {
  if (state.kind === 'wrong') return state.text;
  if (state.kind === 'locked') return `Too many attempts, try again in ${Math.max(1, secondsLeft)} s`;
  if (state.kind === 'away') return 'The recorder does not answer. Trying again …';
  return isStale.value ? 'The recorder does not answer.' : (issuerProblem() ?? '');
}
