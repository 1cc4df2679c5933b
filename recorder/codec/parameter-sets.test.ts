import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Depacketizing } from '../../test/support/depacketize.ts';
import { packetizeH264 } from '../../test/support/packetize.ts';
import type { PacketHook } from '../../test/support/packetize.ts';
import type { NalParameters } from './access-unit.ts';
import { H264Depacketizer } from './h264.ts';
import { H264Syntax } from './h264-nal.ts';
import { ParameterSets } from './parameter-sets.ts';

/** 1920 × 1080 and 1280 × 720, both with id 0. */
const SPS_A = Buffer.from('Z00AKpWoHgCJ+WbgICAgQA==', 'base64');
const SPS_B = Buffer.from('Z00AH5WoFAFuQA==', 'base64');
const PPS_A = Buffer.from('68ee3c80', 'hex');
const PPS_B = Buffer.from('68ee38b0', 'hex');
const IDR = Buffer.from('6588841111', 'hex');
const INTER = Buffer.from('419a222222', 'hex');
const SPROP = [SPS_A, PPS_A].map((nal) => nal.toString('base64')).join();

class Camera extends Depacketizing {
  #sequenceNumber = 0;
  #timestamp = 0;

  constructor(sprop: string = SPROP) {
    super((deps) => new H264Depacketizer({ sprop, ...deps }));
  }

