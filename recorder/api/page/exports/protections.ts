// Protections: lists and creates windows whose footage retention does not remove.

import { signal } from '@preact/signals';
import { api, wordsOf } from '../app/api.ts';
import type { Span } from '../playback/spans.ts';

export interface Protection {
  readonly id: string;
  readonly camera_id: string;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly created: string;
  readonly note: string | null;
  readonly until: string | null;
}

/** Undefined until the recorder has answered. */
export const protections = signal<readonly Protection[] | undefined>(undefined);
export const protectionsProblem = signal<string | undefined>(undefined);

export async function refreshProtections(): Promise<void> {
  try {
    protections.value = (await api<{ protections: readonly Protection[] }>('/api/archive/protections')).protections;
    protectionsProblem.value = undefined;
  } catch (error) {
    protectionsProblem.value = wordsOf(error);
  }
}

interface Wish extends Span {
  readonly cameraIds: readonly string[];
  readonly note: string;
  /** Milliseconds since 1970, `never`, or undefined for the recorder's default duration. */
  readonly untilMs: number | 'never' | undefined;
}

/** Rejects with Problem. */
export async function protect({ cameraIds, startMs, endMs, note, untilMs }: Wish): Promise<void> {
  for (const id of cameraIds) {
    const query = new URLSearchParams({ from: String(startMs / 1000), to: String(endMs / 1000), note });
    if (untilMs !== undefined) query.set('until', untilMs === 'never' ? untilMs : String(untilMs / 1000));
    await api(`/api/archive/${encodeURIComponent(id)}/protect?${query}`, { method: 'POST' });
  }
  await refreshProtections();
}

export async function release(id: string): Promise<void> {
  await api(`/api/archive/protections/${encodeURIComponent(id)}`, { method: 'DELETE' });
  await refreshProtections();
}
