// Protections: lists and creates windows whose footage retention does not remove.

import { signal } from '@preact/signals';
import type { Protection, UnlistedNodes } from '../app/answers.ts';
import { api, wordsOf } from '../app/api.ts';
import { nodesOf } from '../app/camera.ts';
import { cameras, directory } from '../app/cameras.ts';
import type { Span } from '../playback/spans.ts';
import { unlistedWords } from './unlisted.ts';

interface Answer extends UnlistedNodes {
  readonly protections: readonly Protection[];
}

/** Undefined until the recorder has answered. */
export const protections = signal<readonly Protection[] | undefined>(undefined);
export const protectionsProblem = signal<string | undefined>(undefined);
/** Why the protections of some nodes are not known now. */
export const protectionsUnlisted = signal<readonly string[]>([]);

export async function refreshProtections(): Promise<void> {
  try {
    const answer = await api<Answer>('/api/archive/protections?scope=cluster');
    protections.value = answer.protections;
    protectionsUnlisted.value = unlistedWords(answer);
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

/** Each node protects its own footage: all that have some of a camera are asked. Rejects with Problem. */
export async function protect({ cameraIds, startMs, endMs, note, untilMs }: Wish): Promise<void> {
  const query = new URLSearchParams({ from: String(startMs / 1000), to: String(endMs / 1000), note });
  if (untilMs !== undefined) query.set('until', untilMs === 'never' ? untilMs : String(untilMs / 1000));
  for (const id of cameraIds) {
    for (const base of basesOf(id)) {
      await api(`/api/archive/${encodeURIComponent(id)}/protect?${query}`, { method: 'POST', base });
    }
  }
  await refreshProtections();
}

/** The addresses of the nodes that record a camera or have footage of it. */
function basesOf(cameraId: string): readonly (string | undefined)[] {
  const places = directory.peek();
  const camera = cameras.peek()?.find(({ id }) => id === cameraId);
  const nodeIds = nodesOf(camera);
  return places && nodeIds.length > 0 ? nodeIds.map((nodeId) => places.baseOf(nodeId)) : [undefined];
}

export async function release({ id, node_id: nodeId }: Protection): Promise<void> {
  const base = nodeId === undefined ? undefined : directory.peek()?.baseOf(nodeId);
  await api(`/api/archive/protections/${encodeURIComponent(id)}`, { method: 'DELETE', base });
  await refreshProtections();
}
