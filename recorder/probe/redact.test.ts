import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packetizeH264, packetizeH265 } from '../../test/support/packetize.ts';
import { redactMessage, redactPacket, secretsOf } from './redact.ts';

const SOURCE = 'rtsp://admin:s3cret@cam-17.plant.example:8554/user=admin&password=s3cret&channel=1.sdp';

test('of a dialogue neither host nor path, login, address nor name of the camera is left', () => {
  const secrets = secretsOf(SOURCE);
  const described = [
    'RTSP/1.0 200 OK',
    'CSeq: 2',
    'Content-Base: rtsp://cam-17.plant.example:8554/user=admin&password=s3cret&channel=1.sdp/',
    'WWW-Authenticate: Digest realm="IP Camera(K12345678)", nonce="abc123", qop="auth"',
    '',
    'v=0',
    'o=admin 1109162014219182 0 IN IP4 192.168.7.23',
    's=Front door, Elm Street 4',
    'i=serial K12345678',
    'c=IN IP4 192.168.7.23',
    'a=rtpmap:96 H264/90000',
    'a=control:rtsp://cam-17.plant.example:8554/user=admin&password=s3cret&channel=1.sdp/trackID=1',
    '',
  ].join('\r\n');
  const clean = redactMessage(described, secrets);
  for (const secret of ['cam-17', 'plant', 's3cret', 'K12345678', 'abc123', 'Elm', '192.168', 'admin', 'password']) {
    assert.ok(!clean.includes(secret), `${secret} in:\n${clean}`);
  }
  assert.match(clean, /^a=rtpmap:96 H264\/90000$/m);
  assert.match(clean, /^a=control:rtsp:\/\/camera\/stream\/trackID=1$/m);
  assert.match(clean, /Digest realm="x", nonce="x", qop="auth"/);

  const asked = `SETUP ${SOURCE}/trackID=1 RTSP/1.0\r\nCSeq: 3\r\nAuthorization: Basic YWRtaW46czNjckB0\r\n\r\n`;
  assert.equal(redactMessage(asked, secrets), 'SETUP rtsp://camera/stream/trackID=1 RTSP/1.0\r\nCSeq: 3\r\n\r\n');
});

const AT = { payloadType: 96, timestamp: 1, sequenceNumber: 1, ssrc: 1 };
const picture = (header: Buffer): Buffer => Buffer.concat([header, Buffer.alloc(5000, 0x77)]);

test('of H.264 and H.265 packets sizes, headers and parameter sets stay, and no picture', () => {
  const h264 = [Buffer.from('6742c01e', 'hex'), Buffer.from('68ce3c80', 'hex'), picture(Buffer.from([0x65, 0x88]))];
  const h265 = [Buffer.from('420101016000', 'hex'), picture(Buffer.from([0x26, 0x01]))];
  for (const [coding, packets] of [
    ['h264', packetizeH264(h264, { ...AT, mtu: 1400 })],
    ['h264', packetizeH264(h264, { ...AT, mtu: 60_000, aggregate: true })],
    ['h265', packetizeH265(h265, { ...AT, mtu: 1400 })],
    ['h265', packetizeH265(h265, { ...AT, mtu: 60_000, aggregate: true })],
  ] as const) {
    let seen = 0;
    for (const packet of packets) {
      const clean = redactPacket(packet, coding);
      assert.equal(clean.length, packet.length);
      assert.deepEqual(clean.subarray(0, 14), packet.subarray(0, 14));
      seen += clean.filter((byte) => byte === 0x77).length;
    }
    assert.ok(seen <= 40, `${coding}: ${seen} bytes of the picture are left`);
    const sets = coding === 'h264' ? h264.slice(0, 2) : h265.slice(0, 1);
    const all = Buffer.concat(packets.map((packet) => redactPacket(packet, coding)));
    for (const set of sets) assert.ok(all.includes(set), `${coding}: parameter set ${set.toString('hex')} is gone`);
  }
});

test('of other packets the first bytes stay', () => {
  const clean = redactPacket(
    Buffer.concat([Buffer.from([0x80, 96, ...Array(10).fill(0)]), Buffer.alloc(500, 0x77)]),
    'other',
  );
  assert.equal(clean.filter((byte) => byte === 0x77).length, 24);
});

test('whatever a packet holds, it comes back in its own length', () => {
  for (let length = 0; length < 64; length++) {
    for (const coding of ['h264', 'h265', 'other'] as const) {
      for (const type of [0x78, 0x7c, 0x60, 0x62, 0x18, 0x1c, 0]) {
        const packet = Buffer.alloc(length, type);
        if (length > 0) packet[0] = 0x80;
        assert.equal(redactPacket(packet, coding).length, length);
      }
    }
  }
});
