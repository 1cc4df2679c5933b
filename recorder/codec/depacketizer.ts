// A media section of an SDP in, the depacketizer for its packets out, or why its media cannot be recorded.

import type { AccessUnitCallback, Depacketizer } from './access-unit.ts';
import { H264Depacketizer } from './h264.ts';
import { H265Depacketizer } from './h265.ts';
import type { SlabPool } from './slab.ts';

/** What the SDP says about one stream, as the codec room needs it. */
export interface MediaDescription {
  readonly kind: 'video' | 'audio';
  /** Of `a=rtpmap`, in any case; undefined when it is absent and only the static payload type (RFC 3551) tells. */
  readonly encodingName: string | undefined;
  readonly payloadType: number;
  /** Of `a=rtpmap`, ticks a second; undefined when it is absent. */
  readonly clockRate: number | undefined;
  /** Of `a=rtpmap`; undefined when it does not say. */
  readonly channels: number | undefined;
  /** Of `a=fmtp`; names in lower case. */
  readonly formatParameters: ReadonlyMap<string, string>;
}

export interface DepacketizerDeps {
  readonly pool: SlabPool;
  readonly emit: AccessUnitCallback;
}

/** Why media is not recorded: a stable code in kebab case, and a sentence for a person. */
export interface Unsupported {
  readonly code: string;
  readonly message: string;
}

export type DepacketizerChoice =
  | {
      readonly depacketizer: Depacketizer;
      /** Ticks a second of the packets' timestamps, where cameras announce another one than they use (Opus). */
      readonly clockRate: number;
    }
  | { readonly unsupported: Unsupported };

const VIDEO_CLOCK_RATE = 90_000;

/** Chooses the depacketizer for a stream. `rtpmap` wins over the static payload types. */
export function createDepacketizer(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const name = media.encodingName?.trim().toUpperCase();
  if (media.kind === 'video' && name === 'H264') return h264(media, deps);
  if (media.kind === 'video' && (name === 'H265' || name === 'HEVC')) return h265(media, deps);
  const shown = media.encodingName ?? `payload type ${media.payloadType}`;
  return { unsupported: { code: 'codec-unsupported', message: `${media.kind} in ${shown} is not supported` } };
}

function h264(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const parameters = media.formatParameters;
  if (parameters.get('packetization-mode') === '2') {
    return { unsupported: { code: 'h264-interleaved', message: 'H.264 in packetization mode 2 is not supported' } };
  }
  const depacketizer = new H264Depacketizer({ sprop: parameters.get('sprop-parameter-sets'), ...deps });
  return { depacketizer, clockRate: media.clockRate ?? VIDEO_CLOCK_RATE };
}

function h265(media: MediaDescription, deps: DepacketizerDeps): DepacketizerChoice {
  const parameters = media.formatParameters;
  const depacketizer = new H265Depacketizer({
    spropVps: parameters.get('sprop-vps'),
    spropSps: parameters.get('sprop-sps'),
    spropPps: parameters.get('sprop-pps'),
    maxDonDiff: Number(parameters.get('sprop-max-don-diff') ?? 0),
    ...deps,
  });
  return { depacketizer, clockRate: media.clockRate ?? VIDEO_CLOCK_RATE };
}
