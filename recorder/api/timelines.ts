// When cameras have footage, and why there is none: as this node knows it, or as all nodes of the cluster together.

import type { FastifyRequest } from 'fastify';
import { previewId } from '../../base/camera-id.ts';
import type { Interval } from '../../base/interval.ts';
import { DAY_MS } from '../../base/units.ts';
import { isTriedAgain, meaningOf } from '../contract/gap-fill.ts';
import type { Gap } from '../contract/gap-report.ts';
import type { GapCause } from '../contract/gap-cause.ts';
import { elsewhereIn } from '../footage/elsewhere.ts';
import { IntervalSet } from '../contract/intervals.ts';
import { mergeWithin } from '../archive/catalogue/kept-footage.ts';
import { askerOf, visibleCamera } from '../http/access.ts';
import { accountOf } from '../footage/accounts.ts';
import { holdersIn, missingAt, silentAt, type Elsewhere, type FootageHolder } from '../footage/holders.ts';
import type { AskedTimes } from '../footage/holder.ts';
import { holdersOf } from '../footage/open.ts';
import type { WholeAnswer } from '../peers/whole-answer.ts';
import type { ApiDeps, CameraTimes } from './deps.ts';
import { toElsewhere } from '../footage/elsewhere-item.ts';
import { readable } from './interval.ts';
import type { TimelineCamera } from '../footage/timeline-item.ts';

/** Of one camera: more do not fit on a screen. */
const MAX_SPANS = 5_000;
const ACCOUNT_RESOLUTION_MS = 1_000;

type Deps = Pick<ApiDeps, 'protections' | 'cluster' | 'peers' | 'clock' | 'log' | 'times'>;

/** Sorted and disjoint. */
export interface Account {
  readonly footage: readonly Interval[];
  readonly gaps: readonly (Interval & { readonly cause: GapCause })[];
}

