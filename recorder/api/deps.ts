// What the API needs from the rest of the recorder, as small interfaces: `serving.ts` joins them.

import type { Clock } from '../../base/clock.ts';
import type { Job, JobOutcome, JobRequest } from '../jobs/job.ts';
import type { SignedManifest } from '../jobs/manifest.ts';
import type { NodeKey } from '../jobs/node-key.ts';
import type { LevelSwitch } from '../../base/log-level.ts';
import type { Log } from '../../base/log.ts';
import type { AuditSink } from '../audit/entry.ts';
import type { ChainEnd } from '../audit/files.ts';
import type { AuditPage, AuditQuery } from '../audit/read.ts';
import type { Visits } from '../audit/visits.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/catalogue.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import type { Protections } from '../archive/retention/protections.ts';
import type { EventStreams } from '../events/event-stream.ts';
import type { EventJournal } from '../events/journal.ts';
import type { GapReport } from '../archive/gaps/camera-ledger.ts';
import type { Reason } from '../camera/status.ts';
import type { CameraSwitch } from '../camera/switch.ts';
import type { CameraEditor } from '../config/editor.ts';
import type { Authenticator } from '../http/auth.ts';
import type { CertificatePair } from '../http/certificate.ts';
import type { Origins } from '../http/cors.ts';
import type { CameraDirectory, RefusedCamera } from '../model/camera-view.ts';
import type { Warning } from '../model/warning.ts';
import type { StillImage } from '../still/shared-images.ts';
import type { Examiner } from '../probe/doctor.ts';
import type { MovableCamera } from '../onvif/ptz.ts';
import type { ClusterAccess } from './cluster-access.ts';
import type { PlaybackListener } from './playback-address.ts';

