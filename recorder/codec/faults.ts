// Names, describes and counts the faults in a camera's packets.

/** Each fault by its code, and its description for a person, as part of a sentence. */
export const FAULTS = {
  'access-unit-too-large': 'a picture larger than the recorder accepts',
  'adts-inside': 'AAC with ADTS headers, which RTP does not use',
  'aggregate-cut': 'a packet with several NAL units that ends inside one',
  'au-headers-cut': 'AAC whose AU headers are cut off',
  'audio-too-short': 'sound too short for a frame',
  'before-parameters': 'no parameter sets',
  'decoding-order-changed': 'NAL units out of decoding order',
  'don-missing': 'a packet without its decoding order number',
  'element-cut': 'an OBU element that is longer than its packet',
  'element-too-large': 'a LATM element larger than the recorder accepts',
  'ended-inside': 'a frame that was incomplete when the stream ended',
  'extension-too-large': 'a JPEG header extension larger than the recorder accepts',
  'first-slice-missing': 'a picture without its first slice',
  'fragment-end-bit-missing': 'a last fragment without its end bit',
  'fragment-missing': 'a frame with a missing fragment although no packet was lost',
  'fragment-too-long': 'fragments longer than their frame',
  'fragment-without-end': 'fragments without the last one',
  'fragment-without-start': 'fragments without the first one',
  'frame-cut': 'a frame of sound that is longer than its packet',
  'frame-header-invalid': 'a frame of sound without a valid header',
  'frame-header-missing': 'AV1 tiles without a frame header',
  'frame-too-large': 'a frame of sound larger than the recorder accepts',
  interleaved: 'AAC frames out of order',
  'interleaved-packet': 'packets of the interleaved mode of H.264',
  'layer-ignored': 'NAL units of another layer of H.265',
  'layer-unsupported': 'MPEG audio of an unsupported layer',
  'lost-inside': 'a frame of which a packet was lost',
  'marker-missing': 'a frame of sound whose last packet has no marker',
  'mux-config-invalid': 'an unusable StreamMuxConfig of LATM',
  'nal-unknown': 'NAL units of an undefined type',
  'nal-without-content': 'NAL units that consist of a header only',
  'obu-cut': 'an OBU that is longer than its packet',
  'obu-invalid': 'an OBU without a valid header',
  'obu-unknown': 'OBUs of an undefined type',
  'offset-wrong': 'a JPEG fragment with a wrong offset although no packet was lost',
  'opus-packet-invalid': 'a packet that is not Opus',
  'paci-ignored': 'PACI packets of H.265, which are not supported',
  'packet-cut': 'a packet that ends inside its header',
  'parameter-set-invalid': 'unreadable parameter sets',
  'picture-twice': 'a picture that was sent twice',
  'picture-too-large': 'a JPEG picture larger than the recorder accepts',
  'prefix-too-large': 'too many parameter sets and SEI without a picture',
  'quantization-invalid': 'unreadable JPEG quantization tables',
  'quantization-missing': 'JPEG pictures without quantization tables',
  'sequence-header-invalid': 'an unreadable sequence header of AV1',
  'size-unknown': 'JPEG pictures without a size',
  'slice-behind-marker': 'slices after the marker of their picture',
  'slice-header-invalid': 'unreadable slice headers',
  'sprop-invalid': 'unreadable parameter sets in the SDP',
  'start-code-inside': 'start codes inside NAL units, as in a byte stream',
  'temporal-unit-too-large': 'an AV1 picture larger than the recorder accepts',
  'type-unknown': 'JPEG of a type that RFC 2435 does not define',
} as const;

export type Fault = keyof typeof FAULTS;

export interface FaultCounts {
  readonly counts: Map<Fault, number>;
  total: number;
  last: Fault | undefined;
}

export const noFaults = (): FaultCounts => ({ counts: new Map(), total: 0, last: undefined });

export function countFault(faults: FaultCounts, fault: Fault): void {
  faults.total++;
  faults.last = fault;
  faults.counts.set(fault, (faults.counts.get(fault) ?? 0) + 1);
}
