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
import { accountOf, accountOfAll, type Account, type ToldAccount } from '../footage/accounts.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import { holdersIn, missingAt, silentAt, type Elsewhere } from '../footage/holders.ts';
import type { AskedTimes, Holder } from '../footage/holder.ts';
import { nodeHolder } from '../footage/node-holder.ts';
import { holdersOf } from '../footage/open.ts';
import type { Asker } from '../peers/peer-requests.ts';
import type { WholeAnswer } from '../peers/whole-answer.ts';
import type { ApiDeps } from './deps.ts';
import { toElsewhere } from '../footage/elsewhere-item.ts';
import { readable } from './interval.ts';
import type { TimelineCamera } from '../footage/timeline-item.ts';

/** Of one camera: more do not fit on a screen. */
const MAX_SPANS = 5_000;
const MAX_STEPS = 2_000;

type Gaps = TimelineCamera['gaps'];

interface Asking {
  readonly sees: (cameraId: string) => boolean;
  readonly by: Asker;
}

export const askingOf = (request: FastifyRequest): Asking => ({
  sees: (cameraId) => visibleCamera(request, cameraId) !== '',
  by: askerOf(request),
});

export class Timelines {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** In the order of `cameraIds`. A camera that the caller may not see has nothing. Throws ApiError. */
  ofThisNode(request: FastifyRequest, asked: AskedTimes): Promise<TimelineCamera[]> {
    return this.#ofThisNode(askingOf(request), asked);
  }

