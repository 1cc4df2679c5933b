// Replays the last seconds of a camera in the place of its live picture.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { mediaAddress } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { html } from '../parts/html.ts';

const REPLAYS = [10, 30] as const;

interface Replay {
  readonly seconds: number;
  readonly url: string;
  readonly hasFailed: boolean;
}

/** The recorded picture, the buttons that begin and end it, and what begins it. */
export function useReplay(
  id: string,
  name: string,
): { readonly shown: VNode | false; readonly buttons: readonly VNode[]; readonly toggle: (seconds: number) => void } {
  const [replay, setReplay] = useState<Replay | undefined>(undefined);
  const toggle = (seconds: number): void => {
    const toMs = now();
    const from = (toMs - seconds * 1000) / 1000;
    const url = mediaAddress(`/playback/window/${encodeURIComponent(id)}.mp4?from=${from}&to=${toMs / 1000}`);
    setReplay(replay?.seconds === seconds ? undefined : { seconds, url, hasFailed: false });
  };
  const shown =
    replay !== undefined &&
    html`<div class="replay" key=${replay.url}>
      <video
        class="picture"
        src=${replay.url}
        autoplay
        muted
        playsinline
        aria-label=${`The last ${replay.seconds} seconds of ${name}`}
        onEnded=${() => setReplay(undefined)}
        onError=${() => setReplay({ ...replay, hasFailed: true })}
      ></video>
      <p class="badge badge-note" role="status">
        ${replay.hasFailed ? 'This browser cannot replay this camera' : `Replay of the last ${replay.seconds} s`}
      </p>
    </div>`;
  const buttons = REPLAYS.map(
    (seconds) =>
      html`<button
        type="button"
        class="replay-button"
        aria-pressed=${replay?.seconds === seconds}
        aria-label=${`Replay the last ${seconds} seconds of ${name}`}
        title=${`Replay the last ${seconds} seconds`}
        onClick=${() => toggle(seconds)}
      >
        −${seconds}
      </button>`,
  );
  return { shown, buttons, toggle };
}
