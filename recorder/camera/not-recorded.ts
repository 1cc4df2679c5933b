// Lists the streams that a camera offers but that are not recorded, each with the reason.

import type { Reason } from '../../base/reason.ts';
import { createDepacketizer, type MediaDescription } from '../codec/depacketizer.ts';
import { noFaults } from '../codec/faults.ts';
import { SlabPool } from '../codec/slab.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import { ENCRYPTED } from './media-stream.ts';
import type { NotRecorded } from '../contract/camera-status.ts';

/** Names are from the camera. */
const MAX_NAME_LENGTH = 64;

/** `recorded`: indices of sections. */
export function notRecorded({ media }: Presentation, recorded: readonly number[]): NotRecorded[] {
  return media.flatMap((section, index) => {
    if (recorded.includes(index)) return [];
    const { kind, encodingName } = section;
    const codec = encodingName.slice(0, MAX_NAME_LENGTH) || undefined;
    return [{ kind: kind.slice(0, MAX_NAME_LENGTH), codec, reason: reasonAgainst(section) }];
  });
}

function reasonAgainst(media: Media): Reason {
  const { kind } = media;
  if (media.backchannel) return { code: 'backchannel', message: "the way to the camera's loudspeaker brings nothing" };
  if (kind !== 'video' && kind !== 'audio') return { code: 'no-media', message: 'only video and audio are recorded' };
  if (media.encrypted) return ENCRYPTED(kind);
  let reason: Reason | undefined;
  for (const format of media.formats) {
    const { payloadType, formatParameters, channels } = format;
    const names = { encodingName: format.encodingName || undefined, clockRate: format.clockRate || undefined };
    const description: MediaDescription = { kind, payloadType, channels, formatParameters, ...names };
    const choice = createDepacketizer(description, { pool: new SlabPool(), emit: () => {}, faults: noFaults() });
    if (!('unsupported' in choice)) {
      return { code: 'second-stream', message: `one ${kind} stream of a source is recorded, the first that can be` };
    }
    reason ??= choice.unsupported;
  }
  return reason ?? { code: 'codec-unsupported', message: `${kind} of an unknown codec is not supported` };
}
