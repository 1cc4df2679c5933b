import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { encodeVideo } from '../../test/support/encode.ts';
import { nalType, splitAnnexB } from '../../test/support/packetize.ts';
import { BitReader } from './bit-reader.ts';
import { h264CodecString, parseH264Sps } from './h264-sps.ts';
import { h265CodecString, parseH265Sps } from './h265-sps.ts';

const H264_CAMERAS: readonly (readonly [string, string, number, number, number | undefined, string])[] = [
  ['Dahua', 'Z2QAHqwsaoLA9puCgIKgAAADACAAAAMD0IAA', 704, 480, undefined, 'avc1.64001e'],
  ['Hikvision', 'Z00AKZpkA8ARPyzUBAQFAAADA+gAAOpgBA==', 1920, 1080, undefined, 'avc1.4d0029'],
  ['Reolink', 'Z2QAM6zoAoALWQ==', 2560, 1440, undefined, 'avc1.640033'],
  ['Foscam', 'Z00AH5WoFAFuQA==', 1280, 720, 0, 'avc1.4d001f'],
  ['GeoVision', 'Z01AMpWgCoAwfiZuAgICgAAB9AAAdTBC', 2688, 1520, 0, 'avc1.4d4032'],
  ['Big Buck Bunny of Wowza', 'Z0LAHtkDxWhAAAADAEAAAAwDxYuS', 240, 160, 0, 'avc1.42c01e'],
  ['gw_main', 'Z00AKpWoHgCJ+WbgICAgQA==', 1920, 1080, 0, 'avc1.4d002a'],
];
for (const [name, base64, width, height, reorderDepth, codecString] of H264_CAMERAS) {
  test(`H.264 SPS of ${name}`, () => {
    const nal = Buffer.from(base64, 'base64');
    const sps = parseH264Sps(nal);
    assert.deepEqual(
      [sps?.width, sps?.height, sps?.reorderDepth, h264CodecString(nal)],
      [width, height, reorderDepth, codecString],
    );
  });
}

const H265_CAMERAS: readonly (readonly [string, string, number, number, number | undefined, string])[] = [
  ['Dahua', 'QgEBAWAAAAMAsAAAAwAAAwBaoAWCAeFja5JFL83BQYFBAAADAAEAAAMADKE=', 704, 480, 0, 'hvc1.1.6.L90.B0'],
  ['Hikvision', 'QgEBAWAAAAMAAAMAAAMAAAMAlqABQCAFof4qtO6JLuaAgA27oADN/mAE', 2560, 1440, 0, 'hvc1.1.6.L150'],
];
for (const [name, base64, width, height, reorderDepth, codecString] of H265_CAMERAS) {
  test(`H.265 SPS of ${name}`, () => {
    const sps = parseH265Sps(Buffer.from(base64, 'base64'));
    assert.deepEqual(
      [sps?.width, sps?.height, sps?.reorderDepth, sps && h265CodecString(sps.profileTierLevel)],
      [width, height, reorderDepth, codecString],
    );
  });
}

test('codec string of H.265: compatibility flags in reverse, no trailing zero bytes', () => {
  assert.equal(h265CodecString(Buffer.from('0160000000b0000000000099', 'hex')), 'hvc1.1.6.L153.B0');
  assert.equal(h265CodecString(Buffer.from('62200000009008000000005d', 'hex')), 'hvc1.A2.4.H93.90.8');
});

for (const [codec, parameters, size, options, expected] of [
  ['h264', 'bframes=3:b-pyramid=2', '162x122', ['-preset', 'fast', '-vf', 'setsar=4/3'], [162, 122, 2, 4, 3]],
  ['h264', 'bframes=0:interlaced=1', '160x120', ['-vf', 'setsar=12/11'], [160, 120, 0, 12, 11]],
  ['h264', 'bframes=0', '160x120', ['-profile:v', 'high444', '-pix_fmt', 'yuv444p'], [160, 120, 0]],
  ['h264', 'cqm=jvt:bframes=0', '160x120', ['-profile:v', 'high'], [160, 120, 0]],
  ['h265', 'bframes=2:b-pyramid=1', '162x122', ['-vf', 'setsar=16/11'], [162, 122, 2, 16, 11]],
  ['h265', 'bframes=0:scaling-list=default', '160x120', ['-vf', 'setsar=7/5'], [160, 120, 0, 7, 5]],
  ['h265', 'temporal-layers=2:bframes=0', '160x120', ['-pix_fmt', 'yuv422p10le'], [160, 120, 0]],
] as const) {
  test(`SPS of ${codec} with ${parameters} ${options.join(' ')}`, () => {
    const stream = encodeVideo({ codec, parameters, size, frames: 3, options });
    const nal = splitAnnexB(stream).find((n) => nalType(n, codec) === (codec === 'h264' ? 7 : 33)) as Buffer;
    const sps = codec === 'h264' ? parseH264Sps(nal) : parseH265Sps(nal);
    const aspect = sps?.pixelAspect ? [sps.pixelAspect.horizontal, sps.pixelAspect.vertical] : [];
    assert.deepEqual([sps?.width, sps?.height, sps?.reorderDepth, ...aspect], [...expected]);
  });
}

test('SPS: any bytes parse to a sane size or to nothing', () => {
  const parsers = [parseH264Sps, parseH265Sps];
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), fc.constantFrom(...parsers), (bytes, parse) => {
      const sps = parse(bytes);
      if (sps) assert.ok(sps.width > 0 && sps.width <= 16_384 && sps.height > 0 && sps.height <= 16_384);
    }),
  );
});

test('bit reader: skips emulation prevention, and says when it read too far', () => {
  const reader = new BitReader().reset(Buffer.from('000003010000030000ff', 'hex'), 0, 9);
  assert.deepEqual(
    Array.from({ length: 7 }, () => reader.bits(8)),
    [0, 0, 1, 0, 0, 0, 0],
  );
  assert.equal(reader.overrun, false);
  assert.equal(reader.bit(), 0);
  assert.equal(reader.overrun, true);
});

test('bit reader: Exp-Golomb codes', () => {
  // 1 010 011 00100 00101 then 00110 signed, then 00111
  const reader = new BitReader().reset(Buffer.from('a64298e0', 'hex'), 0, 4);
  assert.deepEqual([reader.ue(), reader.ue(), reader.ue(), reader.ue(), reader.ue()], [0, 1, 2, 3, 4]);
  assert.deepEqual([reader.se(), reader.se()], [3, -3]);
});
