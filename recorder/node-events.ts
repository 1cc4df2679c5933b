// The events of a node: the parts of the recorder report to the journal, and the API reads it.

import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { MemoryBudget } from '../base/memory-budget.ts';
import type { Warning } from '../base/reason.ts';
import type { EventSource } from './api/deps.ts';
import { isoTime } from './api/times.ts';
import type { Gap } from './archive/gaps/camera-ledger.ts';
import type { GapObserver } from './archive/gaps/gap-teller.ts';
import { isGapCause } from './archive/gaps/cause.ts';
import type { CameraCondition } from './camera/status.ts';
import type { AssignmentObserver, TimeAccount } from './cluster/cluster.ts';
import type { Config } from './config/schema.ts';
import type { Told } from './events/event.ts';
import { EventStreams } from './events/event-stream.ts';
import { EventJournal } from './events/journal.ts';
import type { JobObserver } from './jobs/job.ts';
import { forEvents } from './memory.ts';

interface NodeEventsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  readonly version: string;
}

export interface NodeEvents extends EventSource {
  /** The events of this process follow this one. */
  readonly beginId: number;
  /** Called by the parts of the recorder. */
  readonly cameraState: (cameraId: string, condition: CameraCondition | undefined) => void;
  readonly gapsOf: (cameraId: string) => GapObserver;
  readonly jobs: JobObserver;
  readonly assignments: AssignmentObserver;
  /** Wraps `account`, and reports cameras that were taken over or given up. */
  readonly accountFor: (account: TimeAccount) => TimeAccount;
  /** Sets the current warnings; new and cleared ones are reported. To be called about once a second. */
  readonly warningsAre: (warnings: readonly Warning[]) => void;
  /** The recorder is stopping: the stop of each camera is not reported. */
  stopping(): void;
  close(): Promise<void>;
}

/** Never rejects: a recorder works without events too. */
export async function openEvents({ workDir, nodeName }: Config, deps: NodeEventsDeps): Promise<NodeEvents> {
  const { clock, log } = deps;
  const memory = forEvents(deps.memory);
  let journal: EventJournal | undefined;
  const account = memory.journal((bytes) => journal?.shed(bytes));
  const directory = join(workDir, 'events');
  const opened = await EventJournal.open({ directory, node: nodeName, clock, log, memory: account });
  journal = opened;
  const before = lastingOf(opened);
  const tell = (told: Told): void => opened.tell(told);
  const beginId = opened.newestId;
  tell({ type: 'recorder.started', data: { version: deps.version } });
  const states = new Map<string, { readonly state: string; readonly code: string | undefined }>();
  let raised: ReadonlyMap<string, Warning> = before.warnings;
  let isStopping = false;
  /** Cameras whose node was lost, or that another node has now, and since when. */
  const lost = new Map<string, number | undefined>();
  return {
    journal: opened,
    beginId,
    streams: new EventStreams({ clock, memory: memory.streams }),
    cameraState(cameraId, condition) {
      if (isStopping) return;
      if (!condition) {
        states.delete(cameraId);
        return;
      }
      const { state, reason } = condition;
      const last = states.get(cameraId);
      if (last?.state === state && last.code === reason?.code) return;
      states.set(cameraId, { state, code: reason?.code });
      const data = { state, previous: last?.state ?? null, reason: reason ?? null };
      tell({ type: 'camera.state', cameraId, data });
    },
    gapsOf: (cameraId) => ({
      openBefore: before.gaps.get(cameraId),
      silent: (sinceMs, cause) => tell({ type: 'camera.silent', cameraId, data: { since: isoTime(sinceMs), cause } }),
      heard: (sinceMs, untilMs) =>
        tell({
          type: 'camera.heard',
          cameraId,
          data: { since: isoTime(sinceMs), until: isoTime(untilMs), seconds: (untilMs - sinceMs) / 1000 },
        }),
      opened: ({ fromMs, cause }) =>
        tell({ type: 'gap.opened', cameraId, data: { start: isoTime(fromMs), start_ms: fromMs, cause } }),
      filled: (part) =>
        tell({ type: 'gap.filled', cameraId, data: { ...endedGap(part), filled_from: 'edge', seam: part.seam } }),
      closed: (gap) => tell({ type: 'gap.closed', cameraId, data: endedGap(gap) }),
    }),
    jobs(change, { id, kind, cameraId, case: of, progress, reason, reasonCode, outcome }) {
      const data = {
        job_id: id,
        kind,
        progress: Math.floor(progress * 100),
        ...(outcome ? { size_bytes: outcome.sizeBytes } : {}),
        ...(reason === undefined ? {} : { reason: { code: reasonCode ?? 'internal-error', message: reason } }),
      };
      tell({ type: `job.${change}`, cameraId, cameras: of?.cameras, data });
    },
    assignments: {
      taken: (cameraId) => tell({ type: 'camera.taken', cameraId, data: moveOf(cameraId) }),
      givenUp: (cameraId) => tell({ type: 'camera.given_up', cameraId, data: moveOf(cameraId) }),
    },
    accountFor: (account) => ({
      takeOver(cameraId, sinceMs) {
        lost.set(cameraId, sinceMs);
        account.takeOver(cameraId, sinceMs);
      },
      giveUp(cameraId, sinceMs) {
        lost.set(cameraId, sinceMs);
        account.giveUp(cameraId, sinceMs);
      },
    }),
    warningsAre(warnings) {
      const now = new Map(warnings.map((warning) => [keyOf(warning), warning]));
      for (const [key, { code, message, cameraId }] of now) {
        if (!raised.has(key)) tell({ type: 'warning.raised', cameraId, data: { code, detail: message } });
      }
      for (const [key, { code, cameraId }] of raised) {
        if (!now.has(key)) tell({ type: 'warning.cleared', cameraId, data: { code } });
      }
      raised = now;
    },
    stopping() {
      if (isStopping) return;
      isStopping = true;
      tell({ type: 'recorder.stopped', data: { version: deps.version } });
    },
    close: () => opened.close(),
  };

  /** For a planned move, no node was lost. */
  function moveOf(cameraId: string): Readonly<Record<string, unknown>> {
    const isLost = lost.has(cameraId);
    const sinceMs = lost.get(cameraId);
    lost.delete(cameraId);
    return { node_lost: isLost, ...(sinceMs === undefined ? {} : { since: isoTime(sinceMs) }) };
  }
}

