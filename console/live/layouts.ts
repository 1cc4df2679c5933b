// Layouts of the wall: which cameras, their order, and how many on each page. They are stored on this device.

import { signal } from '@preact/signals';
import { keep, kept } from '../app/settings.ts';
import type { Camera } from '../app/camera.ts';
import { byName } from '../app/condition.ts';

export interface Layout {
  readonly name: string;
  /** Ids in their order; `null`: all cameras. */
  readonly cameras: readonly string[] | null;
  /** The maximum number of tiles on a page; `null`: as many as fit. */
  readonly perPage: number | null;
}

export const PER_PAGE = [1, 4, 9, 16, 25, 36] as const;

const isLayout = (value: unknown): value is Layout => {
  const { name, cameras, perPage } = (value ?? {}) as Partial<Layout>;
  const isList = cameras === null || (Array.isArray(cameras) && cameras.every((id) => typeof id === 'string'));
  return typeof name === 'string' && isList && (perPage === null || typeof perPage === 'number');
};

function load<T>(name: string, isValid: (value: unknown) => value is T, otherwise: T): T {
  try {
    const value: unknown = JSON.parse(kept(name) ?? 'null');
    return isValid(value) ? value : otherwise;
  } catch {
    // An older version, or another page, has written it.
    return otherwise;
  }
}

const areLayouts = (value: unknown): value is readonly Layout[] => Array.isArray(value) && value.every(isLayout);
const areIds = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((id) => typeof id === 'string');

export const layouts = signal(load('layouts', areLayouts, []));
/** The order of all cameras after the user dragged their tiles. */
export const order = signal(load('order', areIds, []));

/** Saves a layout in place of one with the same name. */
export function saveLayout(layout: Layout): void {
  layouts.value = [...layouts.value.filter(({ name }) => name !== layout.name), layout].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  keep('layouts', JSON.stringify(layouts.value));
}

export function removeLayout(name: string): void {
  layouts.value = layouts.value.filter((layout) => layout.name !== name);
  keep('layouts', JSON.stringify(layouts.value));
}

export function saveOrder(ids: readonly string[]): void {
  order.value = ids;
  keep('order', JSON.stringify(ids));
}

/** The cameras of a layout that still exist; without a layout, all cameras, those in `first` before the others. */
export function arranged(
  cameras: readonly Camera[],
  layout: Layout | undefined,
  first: readonly string[],
): readonly Camera[] {
  const byId = new Map(cameras.map((camera) => [camera.id, camera]));
  const wanted = (layout?.cameras ?? first).flatMap((id) => byId.get(id) ?? []);
  if (layout?.cameras) return wanted;
  const placed = new Set(wanted);
  return [...wanted, ...cameras.filter((camera) => !placed.has(camera)).sort(byName)];
}

/** The ids with `moved` in the place of `target`. */
export function movedBefore(ids: readonly string[], moved: string, target: string): readonly string[] {
  const from = ids.indexOf(moved);
  const to = ids.indexOf(target);
  if (from < 0 || to < 0 || from === to) return ids;
  const rest = ids.filter((id) => id !== moved);
  rest.splice(to, 0, moved);
  return rest;
}
