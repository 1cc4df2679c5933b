import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { compactNtp, formatReceiverReport, parseRtcp, senderWallMs } from './rtcp.ts';

const SENDER_REPORT = '80c80006 0a0b0c0d eb6d4e80 80000000 00015f90 00000010 00004000'.replaceAll(' ', '');
const parse = (hex: string) => {
  const bytes = Buffer.from(`ff${hex.replaceAll(' ', '')}ff`, 'hex');
  return parseRtcp(bytes, 1, bytes.length - 1);
};
const REPORT = {
  ssrc: 0x0a0b_0c0d,
  ntpSeconds: 0xeb6d_4e80,
  ntpFraction: 0x8000_0000,
  rtpTimestamp: 90_000,
  packetCount: 16,
  octetCount: 0x4000,
};

test('RTCP: a sender report gives the NTP time of an RTP timestamp', () => {
  const { senderReports } = parse(SENDER_REPORT);
  assert.deepEqual(senderReports, [REPORT]);
  assert.equal(senderWallMs(REPORT), Date.UTC(2025, 2, 1, 9, 14, 40) + 500);
  assert.equal(compactNtp(REPORT), 0x4e80_8000);
});

test('RTCP: a camera without a clock sends NTP time 0', () => {
  assert.equal(senderWallMs({ ...REPORT, ntpSeconds: 0, ntpFraction: 0 }), undefined);
});

test('RTCP: the sender report counts although its source description is malformed (Hanwha, gortsplib#1099)', () => {
  assert.deepEqual(parse(`${SENDER_REPORT} 81ca0002 0a0b0c0d 01ff4142`).senderReports, [REPORT]);
  assert.deepEqual(parse(`${SENDER_REPORT} 81ca00ff 0a0b0c0d`).senderReports, [REPORT]);
  assert.deepEqual(parse(`${SENDER_REPORT} 81ca`).senderReports, [REPORT]);
});

test('RTCP: BYE names who leaves, with and without a reason', () => {
  assert.deepEqual(parse('81cb0001 0a0b0c0d').byes, [0x0a0b_0c0d]);
  assert.deepEqual(parse(`${SENDER_REPORT} 82cb0003 00000001 00000002 03627965`).byes, [1, 2]);
  assert.deepEqual(parse('9fcb0001 00000001').byes, [1]);
});

test('RTCP: a receiver report as RFC 3550 draws it', () => {
  const packet = formatReceiverReport({
    ssrc: 0x1111_1111,
    cname: 'nvr',
    reports: [
      {
        ssrc: 0x2222_2222,
        fractionLost: 64,
        cumulativeLost: -2,
        extendedHighestSequence: 0x0001_0005,
        jitter: 7,
        lastSenderReport: 0x4e80_8000,
        delaySinceLastSenderReport: 65_536,
      },
    ],
  });
  assert.equal(
    packet.toString('hex'),
    '81c9000711111111 2222222240fffffe00010005000000074e80800000010000 81ca00031111111101036e7672000000'.replaceAll(
      ' ',
      '',
    ),
  );
  assert.equal(formatReceiverReport({ ssrc: 1, reports: [] }).toString('hex'), '80c9000100000001');
});

test('RTCP: any bytes parse to something', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const { senderReports, byes } = parseRtcp(Buffer.from(bytes), 0, bytes.length);
      assert.ok(senderReports.length * 28 + byes.length * 4 <= bytes.length);
    }),
  );
});
