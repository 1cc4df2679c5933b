// The dialogue in which a user chooses another password.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';
import { api, fieldProblems } from './api.ts';
import type { Typed } from './name-field.ts';

export function PasswordDialog({ onClose }: { readonly onClose: () => void }): VNode {
  const [password, setPassword] = useState('');
  const [next, setNext] = useState('');
  const [again, setAgain] = useState('');
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const [isDone, setDone] = useState(false);
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (next !== again) return setProblems({ again: 'The passwords differ.' });
    try {
      await api('/api/users/me/password', { method: 'PUT', body: { password, new_password: next } });
      setDone(true);
    } catch (error) {
      setProblems(fieldProblems(error, ['password', 'new_password']));
    }
    return undefined;
  };
  const field = (name: string, label: string, value: string, set: (text: string) => void): VNode =>
    html`<label>
        ${label}
        <input
          type="password"
          name=${name}
          autocomplete=${name === 'password' ? 'current-password' : 'new-password'}
          required
          aria-invalid=${problems[name] !== undefined}
          value=${value}
          onInput=${({ currentTarget }: Typed) => set(currentTarget.value)}
        />
      </label>
      ${problems[name] !== undefined && html`<p class="form-problem" role="alert">${problems[name]}</p>`}`;
  return html`<${Dialog} title="Change your password" onClose=${onClose}>
    ${
      isDone
        ? html`<p role="status">The password is changed. You are signed out everywhere else.</p>
            <div class="actions"><button type="button" autofocus onClick=${onClose}>Close</button></div>`
        : html`<form onSubmit=${(event: SubmitEvent) => void save(event)}>
            ${field('password', 'Present password', password, setPassword)}
            ${field('new_password', 'New password', next, setNext)}
            ${field('again', 'Confirm the new password', again, setAgain)}
            ${problems[''] !== undefined && html`<p class="form-problem" role="alert">${problems['']}</p>`}
            <div class="actions">
              <button type="button" onClick=${onClose}>Cancel</button>
              <button type="submit" class="primary">Change the password</button>
            </div>
          </form>`
    }
  <//>`;
}
