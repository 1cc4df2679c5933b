// Decodes G.722 at 64 kbit/s to 16 kHz samples (ITU-T G.722, mode 1; in RTP: RFC 3551 §4.5.2).
//
// Two sub-bands of 8 kHz, each ADPCM: six bits of an octet are the difference of the lower band, two that of the higher band.
// Names in capitals are those of the Recommendation: blocks of clauses 5 and 6, values of its tables.

import type { SampleDecoder } from './pcm.ts';

export const G722_SAMPLE_RATE = 16_000;
/** RFC 3551 §4.5.2: the RTP clock rate is 8000 because of an old mistake. */
export const G722_CLOCK_RATE = 8000;

const GREAT_DIFFERENCES = [
  24_808, 21_904, 19_008, 16_704, 14_984, 13_512, 12_280, 11_192, 10_232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
  4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728,
];
/** Inverse quantizers: differences in units of the scale factor, by code. Lower band with six bits (for the output) … */
const QQ6 = Int16Array.from([
  ...Array<number>(4).fill(-136),
  ...GREAT_DIFFERENCES.map((difference) => -difference),
  ...GREAT_DIFFERENCES,
  432,
  136,
  -432,
  -136,
]);
/** … with four (for the adaptation) … */
const QQ4 = Int16Array.from([
  0, -20_456, -12_896, -8968, -6288, -4240, -2584, -1200, 20_456, 12_896, 8968, 6288, 4240, 2584, 1200, 0,
]);
/** … and higher band. */
const QQ2 = Int16Array.of(-7408, -1616, 7408, 1616);
/** What each code adds to the logarithm of the scale factor. */
const WL = Int16Array.from([-60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60]);
const WH = Int16Array.of(798, -214, 798, -214);
/** Logarithm to scale factor: about 2048 * 2^(i/32). */
const ILB = Int16Array.from([
  2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025,
  3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
]);
/** The quadrature mirror filter: every second of its 24 coefficients; the others are the same in reverse order. */
const QMF = Int16Array.of(3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11);
const QMF_DELAY = 24;

export class G722Decoder implements SampleDecoder {
  readonly octets = 1;
  readonly samples = 2;
  readonly #low = new SubBand(32, 18_432, 8);
  readonly #high = new SubBand(8, 22_528, 10);
  /** Sums and differences of the bands, alternating; newest last. */
  readonly #delay = new Int16Array(QMF_DELAY);

  decode(bytes: Buffer, at: number, into: readonly Int16Array[], index: number): void {
    const octet = bytes[at] as number;
    const code = octet & 0x3f;
    const low = this.#low.next(QQ6[code] as number, QQ4[code >> 2] as number, WL[code >> 2] as number);
    const high = this.#high.next(QQ2[octet >> 6] as number, QQ2[octet >> 6] as number, WH[octet >> 6] as number);
    const delay = this.#delay;
    delay.copyWithin(0, 2);
    delay[QMF_DELAY - 2] = low + high;
    delay[QMF_DELAY - 1] = low - high;
    let first = 0;
    let second = 0;
    for (let i = 0; i < QMF.length; i++) {
      first += (delay[2 * i + 1] as number) * (QMF[QMF.length - 1 - i] as number);
      second += (delay[2 * i] as number) * (QMF[i] as number);
    }
    const samples = into[0] as Int16Array;
    samples[index] = saturate(first >> 11);
    samples[index + 1] = saturate(second >> 11);
  }
}

/** One band: inverse quantizer, its scale factor, and a predictor with two poles and six zeros (BLOCK 4). */
class SubBand {
  readonly #maxLogScale: number;
  readonly #scaleShift: number;
  /** DET: the scale factor; NB: its logarithm. */
  #scale: number;
  #logScale = 0;
  /** S: the predicted signal; SZ: the share of the zeros. */
  #predicted = 0;
  #zeros = 0;
  /** The reconstructed (RLT) and partially reconstructed (PLT) signals of the two previous samples. */
  #r1 = 0;
  #p1 = 0;
  #p2 = 0;
  /** Coefficients of the poles (AL). */
  #a1 = 0;
  #a2 = 0;
  /** Coefficients of the zeros (BL), and the differences that they weight (DLT), newest first. */
  readonly #b = new Int16Array(6);
  readonly #deps = new Int16Array(6);

  constructor(scale: number, maxLogScale: number, scaleShift: number) {
    this.#scale = scale;
    this.#maxLogScale = maxLogScale;
    this.#scaleShift = scaleShift;
  }

  /** The next reconstructed sample, from the quantized difference for the output and the coarser one for the adaptation. */
  next(outputStep: number, adaptationStep: number, logStep: number): number {
    const output = clamp(this.#predicted + ((this.#scale * outputStep) >> 15), -16_384, 16_383);
    const difference = (this.#scale * adaptationStep) >> 15;
    this.#rescale(logStep);
    this.#predict(difference);
    return output;
  }

  /** LOGSCL and SCALEL. */
  #rescale(logStep: number): void {
    this.#logScale = clamp(((this.#logScale * 127) >> 7) + logStep, 0, this.#maxLogScale);
    const shift = this.#scaleShift - (this.#logScale >> 11);
    const mantissa = ILB[(this.#logScale >> 6) & 31] as number;
    this.#scale = (shift < 0 ? mantissa << -shift : mantissa >> shift) << 2;
  }

  #predict(difference: number): void {
    const reconstructed = saturate(this.#predicted + difference); // RECONS
    const partial = saturate(this.#zeros + difference); // PARREC
    this.#adaptPoles(partial);
    this.#adaptZeros(difference);
    // FILTEZ and FILTEP
    let zeros = 0;
    for (let i = 0; i < 6; i++) zeros += ((this.#b[i] as number) * saturate(2 * (this.#deps[i] as number))) >> 15;
    const older = this.#r1;
    this.#r1 = reconstructed;
    const poles = ((this.#a1 * saturate(2 * reconstructed)) >> 15) + ((this.#a2 * saturate(2 * older)) >> 15);
    this.#zeros = saturate(zeros);
    this.#predicted = saturate(saturate(poles) + this.#zeros);
    this.#p2 = this.#p1;
    this.#p1 = partial;
  }

  /** UPPOL2 and UPPOL1. */
  #adaptPoles(partial: number): void {
    const same1 = partial < 0 === this.#p1 < 0;
    const same2 = partial < 0 === this.#p2 < 0;
    const towards = saturate(4 * this.#a1);
    const step = Math.min(same1 ? -towards : towards, 32_767) >> 7;
    const a2 = clamp((same2 ? 128 : -128) + step + ((this.#a2 * 32_512) >> 15), -12_288, 12_288);
    const limit = saturate(15_360 - a2);
    this.#a1 = clamp(saturate((same1 ? 192 : -192) + ((this.#a1 * 32_640) >> 15)), -limit, limit);
    this.#a2 = a2;
  }

  /** UPZERO; then adds the new difference to the previous ones. */
  #adaptZeros(difference: number): void {
    const step = difference === 0 ? 0 : 128;
    for (let i = 0; i < 6; i++) {
      const same = difference < 0 === (this.#deps[i] as number) < 0;
      this.#b[i] = saturate((same ? step : -step) + (((this.#b[i] as number) * 32_640) >> 15));
    }
    this.#deps.copyWithin(1, 0, 5);
    this.#deps[0] = difference;
  }
}

const clamp = (value: number, min: number, max: number): number => Math.max(min, Math.min(max, value));
const saturate = (value: number): number => clamp(value, -32_768, 32_767);
