// What the API needs from the rest of the recorder, as small interfaces: `serving.ts` joins them.

import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Clock } from '../../base/clock.ts';
import type { Job, JobOutcome, JobRequest } from '../jobs/job.ts';
import type { SignedManifest } from '../jobs/manifest.ts';
import type { NodeKey } from '../jobs/node-key.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';
import type { Reason, Warning } from '../../base/reason.ts';
import type { AuditSink } from '../audit/entry.ts';
import type { ChainEnd } from '../audit/files.ts';
import type { AuditPage, AuditQuery } from '../audit/read.ts';
import type { Visits } from '../audit/visits.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import type { ProtectedWindows } from '../contract/protection.ts';
import type { EventStreams } from '../events/event-stream.ts';
import type { Interval } from '../../base/interval.ts';
import type { Band, FoundChange, RegionQuery } from '../activity/region.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Happenings } from '../happenings/happenings.ts';
import type { EventJournal } from '../events/journal.ts';
import type { FootageTimes } from '../contract/footage-times.ts';
import type { ClusterAccount, NodeReport, ReportWithElsewhere } from '../footage/accounts.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';
import type { CameraEditor } from '../config/editor.ts';
import type { Authenticator } from '../http/auth.ts';
import type { CertificatePair } from '../http/certificate.ts';
import type { Origins } from '../http/cors.ts';
import type { Objective } from '../objectives/objective.ts';
import type { RefusedCamera } from '../config/camera-list.ts';
import type { CameraDirectory } from '../model/camera-view.ts';
import type { EngineErrands } from '../model/engine.ts';
import type { ArchiveStill } from '../still/archive-stills.ts';
import type { StillImage } from '../snapshots/shared-images.ts';
import type { Examiner } from '../probe/report/examiner.ts';
import type { Discovery } from '../onvif/discovery/discover.ts';
import type { Credentials } from '../onvif/target.ts';
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

/** Finds cameras in the networks of the node. */
export interface Discoverer {
  /** Never rejects: problems are in the result. */
  search(timeoutMs: number, credentials: Credentials | undefined): Promise<Discovery>;
  /** Which of these streams are of a camera that is configured, with any login. */
  known(sources: readonly string[]): Promise<ReadonlySet<string>>;
  /** A picture of a camera that is not configured yet. Rejects with `StillError`. */
  still(camera: { readonly source: string; readonly snapshot: string }): Promise<StillImage>;
}

/** Segments of the archive: from its catalogue, or from the database. */
export interface SegmentReader {
  /** Throws `ArchiveError` when the archive cannot be read. Empty for a camera that the node does not know. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
}

/** The archive on this node's disk. */
export interface ArchiveReader {
  /** The segment that is being written; undefined when there is none, or `record.format` is mp4. */
  current(cameraId: string): Promise<Pick<OpenSegment, 'path' | 'startMs' | 'sizeBytes'> | undefined>;
  /** Whether a file can be created in the recordings directory. */
  checkWritable(): Promise<boolean>;
  /** How many segments of a camera lie in an interval. */
  countSegments(cameraId: string, fromMs: number, toMs: number): number | Promise<number>;
}

/** All throw `ArchiveError` when the archive cannot be read. */
export interface GapReader {
  ofThisNode(cameraId: string, fromMs: number, toMs: number): Promise<NodeReport>;
  /** Like the above, but also asks other nodes for footage that this node does not have. */
  report(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ReportWithElsewhere>;
  ofAllNodes(cameraId: string, fromMs: number, toMs: number, by: Asker): Promise<ClusterAccount>;
}

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

/** How long footage is kept, in milliseconds. */
interface FootageOutlook {
  /** How long footage of a camera should be kept; undefined: as long as there is space. */
  wantedMs(cameraId: string): number | undefined;
  /** How long footage of this node can be kept at the current bit rates; undefined while that is not known. */
  outlookMs(): number | undefined;
}

/** Whether a camera is configured or has footage. */
export const isKnownCamera = async (
  { cameras, archive }: Pick<ApiDeps, 'cameras' | 'archive'>,
  cameraId: string,
): Promise<boolean> =>
  cameras.get(cameraId) !== undefined || (await archive.countSegments(cameraId, -Infinity, Infinity)) > 0;

/** Whether a node of the cluster records a camera or has footage of it. */
export const isCameraOfCluster = ({ cluster }: Pick<ApiDeps, 'cluster'>, cameraId: string): boolean =>
  cluster !== undefined && (cluster.ownerOf(cameraId) !== undefined || cluster.holdersOf(cameraId).length > 0);

/** Jobs. Methods that need Redis reject with `JobsUnavailable` when it cannot be reached. */
export interface JobKeeper {
  ffmpegIsThere(): Promise<boolean>;
  /** `credential`: that of the caller of an assembly, for requests to other nodes. */
  submit(request: JobRequest, credential?: string): Promise<Job>;
  /** Whether a member of the cluster has this address; only members are sent requests. */
  isMember(address: string): boolean;
  get(id: string): Promise<Job | undefined>;
  /** Newest first. */
  list(): Promise<readonly Job[]>;
  /** Cancels the job if it has not ended, and removes it and its result; false when no job has this id. */
  remove(id: string): Promise<boolean>;
  /** Throws `JobError`. */
  estimate(request: JobRequest): Promise<JobOutcome>;
  fileName(job: Job): string;
  /** The result of a job that is done; undefined when it has expired. */
  result(job: Job): Promise<{ path: string; sizeBytes: number; modifiedMs: number } | undefined>;
  /** The manifest of a job that is done; undefined when the result has expired. */
  manifest(job: Job): Promise<Omit<SignedManifest, 'madeMs'> | undefined>;
  /** The key that signs manifests. Rejects with `NodeKeyError`. */
  signingKey(): Promise<Pick<NodeKey, 'publicKey' | 'fingerprint' | 'sign'>>;
}

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

/** How busy the machine is. */
export interface MachineSource {
  /** Percentage of all processors in use. */
  cpuPercent(): number;
  memory(): { usedBytes: number; totalBytes: number };
  /** Of the file system that holds the archive. */
  disk(): Promise<{ usedBytes: number; freeBytes: number; totalBytes: number }>;
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
  /** Without it, no footage is ever removed. */
  readonly keeping?: FootageOutlook | undefined;
  /** Without it, footage cannot be protected. */
  readonly protections?: ProtectionKeeper | undefined;
  /** Without it, the node belongs to no cluster. */
  readonly cluster?: ClusterAccess;
  /** Set in a cluster of servers without Kubernetes: its objects, and its join tokens. */
  readonly store?: ClusterStore;
  /** Sends requests to the other nodes of the cluster. */
  readonly peers?: PeerSender | undefined;
  /** Without it, there are no copies in object storage. */
  readonly copies?: { readonly holders: readonly Holder[] } | undefined;
  readonly relayMetrics?: RelayMetrics | undefined;
  readonly jobs: JobKeeper;
  readonly ptz: Pick<EngineErrands, 'move' | 'presets'>;
  readonly cameraSwitch: CameraSwitch;
  /** Ends the rests of the logins that a camera refused; returns how many there were. */
  readonly tryLogins: (cameraId: string) => Promise<number>;
  /** Without it, cameras are configured in files alone. */
  readonly cameraEditor?: CameraEditor;
  readonly stills: StillSource;
  readonly discoverer: Discoverer;
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
  readonly machine: MachineSource;
  /** Called when a request arrives; the function that it returns is called when the answer is complete. See `ReadPacer`. */
  readonly keepAwake: () => () => void;
  readonly clock: Clock;
  readonly log: Log;
}
