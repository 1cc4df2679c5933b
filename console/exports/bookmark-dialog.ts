// The dialogue that names a moment or the selection, and protects its footage if that is wanted.

import type { VNode } from 'preact';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import type { Span } from '../playback/spans.ts';
import { makeBookmarks } from './bookmarks.ts';
import { protect } from './protections.ts';
import { WindowDialog, type TimeOfCameras } from './window-dialog.ts';

interface Props extends TimeOfCameras {
  /** Undefined: the start of the window is named, not a span. */
  readonly selection: Span | undefined;
  readonly onDone: () => void;
}

export function BookmarkDialog({ cameraIds, window, selection, zone, onClose, onDone }: Props): VNode {
  const named = selection ?? { startMs: window.startMs, endMs: window.startMs };
  const submit = async ({ name = '', note = '', ...more }: Readonly<Record<string, string>>): Promise<void> => {
    if ('protect' in more) await protect({ cameraIds, ...window, note: name, untilMs: undefined });
    await makeBookmarks({ cameraIds, ...named, name, note });
    onDone();
  };
  const props = { cameraIds, window: named, zone, onClose, submit };
  return html`<${WindowDialog} ...${props} title="Bookmark" className="bookmark" action="Keep the bookmark">
    <label>Name<input name="name" required maxlength="200" pattern=".*\\S.*" autofocus autocomplete="off" /></label>
    <label>Note<textarea name="note" maxlength="2000" rows="3"></textarea></label>
    <label
      ><input type="checkbox" name="protect" /> Protect ${formatDuration((window.endMs - window.startMs) / 1000)} of
      footage from deletion</label
    >
  <//>`;
}
