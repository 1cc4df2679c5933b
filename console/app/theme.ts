// The light or dark theme: the device's setting, unless the user has chosen one.

import { effect, signal } from '@preact/signals';
import { keep, kept } from './settings.ts';

export const THEMES = ['auto', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const before = kept('theme');
export const theme = signal<Theme>(before === 'light' || before === 'dark' ? before : 'auto');

export function watchTheme(): void {
  effect(() => {
    keep('theme', theme.value === 'auto' ? undefined : theme.value);
    document.documentElement.dataset['theme'] = theme.value;
  });
}
