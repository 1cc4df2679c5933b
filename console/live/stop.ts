// The dialogue that asks for a reason before recording of a camera is stopped. The list of gaps shows the reason.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { api, wordsOf } from '../app/api.ts';
import type { Camera } from '../app/camera.ts';
import { refreshCameras } from '../app/cameras.ts';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';

export function StopDialog({ camera, onClose }: { readonly camera: Camera; readonly onClose: () => void }): VNode {
  const [reason, setReason] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const stop = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const { id, base } = camera;
      await api('/cameras/stop', { method: 'POST', body: { id, reason: reason.trim() }, base });
      await refreshCameras();
      onClose();
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${`Stop recording ${camera.name}?`} onClose=${onClose} className="question">
    <form onSubmit=${(event: SubmitEvent) => void stop(event)}>
      <p>Nothing is recorded until somebody starts it again. Footage that exists stays.</p>
      <label>
        Reason
        <input
          name="reason"
          required
          maxlength="200"
          autocomplete="off"
          autofocus
          placeholder="For example: works in the yard"
          value=${reason}
          onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setReason(currentTarget.value)}
        />
      </label>
      <p class="login-problem" role="alert">${problem}</p>
      <div class="actions">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="danger" disabled=${isBusy || reason.trim() === ''}>Stop recording</button>
      </div>
    </form>
  <//>`;
}
