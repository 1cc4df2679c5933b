// What the API needs from the rest of the recorder, as small interfaces: `serving.ts` joins them.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Clock } from '../../base/clock.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';
import type { Reason, Warning } from '../../base/reason.ts';
import type { AuditSink } from '../audit/entry.ts';
import type { ChainEnd } from '../audit/files.ts';
import type { AuditPage, AuditQuery } from '../audit/read.ts';
import type { Visits } from '../audit/visits.ts';
import type { CopyPlaces } from '../contract/copy-places.ts';
import type { EventStreams } from '../events/event-stream.ts';
import type { Interval } from '../../base/interval.ts';
import type { Band, FoundChange, RegionQuery } from '../activity/region.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Happenings } from '../happenings/happenings.ts';
import type { EventJournal } from '../events/journal.ts';
import type { FootageTimes } from '../contract/footage-times.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';
import type { CameraEditor } from '../config/editor.ts';
import type { CertificatePair } from '../http/certificate.ts';
import type { Origins } from '../http/cors.ts';
import type { Objective } from '../objectives/objective.ts';
import type { RefusedCamera } from '../config/camera-list.ts';
import type { CameraDirectory } from '../model/camera-view.ts';
import type { EngineArchive, EngineErrands } from '../model/engine.ts';
import type { FootageOfNodes } from '../footage/accounts.ts';
import type { NamedJobs } from '../jobs/named-jobs.ts';
import type { ProtectedWindows } from '../contract/protection.ts';
import type { Authenticator } from '../http/auth.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import type { LocalMachine } from './machine.ts';
import type { ArchiveStill } from '../still/archive-stills.ts';
import type { StillImage } from '../snapshots/shared-images.ts';
import type { Examiner } from '../probe/report/examiner.ts';
import type { Issuers } from '../identity/issuers.ts';
import type { Asker, PeerSender } from '../peers/peer-requests.ts';
import type { Holder } from '../footage/holder.ts';
import type { RelayMetrics } from '../relay/metrics.ts';
import type { Admission } from '../certificates/admission.ts';
import type { Expulsion } from '../certificates/expulsion.ts';
import type { KeyRotation } from '../certificates/key-rotation.ts';
import type { ClusterObjects } from '../cluster/objects.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { PlaybackListener } from './playback-address.ts';

/** Segments of the archive: from its catalogue, or from the database. Empty for a camera that the node does not know. */
export type SegmentReader = Pick<EngineArchive, 'list'>;
export type GapReader = Pick<FootageOfNodes, 'ofThisNode' | 'report' | 'ofAllNodes'>;

/** What the key frames of cameras show. Both reject with the error of the system. */
interface ActivityReader {
  /** Oldest first; those of one kind that are less than `stepMs` apart are one. */
  bands(cameraId: string, interval: Interval, stepMs: number): Promise<readonly Band[]>;
  /** Newest first. */
  search(query: RegionQuery): Promise<readonly FoundChange[]>;
}

/** Windows of cameras that retention leaves alone. */
export interface ProtectionKeeper {
  readonly windows: ProtectedWindows;
  /** How long a window is protected by default, and at most at the request of an operator. */
  readonly keptMs: number;
}

export interface ArchiveReader extends Pick<EngineArchive, 'checkWritable' | 'disks'> {
  /** The segment that is being written; undefined when there is none, or `record.format` is mp4. */
  current(cameraId: string): Promise<Pick<OpenSegment, 'path' | 'startMs' | 'sizeBytes'> | undefined>;
  countSegments(cameraId: string, fromMs: number, toMs: number): number | Promise<number>;
}

/** Whether a camera is configured or has footage; `isOfAll`: on this or any other node of the cluster. */
export const isKnownCamera = async (
  { cameras, archive, cluster }: Pick<ApiDeps, 'cameras' | 'archive' | 'cluster'>,
  cameraId: string,
  isOfAll: boolean,
): Promise<boolean> =>
  cameras.get(cameraId) !== undefined ||
  (isOfAll && (cluster?.ownerOf(cameraId) !== undefined || (cluster?.holdersOf(cameraId) ?? []).length > 0)) ||
  (await archive.countSegments(cameraId, -Infinity, Infinity)) > 0;

/** Jobs. Methods that need Redis reject with `JobsUnavailable` when it cannot be reached. */
export type JobKeeper = Pick<NamedJobs, keyof NamedJobs>;

/** Still images of cameras. All reject with `StillError`. */
export interface StillSource {
  /** An image that the camera made. */
  snapshot(cameraId: string): Promise<StillImage>;
  /** The newest key frame, scaled down; `isFresh`: as it was at most a second ago. */
  thumbnail(cameraId: string, isFresh: boolean): Promise<StillImage>;
  /** The key frame of a moment, in whole milliseconds since 1970, from a file of this node. Rejects with ApiError, too. */
  archived(cameraId: string, atMs: number, maxWidth: number, by: Asker | undefined): Promise<ArchiveStill>;
}

