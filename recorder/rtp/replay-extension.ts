// Parses the RTP header extension of recorded footage (ONVIF Streaming Specification §6.3): when an access unit was captured.
//
//  0                   1                   2                   3
//  |            0xABAC             |           length              |
//  |                       NTP timestamp ...                       |
//  |                    ... NTP timestamp                          |
//  |C|E|D|T|  mbz  |     Cseq      |            padding            |

import type { RtpPacket } from './packet.ts';

export interface ReplayStamp {
  /** Milliseconds since 1970, with fractions. */
  readonly cameraMs: number;
  /** C: a synchronization point; decoding can start here. */
  readonly cleanPoint: boolean;
  /** E: the last access unit before a gap of the footage, or at its end. */
  readonly endsSection: boolean;
  /** D: does not follow the access unit before it. */
  readonly discontinuity: boolean;
  /** T: the camera has no more footage of this track. */
  readonly terminal: boolean;
}

const REPLAY = 0xabac;
/** The header of the extension and its three words; a JPEG extension may follow. */
const LENGTH = 16;
/** Seconds from 1900 (the epoch of NTP) to 1970. */
const NTP_TO_UNIX_SECONDS = 2_208_988_800;
/** NTP seconds have 32 bits and begin again in February 2036 (RFC 5905 §6): the upper half is before that. */
const ERA_SECONDS = 2 ** 32;

/** The extension of a packet; undefined if it has none, or one without a time. */
export function parseReplayExtension({ buffer, extensionStart: at, payloadStart }: RtpPacket): ReplayStamp | undefined {
  if (payloadStart - at < LENGTH || buffer.readUInt16BE(at) !== REPLAY) return undefined;
  const seconds = buffer.readUInt32BE(at + 4);
  const fraction = buffer.readUInt32BE(at + 8);
  if (seconds === 0) return undefined;
  const flags = buffer[at + 12] as number;
  const unixSeconds = seconds - NTP_TO_UNIX_SECONDS + (seconds < ERA_SECONDS / 2 ? ERA_SECONDS : 0);
  return {
    cameraMs: unixSeconds * 1000 + (fraction / ERA_SECONDS) * 1000,
    cleanPoint: (flags & 0x80) !== 0,
    endsSection: (flags & 0x40) !== 0,
    discontinuity: (flags & 0x20) !== 0,
    terminal: (flags & 0x10) !== 0,
  };
}
