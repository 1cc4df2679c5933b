// The archive of this node as copies see it.

import type { CameraDay } from '../archive/catalogue/camera-day.ts';
import type { OpenFile } from '../archive/disk/file-system.ts';
import type { SegmentName } from '../archive/disk/names.ts';
import type { AccountReader, OwnAccount } from './account.ts';

/** What the archive of this node has to do with copying. */
export interface CopiedArchive {
  /** Names the archive; undefined while that is not known. */
  owner(): string | undefined;
  /** By camera and day, oldest day first. */
  days(): Iterable<Pick<CameraDay, 'cameraId' | 'startMs' | 'segments' | 'sizeOf'>>;
  openPaths(): ReadonlySet<string>;
  /** Whether footage waits for the disk. */
  isBehind(): boolean;
  /** How long footage of a camera may be kept anywhere; undefined: as long as there is space. */
  wantedMs(cameraId: string): number | undefined;
  /** Stores a file that this node lost, of what `write` writes; false if there is no space. */
  receive(segment: SegmentName, sizeBytes: number, write: (file: OpenFile) => Promise<void>): Promise<boolean>;
  /** Whether a part of the interval is protected, or that is not known. */
  isProtected(cameraId: string, fromMs: number, toMs: number): boolean;
  readonly account: OwnAccount & AccountReader;
}