/** What readiness depends on, apart from the recordings directory. */
export interface ReadinessChecks {
  storage(): Promise<{ configured: boolean; reachable: boolean }>;
  /**
   * `unreachableMs`: time since the last accepted renewal; Infinity when none was accepted since the start. `isMemberDown`: this server
   * should have a member of etcd, which does not answer.
   */
  clusterStore(): { configured: false } | { configured: true; unreachableMs: number; isMemberDown?: boolean };
  license(): Promise<{ valid: boolean; reason?: Reason }>;
}

/** A node without database, cluster and licence. */
export const standaloneChecks: ReadinessChecks = {
  storage: () => Promise.resolve({ configured: false, reachable: false }),
  clusterStore: () => ({ configured: false }),
  license: () => Promise.resolve({ valid: true }),
};

export interface Audit {
  readonly sink: AuditSink;
  readonly visits: Visits;
  readonly reader: {
    /** Rejects with the error of the system when the files cannot be read. */
    read(query: AuditQuery): Promise<AuditPage>;
    readonly end: ChainEnd;
  };
}

/** The events of the node, and the clients that follow them. */
export interface EventSource {
  readonly journal: EventJournal;
  readonly streams: EventStreams;
}

export interface ClusterStore {
  readonly objects: Pick<ClusterObjects, 'list' | 'get' | 'apply' | 'patch' | 'delete'>;
  readonly admission: Pick<Admission, 'invite'>;
  readonly rotation: Pick<KeyRotation, 'rotate'>;
  readonly expulsion: Pick<Expulsion, 'begin' | 'state'>;
}

/** Routes of the API. Those of something that the node does not have add nothing. */
export type ApiRoutes = FastifyPluginAsyncZod<{ readonly deps: ApiDeps }>;

export interface ApiDeps {
  readonly nodeName: string;
  /** The site's name and time zone, which the page shows. */
  readonly site: { readonly name: string; readonly timeZone: string | undefined };
  /** Follows the configuration. */
  readonly objectives: () => readonly Objective[];
  /** Where others reach this node, as `host:port` or a URL; empty when it is not configured. */
  readonly address: string;
  readonly version: string;
  readonly recordPath: string;
  readonly auth: Authenticator;
  /** Where people sign in. */
  readonly issuers: Pick<Issuers, 'list' | 'find'>;
  readonly tls?: CertificatePair;
  /** Origins whose pages may use the API and watch live streams. */
  readonly origins: Origins;
  readonly trustedProxies: readonly string[];
  readonly cameras: CameraDirectory;
  /** Cameras in the database whose rows cannot be used. */
  readonly refusedCameras?: () => readonly RefusedCamera[];
  readonly archive: ArchiveReader;
  readonly segments: SegmentReader;
  readonly gaps: GapReader;
  readonly times: FootageTimes;
  readonly keeping?: EngineArchive['keeping'];
  /** Without it, footage cannot be protected. */
  readonly protections?: ProtectionKeeper | undefined;
  /** Without it, the node belongs to no cluster. */
  readonly cluster?: ClusterAccess;
  /** Set in a cluster of servers without Kubernetes: its objects, and its join tokens. */
  readonly store?: ClusterStore;
  /** Sends requests to the other nodes of the cluster. */
  readonly peers?: PeerSender | undefined;
  /** Without it, there are no copies in object storage. */
  readonly copies?: (CopyPlaces & { readonly holders: readonly Holder[] }) | undefined;
  readonly relayMetrics?: RelayMetrics | undefined;
  readonly jobs: JobKeeper;
  readonly ptz: Pick<EngineErrands, 'move' | 'presets'>;
  readonly cameraSwitch: CameraSwitch;
  /** Ends the rests of the logins that a camera refused; returns how many there were. */
  readonly tryLogins: (cameraId: string) => Promise<number>;
  /** Without it, cameras are configured in files alone. */
  readonly cameraEditor?: CameraEditor;
  readonly stills: StillSource;
  readonly discoverer: Pick<EngineErrands, 'search' | 'known' | 'stillOfNew'>;
  readonly doctor: Examiner;
  readonly logLevels: LevelSwitch;
  readonly audit: Audit;
  readonly events: EventSource;
  readonly happenings: Pick<Happenings, 'add' | 'find'>;
  readonly activity: ActivityReader;
  readonly alarms: Pick<Alarms, 'list' | 'notes' | 'acknowledge' | 'write'>;
  /** Sends a mail; resolves to why it was not sent, or to undefined. */
  readonly testMail: () => Promise<string | undefined>;
  /** Shown by `/api/health/ready`. */
  readonly warnings: () => readonly Warning[];
  readonly checks: ReadinessChecks;
  readonly playback: PlaybackListener;
  readonly machine: Pick<LocalMachine, 'cpuPercent' | 'memory' | 'disk'>;
  /** Called when a request arrives; the function that it returns is called when the answer is complete. See `ReadPacer`. */
  readonly keepAwake: () => () => void;
  readonly clock: Clock;
  readonly log: Log;
}
