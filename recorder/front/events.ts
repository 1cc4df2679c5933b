// The events of a node: the parts of the recorder report to the journal, and the API reads it.

import { join } from 'node:path';
import { assertNever } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import type { Warning } from '../../base/reason.ts';
import { HOUR_MS } from '../../base/units.ts';
import type { EventSource } from '../api/deps.ts';
import type { Happening } from '../happenings/happening.ts';
import { isoTime } from '../api/times.ts';
import type { Gap } from '../contract/gap-report.ts';
import { isGapCause } from '../contract/gap-cause.ts';
import type { FrontOfEngine, OpenGap, TellNews } from '../contract/news.ts';
import type { Config } from '../config/schema.ts';
import type { EventReport } from '../contract/event.ts';
import { EventStreams } from '../events/event-stream.ts';
import { EventJournal } from '../events/journal.ts';
import type { JobObserver } from '../jobs/job.ts';
import { forEvents } from './memory.ts';

export interface NodeEvents extends EventSource, Pick<FrontOfEngine, 'tell' | 'openGaps'> {
  /** The events of this process follow this one. */
  readonly beginId: number;
  readonly jobs: JobObserver;
  readonly happened: (event: Happening) => void;
  /** Sets the current warnings; new and cleared ones are reported. To be called about once a second. */
  warningsAre(warnings: readonly Warning[]): void;
  /** Cameras that this node has not had for less than an hour, as warnings. */
  removals(): Warning[];
  /** The recorder is stopping: the stop of each camera is not reported. */
  stopping(): void;
  close(): Promise<void>;
}

/** Never rejects: a recorder works without events too. */
export async function openEvents(
  { workDir, nodeName }: Config,
  deps: { readonly clock: Clock; readonly log: Log; readonly memory: MemoryBudget; readonly version: string },
): Promise<NodeEvents> {
  const { clock, log, version } = deps;
  const memory = forEvents(deps.memory);
  let journal: EventJournal | undefined;
  const account = memory.journal((bytes) => journal?.shed(bytes));
  const directory = join(workDir, 'events');
  journal = await EventJournal.open({ directory, node: nodeName, clock, log, memory: account });
  const streams = new EventStreams({ clock, memory: memory.streams });
  return new ReportedEvents(journal, streams, { version, clock });
}

/** For so long a removed camera is a warning: as long as the journal goes back. */
const REMOVAL_MS = HOUR_MS;

interface ReportOptions {
  readonly version: string;
  readonly clock: Clock;
}

/** Reports what the parts of the recorder observe as events in the journal. */
class ReportedEvents implements NodeEvents {
  readonly journal: EventJournal;
  readonly streams: EventStreams;
  readonly beginId: number;
  readonly #options: ReportOptions;
  readonly openGaps: ReadonlyMap<string, OpenGap>;
  /** Cameras whose node was lost, or that another node has now, and since when. */
  readonly #lost = new Map<string, number | undefined>();
  /** When cameras were removed, at most an hour ago. */
  readonly #removed: Map<string, number>;
  #raised: ReadonlyMap<string, Warning>;
  #isStopping = false;

  constructor(journal: EventJournal, streams: EventStreams, options: ReportOptions) {
    this.journal = journal;
    this.streams = streams;
    this.#options = options;
    const { gaps, warnings, removed } = lastingOf(journal);
    this.#removed = removed;
    this.openGaps = gaps;
    this.#raised = warnings;
    this.beginId = journal.newestId;
    this.#report({ type: 'recorder.started', data: { version: options.version } });
  }

