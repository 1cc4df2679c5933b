// The view that adds cameras: found in the networks of the recorder, by address, or as text for the configuration.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { wordsOf } from '../app/api.ts';
import { cameras } from '../app/cameras.ts';
import { go, hashOf } from '../app/router.ts';
import { may, session } from '../app/session.ts';
import { html } from '../parts/html.ts';
import { CopyText } from './copy-text.ts';
import { Found } from './found.ts';
import { idOf } from './id.ts';
import { addCamera, login, search, searchCameras, SEARCH_SECONDS } from './search.ts';

const FILE = `cameras:
  - id: gate
    name: Gate
    source: rtsp://user:password@192.168.1.20/stream1`;

const MANIFEST = `apiVersion: kube-nvr.dev/v1alpha1
kind: Camera
metadata:
  name: gate
spec:
  displayName: Gate
  source: rtsp://192.168.1.20/stream1
  credentialsSecretRef:
    name: gate-login`;

export function AddView(): VNode {
  const isEmpty = cameras.value?.length === 0;
  const { features } = session.value ?? {};
  const isAdmin = may('admin');
  return html`<main class="view add">
    <h1>${isEmpty ? 'No cameras yet' : 'Add cameras'}</h1>
    ${
      isAdmin
        ? html`
            ${features?.discover && html`<${Search} />`}
            <div class="add-ways">
              ${!features?.cluster && html`<${ByAddress} />`}
              <section class="card">
                <h2>${features?.cluster ? 'As a resource of the cluster' : 'In the configuration'}</h2>
                <${CopyText} text=${features?.cluster ? MANIFEST : FILE} />
                <p class="quiet">
                  ${
                    features?.cluster
                      ? 'Apply it to the cluster. The Secret has the user and password of the camera.'
                      : 'The recorder takes it up as soon as it reads the file again.'
                  }
                </p>
              </section>
            </div>
          `
        : html`<p class="quiet">Somebody with the role admin can add cameras here.</p>`
    }
  </main>`;
}

type Typed = { readonly currentTarget: HTMLInputElement };

function Search(): VNode {
  const state = search.value;
  const isSearching = state.kind === 'searching';
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // Adding the first camera ends the empty state of the page; this view must stay then.
    go('add');
    void searchCameras();
  };
  return html`<section class="card">
    <h2>Find cameras on the network</h2>
    <form class="add-search" onSubmit=${submit}>
      <label>
        User of the cameras
        <input
          name="camera-user"
          autocomplete="off"
          autocapitalize="none"
          spellcheck=${false}
          value=${login.value.user}
          onInput=${({ currentTarget }: Typed) => (login.value = { ...login.peek(), user: currentTarget.value.trim() })}
        />
      </label>
      <label>
        Password
        <input
          type="password"
          name="camera-password"
          autocomplete="off"
          value=${login.value.password}
          onInput=${({ currentTarget }: Typed) => (login.value = { ...login.peek(), password: currentTarget.value })}
        />
      </label>
      <button type="submit" class="primary" disabled=${isSearching}>
        ${isSearching ? 'Searching …' : 'Find cameras'}
      </button>
    </form>
    <p class="quiet">Most cameras tell their streams only after a login. It is sent to every camera that answers.</p>
    <div role="status">
      ${isSearching && html`<p>The recorder waits ${SEARCH_SECONDS} s for answers, then asks each camera for its streams.</p>`}
      ${state.kind === 'failed' && html`<p class="form-problem">${state.problem}</p>`}
      ${state.kind === 'done' && state.found.cameras.length === 0 && html`<${Nothing} others=${state.found.left_out.length} />`}
    </div>
    ${state.kind === 'done' && html`<${Results} found=${state.found} />`}
  </section>`;
}

const Nothing = ({ others }: { readonly others: number }): VNode =>
  others > 0
    ? html`<p>No camera listed its streams. Check user and password.</p>`
    : html`<p>
        No camera answered. Cameras answer only within the recorder’s own network; in a container it needs the network
        of its machine. ONVIF may have to be switched on in the camera.
      </p>`;

function Results({ found }: { readonly found: Extract<typeof search.value, { kind: 'done' }>['found'] }): VNode {
  return html`
    <ul class="found-list">
      ${found.cameras.map((camera) => html`<${Found} key=${camera.id} camera=${camera} />`)}
    </ul>
    ${
      found.left_out.length + found.problems.length > 0 &&
      html`<ul class="add-problems quiet">
        ${found.left_out.map(({ address, model, problem }) => html`<li><b>${model ?? 'Device'} ${address}</b>: ${problem}</li>`)}
        ${found.problems.map((problem) => html`<li>${problem}</li>`)}
      </ul>`
    }
    ${
      found.cameras.length > 0 &&
      (cameras.value?.length ?? 0) > 0 &&
      html`<p><a class="button" href=${hashOf('live')}>Show all cameras live</a></p>`
    }
  `;
}

function ByAddress(): VNode {
  const [name, setName] = useState('');
  const [source, setSource] = useState('');
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    const id = idOf(
      name,
      (cameras.peek() ?? []).map((camera) => camera.id),
    );
    try {
      await addCamera({ id, name: name.trim(), source: source.trim() });
      go('live', { c: id });
    } catch (error) {
      setProblem(wordsOf(error));
      setBusy(false);
    }
  };
  return html`<section class="card">
    <h2>By its address</h2>
    <form onSubmit=${(event: SubmitEvent) => void submit(event)}>
      <label>
        Name
        <input
          name="camera-name"
          required
          maxlength="60"
          autocomplete="off"
          placeholder="Front gate"
          value=${name}
          onInput=${({ currentTarget }: Typed) => setName(currentTarget.value)}
        />
      </label>
      <label>
        Address of its stream
        <input
          name="camera-source"
          required
          maxlength="1000"
          autocomplete="off"
          spellcheck=${false}
          placeholder="rtsp://user:password@192.168.1.20/stream1"
          value=${source}
          onInput=${({ currentTarget }: Typed) => setSource(currentTarget.value)}
        />
      </label>
      ${problem !== '' && html`<p class="form-problem" role="alert">${problem}</p>`}
      <button type="submit" class="primary" disabled=${isBusy || name.trim() === '' || source.trim() === ''}>
        ${isBusy ? 'Adding …' : 'Record'}
      </button>
    </form>
  </section>`;
}
