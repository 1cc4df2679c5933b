// Encodes 16-bit samples as FLAC frames (RFC 9639). A minimal encoder: fixed predictors and one Rice parameter per subframe.

const BITS_PER_SAMPLE = 16;
export const FLAC_MIN_BLOCK = 16;
export const FLAC_MAX_BLOCK = 4096;
export const FLAC_MAX_CHANNELS = 8;
/** RFC 9639 Table 16: codes of sample rates; for others, code 0 refers to STREAMINFO. */
const RATE_CODES: ReadonlyMap<number, number> = new Map([
  [8000, 4],
  [16_000, 5],
  [22_050, 6],
  [24_000, 7],
  [32_000, 8],
  [44_100, 9],
  [48_000, 10],
]);
const SUBFRAME_CONSTANT = 0;
const SUBFRAME_VERBATIM = 1;
const SUBFRAME_FIXED = 8;
const MAX_ORDER = 4;
/** 15 would be the escape code. */
const MAX_RICE_PARAMETER = 14;

/** STREAMINFO without its block header, RFC 9639 §8.2. */
export function flacStreamInfo(sampleRate: number, channels: number): Buffer {
  const info = Buffer.alloc(34);
  info.writeUInt16BE(FLAC_MIN_BLOCK, 0); // minimum block size
  info.writeUInt16BE(FLAC_MAX_BLOCK, 2); // maximum block size
  // Frame sizes (6 bytes): unknown. Then sample rate (20 bits), channels - 1 (3), bits per sample - 1 (5).
  info.writeUInt32BE(((sampleRate << 12) | ((channels - 1) << 9) | ((BITS_PER_SAMPLE - 1) << 4)) >>> 0, 10);
  // Total samples (36 bits) and MD5: unknown.
  return info;
}

/** Encodes the blocks of one stream. The buffer returned by `encode` is reused by the next call. */
export class FlacEncoder {
  readonly #channels: number;
  readonly #rateCode: number;
  readonly #bits: BitWriter;
  readonly #residual = new Int32Array(FLAC_MAX_BLOCK);
  readonly #best = new Int32Array(FLAC_MAX_BLOCK);
  readonly #shifted = new Int32Array(FLAC_MAX_BLOCK);
  #sampleNumber = 0;

  constructor(sampleRate: number, channels: number) {
    this.#channels = channels;
    this.#rateCode = RATE_CODES.get(sampleRate) ?? 0;
    this.#bits = new BitWriter(32 + channels * (FLAC_MAX_BLOCK * 2 + 8));
  }

