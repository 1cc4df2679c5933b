// The keys of the console, shown by `?`.

import type { VNode } from 'preact';
import { Dialog } from '../parts/dialog.ts';
import { html } from '../parts/html.ts';

const GROUPS: readonly (readonly [title: string, keys: readonly (readonly [keys: string, what: string])[]])[] = [
  [
    'Everywhere',
    [
      ['?', 'This list'],
      ['/', 'Find a camera'],
      ['L', 'Live'],
      ['Esc', 'Back'],
    ],
  ],
  [
    'Live',
    [
      ['← ↑ → ↓', 'Next tile, or next camera when one is large; with Shift, the tile is moved'],
      ['Enter', 'Show the camera large'],
      ['1 – 9', 'Show this tile large'],
      ['F', 'Full screen'],
      ['M', 'Sound on or off'],
      ['S', 'Download a still'],
      ['Z', 'Enlarge a large picture, with Shift back; arrows move it'],
      ['R', 'Replay the last 10 seconds of a large picture, with Shift 30'],
      ['P', 'Playback of this camera'],
      ['I', 'Facts about the camera'],
      ['[ ]', 'Previous and next page'],
      ['W A S D', 'Turn the camera, while its pad has the focus'],
    ],
  ],
  [
    'Playback',
    [
      ['1 – 9', 'Select cameras'],
      ['Space', 'Play or pause'],
      [', .', 'Previous and next frame'],
      ['← →', '5 seconds back and forward, with Shift a minute'],
      ['J K L', 'Backwards, stop, forwards'],
      ['N', 'Next gap, with Shift the previous one'],
      ['V', 'Next event, with Shift the previous one'],
      ['X', 'Find changes in the picture, or in what is visible of it'],
      ['Q', 'Skip quiet time'],
      ['[ ]', 'Begin and end of the selection'],
      ['E', 'Export'],
      ['P', 'Protect'],
      ['B', 'Bookmark'],
      ['G', 'Go to a time'],
      ['+ -', 'Zoom of the timeline'],
      ['Z', 'Enlarge the picture, with Shift back; arrows move it'],
      ['M', 'Sound on or off'],
      ['S', 'Save a still'],
      ['F', 'Full screen'],
    ],
  ],
];

export const Help = ({ onClose }: { readonly onClose: () => void }): VNode =>
  html`<${Dialog} title="Keys" onClose=${onClose} className="help">
    <div class="help-groups">
      ${GROUPS.map(
        ([title, keys]) =>
          html`<section>
            <h3>${title}</h3>
            <dl>
              ${keys.map(
                ([key, what]) =>
                  html`<div>
                    <dt>${key.split(' ').map((one) => (one === '–' ? ' – ' : html`<kbd>${one}</kbd>`))}</dt>
                    <dd>${what}</dd>
                  </div>`,
              )}
            </dl>
          </section>`,
      )}
    </div>
  <//>`;
