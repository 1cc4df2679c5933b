// The screen for signing in: with name and password, or with a token.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html } from '../parts/html.ts';
import { Problem, wordsOf } from './api.ts';
import { isStale } from './contact.ts';
import { signIn, type Credentials } from './session.ts';

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'checking' }
  | { readonly kind: 'wrong'; readonly text: string }
  | { readonly kind: 'locked'; readonly untilMs: number }
  | { readonly kind: 'away' };

const RETRY_MS = 2_000;

export function Login(): VNode {
  const [way, setWay] = useState<'password' | 'token'>('password');
  const [state, setState] = useState<State>({ kind: 'idle' });
  const [name, setName] = useState('');
  const [secret, setSecret] = useState('');
  const [left, setLeft] = useState(0);

  async function attempt(): Promise<void> {
    setState({ kind: 'checking' });
    const credentials: Credentials =
      way === 'token' ? { token: secret.trim() } : { name: name.trim(), password: secret };
    try {
      await signIn(credentials);
    } catch (error) {
      if (!(error instanceof Problem)) return setState({ kind: 'away' });
      if (error.status === 429) {
        return setState({ kind: 'locked', untilMs: performance.now() + (error.retryAfterSeconds ?? 1) * 1000 });
      }
      setSecret('');
      const text = way === 'token' ? 'The recorder does not accept this token' : 'Wrong name or password';
      setState({ kind: 'wrong', text: error.status === 401 ? text : wordsOf(error) });
    }
    return undefined;
  }

  // While the recorder is away, the form keeps its values and is submitted again.
  useEffect(() => {
    if (state.kind === 'away') {
      const timer = setTimeout(() => void attempt(), RETRY_MS);
      return () => clearTimeout(timer);
    }
    if (state.kind === 'locked') {
      const count = (): void => {
        const seconds = Math.ceil((state.untilMs - performance.now()) / 1000);
        setLeft(seconds);
        if (seconds <= 0) setState({ kind: 'idle' });
      };
      count();
      const timer = setInterval(count, 250);
      return () => clearInterval(timer);
    }
    return undefined;
  }, [state]);

  const choose = (next: typeof way): void => {
    setWay(next);
    setSecret('');
    setState({ kind: 'idle' });
  };
  const tab = (which: typeof way, label: string): VNode =>
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
      <div class="login-tabs" role="tablist" aria-label="How to sign in">
        ${tab('password', 'Name')}${tab('token', 'Token')}
      </div>
      ${
        way === 'password'
          ? html`<label>
                Name
                <input
                  name="username"
                  autocomplete="username"
                  autocapitalize="none"
                  spellcheck=${false}
                  required
                  autofocus
                  value=${name}
                  onInput=${({ currentTarget }: Typed) => setName(currentTarget.value)}
                />
              </label>
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
              </label>`
          : html`<label>
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
              </p>`
      }
      <p class="login-problem" role="alert">${problemText(state, left)}</p>
      <button type="submit" class="primary" disabled=${isBusy}>
        ${state.kind === 'checking' ? 'Checking …' : 'Sign in'}
      </button>
    </form>
  </main>`;
}

interface Typed {
  readonly currentTarget: HTMLInputElement;
}

function problemText(state: State, secondsLeft: number): string {
  if (state.kind === 'wrong') return state.text;
  if (state.kind === 'locked') return `Too many attempts, try again in ${Math.max(1, secondsLeft)} s`;
  if (state.kind === 'away') return 'The recorder does not answer. Trying again …';
  return isStale.value ? 'The recorder does not answer.' : '';
}
