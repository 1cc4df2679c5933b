// Watches one camera's recording in every test that uses `record.ts`, and reports at its end violations of the invariants
// (invariants.ts), whatever the test is about.

import assert from 'node:assert/strict';
import type { Clock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { CameraArchiveStatus } from '../../recorder/contract/archive-status.ts';
import { CameraGaps } from '../../recorder/archive/gaps/camera-gaps.ts';
import type { Interval } from '../../base/interval.ts';
import type { SegmentObserver } from '../../recorder/archive/catalogue/observer.ts';
import type { ClosedSegment } from '../../recorder/archive/catalogue/segment.ts';
import type { SampleSink } from '../../recorder/contract/sink.ts';
import type { CameraStatus } from '../../recorder/contract/camera-status.ts';
import { closedFootage } from './closed-footage.ts';
import { ACCOUNT_TOLERANCE_MS, assertApart, assertFewShort, FUTURE_TOLERANCE_MS } from './invariants.ts';

/** A camera without a picture for this long is not being recorded, and must not be reported as such. */
const SILENT_MS = 15_000;
/** Time in the tests advances in steps. */
const STEP_MS = 1_000;

interface Look {
  readonly camera: CameraStatus;
  readonly archive: CameraArchiveStatus;
  readonly written: readonly Interval[];
}

export class Witness {
  readonly #clock: Clock;
  readonly #gaps: CameraGaps;
  readonly #startMs: number;
  readonly #hostOffsetMs: number;
  /** The machine's clock was set: some time occurs twice or not at all. */
  #clockSet = false;
  /** By how much a picture was dated after the moment it was passed on, at most. */
  #aheadMs = -Infinity;
  #pictures = 0;
  #pictureAtMs: number;
  #recordingSinceMs: number | undefined;
  /** The longest time without a picture during which the camera was reported as recording. */
  #pretendedMs = 0;
  /** The longest time without a picture and without a reason. */
  #unexplainedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#gaps = new CameraGaps({ clock, log: silentLog, journal: () => {} });
    this.#startMs = clock.wallMs();
    this.#hostOffsetMs = clock.wallMs() - clock.monotonicMs();
    this.#pictureAtMs = clock.monotonicMs();
    this.#gaps.want('recording', { cause: 'process-down', aliveMs: undefined });
  }

  /** Gets the samples besides the archive. */
  get sink(): SampleSink {
    const { sink } = this.#gaps;
    return {
      begin: (run) => sink.begin(run),
      change: (run) => sink.change(run),
      sample: (sample) => {
        this.#aheadMs = Math.max(this.#aheadMs, sample.wallMs - this.#clock.wallMs());
        sink.sample(sample);
      },
      end: (reason) => sink.end(reason),
    };
  }

  /** Is notified of closed segments. */
  get observer(): SegmentObserver {
    return {
      closed: ({ segment, endMs, meta }: ClosedSegment) =>
        this.#gaps.recorded(meta?.wallStartMs ?? segment.startMs, endMs),
      removed() {},
    };
  }

  /** Call a few times a second. */
  look({ camera, archive, written }: Look): void {
    const nowMs = this.#clock.monotonicMs();
    if (Math.abs(this.#clock.wallMs() - nowMs - this.#hostOffsetMs) > 1) this.#clockSet = true;
    this.#gaps.observe({ camera, archive, written });
    const pictures = camera.counters.leadFrames + archive.framesWritten;
    if (pictures !== this.#pictures) this.#pictureAtMs = nowMs;
    this.#pictures = pictures;
    if (camera.state !== 'stopped' && !camera.reason && !camera.isQuiet) {
      this.#unexplainedMs = Math.max(this.#unexplainedMs, nowMs - this.#pictureAtMs);
    }
    if (camera.state !== 'recording') this.#recordingSinceMs = undefined;
    else if (!camera.isQuiet) {
      this.#recordingSinceMs ??= nowMs;
      this.#pretendedMs = Math.max(this.#pretendedMs, nowMs - Math.max(this.#pictureAtMs, this.#recordingSinceMs));
    }
  }

  /** Call when the recording has ended: fails if an invariant was violated. */
  async judge(files: readonly string[]): Promise<void> {
    assert.ok(
      this.#pretendedMs <= SILENT_MS + STEP_MS,
      `the camera was said to be recorded ${(this.#pretendedMs / 1000).toFixed(1)} s after its last picture`,
    );
    assert.ok(
      this.#unexplainedMs <= SILENT_MS + STEP_MS,
      `no reason was given ${(this.#unexplainedMs / 1000).toFixed(1)} s after the last picture`,
    );
    if (this.#clockSet) return;
    assert.ok(
      this.#aheadMs <= FUTURE_TOLERANCE_MS,
      `a picture was dated ${(this.#aheadMs / 1000).toFixed(3)} s behind its arrival`,
    );
    const footage = await closedFootage(files);
    assertApart(footage);
    assertFewShort(footage);
    const nowMs = this.#clock.wallMs();
    const report = this.#gaps.report(this.#startMs, nowMs);
    const told = JSON.stringify({ gaps: report.gaps, footage });
    assert.deepEqual(
      report.gaps.filter(({ cause }) => cause === 'unknown'),
      [],
      `every gap has a cause. ${told}`,
    );
    // Pictures from before recording was requested do not count.
    const recordedMs = footage.reduce((sum, { fromMs, toMs }) => {
      return sum + Math.max(0, Math.min(toMs, report.knownUntilMs) - Math.max(fromMs, this.#startMs));
    }, 0);
    assert.ok(
      Math.abs(recordedMs - report.recordedMs) <= ACCOUNT_TOLERANCE_MS,
      `${recordedMs.toFixed(0)} ms are in files, the ledger tells of ${report.recordedMs.toFixed(0)}. ${told}`,
    );
  }
}
