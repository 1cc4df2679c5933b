// What the front may ask of the side that records. Everything else that it knows of it are the news (`contract/news.ts`).

import type { Reason, Warning } from '../../base/reason.ts';
import type { ListQuery, SegmentListing } from '../archive/catalogue/listing.ts';
import type { OpenSegment } from '../archive/catalogue/segment.ts';
import type { ClusterSwitch, ClusterView } from '../cluster/access.ts';
import type { RefusedCamera } from '../config/camera-list.ts';
import type { CameraSwitch } from '../contract/camera-switch.ts';
import type { FootageTimes } from '../contract/footage-times.ts';
import type { GapReporter } from '../contract/gap-report.ts';
import type { LiveQuality } from '../contract/live-feed.ts';
import type { MeasuredObjective } from '../contract/measured-objective.ts';
import type { Member, PeerNode } from '../contract/other-node.ts';
import type { ProtectedWindows } from '../contract/protection.ts';
import type { Examiner } from '../probe/report/examiner.ts';
import type { Discovery } from '../onvif/discovery/discover.ts';
import type { PtzCommand, PtzOutcome } from '../onvif/camera-ptz.ts';
import type { Preset } from '../onvif/client.ts';
import type { Credentials } from '../onvif/target.ts';
import type { StillImage } from '../snapshots/shared-images.ts';
import type { CameraRecords } from './camera-view.ts';

export interface EngineCameras extends CameraRecords {
  /** Sends a live stream to `FrontOfEngine.live` under this number, from now on; sends its start again if it is sent already. */
  watch(watch: number, cameraId: string, quality: LiveQuality): void;
  unwatch(watch: number): void;
  /** The newest key frame that arrived, as a movie of one picture; undefined if there is none. */
  keyFrame(cameraId: string): Promise<Buffer | undefined>;
}

/** What is asked of cameras on connections of their own. The front knows no login of a camera. */
export interface EngineErrands {
  /** A still image that the camera makes. Rejects with `StillError`. */
  snapshot(cameraId: string): Promise<StillImage>;
  /** The same of a camera that is not configured yet. */
  stillOfNew(camera: { readonly source: string; readonly snapshot: string }): Promise<StillImage>;
  /** Both reject with `OnvifError`: with the code `no-ptz` for a camera that may not be moved. */
  move(cameraId: string, command: PtzCommand): Promise<PtzOutcome>;
  presets(cameraId: string): Promise<readonly Preset[]>;
  /** Searches the networks of the node for cameras. Never rejects: problems are in the result. */
  search(timeoutMs: number, credentials: Credentials | undefined): Promise<Discovery>;
  /** Which of these addresses are of a camera that is configured, with any login. */
  known(sources: readonly string[]): Promise<ReadonlySet<string>>;
  /** Ends the rest of logins that the camera refused; resolves to their number. */
  tryLogins(cameraId: string): Promise<number>;
}

/** A disk of the archive, as it is now. */
interface ArchiveDisk {
  readonly path: string;
  /** It gets no new files, and loses those that it has to the others. */
  readonly isLeaving: boolean;
  /** Why it is not written to. */
  readonly fault: Reason | undefined;
}

export interface EngineArchive {
  /** Undefined where nothing is ever removed. Of a camera undefined: as long as there is space; both in milliseconds. */
  readonly keeping: { wantedMs(cameraId: string): number | undefined; outlookMs(): number | undefined } | undefined;
  /** Windows that retention leaves alone; undefined where nothing is ever removed. */
  readonly protections: ProtectedWindows | undefined;
  /** Segments that overlap the interval, and all days with footage of the camera. Throws ArchiveError. */
  list(cameraId: string, query: ListQuery): Promise<SegmentListing>;
  /** Segments of a camera that are being written or completed. */
  openEntries(cameraId: string): Promise<readonly OpenSegment[]>;
  /** The recording in progress; undefined when there is none that can be played. */
  current(cameraId: string): Promise<OpenSegment | undefined>;
  /** Start of the oldest footage; undefined without any, -Infinity while it is not known what is on the disk. */
  keptFromMs(cameraId: string): Promise<number | undefined>;
  countSegments(cameraId: string, fromMs: number, toMs: number): Promise<number>;
  extents(): readonly { readonly camera: string; readonly oldestMs: number; readonly newestMs: number }[];
  /** Files of a camera, absolute, from the newest on, as of the last look at the directories; also those that are open. */
  newestFiles(cameraId: string, count: number): Promise<readonly string[]>;
  /** The root of the disk that has a file, by the path of the file. */
  rootOf(path: string): Promise<string>;
  /** Footage that is played, and what is played next, stays until it is released by the number that it is held under. */
  holdForReading(hold: number, path: string): void;
  holdWindow(hold: number, cameraId: string, fromMs: number, toMs: number): void;
  release(hold: number): void;
  /** Whether recording could create and write a file now. */
  checkWritable(): Promise<boolean>;
  /** The record path first. */
  disks(): Promise<readonly ArchiveDisk[]>;
  /** The root of the disk that has the state of the archive. */
  readonly stateRoot: string;
  /** Rejects when that disk is not one of this node's archive now. */
  checkDisk(): Promise<void>;
}

export interface EngineMember {
  readonly view: ClusterView;
  readonly cameraSwitch: ClusterSwitch;
  /** Another member by the name of its node. */
  find(nodeId: string): PeerNode | undefined;
  /** Whether another node is a member, as far as this one knows. */
  isMember(nodeId: string): boolean;
  /** The members of the cluster, with their addresses. */
  members(): readonly Member[];
  /** Time since the last accepted renewal: 0 while renewals are accepted, Infinity when none was accepted since the start. */
  unreachableMs(): number;
  /** This server should have a member of etcd, which does not answer. */
  isMemberDown(): boolean;
  /** What this node measured as the leader, for the status of the cluster; empty at the others. */
  objectivesAre(measured: readonly MeasuredObjective[]): void;
  warnings(): readonly Warning[];
}

export interface Engine {
  readonly cameras: EngineCameras;
  readonly archive: EngineArchive;
  readonly gaps: GapReporter;
  readonly times: FootageTimes;
  readonly cameraSwitch: CameraSwitch;
  readonly examiner: Examiner;
  readonly errands: EngineErrands;
  readonly license: { check(): { readonly valid: boolean; readonly reason?: Reason } };
  /** Undefined outside of a cluster. */
  readonly member: EngineMember | undefined;
  /** Applies the cameras that are wanted now. Resolves when the change is carried out. */
  applyCameras(): Promise<void>;
  /** Forgets what is stored about a removed camera: another camera may get its id. */
  forgetCamera(cameraId: string): Promise<void>;
  /** Of the archive, the logins of cameras, and what held everything. */
  warnings(): readonly Warning[];
  readonly refusedCameras: () => readonly RefusedCamera[];
}

/** What a front finds in the states that it is told, and does not ask for (`engine.test.ts` has the compiler check it). */
export const AT_ONCE = [
  'cameras.list',
  'cameras.get',
  'archive.extents',
  'archive.keeping.wantedMs',
  'archive.keeping.outlookMs',
  'license.check',
  'warnings',
  'refusedCameras',
  'member.find',
  'member.isMember',
  'member.members',
  'member.unreachableMs',
  'member.isMemberDown',
  'member.warnings',
  'member.view.cameraIds',
  'member.view.origins',
  'member.view.places',
  'member.view.playbackOrigins',
  'member.view.ownerOf',
  'member.view.holdersOf',
  'member.view.others',
  'member.view.leader',
] as const;
