// Bookmarks: moments and spans that people name. They are events, and are shown with them.

import { api, Problem } from '../app/api.ts';
import type { CameraEvent } from '../app/answers.ts';
import { directory, nodes } from '../app/cameras.ts';
import type { Span } from '../playback/spans.ts';

interface Wish extends Span {
  readonly cameraIds: readonly string[];
  readonly name: string;
  readonly note: string;
}

const pathOf = (cameraId: string): string => `/api/cameras/${encodeURIComponent(cameraId)}/bookmarks`;

/** Rejects with Problem. */
export async function makeBookmarks({ cameraIds, startMs, endMs, name, note }: Wish): Promise<void> {
  const body = { name, ...(note !== '' && { note }), from: startMs / 1000, to: endMs / 1000 };
  for (const id of cameraIds) await api(pathOf(id), { method: 'POST', body });
}

/** Those that begin in a time, by their start; none if the recorder does not say. */
export async function bookmarksIn({
  cameraIds,
  startMs,
  endMs,
}: Pick<Wish, 'cameraIds' | keyof Span>): Promise<readonly CameraEvent[]> {
  const query = new URLSearchParams(cameraIds.map((id) => ['camera', id] as [string, string]));
  const window = `from=${startMs / 1000}&to=${endMs / 1000}`;
  const path = `/api/events/search?scope=cluster&type=bookmark&${window}&${query}`;
  const answer = await api<{ readonly events: readonly CameraEvent[] }>(path).catch(() => {
    // They are only a suggestion.
    return { events: [] };
  });
  return answer.events.filter(({ source }) => source === 'person').toReversed();
}

/** In a cluster, the node keeps it that was asked to make it. Rejects with Problem. */
export async function removeBookmark(cameraId: string, id: string): Promise<void> {
  const places = directory.peek();
  const bases = [undefined, ...nodes.peek().map(({ node_id }) => places?.baseOf(node_id))];
  let missing: unknown;
  for (const base of new Set(bases)) {
    try {
      await api(`${pathOf(cameraId)}/${encodeURIComponent(id)}`, { method: 'DELETE', base });
      return;
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
      missing = error;
    }
  }
  throw missing;
}
