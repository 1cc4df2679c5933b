// The screen of the link that makes the first admin: asks for a name and a password.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../parts/html.ts';
import { wordsOf } from './api.ts';
import { NameField, USER_NAME, type Typed } from './name-field.ts';
import { hashOf, route } from './router.ts';
import { signIn } from './session.ts';

const SHORTEST = 8;

export function Welcome(): VNode {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [again, setAgain] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const code = route.value.params.get('code') ?? '';

  const onSubmit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (password !== again) return setProblem('The passwords differ.');
    setProblem('');
    setBusy(true);
    try {
      // When it is done, the address is that of the console: the code does not stay in it.
      await signIn({ name, password, code });
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
    return undefined;
  };
  const secret = (label: string, value: string, set: (text: string) => void): VNode =>
    html`<label>
      ${label}
      <input
        type="password"
        autocomplete="new-password"
        minlength=${SHORTEST}
        required
        value=${value}
        onInput=${({ currentTarget }: Typed) => set(currentTarget.value)}
      />
    </label>`;
  return html`<main class="login">
    <form class="login-card" onSubmit=${onSubmit}>
      <h1>Welcome</h1>
      <p class="quiet">
        Choose a name and a password of at least ${SHORTEST} characters. You will be an admin of this recorder.
      </p>
      <${NameField} name=${name} setName=${setName} limits=${USER_NAME} />
      ${secret('Password', password, setPassword)} ${secret('Password, once more', again, setAgain)}
      <p class="login-problem" role="alert">${problem}</p>
      <button type="submit" class="primary" disabled=${isBusy}>${isBusy ? 'One moment …' : 'Start'}</button>
      <a href=${hashOf('login')}>Sign in instead</a>
    </form>
  </main>`;
}
