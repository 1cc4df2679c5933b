// RTCP that a camera sends: sender reports with a source description (RFC 3550 §6.4.1, §6.5).

import type { ReportInfo } from './options.ts';

/** Seconds from 1900 to 1970. */
const NTP_EPOCH_SECONDS = 2_208_988_800;

export function senderReport(info: ReportInfo): Buffer {
  const report = Buffer.alloc(28);
  report.writeUInt32BE(0x80c80006, 0); // version 2, type 200, length in words minus one
  report.writeUInt32BE(info.ssrc >>> 0, 4);
  const seconds = info.ntpMs / 1000 + NTP_EPOCH_SECONDS;
  report.writeUInt32BE(Math.floor(seconds) >>> 0, 8);
  report.writeUInt32BE(Math.floor((seconds % 1) * 2 ** 32) >>> 0, 12);
  report.writeUInt32BE(info.timestamp >>> 0, 16);
  report.writeUInt32BE(info.packets >>> 0, 20);
  report.writeUInt32BE(info.octets >>> 0, 24);
  return report;
}

/** A source description with one CNAME, ended as the standard wants it. */
export function sourceDescription(ssrc: number, name = 'camera'): Buffer {
  const item = Buffer.concat([Buffer.from([1, name.length]), Buffer.from(name), Buffer.from([0])]);
  const padded = Buffer.concat([item, Buffer.alloc((4 - (item.length % 4)) % 4)]);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(0x81ca0000 + 1 + padded.length / 4, 0);
  head.writeUInt32BE(ssrc >>> 0, 4);
  return Buffer.concat([head, padded]);
}
