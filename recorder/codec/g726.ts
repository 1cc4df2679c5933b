// Decodes G.726 (ITU-T G.726; in RTP: RFC 3551 §4.5.4).
//
// ADPCM with 2 to 5 bits per sample. Names in capitals are those of the Recommendation, clause 4 and its sub-blocks.

import type { SampleDecoder } from './pcm.ts';

/** Kilobits per second, at 8000 samples per second. */
export type G726Rate = 16 | 24 | 32 | 40;

/** The tables of one rate, by magnitude of the code. */
interface Quantizer {
  /** DQLN: the logarithm of the difference, in units of the scale factor. */
  readonly log: readonly number[];
  /** W(I): what the code adds to the scale factor. */
  readonly weight: readonly number[];
  /** F(I): 0 for small differences to 7 for large ones. */
  readonly speed: readonly number[];
  /** The least number of octets that contains a whole number of codes. */
  readonly octets: number;
}

const QUANTIZERS: Readonly<Record<G726Rate, Quantizer>> = {
  16: { log: [116, 365], weight: [-22, 439], speed: [0, 7], octets: 1 },
  24: { log: [-2048, 135, 273, 373], weight: [-4, 30, 137, 582], speed: [0, 1, 2, 7], octets: 3 },
  32: {
    log: [-2048, 4, 135, 213, 273, 323, 373, 425],
    weight: [-12, 18, 41, 64, 112, 198, 355, 1122],
    speed: [0, 0, 0, 1, 1, 1, 3, 7],
    octets: 1,
  },
  40: {
    log: [-2048, -66, 28, 104, 169, 224, 274, 318, 358, 395, 429, 459, 488, 514, 539, 566],
    weight: [14, 14, 24, 39, 40, 41, 58, 100, 141, 179, 219, 280, 358, 440, 529, 696],
    speed: [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6],
    octets: 5,
  },
};

/** `first-low`: the first code of an octet is in its lowest bits (RFC 3551); `first-high`: in its highest (AAL2). */
export type G726Packing = 'first-low' | 'first-high';

export class G726Decoder implements SampleDecoder {
  readonly octets: number;
  readonly samples: number;
  readonly #bits: number;
  readonly #packing: G726Packing;
  readonly #state: Adpcm;

  constructor(rate: G726Rate, packing: G726Packing) {
    const quantizer = QUANTIZERS[rate];
    this.#bits = rate / 8;
    this.#packing = packing;
    this.#state = new Adpcm(quantizer, this.#bits);
    this.octets = quantizer.octets;
    this.samples = (quantizer.octets * 8) / this.#bits;
  }

  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void {
    const bits = this.#bits;
    const last = this.octets - 1;
    for (let i = 0; i < this.samples; i++) {
      const bit = i * bits;
      const octet = bit >> 3;
      const one = bytes[at + octet] as number;
      // A code may continue in the next octet.
      const two = octet < last ? (bytes[at + octet + 1] as number) : 0;
      const code =
        this.#packing === 'first-low' ? ((two << 8) | one) >> (bit & 7) : ((one << 8) | two) >> (16 - bits - (bit & 7));
      // Samples have 14 bits.
      (into[0] as Int16Array)[index + i] = clamp(4 * this.#state.next(code & ((1 << bits) - 1)), -32_768, 32_767);
    }
  }
}

/** The format of the predictor's factors: a sign, a 4-bit exponent and a 6-bit mantissa. */
interface Float {
  negative: boolean;
  exponent: number;
  mantissa: number;
}
const zero = (): Float => ({ negative: false, exponent: 0, mantissa: 32 });

class Adpcm {
  readonly #quantizer: Quantizer;
  readonly #signBit: number;
  /** The coefficients of the zeros leak more slowly at 40 kbit/s (ULB). */
  readonly #leak: number;
  /** YU and YL: the fast and the slow scale factor. */
  #fast = 544;
  #slow = 34_816;
  /** DMS, DML and AP: how much the signal varies, and so how fast to adapt. */
  #shortTerm = 0;
  #longTerm = 0;
  #speed = 0;
  /** TD: a modem tone was detected. */
  #tone = false;
  /** A1, A2: coefficients of the poles; SR1, SR2: the signals that they weight. */
  #a1 = 0;
  #a2 = 0;
  #sr1 = zero();
  #sr2 = zero();
  /** PK1, PK2: signs of the previous partially reconstructed signals. */
  #pk1 = false;
  #pk2 = false;
  /** B1 to B6: coefficients of the zeros; DQ1 to DQ6: the differences that they weight, newest first. */
  readonly #b = new Int16Array(6);
  readonly #dq = Array.from({ length: 6 }, zero);

  constructor(quantizer: Quantizer, bits: number) {
    this.#quantizer = quantizer;
    this.#signBit = 1 << (bits - 1);
    this.#leak = bits === 5 ? 9 : 8;
  }

