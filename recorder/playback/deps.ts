// What playback needs from the rest of the recorder.

import type { Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ListQuery, OpenEntry, SegmentListing } from '../archive/index.ts';
import type { Authenticator } from '../http/auth.ts';
import type { CertificatePair } from '../http/certificate.ts';
import type { Origins } from '../http/cors.ts';
import type { KeepAwake } from './archive-file.ts';

/** The archive on this node's disk. */
export interface PlaybackArchive {
  /** Throws ArchiveError when the archive cannot be read. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** The segments of a camera that are not closed yet. */
  openEntries(cameraId: string): readonly OpenEntry[];
  /** Keeps a segment from retention until the returned function is called. */
  holdForReading(path: string): () => void;
  /** The same for all that lies in [fromMs, toMs). */
  holdWindow(cameraId: string, fromMs: number, toMs: number): () => void;
}

export interface PlaybackDeps {
  readonly recordPath: string;
  readonly auth: Authenticator;
  readonly tls?: CertificatePair;
  /** Whose pages may play, beside those of the same host. */
  readonly origins?: Origins;
  readonly trustedProxies?: readonly string[];
  readonly archive: PlaybackArchive;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry?: Registry;
  readonly keepAwake?: KeepAwake;
}