/** Segments of the archive: from its files, or from the database that knows them. */
export interface SegmentReader {
  /** Throws `ArchiveError` when the archive cannot be read. Empty for a camera that the node does not know. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
}

/** The archive on this node's disk. */
export interface ArchiveReader {
  /** Undefined when nothing can be reported. */
  current(cameraId: string): Promise<Pick<OpenSegment, 'path' | 'startMs' | 'sizeBytes'> | undefined>;
  /** Whether a file can be made in the recordings directory. */
  checkWritable(): Promise<boolean>;
  /** How many segments of a camera lie in an interval. */
  countSegments(cameraId: string, fromMs: number, toMs: number): number;
}

export interface GapReader {
  /** Footage and gaps of a camera. Throws `ArchiveError` when the archive cannot be read. */
  report(cameraId: string, fromMs: number, toMs: number): Promise<GapReport>;
}

/** Windows of cameras that retention leaves alone. */
export interface ProtectionKeeper {
  readonly windows: Pick<Protections, 'list' | 'add' | 'remove'>;
  /** How long a window is kept for which nothing else is said, and the longest time that operators may ask for. */
  readonly keptMs: number;
}

/** Whether a camera is configured, or there is footage of it. */
export const isKnownCamera = ({ cameras, archive }: Pick<ApiDeps, 'cameras' | 'archive'>, cameraId: string): boolean =>
  cameras.get(cameraId) !== undefined || archive.countSegments(cameraId, -Infinity, Infinity) > 0;

/** Exports and time-lapses. What needs Redis throws `JobsUnavailable` when there is none. */
export interface JobKeeper {
  ffmpegIsThere(): Promise<boolean>;
  /** `credential`: what an assembly asks other nodes with. */
  submit(request: JobRequest, credential?: string): Promise<Job>;
  /** Whether the address is one of a member of the cluster, so that it may be asked. */
  isMember(address: string): boolean;
  get(id: string): Promise<Job | undefined>;
  /** Newest first. */
  list(): Promise<readonly Job[]>;
  /** Ends it, if it has not ended, and forgets it and its result; false when there is none of this id. */
  remove(id: string): Promise<boolean>;
  /** Throws `JobError`. */
  estimate(request: JobRequest): Promise<JobOutcome>;
  /** Of a job that is done; undefined when it has expired. */
  result(job: Job): Promise<{ path: string; sizeBytes: number; modifiedMs: number } | undefined>;
  /** The same of what its result holds. */
  manifest(job: Job): Promise<Omit<SignedManifest, 'madeMs'> | undefined>;
  /** What manifests are signed with. Throws `NodeKeyError`. */
  signingKey(): Promise<Pick<NodeKey, 'publicKey' | 'fingerprint'>>;
}

/** Cameras that can be moved. */
export interface PtzKeeper {
  /** `disabled`: known, but not to be moved. */
  get(cameraId: string): MovableCamera | 'disabled' | 'unknown';
}

/** Still images of cameras. Both reject with `StillError`. */
export interface StillSource {
  /** As the camera makes it. */
  snapshot(cameraId: string): Promise<StillImage>;
  /** What was seen last, small. */
  thumbnail(cameraId: string): Promise<StillImage>;
}

/** What readiness depends on beside the recordings directory. */
export interface ReadinessChecks {
  /** The database. */
  storage(): Promise<{ configured: boolean; reachable: boolean }>;
  /** `unreachableMs`: how long no sign of life of this node has got through; Infinity when none ever did. */
  clusterStore(): { configured: false } | { configured: true; unreachableMs: number };
  license(): Promise<{ valid: boolean; reason?: Reason }>;
}

/** A node without database, cluster and licence. */
export const standaloneChecks: ReadinessChecks = {
  storage: () => Promise.resolve({ configured: false, reachable: false }),
  clusterStore: () => ({ configured: false }),
  license: () => Promise.resolve({ valid: true }),
};

/** Who did what. */
export interface Audit {
  readonly sink: AuditSink;
  readonly visits?: Visits | undefined;
  /** Where it is kept in files. */
  readonly reader?: {
    /** Rejects with what the system says when the files cannot be read. */
    read(query: AuditQuery): Promise<AuditPage>;
    readonly end: ChainEnd;
  };
}

/** What happens on the node, and those who follow it. */
export interface EventSource {
  readonly journal: EventJournal;
  readonly streams: EventStreams;
}

/** How busy the machine is. */
export interface MachineSource {
  /** Share of all processors in use, 0 to 100. */
  cpuPercent(): number;
  memory(): { usedBytes: number; totalBytes: number };
  /** Of the file system that holds the archive. */
  disk(): Promise<{ usedBytes: number; freeBytes: number; totalBytes: number }>;
}

export interface ApiDeps {
  readonly nodeName: string;
  /** Where others reach this node, as `host:port` or a URL; empty when nobody said. */
  readonly address: string;
  readonly version: string;
  readonly recordPath: string;
  readonly auth: Authenticator;
  readonly tls?: CertificatePair;
  /** Whose pages may use the API and watch. */
  readonly origins?: Origins;
  readonly trustedProxies?: readonly string[];
  readonly cameras: CameraDirectory;
  /** Cameras of the database that cannot be recorded as they are there. */
  readonly refusedCameras?: () => readonly RefusedCamera[];
  readonly archive: ArchiveReader;
  readonly segments: SegmentReader;
  readonly gaps: GapReader;
  /** Without it, nothing can be protected. */
  readonly protections?: ProtectionKeeper | undefined;
  /** Without it, the node is on its own. */
  readonly cluster?: ClusterAccess;
  /** Without it, there are no jobs. */
  readonly jobs?: JobKeeper;
  /** Without it, no camera can be moved. */
  readonly ptz?: PtzKeeper;
  /** Without it, cameras are started and stopped by configuration alone. */
  readonly cameraSwitch?: CameraSwitch;
  /** Without it, cameras are configured in files alone. */
  readonly cameraEditor?: CameraEditor;
  /** Without it, there are no still images. */
  readonly stills?: StillSource;
  /** Without it, cameras are not examined. */
  readonly doctor?: Examiner;
  /** Without it, the log's level stays as it is. */
  readonly logLevels?: LevelSwitch;
  /** Who did what; without it, nothing is written down. */
  readonly audit?: Audit;
  /** Without it, nobody is told what happens. */
  readonly events?: EventSource;
  /** Shown in ready. */
  readonly warnings?: () => readonly Warning[];
  readonly checks: ReadinessChecks;
  readonly playback?: PlaybackListener;
  readonly machine: MachineSource;
  /** Called when a request comes; what it returns is called when the answer is complete. See `ReadPacer`. */
  readonly keepAwake?: () => () => void;
  readonly clock: Clock;
  readonly log: Log;
}