  async #ofThisNode({ sees }: Asking, asked: AskedTimes): Promise<TimelineCamera[]> {
    const { fromMs, toMs } = asked.interval;
    await readable(this.#deps.times.refresh(fromMs, toMs));
    const cameras: TimelineCamera[] = [];
    for (const camera_id of asked.cameraIds) {
      const cameraId = sees(camera_id) ? camera_id : '';
      const whole = {
        camera_id,
        ...(await readable(this.#of(cameraId, asked))),
        ...(asked.preview && { preview: await readable(this.#previewOf(cameraId, asked)) }),
        ...(asked.activity === true && { bands: await readable(this.#bandsOf(cameraId, asked)) }),
      };
      cameras.push(asked.isWhole === true ? whole : coarser(whole, asked.resolutionMs));
      // A month of many cameras takes a while: packets of cameras are read in between.
      await nextTurn();
    }
    return cameras;
  }

  /** The same with the footage, gaps and protections of all nodes. Throws ApiError. */
  async ofAllNodes(request: FastifyRequest, asked: AskedTimes): Promise<TimelineCamera[]> {
    const { interval } = asked;
    // What is missing on one node may be on another, to the millisecond.
    const whole = { ...asked, resolutionMs: 0, isWhole: false };
    const own = await this.ofThisNode(request, whole);
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
        return [nodeId, await holder.times({ ...whole, cameraIds }, askerOf(request))] as const;
      }),
    );
    const past = { fromMs: interval.fromMs, toMs: this.#pastOf(interval) };
    return own.map((camera, i) =>
      coarser(joined(camera, past, holders[i] ?? [], new Map(answers)), asked.resolutionMs),
    );
  }

  /** Footage and gaps of cameras on all nodes, to the millisecond, in the order of `cameraIds`. Throws ApiError. */
  async accounts(asking: Asking, cameraIds: readonly string[], interval: Interval): Promise<Account[]> {
    const asked = { cameraIds, interval, resolutionMs: 0, preview: false, isWhole: true };
    const own = await this.#ofThisNode(asking, asked);
    const seen = cameraIds.filter((id) => asking.sees(id));
    const others = await this.#places(seen);
    const nodeId = this.#deps.cluster?.nodeId ?? '';
    const told: ToldAccount[] = own.map((camera) => ({ nodeId, camera }));
    const silent: string[] = [];
    await Promise.all(
      others.map(async (holder) => {
        const answer = await holder.times({ ...asked, cameraIds: seen }, asking.by);
        if (answer.kind !== 'answer') silent.push(holder.nodeId);
        else for (const camera of answer.value) told.push({ nodeId: holder.nodeId, copiesAt: holder.copiesAt, camera });
      }),
    );
    const byCamera = Map.groupBy(told, ({ camera }) => camera.camera_id);
    return cameraIds.map((id) => ({ ...accountOfAll(interval, byCamera.get(id) ?? []), silent: silent.sort() }));
  }

  /** All other places that may know of these cameras: a node that never had a picture of one may know why. */
  async #places(cameraIds: readonly string[]): Promise<readonly Holder[]> {
    const { cluster } = this.#deps;
    if (cameraIds.length === 0) return [];
    const holders = (await Promise.all(cameraIds.map((id) => holdersOf(this.#deps, id)))).flat();
    const found = new Map(holders.map((holder) => [JSON.stringify([holder.nodeId, holder.copiesAt]), holder]));
    const named = new Set(holders.map(({ nodeId }) => nodeId));
    const unnamed = new Set((cluster?.places() ?? []).map(({ nodeId }) => nodeId));
    const more = [...unnamed].filter((nodeId) => nodeId !== cluster?.nodeId && !named.has(nodeId));
    const { peers, log } = this.#deps;
    if (!peers) return [...found.values()];
    const unknown = { oldestMs: undefined, newestMs: undefined, isOnline: undefined };
    return [...found.values(), ...more.map((nodeId) => nodeHolder({ nodeId, ...unknown }, { peers, log }))];
  }

  /** `cameraId`: empty for a camera that the caller may not see. */
  async #of(cameraId: string, { interval, isWhole }: AskedTimes): Promise<Omit<TimelineCamera, 'camera_id'>> {
    const { times, protections, cluster } = this.#deps;
    const { fromMs, toMs } = interval;
    const found = await times.of(cameraId, fromMs, toMs);
    const holders = cameraId === '' ? [] : ((await cluster?.footageHolders(cameraId)) ?? []);
    return {
      kept_from_ms: found.keptFromMs ?? null,
      known_until_ms: found.report.knownUntilMs,
      resolution_ms: 0,
      spans: within(found.footage, interval).map((span) => ({ ...stretch(span), kind: 'footage' })),
      gaps: found.report.gaps.map(toGap),
      filled: found.report.filled.map(({ cause, atMs, seam, ...part }) => ({
        ...stretch(part),
        cause,
        from: 'edge' as const,
        at_ms: atMs,
        seam,
      })),
      hidden_gaps: 0,
      ...(isWhole === true && { written: within(found.report.recorded, interval).map(stretch) }),
      protections: (cameraId === '' ? [] : ((await protections?.windows.list(cameraId)) ?? []))
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
    return mergeWithin(within(found.footage, interval), resolutionMs).map(stretch);
  }

  /** At most MAX_STEPS, whatever the resolution is: another node is asked for the finest. */
  async #bandsOf(cameraId: string, { interval, resolutionMs }: AskedTimes): Promise<TimelineCamera['bands']> {
    if (cameraId === '') return [];
    const stepMs = Math.max(resolutionMs, Math.ceil((interval.toMs - interval.fromMs) / MAX_STEPS));
    const bands = await this.#deps.activity.bands(cameraId, interval, stepMs);
    return bands.map(({ kind, fromMs, toMs }) => ({ start_ms: Math.floor(fromMs), end_ms: Math.floor(toMs), kind }));
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
    ...(own.bands && { bands: all.flatMap(({ bands = [] }) => bands).sort(byStart) }),
    ...(own.preview && { preview: unionOf(all.flatMap(({ preview = [] }) => preview)).map(stretch) }),
  };
}

/** The gaps of all nodes where none has footage. Of two gaps of the same time, that of the earlier node in the list counts. */
function gapsOfAll(cameras: readonly TimelineCamera[]): Gaps {
  const taken = new IntervalSet().with(unionOf(cameras.flatMap(({ spans }) => spans)));
  const left: Gaps = [];
  for (const gap of cameras.flatMap(({ gaps }) => gaps)) {
    const { fromMs, toMs } = intervalOf(gap);
    for (const hole of taken.holes(fromMs, toMs)) {
      const lostMs = gap.missing_ms && { missing_ms: Math.min(gap.missing_ms, hole.toMs - hole.fromMs) };
      left.push({ ...gap, ...stretch(hole), ...lostMs, is_open: gap.is_open && hole.toMs === toMs });
    }
    taken.add(fromMs, toMs);
  }
  return left.sort(byStart);
}

/** What a page can show: coarser if there is too much. Spans are left out where they cannot be seen, gaps are not. */
function coarser(camera: TimelineCamera, wantedMs: number): TimelineCamera {
  let resolutionMs = Math.max(wantedMs, camera.resolution_ms);
  for (; ; resolutionMs = 2 * resolutionMs || 1_000) {
    const gaps = crowded(camera.gaps, resolutionMs);
    const spans = joinedSpans(camera.spans, gaps, resolutionMs);
    if (resolutionMs < DAY_MS && spans.length + gaps.length > MAX_SPANS) continue;
    return {
      ...camera,
      resolution_ms: resolutionMs,
      spans,
      gaps,
      filled: camera.filled.filter((part) => part.end_ms - part.start_ms >= resolutionMs).slice(-MAX_SPANS),
      elsewhere: [...Map.groupBy(camera.elsewhere, ({ node_id, online }) => JSON.stringify([node_id, online])).values()]
        .flatMap((parts) => joinedSpans(parts, gaps, resolutionMs))
        .sort(byStart),
    };
  }
}

/** Gaps within `resolutionMs` of each other are one entry, which says how many they are and how much is missing. */
function crowded(gaps: Gaps, resolutionMs: number): Gaps {
  const crowds: Gaps = [];
  let crowd: Gaps = [];
  const close = (): void => {
    if (crowd.length > 0) crowds.push(...(crowd.length === 1 ? crowd : [crowdOf(crowd)]));
    crowd = [];
  };
  for (const gap of gaps) {
    const [first] = crowd;
    if (first && (gap.end_ms - first.start_ms > resolutionMs || gap.is_open)) close();
    crowd.push(gap);
  }
  close();
  return crowds;
}

/** Its cause is that of the most missing time. */
function crowdOf(gaps: Gaps): Gaps[number] {
  const first = gaps[0] as Gaps[number];
  const last = gaps.at(-1) as Gaps[number];
  const missing = new Map<GapCause, number>();
  for (const gap of gaps) missing.set(gap.cause, (missing.get(gap.cause) ?? 0) + missingMs(gap));
  const [worst] = [...missing].reduce((a, b) => (b[1] > a[1] ? b : a));
  return {
    start_ms: first.start_ms,
    end_ms: last.end_ms,
    cause: worst,
    is_open: false,
    count: gaps.reduce((sum, { count = 1 }) => sum + count, 0),
    missing_ms: gaps.reduce((sum, gap) => sum + missingMs(gap), 0),
  };
}

const missingMs = ({ start_ms, end_ms, missing_ms = end_ms - start_ms }: Gaps[number]): number => missing_ms;

/**
 * Spans that are at most `resolutionMs` apart are one, but not across a gap, and footage within an entry of several gaps is left
 * out. All lists are sorted.
 */
function joinedSpans<T extends ReturnType<typeof stretch>>(spans: readonly T[], gaps: Gaps, resolutionMs: number): T[] {
  const joined: T[] = [];
  let [within, between] = [0, 0];
  for (const span of spans) {
    while (within < gaps.length && (gaps[within] as Gaps[number]).end_ms < span.end_ms) within++;
    const around = gaps[within];
    if (around?.count !== undefined && around.start_ms <= span.start_ms) continue;
    const last = joined.at(-1);
    const reachedMs = last?.end_ms ?? -Infinity;
    while (between < gaps.length && (gaps[between] as Gaps[number]).end_ms <= reachedMs) between++;
    const isNear = last && span.start_ms - reachedMs <= resolutionMs;
    if (isNear && (gaps[between]?.start_ms ?? Infinity) >= span.start_ms) {
      joined[joined.length - 1] = { ...last, end_ms: Math.max(reachedMs, span.end_ms) };
    } else joined.push(span);
  }
  return joined;
}

const within = (footage: readonly Interval[], { fromMs, toMs }: Interval): Interval[] =>
  footage
    .map((span) => ({ fromMs: Math.max(span.fromMs, fromMs), toMs: Math.min(span.toMs, toMs) }))
    .filter((span) => span.fromMs < span.toMs);

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
