// Icons as inline SVG: they take the colour of the text. The text beside them, or the label of their button, says the same.

import type { VNode } from 'preact';
import { html } from './html.ts';

const PATHS = {
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14m5 12 4 4',
  soundOn: 'M4 9v6h4l5 4V5L8 9zM16 8.5a5 5 0 0 1 0 7M18.5 6a8.5 8.5 0 0 1 0 12',
  soundOff: 'M4 9v6h4l5 4V5L8 9zm12.5.5 5 5m0-5-5 5',
  large: 'M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5',
  still: 'M4 8h3.5L9 5.5h6L16.500 8H20v11H4zm8 2.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7',
  playback: 'M4.500 12a7.500 7.500 0 1 0 2.200-5.300M4 4v4h4m4-.5V12l3 2',
  move: 'M12 3v18M3 12h18M9 6l3-3 3 3M9 18l3 3 3-3M6 9l-3 3 3 3M18 9l3 3-3 3',
  info: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16m0 7v5m0-8v.01',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  close: 'm6 6 12 12M18 6 6 18',
  left: 'm15 5-7 7 7 7',
  right: 'm9 5 7 7-7 7',
  down: 'm6 9 6 6 6-6',
  user: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M5 20c.6-3.500 3.400-5.500 7-5.500s6.400 2 7 5.500',
  warning: 'M12 4 2.800 20h18.400zm0 6v4.500m0 2.700v.01',
  stop: 'M7 7h10v10H7z',
  live: 'M12 10a2 2 0 1 0 0 4 2 2 0 0 0 0-4M7.500 7.500a6.400 6.400 0 0 0 0 9m9-9a6.400 6.400 0 0 1 0 9M4.700 4.700a10.300 10.300 0 0 0 0 14.600m14.600-14.600a10.300 10.300 0 0 1 0 14.600',
  exports: 'M12 4v11m-4.500-4 4.500 4.500 4.500-4.500M5 20h14',
  health: 'M3 12.500h4l2.500-6 4.500 12 2.500-6h4.500',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  check: 'm5 12.500 4.500 4.500L19 7.500',
  layout: 'M4 5h16v14H4zm8 0v14M4 12h16',
  trash: 'M5 7h14M10 7V4.500h4V7m-7.500 0 .8 12.500h9.400L17.500 7',
} as const;

export type IconName = keyof typeof PATHS;

export const icon = (name: IconName): VNode =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