  readonly tell: TellNews = (news) => {
    const { cameraId } = news;
    const report = (type: EventReport['type'], data: EventReport['data']): void =>
      this.#report({ type, cameraId, data });
    switch (news.kind) {
      case 'state': {
        if (this.#isStopping) return undefined;
        const { state, previous, reason = null } = news;
        // Not the last states of a camera that is being removed.
        if (previous === null) this.#removed.delete(cameraId);
        return report('camera.state', { state, previous, reason });
      }
      case 'silent':
        return report('camera.silent', { since: isoTime(news.sinceMs), cause: news.cause });
      case 'heard': {
        const { sinceMs, untilMs } = news;
        const seconds = (untilMs - sinceMs) / 1000;
        return report('camera.heard', { since: isoTime(sinceMs), until: isoTime(untilMs), seconds });
      }
      case 'gap-opened': {
        const { fromMs, cause } = news.gap;
        return report('gap.opened', { start: isoTime(fromMs), start_ms: fromMs, cause });
      }
      case 'gap-closed':
        return report('gap.closed', endedGap(news.gap));
      case 'gap-filled':
        return report('gap.filled', { ...endedGap(news.part), filled_from: 'edge', seam: news.part.seam });
      case 'lost':
        return void this.#lost.set(cameraId, news.sinceMs);
      case 'taken':
        return report('camera.taken', this.#moveOf(cameraId));
      case 'given-up':
        return report('camera.given_up', this.#moveOf(cameraId));
      case 'removed':
        return this.#removedNow(cameraId);
      default:
        return assertNever(news);
    }
  };

  readonly happened: NodeEvents['happened'] = ({ camera_id: cameraId, ...data }) =>
    this.#report({ type: 'camera.event', cameraId, data });

  readonly jobs: JobObserver = (change, { id, kind, cameraId, case: of, progress, reason, reasonCode, outcome }) => {
    const data = {
      job_id: id,
      kind,
      progress: Math.floor(progress * 100),
      ...(outcome ? { size_bytes: outcome.sizeBytes } : {}),
      ...(reason === undefined ? {} : { reason: { code: reasonCode ?? 'internal-error', message: reason } }),
    };
    this.#report({ type: `job.${change}`, cameraId, cameras: of?.cameras, data });
  };

  warningsAre(warnings: readonly Warning[]): void {
    const now = new Map(warnings.map((warning) => [keyOf(warning), warning]));
    for (const [key, { code, message, cameraId }] of now) {
      if (!this.#raised.has(key)) this.#report({ type: 'warning.raised', cameraId, data: { code, detail: message } });
    }
    for (const [key, { code, cameraId }] of this.#raised) {
      if (!now.has(key)) this.#report({ type: 'warning.cleared', cameraId, data: { code } });
    }
    this.#raised = now;
  }

  removals(): Warning[] {
    const nowMs = this.#options.clock.wallMs();
    for (const [cameraId, atMs] of this.#removed) if (nowMs - atMs >= REMOVAL_MS) this.#removed.delete(cameraId);
    return Array.from(this.#removed, ([cameraId, atMs]) => {
      const message = `it was removed from the configuration, or from the cluster, at ${isoTime(atMs)}`;
      return { code: 'camera-removed', message, cameraId };
    });
  }

  stopping(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#report({ type: 'recorder.stopped', data: { version: this.#options.version } });
  }

  close(): Promise<void> {
    return this.journal.close();
  }

  #report(told: EventReport): void {
    this.journal.tell(told);
  }

  #removedNow(cameraId: string): void {
    this.#report({ type: 'camera.removed', cameraId, data: {} });
    this.#removed.set(cameraId, this.#options.clock.wallMs());
  }

  /** For a planned move, no node was lost. */
  #moveOf(cameraId: string): Readonly<Record<string, unknown>> {
    const isLost = this.#lost.has(cameraId);
    const sinceMs = this.#lost.get(cameraId);
    this.#lost.delete(cameraId);
    return { node_lost: isLost, ...(sinceMs === undefined ? {} : { since: isoTime(sinceMs) }) };
  }
}

const keyOf = ({ code, cameraId }: Pick<Warning, 'code' | 'cameraId'>): string => `${code} ${cameraId ?? ''}`;

/** Gaps and warnings that the previous process has reported as begun, but not as ended. */
function lastingOf(journal: EventJournal): {
  readonly gaps: ReadonlyMap<string, OpenGap>;
  readonly warnings: ReadonlyMap<string, Warning>;
  readonly removed: Map<string, number>;
} {
  const gaps = new Map<string, OpenGap>();
  const warnings = new Map<string, Warning>();
  const removed = new Map<string, number>();
  for (const { type, cameraIds, timeMs, json } of journal.after(0)) {
    if (!LASTING.has(type)) continue;
    const [cameraId] = cameraIds;
    const { start_ms: fromMs, cause, code, detail } = (JSON.parse(json) as { data: Record<string, unknown> }).data;
    if (type === 'camera.removed') removed.set(cameraId ?? '', timeMs);
    else if (type === 'gap.opened' && typeof fromMs === 'number' && typeof cause === 'string' && isGapCause(cause)) {
      gaps.set(cameraId ?? '', { fromMs, cause });
    } else if (type === 'gap.closed') gaps.delete(cameraId ?? '');
    else if (type === 'warning.raised') {
      warnings.set(keyOf({ code: String(code), cameraId }), { code: String(code), message: String(detail), cameraId });
    } else warnings.delete(keyOf({ code: String(code), cameraId }));
  }
  return { gaps, warnings, removed };
}
const LASTING: ReadonlySet<string> = new Set([
  'gap.opened',
  'gap.closed',
  'warning.raised',
  'warning.cleared',
  'camera.removed',
]);

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
