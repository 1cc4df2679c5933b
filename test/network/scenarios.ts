// What the links between cameras and the recorder do, and what must be said of it afterwards.

import type { GapCause } from '../../recorder/contract/gap-cause.ts';

/** What a link does (links.py). */
export interface Impairment {
  readonly loss?: number;
  readonly jitterMs?: number;
  readonly kbit?: number;
  readonly down?: boolean;
}

export interface Scenario {
  readonly name: string;
  /** Until `LASTING_S` when there is no `forS`. */
  readonly does: Impairment;
  readonly forS?: number;
  /** Only in the long run. */
  readonly long?: boolean;
  /** By transport: which causes gaps may have. */
  readonly causes: Readonly<Record<Transport, readonly GapCause[]>>;
  /** Every picture that was sent is recorded over TCP. */
  readonly wholeOverTcp: boolean;
}

export type Transport = 'tcp' | 'udp';
export const TRANSPORTS: readonly Transport[] = ['tcp', 'udp'];

const NONE = { tcp: [], udp: [] } as const;
/** A picture of the camera takes several packets: half of them are lost at 10 %. */
const LOSSY = { tcp: [], udp: ['packets-lost'] } as const;

export const SCENARIOS: readonly Scenario[] = [
  { name: 'clean', does: {}, causes: NONE, wholeOverTcp: true },
  { name: 'loss 1 %', does: { loss: 0.01 }, causes: LOSSY, wholeOverTcp: true, long: true },
  { name: 'loss 5 %', does: { loss: 0.05 }, causes: LOSSY, wholeOverTcp: true },
  { name: 'loss 10 %', does: { loss: 0.1 }, causes: LOSSY, wholeOverTcp: true, long: true },
  { name: 'jitter 80 ms', does: { jitterMs: 80 }, causes: LOSSY, wholeOverTcp: true },
  {
    name: 'jitter 300 ms',
    does: { jitterMs: 300 },
    // TCP takes packets that overtake each other so much for lost ones, and gets through less than the camera makes.
    forS: 25,
    causes: { tcp: [], udp: ['packets-lost'] },
    wholeOverTcp: true,
  },
  {
    name: 'narrow for 15 s',
    does: { kbit: 450 },
    forS: 15,
    causes: { tcp: [], udp: ['packets-lost'] },
    wholeOverTcp: true,
  },
  {
    name: 'cut for 3 s',
    does: { down: true },
    forS: 3,
    causes: { tcp: [], udp: ['packets-lost'] },
    wholeOverTcp: true,
  },
  {
    name: 'cut for 8 s',
    does: { down: true },
    forS: 8,
    causes: { tcp: ['stream-silent', 'connection-lost', 'camera-unreachable'], udp: ['packets-lost', 'stream-silent'] },
    // TCP tries again after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s: the recorder may have given up by then.
    wholeOverTcp: false,
  },
];
