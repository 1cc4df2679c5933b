// The list of cameras beside the wall, with a search: cameras with problems first, the others by group.

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Camera } from '../app/camera.ts';
import { byName, byUrgency, conditionOf, type Level } from '../app/condition.ts';
import { isStale } from '../app/contact.ts';
import { useKeys } from '../app/keyboard.ts';
import { tick } from '../app/clock.ts';
import { formatDuration } from '../parts/format.ts';
import { html } from '../parts/html.ts';
import { groupsOf, isFound } from './groups.ts';

interface CameraListProps {
  readonly cameras: readonly Camera[];
  readonly selected: readonly string[];
  readonly onSelect: (id: string) => void;
}

export function CameraList({ cameras, selected, onSelect }: CameraListProps): VNode {
  const [text, setText] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => field.current?.focus() });
  const found = cameras.filter((camera) => isFound(camera, text.trim()));
  const problems = isStale.value ? [] : found.filter(isProblem).sort(byUrgency);
  const others = found.filter((camera) => !problems.includes(camera)).sort(byName);
  const item = (camera: Camera): VNode =>
    html`<${Item} camera=${camera} isSelected=${selected.includes(camera.id)} onSelect=${onSelect} />`;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      setText('');
      field.current?.blur();
    }
    const [first] = [...problems, ...others];
    if (event.key === 'Enter' && first) onSelect(first.id);
  };
  return html`<nav class="camera-list" aria-label="Cameras">
    <input
      ref=${field}
      type="search"
      placeholder="Find a camera"
      aria-label="Find a camera"
      aria-keyshortcuts="/"
      value=${text}
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setText(currentTarget.value)}
      onKeyDown=${onKey}
    />
    <div class="camera-groups">
      ${
        problems.length > 0 &&
        html`<h2>Needs attention</h2>
          <ul>
            ${problems.map(item)}
          </ul>`
      }
      ${groupsOf(others).map(
        ({ name, cameras: members }) => html`
          ${name !== '' && html`<h2>${name}</h2>`}
          <ul>
            ${members.map(item)}
          </ul>
        `,
      )}
      ${found.length === 0 && html`<p class="quiet">No camera of this name.</p>`}
    </div>
  </nav>`;
}

const isProblem = (camera: Camera): boolean => ['alarm', 'attention'].includes(conditionOf(camera).level);

interface ItemProps {
  readonly camera: Camera;
  readonly isSelected: boolean;
  readonly onSelect: (id: string) => void;
}

function Item({ camera, isSelected, onSelect }: ItemProps): VNode {
  const { level, title, sinceMs } = conditionOf(camera);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isSelected) button.current?.scrollIntoView({ block: 'nearest' });
  }, [isSelected]);
  const kind = isStale.value ? 'stale' : level;
  const note = isStale.value || level === 'fine' ? '' : noteOf(level, title, sinceMs);
  return html`<li key=${camera.id}>
    <button
      ref=${button}
      type="button"
      class="camera-item"
      aria-current=${isSelected ? 'true' : undefined}
      onClick=${() => onSelect(camera.id)}
    >
      <span class=${`dot dot-${kind}`} aria-hidden="true"></span>
      <span class="camera-item-name">${camera.name}</span>
      <span class="camera-item-note">${note}</span>
    </button>
  </li>`;
}

/** The name must stay readable beside it. */
function noteOf(level: Level, title: string, sinceMs: number | undefined): string {
  if (level === 'busy' || sinceMs === undefined) return level === 'off' ? 'off' : title.toLowerCase();
  return formatDuration(Math.max(0, (tick.value - sinceMs) / 1000));
}