  /** The sample (15 bits and sign) for the next code. */
  next(code: number): number {
    const negative = (code & this.#signBit) !== 0;
    const magnitude = (negative ? ~code : code) & (this.#signBit - 1);
    // FMULT, ACCUM
    let zeros = 0;
    for (let i = 0; i < 6; i++) zeros += multiply(this.#b[i] as number, this.#dq[i] as Float);
    const both = zeros + multiply(this.#a1, this.#sr1) + multiply(this.#a2, this.#sr2);
    const sez = ((zeros << 16) >> 16) >> 1;
    const se = ((both << 16) >> 16) >> 1;
    const y = this.#scaleFactor();
    // RECONST, ADDA, ANTILOG
    const log = (this.#quantizer.log[magnitude] as number) + (y >> 2);
    const dqMagnitude = log < 0 ? 0 : ((128 + (log & 127)) << 7) >> (14 - ((log >> 7) & 15));
    const dq = negative ? -dqMagnitude : dqMagnitude;
    const sample = ((se + dq) << 16) >> 16; // ADDB

    const transition = this.#tone && dqMagnitude > this.#toneThreshold(); // TRANS
    this.#adaptScale(magnitude, y);
    this.#adaptPredictor(negative, dqMagnitude, ((dq + sez) << 16) >> 16, transition);
    this.#adaptSpeed(magnitude, y, transition);
    toFloat(dqMagnitude, negative, this.#rotate()); // FLOATA
    [this.#sr2, this.#sr1] = [this.#sr1, this.#sr2];
    toFloat(Math.abs(sample) & 0x7fff, sample < 0, this.#sr1); // FLOATB
    return sample;
  }

  /** LIMA and MIX: Y. */
  #scaleFactor(): number {
    const share = this.#speed >= 256 ? 64 : this.#speed >> 2;
    const slow = this.#slow >> 6;
    return slow + Math.trunc(((this.#fast - slow) * share) / 64);
  }

  #toneThreshold(): number {
    const whole = this.#slow >> 15;
    const threshold = whole > 9 ? 31 << 10 : (32 + ((this.#slow >> 10) & 31)) << whole;
    return (threshold + (threshold >> 1)) >> 1;
  }

  /** FUNCTW, FILTD, LIMB, FILTE. */
  #adaptScale(magnitude: number, y: number): void {
    const weight = this.#quantizer.weight[magnitude] as number;
    this.#fast = clamp(y + ((weight * 32 - y) >> 5), 544, 5120);
    this.#slow += this.#fast + (-this.#slow >> 6);
  }

  /** FUNCTF, FILTA, FILTB, SUBTC, FILTC, TRIGA; after the predictor, whose new coefficients detect a tone. */
  #adaptSpeed(magnitude: number, y: number, transition: boolean): void {
    const f = this.#quantizer.speed[magnitude] as number;
    this.#shortTerm += (f * 512 - this.#shortTerm) >> 5;
    this.#longTerm += (f * 2048 - this.#longTerm) >> 7;
    const varies = Math.abs(this.#shortTerm * 4 - this.#longTerm) >= this.#longTerm >> 3;
    const target = y < 1536 || varies || this.#tone ? 512 : 0;
    this.#speed = transition ? 256 : this.#speed + ((target - this.#speed) >> 4);
    if (transition) this.#tone = false;
  }

  /** ADDC, UPA2, LIMC, UPA1, LIMD, UPB, TONE, TRIGB. */
  #adaptPredictor(negative: boolean, dqMagnitude: number, partial: number, transition: boolean): void {
    const pk0 = partial < 0;
    const differs1 = pk0 !== this.#pk1;
    const differs2 = pk0 !== this.#pk2;
    this.#pk2 = this.#pk1;
    this.#pk1 = pk0;
    const towards = 4 * clamp(this.#a1, -8191, 8191);
    const step2 = partial === 0 ? 0 : ((differs2 ? -16_384 : 16_384) + (differs1 ? towards : -towards)) >> 7;
    const step1 = partial === 0 ? 0 : differs1 ? -192 : 192;
    const a2 = clamp(this.#a2 + step2 - (this.#a2 >> 7), -12_288, 12_288);
    const limit = 15_360 - a2;
    this.#a1 = clamp(this.#a1 + step1 - (this.#a1 >> 8), -limit, limit);
    this.#a2 = a2;
    for (let i = 0; i < 6; i++) {
      const step = dqMagnitude === 0 ? 0 : negative === (this.#dq[i] as Float).negative ? 128 : -128;
      const b = this.#b[i] as number;
      this.#b[i] = b + step - (b >> this.#leak);
    }
    this.#tone = a2 < -11_776;
    if (!transition) return;
    this.#a1 = 0;
    this.#a2 = 0;
    this.#b.fill(0);
  }

  /** Moves the oldest difference to the front, to be overwritten. */
  #rotate(): Float {
    const oldest = this.#dq.pop() as Float;
    this.#dq.unshift(oldest);
    return oldest;
  }
}

/** FLOATA, FLOATB */
function toFloat(magnitude: number, negative: boolean, into: Float): void {
  into.negative = negative;
  into.exponent = 32 - Math.clz32(magnitude);
  into.mantissa = magnitude === 0 ? 32 : (magnitude << 6) >> into.exponent;
}

/** FMULT: multiplies a coefficient by a signal. */
function multiply(coefficient: number, { negative, exponent, mantissa }: Float): number {
  const magnitude = Math.abs(coefficient >> 2);
  const ownExponent = 32 - Math.clz32(magnitude);
  const ownMantissa = magnitude === 0 ? 32 : (magnitude << 6) >> ownExponent;
  const product = ((mantissa * ownMantissa + 48) >> 4) << 7;
  const shift = 26 - exponent - ownExponent;
  const value = shift >= 0 ? product >> shift : (product << -shift) & 0x7fff;
  return coefficient < 0 !== negative ? -value : value;
}

const clamp = (value: number, min: number, max: number): number => Math.max(min, Math.min(max, value));
