// What the side that records tells the side in front of it as it happens: plain values, each told once and in order.

import type { CameraStatus } from './camera-status.ts';
import type { ClusterSessions } from './cluster-sessions.ts';
import type { Filled } from './gap-fill.ts';
import type { Gap } from './gap-report.ts';
import type { LiveNews } from './live-feed.ts';
import type { Occurrence } from './occurrence.ts';

export type OpenGap = Pick<Gap, 'fromMs' | 'cause'>;

/** Times are milliseconds since 1970. */
type News = { readonly cameraId: string } &
  /** Its state, or the code of the reason for it, has changed; the first time, `previous` is null. */
  (
    | ({ readonly kind: 'state'; readonly previous: CameraStatus['state'] | null } & Pick<
        CameraStatus,
        'state' | 'reason'
      >)
    /** No video is being written since `sinceMs`. */
    | { readonly kind: 'silent'; readonly sinceMs: number; readonly cause: string }
    | { readonly kind: 'heard'; readonly sinceMs: number; readonly untilMs: number }
    | { readonly kind: 'gap-opened'; readonly gap: OpenGap }
    | { readonly kind: 'gap-closed'; readonly gap: Pick<Gap, 'fromMs' | 'toMs' | 'cause'> }
    /** A part of a gap that was told before has footage from the memory of the camera. */
    | { readonly kind: 'gap-filled'; readonly part: Filled }
    /** Its node was lost, or another node has had it since then; undefined: since the last sign of life before this process. */
    | { readonly kind: 'lost'; readonly sinceMs: number | undefined }
    /** The cluster makes this node record it, or stop to. */
    | { readonly kind: 'taken' | 'given-up' }
    /** It is configured no more, on this node or in the cluster. */
    | { readonly kind: 'removed' }
  );

/** Neither throws nor takes time. */
export type TellNews = (news: News) => void;

/** What the front gives to the side that records. */
export interface FrontOfEngine {
  readonly tell: TellNews;
  /** Called with the first ones, and when a key has come, gone or changed, or sessions were ended. */
  readonly sessionsAre: (sessions: ClusterSessions) => void;
  /** A live stream that was asked for under this number. */
  readonly live: (watch: number, news: LiveNews) => void;
  /** Keeps what a camera told of events. Never rejects. */
  readonly keep: (cameraId: string, occurrences: readonly Occurrence[]) => Promise<void>;
  /** Gaps that an earlier process has told as opened, but not as closed. */
  readonly openGaps: ReadonlyMap<string, OpenGap>;
}
