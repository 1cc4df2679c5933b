// What an engine needs from the program around it.

import type { Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import type { SegmentObserver } from '../archive/catalogue/observer.ts';
import type { CameraList } from '../config/camera-list.ts';
import type { FrontOfEngine } from '../contract/news.ts';
import type { ArchiveOwner } from './owner.ts';

/** The cameras of the database, and its list of segments. */
interface Rows extends SegmentObserver {
  readonly cameras: CameraList;
  setCameraEnabled(cameraId: string, enabled: boolean): Promise<boolean>;
}

export interface EngineDeps {
  readonly owner: ArchiveOwner;
  /** Metrics of the whole recorder. */
  readonly registry: Registry;
  readonly memory: MemoryBudget;
  readonly front: FrontOfEngine;
  readonly rows: Rows | undefined;
  /** What copies files elsewhere. */
  readonly copies?: SegmentObserver | undefined;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}