  /** Encodes one frame from the first `count` samples (16 to 4096) of each channel. */
  encode(samples: readonly Int16Array[], count: number): Buffer {
    const bits = this.#bits;
    bits.clear();
    bits.put(0b1111_1111_1111_1001, 16); // sync code, blocks of different sizes
    bits.put(count <= 256 ? 6 : 7, 4); // block size - 1 follows in 8 or 16 bits
    bits.put(this.#rateCode, 4);
    bits.put(this.#channels - 1, 4); // channels, each on its own
    bits.put(4, 3); // 16 bits a sample
    bits.put(0, 1);
    putCodedNumber(bits, this.#sampleNumber);
    bits.put(count - 1, count <= 256 ? 8 : 16);
    bits.put(crc8(bits.buffer, bits.bytes), 8);
    for (let channel = 0; channel < this.#channels; channel++) this.#putSubframe(samples[channel] as Int16Array, count);
    bits.align();
    bits.put(crc16(bits.buffer, bits.bytes), 16);
    this.#sampleNumber = (this.#sampleNumber + count) % 2 ** 36;
    return bits.buffer.subarray(0, bits.bytes);
  }

  /** RFC 9639 §9.2. G.711 leaves the lowest bits zero, which the subframe header states once as wasted bits. */
  #putSubframe(samples: Int16Array, count: number): void {
    const bits = this.#bits;
    const shifted = this.#shifted;
    let used = 0;
    let isConstant = true;
    for (let i = 0; i < count; i++) {
      used |= samples[i] as number;
      isConstant &&= samples[i] === samples[0];
    }
    const wasted = used === 0 ? 0 : 31 - Math.clz32(used & -used);
    for (let i = 0; i < count; i++) shifted[i] = (samples[i] as number) >> wasted;
    const width = BITS_PER_SAMPLE - wasted;
    if (isConstant) {
      this.#putHeader(SUBFRAME_CONSTANT, wasted);
      bits.putSigned(shifted[0] as number, width);
      return;
    }
    const { order, parameter, cost } = this.#choosePredictor(count);
    if (cost + order * width >= count * width) {
      this.#putHeader(SUBFRAME_VERBATIM, wasted);
      for (let i = 0; i < count; i++) bits.putSigned(shifted[i] as number, width);
      return;
    }
    this.#putHeader(SUBFRAME_FIXED | order, wasted);
    for (let i = 0; i < order; i++) bits.putSigned(shifted[i] as number, width);
    bits.put(0, 2); // Rice parameters of 4 bits
    bits.put(0, 4); // one partition
    bits.put(parameter, 4);
    for (let i = order; i < count; i++) bits.putRice(this.#best[i] as number, parameter);
  }

  #putHeader(type: number, wasted: number): void {
    this.#bits.put(type, 7); // a zero bit and 6 bits of type
    this.#bits.put(wasted > 0 ? 1 : 0, 1);
    if (wasted > 0) this.#bits.put(1, wasted); // unary: zeros, then a one
  }

  /** Finds the fixed predictor (§9.2.5) and Rice parameter with the lowest cost; leaves the residual in `#best`. */
  #choosePredictor(count: number): { order: number; parameter: number; cost: number } {
    const residual = this.#residual;
    residual.set(this.#shifted);
    let choice = { order: 0, parameter: 0, cost: Infinity };
    for (let order = 0; order <= MAX_ORDER; order++) {
      // The residual of each order is the difference of the previous one.
      if (order > 0) {
        for (let i = count - 1; i >= order; i--) residual[i] = (residual[i] as number) - (residual[i - 1] as number);
      }
      let sum = 0;
      for (let i = order; i < count; i++) sum += fold(residual[i] as number);
      const mean = sum / (count - order);
      const parameter = Math.min(MAX_RICE_PARAMETER, Math.max(0, Math.ceil(Math.log2((mean + 1) * 0.7))));
      let cost = 0;
      for (let i = order; i < count; i++) cost += (fold(residual[i] as number) >>> parameter) + 1 + parameter;
      if (cost < choice.cost) {
        choice = { order, parameter, cost };
        this.#best.set(residual);
      }
    }
    return choice;
  }
}

/** Signed to unsigned: 0, -1, 1, -2 … become 0, 1, 2, 3 … */
const fold = (value: number): number => ((value << 1) ^ (value >> 31)) >>> 0;

/** RFC 9639 §9.1.5: like UTF-8, extended to 36 bits. */
function putCodedNumber(bits: BitWriter, value: number): void {
  if (value < 0x80) return bits.put(value, 8);
  let continuations = 1;
  while (continuations < 6 && value >= 2 ** (6 + continuations * 5)) continuations++;
  const lead = (0xff << (7 - continuations)) & 0xff;
  // With seven bytes, the first one has no bit left for the value.
  bits.put(lead | (continuations === 6 ? 0 : Math.floor(value / 64 ** continuations)), 8);
  for (let i = continuations - 1; i >= 0; i--) bits.put(0x80 | (Math.floor(value / 64 ** i) % 64), 8);
}

class BitWriter {
  readonly buffer: Buffer;
  bytes = 0;
  #current = 0;
  #filled = 0;

  constructor(capacity: number) {
    this.buffer = Buffer.alloc(capacity);
  }

  clear(): void {
    this.bytes = 0;
    this.#current = 0;
    this.#filled = 0;
  }

  /** At most 16 bits. */
  put(value: number, count: number): void {
    this.#current = (this.#current << count) | (value & ((1 << count) - 1));
    this.#filled += count;
    while (this.#filled >= 8) {
      this.#filled -= 8;
      this.buffer[this.bytes++] = (this.#current >> this.#filled) & 0xff;
    }
    this.#current &= (1 << this.#filled) - 1;
  }

  putSigned(value: number, count: number): void {
    this.put(value, count);
  }

  putRice(value: number, parameter: number): void {
    const folded = fold(value);
    let quotient = folded >>> parameter;
    while (quotient >= 16) {
      this.put(0, 16);
      quotient -= 16;
    }
    this.put(1, quotient + 1);
    if (parameter > 0) this.put(folded, parameter);
  }

  align(): void {
    if (this.#filled > 0) this.put(0, 8 - this.#filled);
  }
}

/** Polynomial x^8 + x^2 + x + 1. */
function crc8(bytes: Buffer, end: number): number {
  let crc = 0;
  for (let i = 0; i < end; i++) {
    crc ^= bytes[i] as number;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80) !== 0 ? ((crc << 1) ^ 0x07) & 0xff : crc << 1;
  }
  return crc;
}

/** Polynomial x^16 + x^15 + x^2 + 1, for each value of the byte shifted out. */
const CRC16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) !== 0 ? ((crc << 1) ^ 0x8005) & 0xffff : crc << 1;
  return crc;
});

function crc16(bytes: Buffer, end: number): number {
  let crc = 0;
  for (let i = 0; i < end; i++) {
    crc = ((crc << 8) & 0xffff) ^ (CRC16[(crc >> 8) ^ (bytes[i] as number)] as number);
  }
  return crc;
}
