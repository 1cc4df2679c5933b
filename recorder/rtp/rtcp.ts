// Parses RTCP sender reports and BYE, and formats receiver reports (RFC 3550 §6).
//
//  0                   1                   2                   3
//  |V=2|P|   RC    |      PT       |     length in words - 1       |

const SENDER_REPORT = 200;
const RECEIVER_REPORT = 201;
const SOURCE_DESCRIPTION = 202;
const BYE = 203;
/** Seconds from 1900 (the epoch of NTP) to 1970. */
const NTP_TO_UNIX_SECONDS = 2_208_988_800;

/** What a sender says about its clocks (RFC 3550 §6.4.1). */
export type SenderReport = {
  readonly ssrc: number;
  readonly ntpSeconds: number;
  readonly ntpFraction: number;
  /** The same instant in the stream's RTP clock. */
  readonly rtpTimestamp: number;
  readonly packetCount: number;
  readonly octetCount: number;
};

type RtcpContents = {
  readonly senderReports: readonly SenderReport[];
  /** SSRCs that sent BYE. */
  readonly byes: readonly number[];
};

/** One block of a receiver report (RFC 3550 §6.4.1). */
export type ReceptionReport = {
  readonly ssrc: number;
  /** The fraction of packets lost since the last report, in 1/256. */
  readonly fractionLost: number;
  readonly cumulativeLost: number;
  readonly extendedHighestSequence: number;
  /** Interarrival jitter, in ticks of the stream's clock. */
  readonly jitter: number;
  /** The middle 32 bits of the NTP time of the last sender report; 0 if there was none. */
  readonly lastSenderReport: number;
  /** Time since that report, in 1/65536 s. */
  readonly delaySinceLastSenderReport: number;
};

/**
 * Parses `buffer[start, end)` and stops at the first invalid packet. Some cameras (Hanwha) send broken source descriptions after
 * a valid sender report: the report is used, the rest is ignored.
 */
export function parseRtcp(buffer: Buffer, start: number, end: number): RtcpContents {
  const senderReports: SenderReport[] = [];
  const byes: number[] = [];
  let at = start;
  while (at + 4 <= end) {
    const first = buffer[at] as number;
    if (first >> 6 !== 2) break;
    const count = first & 0x1f;
    const type = buffer[at + 1];
    const next = at + 4 + buffer.readUInt16BE(at + 2) * 4;
    // If the stated length exceeds the buffer, only the available bytes are used.
    const body = Math.min(next, end);
    if (type === SENDER_REPORT && body - at >= 28) senderReports.push(parseSenderReport(buffer, at));
    if (type === BYE) {
      for (let i = 0; i < count && at + 8 + i * 4 <= body; i++) byes.push(buffer.readUInt32BE(at + 4 + i * 4));
    }
    at = next;
  }
  return { senderReports, byes };
}

function parseSenderReport(buffer: Buffer, at: number): SenderReport {
  return {
    ssrc: buffer.readUInt32BE(at + 4),
    ntpSeconds: buffer.readUInt32BE(at + 8),
    ntpFraction: buffer.readUInt32BE(at + 12),
    rtpTimestamp: buffer.readUInt32BE(at + 16),
    packetCount: buffer.readUInt32BE(at + 20),
    octetCount: buffer.readUInt32BE(at + 24),
  };
}

/** The report's NTP time in milliseconds since 1970; undefined if the camera has no clock (NTP time 0). */
export function senderWallMs(report: SenderReport): number | undefined {
  if (report.ntpSeconds === 0) return undefined;
  return (report.ntpSeconds - NTP_TO_UNIX_SECONDS) * 1000 + (report.ntpFraction / 2 ** 32) * 1000;
}

/** The middle 32 bits of the NTP time, which identify a sender report in a receiver report. */
export function compactNtp(report: SenderReport): number {
  return (((report.ntpSeconds & 0xffff) << 16) | (report.ntpFraction >>> 16)) >>> 0;
}

interface ReceiverReportOptions {
  /** SSRC of the receiver, chosen by us. */
  readonly ssrc: number;
  /** At most 31. */
  readonly reports: readonly ReceptionReport[];
  /** With a name, a source description follows; RFC 3550 §6.1 requires it in every compound packet. */
  readonly cname?: string;
}

/** A compound packet: receiver report and, if there is a name, source description. */
export function formatReceiverReport({ ssrc, reports, cname }: ReceiverReportOptions): Buffer {
  const blocks = reports.slice(0, 31);
  const packet = Buffer.alloc(8 + blocks.length * 24);
  writeHeader(packet, blocks.length, RECEIVER_REPORT);
  packet.writeUInt32BE(ssrc >>> 0, 4);
  for (const [i, report] of blocks.entries()) {
    const at = 8 + i * 24;
    const lost = Math.max(-0x80_0000, Math.min(0x7f_ffff, report.cumulativeLost));
    packet.writeUInt32BE(report.ssrc >>> 0, at);
    packet.writeUInt8(Math.max(0, Math.min(255, report.fractionLost)), at + 4);
    packet.writeIntBE(lost, at + 5, 3);
    packet.writeUInt32BE(report.extendedHighestSequence >>> 0, at + 8);
    packet.writeUInt32BE(report.jitter >>> 0, at + 12);
    packet.writeUInt32BE(report.lastSenderReport >>> 0, at + 16);
    packet.writeUInt32BE(report.delaySinceLastSenderReport >>> 0, at + 20);
  }
  return cname === undefined ? packet : Buffer.concat([packet, formatSourceDescription(ssrc, cname)]);
}

function formatSourceDescription(ssrc: number, cname: string): Buffer {
  const name = Buffer.from(cname).subarray(0, 255);
  // Chunk: SSRC, item 1 (CNAME), then at least one zero byte up to a multiple of four.
  const packet = Buffer.alloc(8 + (Math.floor((2 + name.length) / 4) + 1) * 4);
  writeHeader(packet, 1, SOURCE_DESCRIPTION);
  packet.writeUInt32BE(ssrc >>> 0, 4);
  packet[8] = 1;
  packet[9] = name.length;
  name.copy(packet, 10);
  return packet;
}

function writeHeader(packet: Buffer, count: number, type: number): void {
  packet[0] = 0x80 | count;
  packet[1] = type;
  packet.writeUInt16BE(packet.length / 4 - 1, 2);
}
