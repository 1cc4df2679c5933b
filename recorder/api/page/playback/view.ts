// Playback of several cameras in step.

import type { VNode } from 'preact';
import { html } from '../parts/html.ts';

export const PlaybackView = (): VNode => html`<main class="view"></main>`;