  send(nals: readonly Buffer[], onPacket: PacketHook = (packet) => packet): this {
    const options = { sequenceNumber: this.#sequenceNumber, timestamp: this.#timestamp, ssrc: 1, payloadType: 96 };
    this.#sequenceNumber += nals.length;
    this.#timestamp += 3600;
    return this.push(...packetizeH264(nals, { ...options, onPacket }));
  }

  parametersAt(index: number): NalParameters {
    const parameters = this.units[index]?.parameters;
    assert.ok(parameters && 'sps' in parameters);
    return parameters;
  }

  get widths(): (number | undefined)[] {
    return this.units.map((unit) => (unit.parameters?.kind === 'video' ? unit.parameters.width : undefined));
  }
}

test('parameter sets: another resolution takes effect at its key frame, in the track and in band', () => {
  const camera = new Camera()
    .send([IDR])
    .send([INTER])
    .send([SPS_B, PPS_A, IDR])
    .send([INTER])
    .send([SPS_B, PPS_A, IDR])
    .end();
  assert.deepEqual(camera.widths, [1920, 1920, 1280, 1280, 1280]);
  assert.deepEqual(camera.nals, [[IDR], [INTER], [SPS_B, IDR], [INTER], [IDR]]);
  assert.equal(camera.units[2]?.parameters, camera.units[4]?.parameters);
});

test('parameter sets: a PPS that toggles with each GOP is kept at each change (moonfire#217, mediamtx#4262)', () => {
  const camera = new Camera();
  for (const pps of [PPS_A, PPS_B, PPS_A, PPS_B]) camera.send([SPS_A, pps, IDR]).send([INTER]);
  camera.end();
  assert.deepEqual(camera.nals, [[IDR], [INTER], [PPS_B, IDR], [INTER], [PPS_A, IDR], [INTER], [PPS_B, IDR], [INTER]]);
  assert.deepEqual(
    camera.units.map((_, i) => camera.parametersAt(i).pps),
    [PPS_A, PPS_A, PPS_B, PPS_B, PPS_A, PPS_A, PPS_B, PPS_B].map((pps) => [pps]),
  );
});

test('parameter sets: of a damaged access unit they are not used', () => {
  const camera = new Camera().send([IDR]).send([INTER]);
  camera.send([SPS_B, PPS_B, IDR, INTER], (packet, i) => (i === 2 ? undefined : packet));
  camera.send([INTER]).send([SPS_A, PPS_A, IDR]).end();
  assert.deepEqual(camera.nals, [[IDR], [INTER], [INTER], [IDR]]);
  assert.deepEqual(camera.widths, [1920, 1920, 1920, 1920]);
  assert.equal(camera.units[3]?.parameters, camera.units[0]?.parameters);
});

test('parameter sets: a change between key frames stays in band, and comes again in front of the next key frame', () => {
  const camera = new Camera().send([IDR]).send([PPS_B, INTER]).send([INTER]).send([IDR]).send([PPS_B, IDR]).end();
  assert.deepEqual(camera.nals, [[IDR], [PPS_B, INTER], [INTER], [PPS_B, IDR], [IDR]]);
  assert.equal(camera.units[2]?.parameters, camera.units[0]?.parameters);
  assert.deepEqual(camera.parametersAt(3).pps, [PPS_B]);
});

test('parameter sets: a change between key frames that is taken back is no change at the key frame', () => {
  const camera = new Camera().send([IDR]).send([PPS_B, INTER]).send([PPS_A, INTER]).send([IDR]).end();
  assert.deepEqual(camera.nals, [[IDR], [PPS_B, INTER], [PPS_A, INTER], [PPS_A, IDR]]);
});

test('parameter sets: garbage after an SPS is kept, and does not hide its size (retina#102)', () => {
  const sps = Buffer.concat([SPS_B, Buffer.from('000003ff', 'hex')]);
  const camera = new Camera('').send([sps, PPS_A, IDR]).send([INTER]).end();
  assert.deepEqual(camera.nals[0], [sps, PPS_A, IDR]);
  assert.deepEqual(camera.widths, [1280, 1280]);
  assert.equal(camera.parametersAt(0).sps[0]?.equals(sps), true);
});

test('parameter sets: those that cannot be read are left out and counted', () => {
  const broken = Buffer.from('674d', 'hex');
  const camera = new Camera()
    .send([broken, Buffer.from('6800', 'hex'), IDR])
    .send([INTER])
    .end();
  assert.deepEqual(camera.nals[0], [IDR]);
  assert.equal(camera.fault('parameter-set-invalid'), 2);
});

test('parameter sets: a second PPS joins the first when a key frame uses it', () => {
  const pps1 = Buffer.from('685b8f20', 'hex'); // pic_parameter_set_id 1, seq_parameter_set_id 0
  const key = Buffer.from('65884a1111', 'hex'); // pic_parameter_set_id is 1.
  const camera = new Camera().send([IDR]).send([pps1, key]).end();
  assert.deepEqual(camera.parametersAt(1).pps, [PPS_A, pps1]);
});

test('parameter sets: memory does not grow with what a camera makes up', () => {
  const sets = new ParameterSets(new H264Syntax());
  for (let i = 0; i < 10_000; i++) {
    const pps = Buffer.from([0x68, i & 0xff, i >> 8, 0x80]);
    sets.offer(pps, 0, pps.length);
  }
  sets.commit();
  let known = 0;
  for (let id = 0; id < 1000; id++) if (sets.get('pps', id)) known++;
  assert.ok(known > 0 && known <= 64, `${known} sets`);
  assert.equal(sets.offer(Buffer.concat([Buffer.from('68ee', 'hex'), Buffer.alloc(5000, 1)]), 0, 5002), 'invalid');
});

test('parameter sets: a key frame that uses another SPS, both known before, changes the track', () => {
  const pps = (id: number, spsId: number): Buffer => {
    const codes = ['1', '010', '011'];
    const bits = `${codes[id]}${codes[spsId]}${'1'.repeat(12)}`.padEnd(24, '0');
    return Buffer.from([0x68, ...[0, 8, 16].map((at) => Number.parseInt(bits.slice(at, at + 8), 2))]);
  };
  // seq_parameter_set_id 1 instead of 0: `010` instead of `1` shifts the rest by two bits.
  const bits = [...SPS_B.subarray(4)].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const moved = `010${bits.slice(1)}`.padEnd(Math.ceil((bits.length + 2) / 8) * 8, '0');
  const rest = Array.from({ length: moved.length / 8 }, (_, i) => Number.parseInt(moved.slice(i * 8, i * 8 + 8), 2));
  const sps1 = Buffer.concat([SPS_B.subarray(0, 4), Buffer.from(rest)]);
  const keyOf1 = Buffer.from('65884a1111', 'hex'); // pic_parameter_set_id is 1.
  const camera = new Camera('')
    .send([SPS_A, sps1, pps(0, 0), pps(1, 1), IDR])
    .send([keyOf1])
    .send([IDR])
    .end();
  assert.deepEqual(camera.widths, [1920, 1280, 1920]);
});

test('parameter sets: each keeps no more memory than it is long', () => {
  const { sps, pps } = new Camera().send([IDR]).send([SPS_B, PPS_B, IDR]).end().parametersAt(1);
  for (const set of [...sps, ...pps]) assert.equal(set.buffer.byteLength, set.length);
});
