// Playback: the pictures of one to nine cameras in step, the month, export, and the timeline.

import { untracked } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { cameras } from '../app/cameras.ts';
import { byName } from '../app/condition.ts';
import { useKeys } from '../app/keyboard.ts';
import { Part } from '../app/part.ts';
import { may } from '../app/session.ts';
import { ExportPanel, type Named } from '../exports/panel.ts';
import { windowOf } from '../exports/window.ts';
import { saveStill } from '../exports/save-still.ts';
import { toggleFullScreen } from '../live/full-screen.ts';
import { CameraList } from '../live/list.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { Calendar } from './calendar.ts';
import { GapList } from './gap-list.ts';
import { playbackKeys } from './keys.ts';
import { Playback } from './playback.ts';
import { Tiles } from './tiles.ts';
import { Timeline } from './timeline.ts';
import { Transport } from './transport.ts';

export function PlaybackView(): VNode {
  // Begins before the rest of the view is drawn: its videos load meanwhile.
  const playback = useMemo(() => {
    const made = new Playback();
    untracked(() => made.begin());
    return made;
  }, []);
  const view = useRef<HTMLElement>(null);
  const [exportsWanted, wantExport] = useState(0);
  const [dialog, setDialog] = useState<Named | undefined>(undefined);
  const open = (name: Named | undefined): void => setDialog(playback.cameras.peek().length > 0 ? name : undefined);
  useLayoutEffect(() => () => playback.end(), [playback]);
  const known = cameras.value;
  // With a single camera there is nothing to choose.
  useEffect(() => {
    const [only] = known ?? [];
    if (known?.length === 1 && only && playback.cameras.peek().length === 0) playback.select([only.id]);
  }, [known]);
  useKeys(
    playbackKeys(playback, {
      exportSelection: () => wantExport((count) => count + 1),
      protect: () => open('ProtectDialog'),
      bookmark: () => may('operator') && open('BookmarkDialog'),
      goToTime: () => view.current?.querySelector<HTMLInputElement>('[name=go-to]')?.focus(),
      fullScreen: () => void toggleFullScreen(view.current),
      saveStill: () => {
        const id = playback.focused.peek();
        if (id !== undefined) void saveStill(playback, id, playback.atMs.peek());
      },
      chooseCamera: (number) => {
        const camera = [...(known ?? [])].sort(byName)[number - 1];
        if (camera) playback.toggle(camera.id);
      },
    }),
  );
  const isEmpty = playback.cameras.value.length === 0;
  // Most sites have none until a camera or another system tells them.
  const hasEvents = playback.cameras.value.some((id) => (playback.seen.of(id)?.events ?? []).length > 0);
  return html`<main class="view playback" ref=${view}>
    <h1 class="unseen">Playback</h1>
    <${CameraList}
      cameras=${known ?? []}
      selected=${playback.cameras.value}
      onSelect=${(id: string) => playback.toggle(id)}
    />
    <div class="pb-stage">
      ${
        isEmpty
          ? html`<p class="pb-empty">${known?.length === 0 ? 'No cameras yet.' : 'Choose one to nine cameras.'}</p>`
          : html`<${Tiles} playback=${playback} />`
      }
      <${Pause} playback=${playback} />
    </div>
    <aside class="side" aria-label="Calendar and export">
      ${playback.search.value && html`<${Part} name="ChangeList" playback=${playback} search=${playback.search.value} />`}
      <${Calendar} playback=${playback} />
      <${ExportPanel} playback=${playback} wanted=${exportsWanted} onOpen=${open} />
      ${hasEvents && html`<${Part} name="EventList" playback=${playback} />`}
      ${!isEmpty && html`<${GapList} playback=${playback} />`}
    </aside>
    <div class="pb-controls">
      <${Transport} playback=${playback} />
      ${playback.seen.problem.value !== undefined && html`<p class="form-problem" role="alert">${playback.seen.problem.value}</p>`}
      <${Timeline} playback=${playback} />
    </div>
    ${
      dialog &&
      html`<${Part}
        name=${dialog}
        cameraIds=${playback.cameras.peek()}
        window=${windowOf(playback)}
        selection=${playback.selection.peek()}
        zone=${playback.zone.value}
        onClose=${() => open(undefined)}
        onDone=${() => {
          open(undefined);
          playback.seen.refresh();
        }}
      />`
    }
  </main>`;
}

/** Shown when every camera is in a gap: nothing plays until the user skips it. Quiet time was skipped already. */
function Pause({ playback }: { readonly playback: Playback }): VNode | false {
  const pause = playback.pause.value;
  const skipped = playback.skipped.value;
  if (!pause && skipped)
    return html`<p class="pb-pause" role="status">
      Skipped ${formatDuration((skipped.endMs - skipped.startMs) / 1_000)} of quiet time.
    </p>`;
  if (!pause) return false;
  const { nextMs } = pause;
  if (nextMs === undefined) return false;
  if (nextMs === null) return html`<p class="pb-pause" role="status">Nothing is recorded after this.</p>`;
  return html`<div class="pb-pause" role="status">
    <span>Paused: no recording until ${playback.zone.value.time(nextMs)}.</span>
    <button type="button" class="primary" onClick=${() => playback.skip()}>Skip the gap</button>
  </div>`;
}
