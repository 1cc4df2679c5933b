// The dialogues that make, change and remove a user of the page.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, fieldProblems, wordsOf } from '../app/api.ts';
import { NameField, USER_NAME, type Typed } from '../app/name-field.ts';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';

interface EditedUser {
  readonly name: string;
  readonly role: 'viewer' | 'operator' | 'admin';
  readonly may_export: boolean;
  readonly cameras: readonly string[] | null;
}

const ROLES = [
  ['viewer', 'Viewer: watches, lists, downloads'],
  ['operator', 'Operator: also exports, moves, starts and stops'],
  ['admin', 'Admin: everything'],
] as const;

interface DialogProps {
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** `user`: undefined for a new one. */
export function UserDialog({ user, onClose, onDone }: DialogProps & { readonly user: EditedUser | undefined }): VNode {
  const [name, setName] = useState(user?.name ?? '');
  const [role, setRole] = useState<string>(user?.role ?? 'viewer');
  const [cameras, setCameras] = useState((user?.cameras ?? []).join(', '));
  const [mayExport, setMayExport] = useState(user?.role === 'viewer' && user.may_export);
  const [password, setPassword] = useState('');
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const [isBusy, setBusy] = useState(false);
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const ids = cameras.split(/[\s,]+/).filter((id) => id !== '');
    const body = {
      role,
      ...(ids.length > 0 && { cameras: ids }),
      ...(role === 'viewer' && mayExport && { export: true }),
      ...(password !== '' && { password }),
    };
    try {
      await api(`/api/users/${encodeURIComponent(name)}`, { method: 'PUT', body });
      onDone();
    } catch (error) {
      setProblems(fieldProblems(error, ['password']));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${user ? `Change ${user.name}` : 'Add a user'} onClose=${onClose}>
    <form onSubmit=${(event: SubmitEvent) => void save(event)}>
      ${!user && html`<${NameField} name=${name} setName=${setName} limits=${USER_NAME} />`}
      <label>
        Role
        <select
          name="role"
          onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => setRole(currentTarget.value)}
        >
          ${ROLES.map(([value, words]) => html`<option value=${value} selected=${value === role}>${words}</option>`)}
        </select>
      </label>
      <label>
        Cameras
        <input
          name="cameras"
          autocomplete="off"
          autocapitalize="none"
          spellcheck=${false}
          placeholder="All cameras, or ids such as gate, dock-*"
          value=${cameras}
          onInput=${({ currentTarget }: Typed) => setCameras(currentTarget.value)}
        />
      </label>
      ${
        role === 'viewer' &&
        html`<label class="check">
          <input
            type="checkbox"
            checked=${mayExport}
            onChange=${({ currentTarget }: Typed) => setMayExport(currentTarget.checked)}
          />
          May export footage
        </label>`
      }
      <label>
        ${user ? 'New password' : 'Password'}
        <input
          type="password"
          name="password"
          autocomplete="new-password"
          required=${!user}
          placeholder=${user ? 'Empty: the password stays' : ''}
          aria-invalid=${problems['password'] !== undefined}
          value=${password}
          onInput=${({ currentTarget }: Typed) => setPassword(currentTarget.value)}
        />
      </label>
      <p class="form-problem" role="alert">${problems['password'] ?? problems[''] ?? ''}</p>
      ${user && html`<p class="quiet">A change signs the user out everywhere.</p>`}
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="primary" disabled=${isBusy || name === ''}>${user ? 'Save' : 'Add'}</button>
      </div>
    </form>
  <//>`;
}

export function RemoveUserDialog({ name, onClose, onDone }: DialogProps & { readonly name: string }): VNode {
  const [problem, setProblem] = useState('');
  const remove = async (): Promise<void> => {
    try {
      await api(`/api/users/${encodeURIComponent(name)}`, { method: 'DELETE' });
      onDone();
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return html`<${Dialog} title=${`Remove ${name}?`} onClose=${onClose} className="question">
    <p>The user is signed out everywhere, and cannot sign in any more.</p>
    <p class="form-problem" role="alert">${problem}</p>
    <div class="actions">
      <button type="button" autofocus onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" onClick=${() => void remove()}>Remove the user</button>
    </div>
  <//>`;
}
