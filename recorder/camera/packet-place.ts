// Which packet: what finds it in a capture, as of Wireshark.

/** What carries a stream's RTP packets: a channel of the RTSP connection, or a UDP port of this machine or of the group. */
export type Carrier = { readonly rtspChannel: number } | { readonly udpPort: number };

export interface PacketPlace {
  readonly ssrc: number;
  readonly sequenceNumber: number;
  /** Undefined for packets that came before the answer to PLAY. */
  readonly carrier: Carrier | undefined;
}

export const describeCarrier = (carrier: Carrier): string =>
  'udpPort' in carrier ? `UDP port ${carrier.udpPort}` : `RTSP channel ${carrier.rtspChannel}`;

/** As Wireshark writes a source, `0x0000abcd`. */
export const describeSsrc = (ssrc: number): string => `0x${ssrc.toString(16).padStart(8, '0')}`;

/** As `SSRC 0x0000abcd, sequence number 4711, RTSP channel 0`. */
export function describePacket({ ssrc, sequenceNumber, carrier }: PacketPlace): string {
  const parts = [`SSRC ${describeSsrc(ssrc)}`, `sequence number ${sequenceNumber}`];
  return [...parts, ...(carrier ? [describeCarrier(carrier)] : [])].join(', ');
}
