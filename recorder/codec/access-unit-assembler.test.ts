import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { splitLengths } from '../../test/support/depacketize.ts';
import { AccessUnitAssembler } from './access-unit-assembler.ts';
import { noFaults } from './faults.ts';
import { H264Syntax } from './h264-nal.ts';
import { SlabPool } from './slab.ts';
import { parseSprop, useSprop } from './sprop.ts';

const SPS = Buffer.from('Z00AKpWoHgCJ+WbgICAgQA==', 'base64');
const PPS = Buffer.from('aO48gA==', 'base64');
const SEI = Buffer.from('0605032a2a2a80', 'hex');
const DELIMITER = Buffer.from('09f0', 'hex');
const IDR = Buffer.from('65888411111111', 'hex');
const INTER = Buffer.from('419a2222222222', 'hex');
/** A further slice of the same picture: first_mb_in_slice is 1. */
const FURTHER = Buffer.from('41442222222222', 'hex');

/** An assembler of H.264 that knows its parameters, and the access units that it has emitted. */
class Assembly {
  readonly units: { timestamp: number; lostPackets: number; nals: Buffer[] }[] = [];
  readonly #faults = noFaults();
  readonly assembler = new AccessUnitAssembler({
    syntax: new H264Syntax(),
    pool: new SlabPool(),
    faults: this.#faults,
    emit: ({ data, timestamp, lostPackets }) => {
      const bytes = Buffer.from(data.slab.buffer.subarray(data.offset, data.offset + data.size));
      data.slab.release();
      this.units.push({ timestamp, lostPackets, nals: splitLengths(bytes) });
    },
  });

  constructor() {
    useSprop(this.assembler.sets, parseSprop(`${SPS.toString('base64')},${PPS.toString('base64')}`));
  }

  /** One packet, in which `take` stands for what the depacketizer finds. */
  packet(timestamp: number, take: (assembler: AccessUnitAssembler) => void, marker = false, lost = 0): this {
    this.assembler.startPacket(timestamp, lost);
    take(this.assembler);
    this.assembler.endPacket(marker);
    return this;
  }

  nal(timestamp: number, nal: Buffer, marker = false, lost = 0): this {
    return this.packet(timestamp, (assembler) => assembler.nal(nal, 0, nal.length), marker, lost);
  }

  /** `nal[from, to)` as a fragment; the header is not part of it. */
  fragment(timestamp: number, nal: Buffer, from: number, to: number, marker = false, lost = 0): this {
    const header = nal[0] as number;
    const take = (assembler: AccessUnitAssembler): void => {
      if (from === 1) assembler.startFragments(header, 0, nal, from, to);
      else assembler.appendFragment(header, nal, from, to);
      if (to === nal.length) assembler.endFragments();
    };
    return this.packet(timestamp, take, marker, lost);
  }

  get summary(): string[] {
    return this.units.map(
      ({ timestamp, lostPackets, nals }) =>
        `${timestamp}: ${nals.map((nal) => nal.toString('hex')).join(' ')}${lostPackets > 0 ? ` after ${lostPackets} lost` : ''}`,
    );
  }

