// What playback needs from the rest of the recorder.

import type { Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { MemoryAccount } from '../../base/memory-budget.ts';
import type { Visits } from '../audit/visits.ts';
import type { Authenticator } from '../http/auth.ts';
import type { CertificatePair } from '../http/certificate.ts';
import type { Origins } from '../http/cors.ts';
import type { Collector } from '../footage/collect.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import type { RelayMetrics } from '../relay/metrics.ts';
import type { KeepAwake } from '../footage/archive-file.ts';

/** Another node that may hold footage of a camera. */
export interface RecordingHolder {
  readonly nodeId: string;
  readonly playbackUrl: string | undefined;
  /** Milliseconds since 1970, coarse. */
  readonly oldestMs: number | undefined;
  readonly newestMs: number | undefined;
}

/** The other nodes of the cluster. Each keeps the footage that it recorded. */
export interface PlaybackCluster {
  readonly nodeId: string;
  /** To be awaited before `holdersOf`. Takes a second at most. Never rejects. */
  lookAtNodes(): Promise<void>;
  holdersOf(cameraId: string): readonly RecordingHolder[];
  origins(): Origins;
  /** The base URLs of the listeners of all nodes. */
  places(): readonly { readonly nodeId: string; readonly url: string }[];
}

export interface PlaybackDeps {
  readonly version: string;
  readonly auth: Authenticator;
  readonly tls?: CertificatePair;
  /** Origins whose pages may play, besides those of the same host. */
  readonly origins?: Origins;
  readonly trustedProxies?: readonly string[];
  readonly footage: Collector;
  /** For chunks that were read and are not sent yet. */
  readonly memory?: MemoryAccount;
  /** Without it, the node belongs to no cluster. */
  readonly cluster?: PlaybackCluster | undefined;
  /** Sends requests to the other nodes of the cluster. */
  readonly peers?: PeerSender | undefined;
  readonly relayMetrics?: RelayMetrics | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry?: Registry;
  readonly keepAwake?: KeepAwake;
  /** Records in the audit what is played and downloaded; without it, nothing is recorded. */
  readonly visits?: Visits | undefined;
}
