// A target as a holder of footage: it lists, plays and exports what only it has.

import { z } from 'zod';
import { concurrently } from '../../base/concurrently.ts';
import { isExpected } from '../../base/error.ts';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import { parseJson } from '../../base/parse-json.ts';
import { DAY_MS } from '../../base/units.ts';
import { MAX_SEGMENT_MS } from '../archive/catalogue/segment.ts';
import { dayStartMs } from '../archive/disk/names.ts';
import { IntervalSet } from '../contract/intervals.ts';
import type { Footage } from '../footage/footage.ts';
import type { Holder } from '../footage/holder.ts';
import { footageOf } from '../footage/message.ts';
import { FileGone, HolderLost } from '../footage/remote-file.ts';
import { toSegment } from '../footage/segment-item.ts';
import { MIN_GAP_MS } from '../mp4/join.ts';
import { gapsAt, type AccountReader, type OwnAccount } from './account.ts';
import type { Copy } from './layout.ts';
import { S3Error } from './s3.ts';
import type { Target } from './target.ts';

const AT_ONCE = 16;
/** A target that did not answer is not asked for so long: every list would wait for it. */
const AWAY_MS = 15_000;

/** How answers name it: no node has such a name. */
const holderName = (target: string): string => `target:${target}`;

interface HolderDeps {
  readonly clock: { monotonicMs(): number };
  readonly log: Log;
  readonly account: OwnAccount & AccountReader;
}

export function targetHolder(target: Target, { clock, log, account }: HolderDeps): Holder {
  const nodeId = holderName(target.name);
  let awayUntilMs = -Infinity;
  const answer = async <T>(work: () => Promise<T>) => {
    // Footage of another archive is not that of a camera with the same id here.
    if (!target.isOurs || clock.monotonicMs() < awayUntilMs) return { kind: 'away' } as const;
    try {
      return { kind: 'answer', value: await work() } as const;
    } catch (err) {
      awayUntilMs = clock.monotonicMs() + AWAY_MS;
      if (!isExpected(err, S3Error)) log.bug({ err, target: target.name }, 'the copies of a target cannot be listed');
      if (!(err instanceof S3Error) || err.code === 'unreachable') return { kind: 'away' } as const;
      return { kind: 'refused', status: 502, problem: err.message } as const;
    }
  };
  return {
    nodeId,
    copiesAt: target.name,
    oldestMs: undefined,
    newestMs: undefined,
    isOnline: true,
    files: (cameraId, interval) =>
      answer(async () => {
        const copies = await copiesIn(target, cameraId, interval);
        const read = await concurrently(copies, AT_ONCE, (copy) => played(target, copy, nodeId));
        return read.flatMap((one) => one ?? []);
      }),
    segments: (cameraId, query) =>
      answer(async () => {
        const { from, to } = SegmentsQuery.parse(Object.fromEntries(new URLSearchParams(query)));
        const [copies, days] = await Promise.all([
          copiesIn(target, cameraId, { fromMs: from * 1000, toMs: to * 1000 }),
          target.days(cameraId),
        ]);
        const iso = (ms: number): string => new Date(ms).toISOString().replace('Z', '+00:00');
        return { archive: copies.map((copy) => toSegment(segmentOf(copy), iso)), days };
      }),
    times: ({ cameraIds, interval }) =>
      answer(() =>
        Promise.all(
          cameraIds.map(async (cameraId) => {
            const copies = await copiesIn(target, cameraId, interval);
            const spans = new IntervalSet(MIN_GAP_MS - 1).with(
              copies.map(({ segment, endMs }) => ({ fromMs: segment.startMs, toMs: endMs })),
            );
            const gaps = await gapsAt(target, account, account, { cameraId, interval, files: [...spans] });
            return {
              camera_id: cameraId,
              kept_from_ms: copies[0]?.segment.startMs ?? null,
              known_until_ms: interval.toMs,
              resolution_ms: 0,
              spans: Array.from(spans, ({ fromMs, toMs }) => ({
                start_ms: fromMs,
                end_ms: toMs,
                kind: 'footage' as const,
              })),
              gaps: gaps.map(({ fromMs, toMs, cause }) => ({
                start_ms: fromMs,
                end_ms: toMs,
                cause,
                is_open: false,
              })),
              filled: [],
              hidden_gaps: 0,
              protections: [],
              elsewhere: [],
            };
          }),
        ),
      ),
    stream: async ({ path }, range, _caller, signal) => {
      try {
        return await target.stream(path, range, signal);
      } catch (err) {
        signal?.throwIfAborted();
        if (err instanceof S3Error && err.code === 'not-found') throw new FileGone(`${nodeId} no longer has ${path}`);
        throw new HolderLost(`${nodeId} does not send the file`, { cause: err });
      }
    },
    sizeOf: (file) => Promise.resolve(file.sizeBytes),
  };
}

const SegmentsQuery = z.object({ from: z.coerce.number(), to: z.coerce.number() });

/** Copies that overlap the interval, by start. Rejects with S3Error. */
async function copiesIn(target: Target, cameraId: string, { fromMs, toMs }: Interval): Promise<Copy[]> {
  const days: number[] = [];
  for (let day = dayStartMs(fromMs - MAX_SEGMENT_MS); day < toMs; day += DAY_MS) days.push(day);
  const lists = await concurrently(days, AT_ONCE, (day) => target.copiesOn(cameraId, day));
  return lists.flat().filter(({ segment, endMs }) => segment.startMs < toMs && endMs > fromMs);
}

async function played(target: Target, copy: Copy, nodeId: string): Promise<Footage | undefined> {
  const text = await target.partsOf(copy);
  const told = footageOf(nodeId, copy.segment.cameraId).safeParse(text && parseJson(text.toString()));
  return told.data?.find(({ path, sizeBytes }) => path === copy.path && sizeBytes === copy.sizeBytes);
}

const segmentOf = ({ segment, path, endMs, sequence, sizeBytes, origin }: Copy) => ({
  path,
  startMs: segment.startMs,
  endMs,
  sequence,
  sizeBytes,
  mtimeMs: endMs,
  isOpen: false,
  origin,
});