const keyOf = ({ code, cameraId }: Pick<Warning, 'code' | 'cameraId'>): string => `${code} ${cameraId ?? ''}`;

/** Gaps and warnings that the previous process has reported as begun, but not as ended. */
function lastingOf(journal: EventJournal): {
  readonly gaps: ReadonlyMap<string, NonNullable<GapObserver['openBefore']>>;
  readonly warnings: ReadonlyMap<string, Warning>;
} {
  const gaps = new Map<string, NonNullable<GapObserver['openBefore']>>();
  const warnings = new Map<string, Warning>();
  for (const { type, cameraIds, json } of journal.after(0)) {
    if (!LASTING.has(type)) continue;
    const [cameraId] = cameraIds;
    const { start_ms: fromMs, cause, code, detail } = (JSON.parse(json) as { data: Record<string, unknown> }).data;
    if (type === 'gap.opened' && typeof fromMs === 'number' && typeof cause === 'string' && isGapCause(cause)) {
      gaps.set(cameraId ?? '', { fromMs, cause });
    } else if (type === 'gap.closed') gaps.delete(cameraId ?? '');
    else if (type === 'warning.raised') {
      warnings.set(keyOf({ code: String(code), cameraId }), { code: String(code), message: String(detail), cameraId });
    } else warnings.delete(keyOf({ code: String(code), cameraId }));
  }
  return { gaps, warnings };
}
const LASTING: ReadonlySet<string> = new Set(['gap.opened', 'gap.closed', 'warning.raised', 'warning.cleared']);

/** The fields of events about a gap that has ended. */
const endedGap = ({
  fromMs,
  toMs,
  cause,
}: Pick<Gap, 'fromMs' | 'toMs' | 'cause'>): Readonly<Record<string, unknown>> => ({
  start: isoTime(fromMs),
  start_ms: fromMs,
  end: isoTime(toMs),
  end_ms: toMs,
  seconds: (toMs - fromMs) / 1000,
  cause,
});
