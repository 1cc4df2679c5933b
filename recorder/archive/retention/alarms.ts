// Warnings for the administrator: a disk full of footage that may not be removed, protected footage that is larger than
// its limit, files that cannot be removed. Each change is logged once; API and metrics read the current state.

import type { Clock } from '../../../base/clock.ts';
import type { Log } from '../../../base/log.ts';
import type { KnownLimits } from './known-limits.ts';
import { isOverQuota } from './plan.ts';
import type { ProtectedUsage } from './protected-usage.ts';
import type { Protections } from './protections.ts';
import type { Remover } from './remover.ts';

export interface RetentionWarning {
  readonly code:
    'disk-exhausted' | 'room-not-made' | 'protected-over-quota' | 'protections-unreadable' | 'segment-not-removable';
  readonly message: string;
  /** Undefined for a warning about the node. */
  readonly cameraId: string | undefined;
}

/** The `maxSize` that protected footage exceeds: of the node or of a camera. */
interface OverQuota {
  readonly scope: 'node' | 'camera';
  /** Empty for the node. */
  readonly cameraId: string;
}

interface AlarmsDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: KnownLimits;
  readonly protections: Protections;
  readonly protectedUsage: ProtectedUsage;
  readonly remover: Remover;
}

/** When no write has found the disk full for so long, it has space again: each camera tries at least every 30 s. */
const EXHAUSTED_MS = 60_000;
const NOT_MADE =
  'removing footage frees no space on the disk, so it has stopped for now: snapshots, a quota or another program may use the space';

export class Alarms {
  readonly #deps: AlarmsDeps;
  #exhaustedUntilMs = -Infinity;
  #futileUntilMs = -Infinity;
  #toldExhausted = false;
  #toldFutile = false;
  #toldOverQuota = false;

  constructor(deps: AlarmsDeps) {
    this.#deps = deps;
  }

  /** The disk is full, and nothing was left to remove. */
  exhausted(): void {
    this.#exhaustedUntilMs = this.#deps.clock.monotonicMs() + EXHAUSTED_MS;
    this.tell();
  }

  /** Removing footage made no space. */
  futile(): void {
    this.#futileUntilMs = this.#deps.clock.monotonicMs() + EXHAUSTED_MS;
    this.tell();
  }

  /** New footage may be lost. */
  get isExhausted(): boolean {
    return this.#deps.clock.monotonicMs() < this.#exhaustedUntilMs || this.#isFutile;
  }

  get #isFutile(): boolean {
    return this.#deps.clock.monotonicMs() < this.#futileUntilMs;
  }

  /** All limits that protected footage alone exceeds. */
  overQuota(): OverQuota[] {
    const { limits, protections, protectedUsage } = this.#deps;
    const over: OverQuota[] = [];
    if (isOverQuota(protectedUsage.bytes, limits.node)) over.push({ scope: 'node', cameraId: '' });
    for (const cameraId of protections.cameras()) {
      const own = limits.of(cameraId);
      if (own && isOverQuota(protectedUsage.bytesOf(cameraId), own)) over.push({ scope: 'camera', cameraId });
    }
    return over;
  }

  /** Writes what has changed to the log. */
  tell(): void {
    const { log } = this.#deps;
    const futile = this.#isFutile;
    if (futile && !this.#toldFutile) log.error({}, NOT_MADE);
    this.#toldFutile = futile;
    const exhausted = this.isExhausted && !futile;
    if (exhausted && !this.#toldExhausted) log.error({}, 'the disk is full and no footage is left to remove');
    if (!exhausted && this.#toldExhausted) log.info({}, 'the disk has space for footage again');
    this.#toldExhausted = exhausted;
    const over = this.overQuota();
    const isOver = over.length > 0;
    if (isOver && !this.#toldOverQuota) log.warn({ over }, 'protected footage alone is larger than maxSize');
    if (!isOver && this.#toldOverQuota) log.info({}, 'protected footage is within maxSize again');
    this.#toldOverQuota = isOver;
  }

  warnings(): RetentionWarning[] {
    const { protections, remover } = this.#deps;
    const warnings: RetentionWarning[] = [];
    const warn = (code: RetentionWarning['code'], message: string, cameraId?: string): void => {
      warnings.push({ code, message, cameraId });
    };
    if (this.#isFutile) warn('room-not-made', NOT_MADE);
    else if (this.isExhausted)
      warn('disk-exhausted', 'the disk is full and no footage is left to remove: new footage is lost');
    if (!protections.readable) {
      warn(
        'protections-unreadable',
        'the list of protected footage cannot be read: footage is removed only when the disk is full',
      );
    }
    if (remover.stuck !== undefined) {
      warn('segment-not-removable', `${remover.stuck} cannot be removed, and perhaps others; the log says why`);
    }
    for (const { scope, cameraId } of this.overQuota()) {
      if (scope === 'node')
        warn('protected-over-quota', 'protected footage alone is larger than the maxSize of the node');
      else warn('protected-over-quota', `protected footage alone is larger than the camera's maxSize`, cameraId);
    }
    return warnings;
  }
}
