// Exports of all nodes, and protected footage.

import type { VNode } from 'preact';
import { html } from '../parts/html.ts';

export const ExportsView = (): VNode => html`<main class="view"></main>`;
