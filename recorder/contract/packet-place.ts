// Identifies a packet so that it can be found in a packet capture, for example with Wireshark.

/** Where the RTP packets of a stream arrive: an interleaved channel of the RTSP connection, or a local UDP port. */
export type Carrier =
  | { readonly rtspChannel: number }
  /** `receiveBufferBytes`: what the kernel granted for packets that were not read yet. */
  | { readonly udpPort: number; readonly receiveBufferBytes?: number | undefined };

export interface PacketPlace {
  readonly ssrc: number;
  readonly sequenceNumber: number;
  /** Undefined for packets that arrive before the answer to PLAY. */
  readonly carrier: Carrier | undefined;
}

export const describeCarrier = (carrier: Carrier): string =>
  'udpPort' in carrier ? `UDP port ${carrier.udpPort}` : `RTSP channel ${carrier.rtspChannel}`;

/** In the notation of Wireshark: `0x0000abcd`. */
export const describeSsrc = (ssrc: number): string => `0x${ssrc.toString(16).padStart(8, '0')}`;

/** For example `SSRC 0x0000abcd, sequence number 4711, RTSP channel 0`. */
export function describePacket({ ssrc, sequenceNumber, carrier }: PacketPlace): string {
  const parts = [`SSRC ${describeSsrc(ssrc)}`, `sequence number ${sequenceNumber}`];
  return [...parts, ...(carrier ? [describeCarrier(carrier)] : [])].join(', ');
}
