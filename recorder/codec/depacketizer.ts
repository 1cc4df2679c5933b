// A media section of an SDP in, the depacketizer for its packets out, or why its media cannot be recorded.

import type { AccessUnitCallback, Depacketizer } from './access-unit.ts';
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

/** Chooses the depacketizer for a stream. `rtpmap` wins over the static payload types. */
export function createDepacketizer(media: MediaDescription, _deps: DepacketizerDeps): DepacketizerChoice {
  const name = media.encodingName ?? `payload type ${media.payloadType}`;
  return { unsupported: { code: 'codec-unsupported', message: `${media.kind} in ${name} is not supported` } };
}
