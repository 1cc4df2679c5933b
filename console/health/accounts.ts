// The list of users and tokens, for admins.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api } from '../app/api.ts';
import { now, tick } from '../app/clock.ts';
import { formatDuration, formatTime } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { RemoveUserDialog, UserDialog } from './user-dialog.ts';

const AGAIN_MS = 30_000;

interface Account {
  readonly kind: 'user' | 'token';
  readonly name: string;
  readonly role: 'viewer' | 'operator' | 'admin' | 'reporter';
  readonly may_export: boolean;
  readonly cameras: readonly string[] | null;
  readonly is_made: boolean;
  readonly is_guessable: boolean;
  readonly last_used_ms: number | null;
}

interface Answer {
  readonly accounts: readonly Account[];
  readonly since_ms: number;
  readonly may_add: boolean;
}

type Asked = { readonly kind: 'add' } | { readonly kind: 'change' | 'remove'; readonly account: Account };

export function Accounts(): VNode | false {
  const [answer, setAnswer] = useState<Answer>();
  const [asked, setAsked] = useState<Asked>();
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    // What was read stays while the recorder is away; a banner says so.
    const ask = (): void =>
      void api<Answer>('/api/accounts', { signal: abort.signal }).then(setAnswer, () => undefined);
    ask();
    const timer = setInterval(() => document.hidden || ask(), AGAIN_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [changes]);
  if (!answer) return html`<section aria-busy="true"></section>`;
  if (answer.accounts.length === 0 && !answer.may_add) return false;
  const close = (): void => setAsked(undefined);
  const done = (): void => {
    close();
    setChanges(changes + 1);
  };
  return html`<section>
    <header class="health-bar">
      <h2 id="health-accounts">Users and tokens</h2>
      ${
        answer.may_add &&
        html`<button type="button" onClick=${() => setAsked({ kind: 'add' })}>${icon('plus')} Add a user</button>`
      }
    </header>
    <div class="table-box" tabindex="0" role="region" aria-labelledby="health-accounts">
      <table id="accounts">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col">Role</th>
            <th scope="col">Cameras</th>
            <th scope="col" class="number">Last used</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          ${answer.accounts.map((account) => html`<${Row} key=${`${account.kind} ${account.name}`} account=${account} onAsk=${setAsked} />`)}
        </tbody>
      </table>
    </div>
    <p class="quiet">Uses are known since ${formatTime(answer.since_ms)}, when the recorder started.</p>
    ${asked?.kind === 'add' && html`<${UserDialog} user=${undefined} onClose=${close} onDone=${done} />`}
    ${asked?.kind === 'change' && html`<${UserDialog} user=${asked.account} onClose=${close} onDone=${done} />`}
    ${asked?.kind === 'remove' && html`<${RemoveUserDialog} name=${asked.account.name} onClose=${close} onDone=${done} />`}
  </section>`;
}

interface RowProps {
  readonly account: Account;
  readonly onAsk: (asked: Asked) => void;
}

function Row({ account, onAsk }: RowProps): VNode {
  void tick.value; // counts on
  const { kind, name, role, may_export, cameras, is_made, is_guessable, last_used_ms } = account;
  const rights = role === 'viewer' && may_export ? 'viewer, may export' : role;
  const ago =
    last_used_ms === null ? 'not since then' : `${formatDuration(Math.max(1, (now() - last_used_ms) / 1000))} ago`;
  return html`<tr>
    <th scope="row">${name}</th>
    <td data-label="Kind">
      ${kind === 'user' ? 'User' : 'Token'}${is_guessable && html` <span class="weak">can be guessed</span>`}
    </td>
    <td data-label="Role">${rights}</td>
    <td data-label="Cameras">${cameras === null ? 'all' : cameras.join(', ')}</td>
    <td class="number" data-label="Last used">${ago}</td>
    <td data-label="Change">
      ${
        is_made
          ? html`<div class="user-actions">
              <button type="button" aria-label=${`Change ${name}`} onClick=${() => onAsk({ kind: 'change', account })}>
                Change …
              </button>
              <button type="button" aria-label=${`Remove ${name}`} onClick=${() => onAsk({ kind: 'remove', account })}>
                Remove …
              </button>
            </div>`
          : html`<span class="quiet">in the configuration</span>`
      }
    </td>
  </tr>`;
}
