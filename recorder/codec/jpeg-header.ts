// Makes everything in a JPEG file before its entropy-coded data, from the headers of its RTP packets (RFC 2435 §3.1, appendices A
// and B; markers: ITU-T T.81 annex B).

/** For luma, and for chroma if there are two: DQT segments (T.81 §B.2.4.1) with ids 0 and 1. */
export type QuantizationTables = readonly Buffer[];

/** Marker segments, each with its marker, that the camera itself sends (ONVIF Streaming Specification, "JPEG over RTP"). */
interface JpegSegments {
  readonly quantization: readonly Buffer[];
  readonly huffman: readonly Buffer[];
  readonly frame: Buffer | undefined;
  readonly restart: Buffer | undefined;
  readonly scan: Buffer | undefined;
}

interface JpegHeader extends JpegSegments {
  /** RFC 2435 type without its restart bit: 0 is 4:2:2, 1 is 4:2:0. */
  readonly type: number;
  readonly width: number;
  readonly height: number;
  /** MCUs between restart markers; 0: there are none. */
  readonly restartInterval: number;
}

export const NO_SEGMENTS: JpegSegments = {
  quantization: [],
  huffman: [],
  frame: undefined,
  restart: undefined,
  scan: undefined,
};

const NOTHING = Buffer.alloc(0);
const SOI = Buffer.of(0xff, 0xd8);
const SOF0 = 0xc0;
const SOF1 = 0xc1;
const DHT = 0xc4;
const SOS = 0xda;
const DQT = 0xdb;
const DRI = 0xdd;
/** More segments are not a valid header. */
const MAX_SEGMENTS = 32;

const segment = (marker: number, body: Buffer): Buffer =>
  Buffer.concat([Buffer.of(0xff, marker, (body.length + 2) >> 8, (body.length + 2) & 0xff), body]);

/** The camera's segments follow or replace those made from the other fields. A table replaces an earlier one with its id. */
export function jpegHeader(header: JpegHeader): Buffer {
  const { quantization, huffman, frame, restart, restartInterval, scan } = header;
  return Buffer.concat([
    SOI,
    ...quantization,
    STANDARD_HUFFMAN,
    ...huffman,
    frame ?? startOfFrame(header),
    restart ?? (restartInterval > 0 ? startOfRestarts(restartInterval) : NOTHING),
    scan ?? START_OF_SCAN,
  ]);
}

/** DRI, T.81 §B.2.4.4. */
const startOfRestarts = (interval: number): Buffer => segment(DRI, Buffer.of(interval >> 8, interval & 0xff));

/** SOF0, baseline, T.81 §B.2.2. */
function startOfFrame({ type, width, height, quantization }: JpegHeader): Buffer {
  const chromaTable = quantization.length > 1 ? 1 : 0;
  // prettier-ignore
  const body = Buffer.of(
    8, // P: bits a sample
    height >> 8, height & 0xff, width >> 8, width & 0xff,
    3, // Nf, then of each component: C, H and V, Tq
    1, type === 0 ? 0x21 : 0x22, 0,
    2, 0x11, chromaTable,
    3, 0x11, chromaTable,
  );
  return segment(SOF0, body);
}

/** SOS, T.81 §B.2.3: luma with Huffman tables 0, chroma with tables 1. */
const START_OF_SCAN = segment(SOS, Buffer.of(3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0));

/**
 * Reads marker segments, which may have padding of 0xff between them. Stops at a truncated segment and at one that does not
 * belong to a header.
 */
export function readSegments(bytes: Buffer): JpegSegments {
  const quantization: Buffer[] = [];
  const huffman: Buffer[] = [];
  const single = new Map<number, Buffer>();
  for (let at = 0, count = 0; at + 4 <= bytes.length && bytes[at] === 0xff && count < MAX_SEGMENTS; count++) {
    while (bytes[at + 1] === 0xff) at++;
    const marker = bytes[at + 1] ?? 0;
    if (at + 4 > bytes.length) break;
    const end = at + 2 + bytes.readUInt16BE(at + 2);
    if (end > bytes.length || end < at + 4) break;
    // Copied, because tables are kept for later pictures.
    const whole = Buffer.from(bytes.subarray(at, end));
    if (marker === DQT) quantization.push(whole);
    else if (marker === DHT) huffman.push(whole);
    else single.set(marker, whole);
    at = end;
  }
  const frame = single.get(SOF0) ?? single.get(SOF1);
  const isWhole = frame !== undefined && frame.length >= 10;
  return {
    quantization,
    huffman,
    frame: isWhole ? frame : undefined,
    restart: single.get(DRI),
    scan: single.get(SOS),
  };
}

/** The size in a SOF segment. */
export const frameSize = (frame: Buffer): { readonly width: number; readonly height: number } => ({
  width: frame.readUInt16BE(7),
  height: frame.readUInt16BE(5),
});

/** The tables for a Q of 1 to 99 (RFC 2435 §4.2, appendix A): those of T.81 annex K, scaled. */
export function tablesOfQuality(q: number): QuantizationTables {
  const factor = Math.max(1, Math.min(99, q));
  const percent = factor < 50 ? Math.floor(5000 / factor) : 200 - factor * 2;
  return [LUMA, CHROMA].map((table, id) => {
    const values = table.map((value) => Math.max(1, Math.min(255, Math.floor((value * percent + 50) / 100))));
    return segment(DQT, Buffer.of(id, ...values));
  });
}

/** The tables of a quantization table header (RFC 2435 §3.1.8); undefined if they are truncated. */
export function tablesInHeader(precision: number, bytes: Buffer): QuantizationTables | undefined {
  const tables: Buffer[] = [];
  for (let at = 0; at < bytes.length && tables.length < 4;) {
    const is16Bit = ((precision >> tables.length) & 1) === 1;
    const end = at + (is16Bit ? 128 : 64);
    if (end > bytes.length) return undefined;
    const selector = Buffer.of((is16Bit ? 0x10 : 0) | tables.length); // Pq, Tq
    tables.push(segment(DQT, Buffer.concat([selector, bytes.subarray(at, end)])));
    at = end;
  }
  return tables.length > 0 ? tables : undefined;
}

// T.81 tables K.1 and K.2 in zigzag order.
// prettier-ignore
const LUMA = [
  16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51,
  56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92,
  101, 103, 99,
];
const CHROMA = [17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, ...Array<number>(50).fill(99)];

/**
 * One DHT segment with the four tables of T.81 annex K.3; each has class and id, the number of codes by length, and the values.
 */
const STANDARD_HUFFMAN = segment(
  DHT,
  Buffer.from(
    // K.3: luma DC; K.5: luma AC; K.4: chroma DC; K.6: chroma AC
    `00 00010501010101010100000000000000 000102030405060708090a0b
     10 0002010303020403050504040000017d
        01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a
        434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aa
        b2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa
     01 00030101010101010101010000000000 000102030405060708090a0b
     11 00020102040403040705040400010277
        000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a
        434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7a8a9aa
        b2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa`.replace(/\s+/g, ''),
    'hex',
  ),
);
