// Makes news for the front of what the parts of an engine observe.

import type { GapObserver } from '../archive/gaps/gap-teller.ts';
import type { AssignmentObserver, TimeAccount } from '../cluster/assignment-mirror.ts';
import type { CameraStatus } from '../contract/camera-status.ts';
import type { FrontOfEngine, TellNews } from '../contract/news.ts';

/** `isAlone`: a cluster moves cameras from node to node, and says itself which are removed. */
export const gapNews = (
  { tell, openGaps }: Pick<FrontOfEngine, 'tell' | 'openGaps'>,
  cameraId: string,
  isAlone: boolean,
): GapObserver => ({
  openBefore: openGaps.get(cameraId),
  silent: (sinceMs, cause) => tell({ cameraId, kind: 'silent', sinceMs, cause }),
  heard: (sinceMs, untilMs) => tell({ cameraId, kind: 'heard', sinceMs, untilMs }),
  opened: (gap) => tell({ cameraId, kind: 'gap-opened', gap }),
  closed: (gap) => tell({ cameraId, kind: 'gap-closed', gap }),
  filled: (part) => tell({ cameraId, kind: 'gap-filled', part }),
  removed: () => isAlone && tell({ cameraId, kind: 'removed' }),
});

type Condition = Pick<CameraStatus, 'state' | 'reason'>;

/** May be called often with what has not changed; with undefined for a camera that is gone. */
export function stateNews(tell: TellNews): (cameraId: string, now: Condition | undefined) => void {
  const told = new Map<string, Condition>();
  return (cameraId, now) => {
    if (!now) return void told.delete(cameraId);
    const last = told.get(cameraId);
    const { state, reason } = now;
    if (last?.state === state && last.reason?.code === reason?.code) return undefined;
    told.set(cameraId, { state, reason });
    return tell({ cameraId, kind: 'state', state, reason, previous: last?.state ?? null });
  };
}

export const assignmentNews = (tell: TellNews): AssignmentObserver => ({
  taken: (cameraId) => tell({ cameraId, kind: 'taken' }),
  givenUp: (cameraId) => tell({ cameraId, kind: 'given-up' }),
  removed: (cameraId) => tell({ cameraId, kind: 'removed' }),
});

/** Tells of cameras that are taken over or given up, before `account` is. */
export const toldAccount = (tell: TellNews, account: TimeAccount): TimeAccount => ({
  takeOver(cameraId, sinceMs) {
    tell({ cameraId, kind: 'lost', sinceMs });
    account.takeOver(cameraId, sinceMs);
  },
  giveUp(cameraId, sinceMs) {
    tell({ cameraId, kind: 'lost', sinceMs });
    account.giveUp(cameraId, sinceMs);
  },
});
