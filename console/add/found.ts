// Shows one found camera: its picture, a button that adds it, and its entry for a configuration.

import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { sentence, wordsOf } from '../app/api.ts';
import { cameras } from '../app/cameras.ts';
import { isStale } from '../app/contact.ts';
import { hashOf } from '../app/router.ts';
import { session } from '../app/session.ts';
import { codecName } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { icon } from '../parts/icons.ts';
import { CopyText } from './copy-text.ts';
import { addCamera, login, settingsOf, stillOf, type FoundCamera } from './search.ts';

export function Found({ camera }: { readonly camera: FoundCamera }): VNode {
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const isCluster = session.value?.features.cluster === true;
  const added = (cameras.value ?? []).find((one) => one.id === camera.id);
  const isRecorded = added?.recording.state === 'writing' && !isStale.value;
  const { id, maker, model, address, video } = camera;
  const title = camera.name ?? model ?? address;
  const facts = [
    [maker, camera.name === null ? null : model].filter(Boolean).join(' '),
    video && `${codecName(video.codec.toLowerCase())} ${video.width}×${video.height}`,
    address,
  ];
  const add = async (): Promise<void> => {
    setBusy(true);
    setProblem('');
    try {
      await addCamera(settingsOf(camera, login.peek()));
    } catch (error) {
      setProblem(wordsOf(error));
    }
    setBusy(false);
  };
  return html`<li class="found" data-found=${id}>
    <${Still} camera=${camera} />
    <div class="found-text">
      <h3>${title}</h3>
      <p class="quiet">${facts.filter(Boolean).join(' · ')}</p>
      ${problem !== '' && html`<p class="form-problem" role="alert">${sentence(problem)}</p>`}
      <div class="found-actions">
        ${
          added || camera.is_known
            ? html`<span class="found-added">${icon('check')} ${isRecorded ? 'Recorded' : 'Added'}</span>
                ${added && html`<a href=${hashOf('live', { c: id })}>Show live</a>`}`
            : !isCluster &&
              html`<button type="button" class="primary" disabled=${isBusy} onClick=${() => void add()}>
                ${isBusy ? 'Adding …' : 'Record'}<span class="unseen"> ${title}</span>
              </button>`
        }
      </div>
      <details>
        <summary>${isCluster ? 'Manifest' : 'Configuration'}</summary>
        <${CopyText} text=${isCluster ? camera.manifest : camera.config} />
        ${login.value.user !== '' && html`<p class="quiet">Write the password in place of PASSWORD.</p>`}
      </details>
    </div>
  </li>`;
}

/** The picture, or why there is none. */
function Still({ camera }: { readonly camera: FoundCamera }): VNode {
  const [source, setSource] = useState<string>();
  const [note, setNote] = useState(camera.snapshot === null ? 'This camera makes no stills' : '');
  useEffect(() => {
    if (camera.snapshot === null) return undefined;
    const abort = new AbortController();
    let made: string | undefined;
    stillOf(camera, login.peek(), abort.signal).then(
      (blob) => {
        if (!abort.signal.aborted) setSource((made = URL.createObjectURL(blob)));
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setNote(wordsOf(error));
      },
    );
    return () => {
      abort.abort();
      if (made) URL.revokeObjectURL(made);
    };
  }, [camera]);
  return html`<div class="found-still">
    ${source ? html`<img src=${source} alt=${`What ${camera.name ?? camera.address} sees now`} />` : html`<p class="quiet">${note}</p>`}
  </div>`;
}
