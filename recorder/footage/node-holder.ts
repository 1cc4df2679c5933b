// Another node as a holder of footage. What it is asked for are routes that it has for clients, too, and the list of its files
// with their parts: nodes of the version before and of the version after answer them in the same way.

import { z } from 'zod';
import type { Log } from '../../base/log.ts';
import type { PeerListener } from '../contract/other-node.ts';
import type { Asker, PeerAnswer, PeerSender } from '../peers/peer-requests.ts';
import { viewerOf, wholeAnswer, type WholeAnswer } from '../peers/whole-answer.ts';
import type { Footage } from './footage.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import type { AskedTimes, ByteRange, Holder } from './holder.ts';
import { footageOf } from './message.ts';
import { FileGone, HolderLost } from './remote-file.ts';
import { SegmentItem } from './segment-item.ts';
import { ToldTimeline } from './timeline-item.ts';

/** Until the head of an answer; an answer takes twice as long at most. */
const ANSWER_MS = 5_000;
/** A day of ten-second files. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** Nodes of an older version do not tell `duration_ms`. */
const Item = SegmentItem.partial({ duration_ms: true }).transform(({ duration_ms, ...item }) => {
  const { start_ms, end_ms } = item;
  return { ...item, duration_ms: duration_ms ?? (end_ms === null ? null : end_ms - start_ms) };
});
const Segments = z.object({
  archive: z.array(Item),
  days: z.array(z.iso.date()),
  next: z.string().nullable().optional(),
});

const Cameras = ToldTimeline.transform(({ cameras }) => cameras);

interface NodeHolderDeps {
  readonly peers: PeerSender;
  readonly log: Log;
}

export function nodeHolder(about: FootageHolder, deps: NodeHolderDeps): Holder {
  const { nodeId, isOnline } = about;
  const ask = async <T extends z.ZodType>(
    listener: PeerListener,
    path: string,
    schema: T,
    caller: Asker,
    ...cameraIds: readonly string[]
  ): Promise<WholeAnswer<z.output<T>>> => {
    // A node whose Lease has ended may still be reached by the others: it has a second to say so.
    if (isOnline === false && !(await deps.peers.answers(nodeId))) return { kind: 'away' };
    const signal = AbortSignal.timeout(2 * ANSWER_MS);
    const request = { listener, caller: viewerOf(caller, ...cameraIds), path, headMs: ANSWER_MS, signal };
    return wholeAnswer(deps, nodeId, request, MAX_ANSWER_BYTES, schema);
  };
  return {
    ...about,
    files: (cameraId, { fromMs, toMs }, caller, withIndexes) => {
      const path = `/footage/${encodeURIComponent(cameraId)}?from=${fromMs / 1000}&to=${toMs / 1000}`;
      const query = withIndexes ? '&index=1' : '';
      return ask('playback', `${path}${query}`, footageOf(nodeId, cameraId), caller, cameraId);
    },
    segments: (cameraId, query, caller) => {
      const path = `/api/archive/${encodeURIComponent(cameraId)}/segments?local=1&${query}`;
      return ask('api', path, Segments, caller, cameraId);
    },
    times: (asked, caller) =>
      ask('api', `/api/archive/timeline?${timesQuery(asked).toString()}`, Cameras, caller, ...asked.cameraIds),
    stream: async (file, range, caller, signal) => (await askFor(file, range, caller, deps.peers, signal)).body,
    sizeOf: async (file, caller, signal) => {
      if (!file.isOpen) return file.sizeBytes;
      const { headers, body } = await askFor(file, { from: 0, to: 1 }, caller, deps.peers, signal);
      body.on('error', () => {}).resume();
      return Number(headers['content-range']?.split('/')[1]);
    },
  };
}

function timesQuery({ cameraIds, interval, resolutionMs, preview, activity, isWhole }: AskedTimes): URLSearchParams {
  const query = new URLSearchParams(cameraIds.map((id) => ['camera', id] as [string, string]));
  query.set('from', String(interval.fromMs / 1000));
  query.set('to', String(interval.toMs / 1000));
  query.set('resolution_ms', String(resolutionMs));
  if (preview) query.set('preview', '1');
  if (activity === true) query.set('activity', '1');
  if (isWhole === true) query.set('whole', '1');
  return query;
}

async function askFor(
  { nodeId, path, sizeBytes, isOpen, parts }: Footage,
  { from, to }: ByteRange,
  caller: Asker,
  peers: PeerSender,
  signal?: AbortSignal,
): Promise<PeerAnswer> {
  // The state of a growing file that has these bytes stays the same after it is closed.
  const query = isOpen ? `?size=${sizeBytes}` : '';
  const answer = await peers
    .request(nodeId, {
      listener: 'playback',
      caller: viewerOf(caller, parts.meta.cameraId),
      path: `/${path}${query}`,
      headers: { range: `bytes=${from}-${to - 1}` },
      signal,
    })
    .catch((err: unknown) => {
      signal?.throwIfAborted();
      throw new HolderLost(`${nodeId} does not send the file`, { cause: err });
    });
  if (answer.status === 206) return answer;
  answer.body.on('error', () => {}).destroy();
  const isGone = answer.status === 404 || answer.status === 416;
  throw isGone ? new FileGone(`${nodeId} no longer has ${path}`) : new HolderLost(`${nodeId} answers ${answer.status}`);
}
