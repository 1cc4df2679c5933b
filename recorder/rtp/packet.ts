// Parses the header of an RTP packet (RFC 3550 §5.1).
//
//  0                   1                   2                   3
//  |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//  |                           timestamp                           |
//  |           synchronization source (SSRC) identifier            |
//  |            contributing source (CSRC) identifiers ...         |

/** As `Buffer.readUInt32BE`, without its checks: the caller has checked the length. */
const u32 = (bytes: Buffer, at: number): number =>
  (((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)) >>>
  0;

/**
 * A view of one packet in a receive buffer. One object is reused for all packets of a stream, so it is valid only during the call
 * to which it is passed. Nothing is copied or allocated.
 */
export class RtpPacket {
  buffer: Buffer = Buffer.alloc(0);
  /**
   * `buffer[extensionStart, payloadStart)` is the header extension including its four-byte header (§5.3.1); empty if there is
   * none.
   */
  extensionStart = 0;
  payloadStart = 0;
  payloadEnd = 0;
  payloadType = 0;
  marker = false;
  sequenceNumber = 0;
  /** 32 bits unsigned, in the stream's clock rate. */
  timestamp = 0;
  ssrc = 0;
  /** Number of packets missing just before this one; set by the receiver, not by `parse`. */
  lost = 0;

  /** Points this view at `buffer[start, end)`. False if those bytes are not an RTP packet of version 2. */
  parse(buffer: Buffer, start: number, end: number): boolean {
    if (end - start < 12) return false;
    const first = buffer[start] as number;
    if (first >> 6 !== 2) return false;
    const extensionStart = start + 12 + (first & 0x0f) * 4;
    let payloadStart = extensionStart;
    if ((first & 0x10) !== 0) {
      if (payloadStart + 4 > end) return false;
      payloadStart += 4 + buffer.readUInt16BE(payloadStart + 2) * 4;
    }
    let payloadEnd = end;
    if ((first & 0x20) !== 0) {
      const padding = buffer[end - 1] as number;
      if (padding === 0) return false;
      payloadEnd -= padding;
    }
    if (payloadStart > payloadEnd) return false;
    const second = buffer[start + 1] as number;
    this.buffer = buffer;
    this.extensionStart = extensionStart;
    this.payloadStart = payloadStart;
    this.payloadEnd = payloadEnd;
    this.marker = (second & 0x80) !== 0;
    this.payloadType = second & 0x7f;
    this.sequenceNumber = ((buffer[start + 2] as number) << 8) | (buffer[start + 3] as number);
    this.timestamp = u32(buffer, start + 4);
    this.ssrc = u32(buffer, start + 8);
    this.lost = 0;
    return true;
  }
}
