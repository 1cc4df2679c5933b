// Replays the last seconds of a camera in the place of its live picture.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { mediaAddress } from '../app/api.ts';
import { now } from '../app/clock.ts';
import { formatClock } from '../parts/format.ts';
import { html } from '../parts/html.ts';

const REPLAYS = [10, 30] as const;

interface Replay {
  readonly cameraId: string;
  readonly seconds: number;
  readonly toMs: number;
  readonly url: string;
  /** Why it does not play. */
  readonly problem?: string;
}

interface Replaying {
  readonly shown: VNode | false;
  /** Of that picture: `02:13:00 – 02:13:10`. */
  readonly times: string | undefined;
  readonly buttons: readonly VNode[];
  /** Begins or ends it. */
  readonly toggle: (seconds: number) => void;
}

export function useReplay(id: string, name: string): Replaying {
  const [begun, setReplay] = useState<Replay | undefined>(undefined);
  const replay = begun?.cameraId === id ? begun : undefined;
  const toggle = (seconds: number): void => {
    const toMs = now();
    const from = (toMs - seconds * 1000) / 1000;
    const url = mediaAddress(`/playback/window/${encodeURIComponent(id)}.mp4?from=${from}&to=${toMs / 1000}`);
    setReplay(replay?.seconds === seconds ? undefined : { cameraId: id, seconds, toMs, url });
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
        onError=${async () => {
          const problem = await problemOf(replay);
          setReplay((now) => (now?.url === replay.url ? { ...now, problem } : now));
        }}
      ></video>
      <p class="badge badge-note" role="status">${replay.problem ?? `Replay of the last ${replay.seconds} s`}</p>
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
  const times = replay && `${formatClock(replay.toMs - replay.seconds * 1000)} – ${formatClock(replay.toMs)}`;
  return { shown, times, buttons, toggle };
}

/** The video element does not say why it fails. */
async function problemOf({ url, seconds }: Replay): Promise<string> {
  const status = await fetch(url, { method: 'HEAD' }).then(
    (answer) => answer.status,
    () => undefined,
  );
  if (status === 404) return `Nothing is recorded of the last ${seconds} s`;
  return status === 200 ? 'This browser cannot replay this camera' : 'The recorder does not send the replay';
}