export class Timelines {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** In the order of `cameraIds`. A camera that the caller may not see has nothing. Throws ApiError. */
  async ofThisNode(request: FastifyRequest, asked: AskedTimes): Promise<TimelineCamera[]> {
    const { fromMs, toMs } = asked.interval;
    await readable(this.#deps.times.refresh(fromMs, toMs));
    const cameras: TimelineCamera[] = [];
    for (const camera_id of asked.cameraIds) {
      const cameraId = visibleCamera(request, camera_id);
      cameras.push({
        camera_id,
        ...(await readable(this.#of(cameraId, asked))),
        ...(asked.preview && { preview: await readable(this.#previewOf(cameraId, asked)) }),
      });
      // A month of many cameras takes a while: packets of cameras are read in between.
      await nextTurn();
    }
    return cameras;
  }

  /** The same with the footage, gaps and protections of all nodes. Throws ApiError. */
  async ofAllNodes(request: FastifyRequest, asked: AskedTimes): Promise<TimelineCamera[]> {
    const own = await this.ofThisNode(request, asked);
    const { interval } = asked;
    const holders = await Promise.all(
      own.map(async ({ camera_id }) => {
        const cameraId = visibleCamera(request, camera_id);
        return cameraId === '' ? [] : holdersIn(await holdersOf(this.#deps, cameraId), interval);
      }),
    );
    const cameras = own.flatMap(({ camera_id }, i) => (holders[i] ?? []).map((holder) => ({ holder, camera_id })));
    const answers = await Promise.all(
      [...Map.groupBy(cameras, ({ holder }) => holder.nodeId)].map(async ([nodeId, [first, ...others]]) => {
        const { holder, camera_id } = first as (typeof cameras)[number];
        const cameraIds = [camera_id, ...others.map((one) => one.camera_id)];
        return [nodeId, await holder.times({ ...asked, cameraIds }, askerOf(request))] as const;
      }),
    );
    const past = { fromMs: interval.fromMs, toMs: this.#pastOf(interval) };
    return own.map((camera, i) => joined(camera, past, holders[i] ?? [], new Map(answers)));
  }

  /** Footage and gaps of one camera on all nodes; gaps of less than a second are footage. Throws ApiError. */
  async account(request: FastifyRequest, cameraId: string, interval: Interval): Promise<Account> {
    const asked = { cameraIds: [cameraId], interval, resolutionMs: ACCOUNT_RESOLUTION_MS, preview: false };
    const [camera] = await this.ofAllNodes(request, asked);
    const { spans = [], elsewhere = [], gaps = [] } = camera ?? {};
    const footage = [...spans, ...elsewhere.filter(({ online }) => online)];
    return { footage: unionOf(footage), gaps: gaps.map((gap) => ({ ...intervalOf(gap), cause: gap.cause })) };
  }

  /** `cameraId`: empty for a camera that the caller may not see. */
  async #of(cameraId: string, { interval, resolutionMs }: AskedTimes): Promise<Omit<TimelineCamera, 'camera_id'>> {
    const { times, protections, cluster } = this.#deps;
    const { fromMs, toMs } = interval;
    const found = await times.of(cameraId, fromMs, toMs);
    const { spans, gaps, ...used } = drawn(found, interval, resolutionMs);
    const holders = cameraId === '' ? [] : ((await cluster?.footageHolders(cameraId)) ?? []);
    return {
      kept_from_ms: found.keptFromMs ?? null,
      known_until_ms: found.report.knownUntilMs,
      resolution_ms: used.resolutionMs,
      spans: spans.map((span) => ({ ...stretch(span), kind: 'footage' })),
      gaps: gaps.map(toGap),
      filled: found.report.filled
        .filter((part) => part.toMs - part.fromMs >= used.resolutionMs)
        .slice(-MAX_SPANS)
        .map(({ cause, atMs, seam, ...part }) => ({
          ...stretch(part),
          cause,
          from: 'edge' as const,
          at_ms: atMs,
          seam,
        })),
      hidden_gaps: found.report.gaps.length - gaps.length,
      protections: (cameraId === '' ? [] : (protections?.windows.list(cameraId) ?? []))
        .filter((window) => window.fromMs < toMs && window.toMs > fromMs)
        .map(({ id, note, ...window }) => ({ id, ...stretch(window), note: note ?? null })),
      elsewhere: holdersIn(holders, interval)
        .map((holder) => missingAt(holder, { fromMs, toMs: this.#pastOf(interval) }))
        .map(toElsewhere),
    };
  }

  /** The end of the past part of an interval: nobody has footage of the future. */
  #pastOf({ fromMs, toMs }: Interval): number {
    return Math.max(fromMs, Math.min(toMs, this.#deps.clock.wallMs()));
  }

  async #previewOf(cameraId: string, { interval, resolutionMs }: AskedTimes): Promise<TimelineCamera['preview']> {
    if (cameraId === '') return [];
    const found = await this.#deps.times.of(previewId(cameraId), interval.fromMs, interval.toMs);
    return drawn(found, interval, resolutionMs).spans.map(stretch);
  }
}

/** `holders`: all other nodes that may have footage; `answers`: of those that were asked, by node. */
function joined(
  own: TimelineCamera,
  interval: Interval,
  holders: readonly FootageHolder[],
  answers: ReadonlyMap<string, WholeAnswer<readonly TimelineCamera[]>>,
): TimelineCamera {
  const told: { readonly nodeId: string; readonly camera: TimelineCamera }[] = [];
  const away: Elsewhere[] = [];
  for (const holder of holders) {
    const answer = answers.get(holder.nodeId) ?? { kind: 'away' };
    if (answer.kind !== 'answer') away.push(silentAt(holder, interval, answer));
    else {
      const camera = answer.value.find(({ camera_id }) => camera_id === own.camera_id);
      if (camera) told.push({ nodeId: holder.nodeId, camera });
    }
  }
  const others = told.map(({ camera }) => camera);
  const all = [own, ...others];
  const nodes = told.map(({ nodeId, camera }) => ({ nodeId, ...accountOf(camera) }));
  const elsewhere = elsewhereIn(interval, accountOf(own), { answered: nodes, away });
  const kept = all.flatMap(({ kept_from_ms }) => kept_from_ms ?? []);
  return {
    ...own,
    kept_from_ms: kept.length > 0 ? Math.min(...kept) : null,
    known_until_ms: Math.min(...all.map(({ known_until_ms }) => known_until_ms)),
    resolution_ms: Math.max(...all.map(({ resolution_ms }) => resolution_ms)),
    gaps: gapsOfAll(all),
    filled: all.flatMap(({ filled }) => filled).sort(byStart),
    hidden_gaps: all.reduce((sum, { hidden_gaps }) => sum + hidden_gaps, 0),
    protections: all.flatMap(({ protections }) => protections).sort(byStart),
    elsewhere: elsewhere.map(toElsewhere),
    ...(own.preview && { preview: unionOf(all.flatMap(({ preview = [] }) => preview)).map(stretch) }),
  };
}

/** The gaps of all nodes where none has footage. Of two gaps of the same time, that of the earlier node in the list counts. */
function gapsOfAll(cameras: readonly TimelineCamera[]): TimelineCamera['gaps'] {
  const taken = new IntervalSet().with(unionOf(cameras.flatMap(({ spans }) => spans)));
  const left: TimelineCamera['gaps'] = [];
  for (const gap of cameras.flatMap(({ gaps }) => gaps)) {
    const { fromMs, toMs } = intervalOf(gap);
    for (const hole of taken.holes(fromMs, toMs)) {
      left.push({ ...gap, ...stretch(hole), is_open: gap.is_open && hole.toMs === toMs });
    }
    taken.add(fromMs, toMs);
  }
  return left.sort(byStart);
}

/** Spans and gaps that a page can show; with a coarser resolution if there are too many. */
function drawn({ footage, report }: CameraTimes, { fromMs, toMs }: Interval, wantedMs: number) {
  const cut = footage
    .map((span) => ({ fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, toMs) }))
    .filter((span) => span.fromMs < span.toMs);
  for (let resolutionMs = wantedMs; ; resolutionMs = 2 * resolutionMs || 1_000) {
    const spans = resolutionMs === 0 ? cut : mergeWithin(cut, resolutionMs);
    const gaps = report.gaps.filter((gap) => gap.toMs - gap.fromMs >= resolutionMs || !isWithin(gap, spans));
    if (resolutionMs >= DAY_MS || spans.length + gaps.length <= MAX_SPANS) return { spans, gaps, resolutionMs };
  }
}

function isWithin({ fromMs, toMs }: Interval, spans: readonly Interval[]): boolean {
  let low = 0;
  let high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle] as Interval).toMs >= toMs) high = middle;
    else low = middle + 1;
  }
  const span = spans[low];
  return span !== undefined && span.fromMs <= fromMs;
}

const unionOf = (stretches: readonly ReturnType<typeof stretch>[]): readonly Interval[] =>
  Array.from(new IntervalSet().with(stretches.map(intervalOf)));

const stretch = ({ fromMs, toMs }: Interval) => ({ start_ms: fromMs, end_ms: toMs });
const intervalOf = ({ start_ms, end_ms }: ReturnType<typeof stretch>): Interval => ({ fromMs: start_ms, toMs: end_ms });
const byStart = (a: { readonly start_ms: number }, b: { readonly start_ms: number }): number => a.start_ms - b.start_ms;

const toGap = ({ cause, isOpen, notFilled, detail, ...interval }: Gap) => ({
  ...stretch(interval),
  cause,
  is_open: isOpen,
  ...(notFilled && {
    not_filled: {
      reason: notFilled.reason,
      means: meaningOf(notFilled.reason),
      is_tried_again: isTriedAgain(notFilled.reason),
      at_ms: notFilled.atMs,
    },
  }),
  ...(detail !== undefined && { detail }),
});

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
