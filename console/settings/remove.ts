// The dialogue that removes a camera: its name has to be typed.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import { refreshCameras } from '../app/cameras.ts';
import { go } from '../app/router.ts';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';

interface RemoveProps {
  readonly id: string;
  readonly name: string;
  readonly etag: string;
  readonly onClose: () => void;
}

export function RemoveDialog({ id, name, etag, onClose }: RemoveProps): VNode {
  const [typed, setTyped] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const remove = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await api(`/api/cameras/${encodeURIComponent(id)}`, { method: 'DELETE', headers: { 'if-match': etag } });
      await refreshCameras();
      go('health');
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Remove ${name}?`} onClose=${onClose} className="question">
    <form onSubmit=${(event: SubmitEvent) => void remove(event)}>
      <p>
        The camera is not recorded any more, and its settings are lost. Footage that exists stays until retention
        removes it.
      </p>
      <label>
        Type the name of the camera: ${name}
        <input
          name="camera-name-again"
          required
          autocomplete="off"
          autofocus
          value=${typed}
          onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setTyped(currentTarget.value)}
        />
      </label>
      <p class="login-problem" role="alert">${problem}</p>
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger" disabled=${isBusy || typed.trim() !== name.trim()}>
          Remove the camera
        </button>
      </div>
    </form>
  <//>`;
}
