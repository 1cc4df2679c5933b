// Summarises the changes between two lists of cameras for the audit. Only ids, because the addresses of cameras contain logins.

import { isDeepStrictEqual } from 'node:util';
import type { AuditEntry } from './entry.ts';

/** Further cameras are only counted. */
const MAX_NAMED = 100;

interface CameraOfList {
  readonly id: string;
}

export function cameraChanges(before: readonly CameraOfList[], after: readonly CameraOfList[]): AuditEntry | undefined {
  const old = new Map(before.map((camera) => [camera.id, camera]));
  const now = new Set(after.map(({ id }) => id));
  const added = after.filter(({ id }) => !old.has(id));
  const changed = after.filter((camera) => old.has(camera.id) && !isDeepStrictEqual(camera, old.get(camera.id)));
  const removed = before.filter(({ id }) => !now.has(id));
  const all = [...added, ...changed, ...removed].map(({ id }) => id);
  if (all.length === 0) return undefined;
  return {
    what: 'cameras',
    caller: null,
    cameras: all.slice(0, MAX_NAMED),
    added: added.length,
    changed: changed.length,
    removed: removed.length,
  };
}