  get faults(): Record<string, number> {
    return Object.fromEntries(this.#faults.counts);
  }
}

const hex = (...nals: readonly Buffer[]): string => nals.map((nal) => nal.toString('hex')).join(' ');

test('a NAL unit in fragments is written as one, after what came before it', () => {
  const made = new Assembly().nal(1, SEI).fragment(1, IDR, 1, 3).fragment(1, IDR, 3, 5).fragment(1, IDR, 5, 7, true);
  made.assembler.flush();
  assert.deepEqual(made.summary, [`1: ${hex(SEI, IDR)}`]);
  assert.deepEqual(made.faults, {});
});

test('the first fragment without content: the NAL unit begins with the next one', () => {
  const made = new Assembly().packet(1, (assembler) => assembler.startFragments(IDR[0] as number, 0, IDR, 1, 1));
  made.packet(1, (assembler) => {
    assembler.appendFragment(IDR[0] as number, IDR, 1, IDR.length);
    assembler.endFragments();
  });
  made.assembler.flush();
  assert.deepEqual(made.summary, [`1: ${hex(IDR)}`]);
});

test('of a damaged access unit nothing is kept, and the next one says that something is missing', () => {
  const made = new Assembly().nal(1, IDR, true).nal(2, SEI).nal(2, INTER);
  made.packet(2, (assembler) => assembler.damage('interleaved-packet'));
  // The rest of it, whole or in fragments, is of no use.
  made.nal(2, FURTHER).fragment(2, FURTHER, 1, 4).fragment(2, FURTHER, 4, 7, true);
  made.nal(3, INTER, true).nal(4, INTER, true);
  assert.deepEqual(made.summary, [`1: ${hex(IDR)}`, `3: ${hex(INTER)} after 1 lost`]);
  assert.equal(made.assembler.discarded, 1);
});

test('damage before the first NAL unit of an access unit costs that one, not the one before', () => {
  const made = new Assembly().nal(1, IDR, true);
  made.packet(2, (assembler) => assembler.damage('interleaved-packet')).nal(2, INTER, true);
  made.nal(3, INTER, true).nal(4, INTER, true);
  assert.deepEqual(made.summary, [`1: ${hex(IDR)}`, `3: ${hex(INTER)} after 1 lost`]);
});

test('a fragment whose start was lost is of no use, and neither are those that follow it', () => {
  const made = new Assembly().nal(1, IDR, true).fragment(2, INTER, 3, 5, false, 1).fragment(2, INTER, 5, 7, true);
  made.nal(3, INTER, true).nal(4, INTER, true);
  assert.deepEqual(made.summary, [`1: ${hex(IDR)}`, `3: ${hex(INTER)} after 1 lost`]);
  assert.deepEqual(made.faults, { 'fragment-without-start': 1 });
});

test('fragments that end without their end bit: the marker says whether the NAL unit is whole', () => {
  const cut = INTER.subarray(0, 5);
  const unmarked = new Assembly().nal(1, IDR, true).fragment(2, INTER, 1, 5).nal(3, INTER, true).nal(4, DELIMITER);
  assert.deepEqual(unmarked.summary, [`1: ${hex(IDR)}`, `3: ${hex(INTER)} after 1 lost`]);
  assert.deepEqual(unmarked.faults, { 'fragment-without-end': 1 });
  const marked = new Assembly().nal(1, IDR, true).fragment(2, INTER, 1, 5, true).nal(3, INTER, true).nal(4, DELIMITER);
  assert.deepEqual(marked.summary, [`1: ${hex(IDR)}`, `2: ${hex(cut)}`, `3: ${hex(INTER)}`]);
  assert.deepEqual(marked.faults, { 'fragment-end-bit-missing': 1 });
});

test('a loss inside what follows a marked picture costs only that, not the picture', () => {
  const auxiliary = Buffer.from('1399999999999999', 'hex');
  const made = new Assembly().nal(1, IDR, true).fragment(1, auxiliary, 1, 4).nal(2, IDR, true, 1);
  made.assembler.flush();
  assert.deepEqual(made.summary, [`1: ${hex(IDR)}`, `2: ${hex(IDR)} after 1 lost`]);
});

test('after close it begins from nothing: what was in work is gone', () => {
  const made = new Assembly().nal(1, SEI).fragment(1, IDR, 1, 4);
  made.assembler.close();
  made.fragment(1, IDR, 4, 7, true).nal(2, IDR, true);
  made.assembler.flush();
  assert.deepEqual(made.summary, [`2: ${hex(IDR)} after 1 lost`]);
});

test('without losses and faults, each picture of any order of slices and fragments comes out as it went in', () => {
  const picture = fc.record({
    nals: fc
      .tuple(fc.constantFrom(IDR, INTER), fc.array(fc.constant(FURTHER), { maxLength: 3 }), fc.boolean())
      .map(([first, more, hasSei]) => [...(hasSei ? [SEI] : []), first, ...more]),
    cut: fc.integer({ min: 1, max: 7 }),
  });
  fc.assert(
    fc.property(fc.array(picture, { maxLength: 12 }), fc.boolean(), (pictures, hasMarkers) => {
      const made = new Assembly();
      for (const [i, { nals, cut }] of pictures.entries()) {
        for (const [n, nal] of nals.entries()) {
          const isLast = hasMarkers && n === nals.length - 1;
          if (cut === 1 || cut >= nal.length) made.nal(i, nal, isLast);
          else made.fragment(i, nal, 1, cut).fragment(i, nal, cut, nal.length, isLast);
        }
      }
      made.assembler.flush();
      assert.deepEqual(
        made.summary,
        pictures.map(({ nals }, i) => `${i}: ${hex(...nals)}`),
      );
      assert.deepEqual(made.faults, {});
    }),
  );
});
