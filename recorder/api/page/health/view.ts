// What the recorder, its nodes and its cameras need.

import type { VNode } from 'preact';
import { html } from '../parts/html.ts';

export const HealthView = (): VNode => html`<main class="view"></main>`;
