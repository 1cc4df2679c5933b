// Another node as a holder of footage: it lists its files in a message, and sends their bytes by range.

import { readBody } from '../../base/http-answer.ts';
import type { Interval } from '../../base/interval.ts';
import type { Log } from '../../base/log.ts';
import type { Asker, PeerSender } from '../peers/peer-requests.ts';
import { viewerOf, wholeAnswer } from '../peers/whole-answer.ts';
import type { PlayedFile } from './archive-file.ts';
import type { Footage } from './footage.ts';
import type { FootageHolder, Holder } from './holders.ts';
import { footageOf } from './message.ts';
import { RemoteFile } from './remote-file.ts';

/** Until the head of an answer; an answer takes twice as long at most. */
const ANSWER_MS = 5_000;
/** A day of ten-second files. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export function nodeHolder(about: FootageHolder, deps: { readonly peers: PeerSender; readonly log: Log }): Holder {
  const { nodeId } = about;
  return {
    ...about,
    files: (cameraId, { fromMs, toMs }: Interval, caller: Asker) => {
      const path = `/footage/${encodeURIComponent(cameraId)}?from=${fromMs / 1000}&to=${toMs / 1000}`;
      const signal = AbortSignal.timeout(2 * ANSWER_MS);
      const as = viewerOf(caller, cameraId);
      const request = { listener: 'playback', caller: as, path, headMs: ANSWER_MS, signal } as const;
      return wholeAnswer(deps, nodeId, request, MAX_ANSWER_BYTES, footageOf(nodeId, cameraId));
    },
    open: (file, caller) => remoteFile(file, caller, deps.peers),
  };
}

function remoteFile({ nodeId, path, sizeBytes, isOpen, parts }: Footage, caller: Asker, peers: PeerSender): PlayedFile {
  // The state of a growing file that has these bytes stays the same after it is closed.
  const query = isOpen ? `?size=${sizeBytes}` : '';
  return new RemoteFile(sizeBytes, async (from, to) => {
    const { status, body } = await peers.request(nodeId, {
      listener: 'playback',
      caller: viewerOf(caller, parts.meta.cameraId),
      path: `/${path}${query}`,
      headers: { range: `bytes=${from}-${to - 1}` },
      signal: AbortSignal.timeout(2 * ANSWER_MS),
    });
    const bytes = await readBody(body, to - from, () => new Error('more than the range'));
    if (status !== 206 || bytes.length !== to - from) throw new Error(`status ${status}`);
    return bytes;
  });
}
