// Cameras in a process of their own that begin with a backlog: each of their pictures is a network's worth of bytes, stamped 40 ms after the
// last one, and they send as fast as they may. Usage: node backlog.ts BYTES MBITS; tells its port.

import { randomBytes } from 'node:crypto';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [pictureBytes = 0, megabits = 0] = process.argv.slice(2).map(Number);
const SPS = Buffer.from('6742c01edb0280bfe5c05a808080a0000003002000000651e2c5d4', 'hex');
const PPS = Buffer.from('68cb83cb20', 'hex');
const PACKET_BYTES = 16_000;
const RTP_BYTES = 12;
const SDP = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=backlog',
  't=0 0',
  'm=video 0 RTP/AVP 96',
  'a=rtpmap:96 H264/90000',
  `a=fmtp:96 packetization-mode=1;sprop-parameter-sets=${SPS.toString('base64')},${PPS.toString('base64')}`,
  'a=control:t1',
  '',
].join('\r\n');

/** A picture as packets in interleaved frames (RFC 2326 §10.12, RFC 6184 §5.8), and where each packet begins. */
function pictureOf(start: Buffer): { bytes: Buffer; packets: number[] } {
  const rest = randomBytes(pictureBytes).map((byte) => byte || 1);
  const nal = Buffer.concat([start, rest]);
  const parts: Buffer[] = [];
  const packets: number[] = [];
  let at = 0;
  for (let from = 1; from < nal.length; from += PACKET_BYTES) {
    const part = nal.subarray(from, from + PACKET_BYTES);
    const [isFirst, isLast] = [from === 1, from + PACKET_BYTES >= nal.length];
    const head = Buffer.alloc(4 + RTP_BYTES + 2);
    head.write('$', 0, 'latin1');
    head.writeUInt16BE(RTP_BYTES + 2 + part.length, 2);
    head.writeUInt8(0x80, 4);
    head.writeUInt8(96 | (isLast ? 0x80 : 0), 5);
    head.writeUInt32BE(7, 12);
    const type = nal.readUInt8(0);
    head.writeUInt8((type & 0xe0) | 28, 16);
    head.writeUInt8((type & 0x1f) | (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0), 17);
    packets.push(at);
    parts.push(head, part);
    at += head.length + part.length;
  }
  return { bytes: Buffer.concat(parts), packets };
}

const KEY = pictureOf(Buffer.from([0x65, 0x88, 0x84, 0x00]));
const OTHER = pictureOf(Buffer.from([0x41, 0x9a, 0x02, 0x04]));

async function send(socket: Socket): Promise<void> {
  const beganMs = performance.now();
  let sequence = 0;
  for (let n = 0; !socket.destroyed; n++) {
    const { bytes, packets } = n % 25 === 0 ? KEY : OTHER;
    const copy = Buffer.from(bytes);
    for (const at of packets) {
      copy.writeUInt16BE(sequence++ & 0xffff, at + 6);
      copy.writeUInt32BE((n * 3_600) >>> 0, at + 8);
    }
    await new Promise<void>((resolve) => socket.write(copy, () => resolve()));
    const dueMs = beganMs + ((n + 1) * pictureBytes * 8) / (megabits * 1_000);
    // Lasts: a camera sends at its rate.
    if (dueMs > performance.now()) await sleep(dueMs - performance.now());
  }
}

const server = createServer((socket) => {
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (data: Buffer) => {
    text += data.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const request = text.slice(0, end);
      text = text.slice(end + 4);
      const method = /^[A-Z_]+/.exec(request)?.[0];
      const answer = `RTSP/1.0 200 OK\r\nCSeq: ${/^cseq: *(\d+)/im.exec(request)?.[1]}\r\n`;
      if (method === 'DESCRIBE') {
        socket.write(`${answer}Content-Type: application/sdp\r\nContent-Length: ${SDP.length}\r\n\r\n${SDP}`);
      } else if (method === 'SETUP') {
        socket.write(`${answer}Session: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n`);
      } else {
        socket.write(`${answer}Session: 1\r\n\r\n`);
        if (method !== 'PLAY') continue;
        socket.removeAllListeners('data').resume();
        void send(socket);
      }
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
