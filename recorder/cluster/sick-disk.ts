// Decides whether the disk of a node fails, from probes that write a file of their own. The node reports it to the cluster, which
// moves its cameras to other nodes. After that only probes show that the problem is over.

import type { Clock } from '../../base/clock.ts';
import type { DiskFault, DiskFaultCode } from '../archive/disk/faults.ts';

/** Faults of a disk that keep every camera of a node from being recorded. A full disk is judged by its free space (`full-disk.ts`). */
const SICK: ReadonlySet<string> = new Set<DiskFaultCode>([
  'disk-read-only',
  'disk-error',
  'disk-missing',
  'disk-denied',
  'disk-slow',
]);
/** How often a disk is probed that may be sick. */
const PROBE_MS = 1_000;
/** And while some camera is silent, which mostly is a fault of that camera. */
const SELDOM_PROBE_MS = 10_000;
/** A probe that takes longer has failed: the disk hangs. A busy disk needs seconds, and recordings wait in memory for much longer. */
const PROBE_LIMIT_MS = 15_000;
const HANGS: DiskFault = { code: 'disk-slow', message: `the disk has not answered for ${PROBE_LIMIT_MS / 1000} s` };
/** Probes have failed for this long: a disk that fails once is not left. */
const SICK_AFTER_MS = 5_000;
/** Probes have succeeded for this long: a disk that fails now and then does not get its cameras back each time. */
const WELL_AFTER_MS = 60_000;

export class SickDisk {
  #fault: DiskFault | undefined;
  #failedSinceMs: number | undefined;
  #goodSinceMs: number | undefined;
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  #probing: Promise<void> | undefined;
  #probedMs = -Infinity;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  get fault(): DiskFault | undefined {
    return this.#fault;
  }

  /** To be called often. Nothing waits for a probe, which resolves to what it found: on a disk that hangs it does not end. */
  look(doubt: 'sick' | 'silent' | undefined, probe: () => Promise<DiskFault | undefined>): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#probing) {
      if (nowMs - this.#probedMs >= PROBE_LIMIT_MS) this.#see(HANGS, nowMs);
      return;
    }
    const isSickMaybe = doubt === 'sick' || this.#isInDoubt;
    if (!isSickMaybe && doubt === undefined) return;
    if (nowMs - this.#probedMs < (isSickMaybe ? PROBE_MS : SELDOM_PROBE_MS)) return;
    this.#probedMs = nowMs;
    this.#probing = probe().then((found) => {
      this.#see(found, this.#clock.monotonicMs());
      this.#probing = undefined;
    });
  }

  /** The next probe may change the judgement, whatever cameras say. */
  get #isInDoubt(): boolean {
    return this.#fault !== undefined || this.#failedSinceMs !== undefined;
  }

  /** What a probe found; undefined: it could write. */
  #see(found: DiskFault | undefined, nowMs: number): void {
    if (isSick(found)) {
      this.#goodSinceMs = undefined;
      this.#failedSinceMs ??= nowMs;
      if (nowMs - this.#failedSinceMs >= SICK_AFTER_MS) this.#fault = found;
      return;
    }
    this.#failedSinceMs = undefined;
    this.#goodSinceMs ??= nowMs;
    if (nowMs - this.#goodSinceMs >= WELL_AFTER_MS) this.#fault = undefined;
  }
}

/** Whether a fault may be that of the whole disk. A probe tells. */
export const isSick = <T extends { readonly code: string }>(fault: T | undefined): fault is T =>
  fault !== undefined && SICK.has(fault.code);
