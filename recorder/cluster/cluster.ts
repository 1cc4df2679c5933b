// A recorder as a member of a cluster: turns its assignments into cameras to record, reports what it does with them, and renews a
// Lease as its sign of life. As long as the API server does not answer, nothing changes.

import type { RefusedCamera } from '../config/camera-list.ts';
import type { Informer } from '../../base/kubernetes/informer.ts';
import type { Reason } from '../../base/reason.ts';
import type { Camera } from '../../crds/camera.ts';
import { CAMERAS, RECORDER_POOLS, ROW_VERSION } from '../../crds/names.ts';
import type {
  RecorderNode,
  RecorderNodeStatus,
  ReportedCamera,
  ReportedObjective,
  ReportedStandby,
} from '../../crds/recorder-node.ts';
import { reasonOf } from '../../crds/reasons.ts';
import { renewMsFor } from '../../crds/renewal.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import type { CameraConfig } from '../config/schema.ts';
import type { MeasuredObjective } from '../contract/measured-objective.ts';
import type { ApiServer, KubernetesObject } from './api-server.ts';
import { AssignmentMirror, openInformer, pathOf, type AssignmentMirrorOptions } from './assignment-mirror.ts';
import { isRecorded, type Assignment } from './assignments.ts';
import { retentionOf, settingsOf, type Login } from './camera-settings.ts';
import type { KeptState } from './kept-state.ts';
import { LeftCameras, type RetentionLimits } from './left-cameras.ts';
import { isLogin, Logins, type MissingLogin } from './logins.ts';
import { NodeLease } from './node-lease.ts';
import { NodeReports } from './node-reports.ts';
import { Peers } from './peers.ts';
import { Report } from './report.ts';
import { Requests, type RequestOutcome, type Question } from './requests.ts';

export interface CameraReport {
  readonly state: ReportedCamera['state'];
  readonly reason?: Reason | undefined;
  readonly lastWrittenMs?: number | undefined;
}

/** The state of one camera that this recorder holds for another. */
interface StandbyReport {
  readonly state: ReportedStandby['state'];
  readonly reason?: Reason | undefined;
}

/** What the recorder reports about itself. */
export interface NodeFacts {
  /** The address at which this node believes to be reachable; for older recorders, which ask each other and not the operator. */
  readonly address: string;
  readonly playbackAddress: string;
  /** PKCS #10 as PEM; the operator responds with a certificate. */
  readonly certificateRequest: string | undefined;
  /** By which others know the sessions that this node signs. */
  readonly sessionKey: string;
  /** Those that were ended at this node. */
  readonly endedSessions: readonly { readonly of: string; readonly atMs: number }[];
  readonly version: string;
  readonly archiveID: string | undefined;
  readonly freeBytes: number | undefined;
  /** Why nothing at all can be recorded. */
  readonly fault: Reason | undefined;
  readonly cameras: ReadonlyMap<string, CameraReport>;
  readonly standbys: ReadonlyMap<string, StandbyReport>;
  readonly archives: readonly { readonly camera: string; readonly oldestMs?: number; readonly newestMs?: number }[];
  /** The targets of copies, and what is wrong with them. */
  readonly targets?: readonly { readonly name: string; readonly problem: Reason | undefined }[] | undefined;
  /** What this node measured as the leader of its cluster. */
  readonly objectives?: readonly MeasuredObjective[];
}

/** As much of the API server's client as a member uses. */
export type ClusterApi = Pick<ApiServer, 'get' | 'list' | 'pages' | 'watch' | 'call' | 'apply' | 'reconnect' | 'close'>;

export interface ClusterOptions extends Omit<AssignmentMirrorOptions, 'logins' | 'ownerRestarted'> {
  readonly api: ClusterApi;
  /** With separate connections, so that a renewal never waits for other requests. */
  readonly leaseApi: ClusterApi;
  /** How often the Lease is renewed until the pool has been read, which says it from then on. */
  readonly renewMs: number;
  readonly state: Pick<KeptState, 'path' | 'load' | 'save' | 'erase' | 'close'>;
  readonly facts: () => Promise<NodeFacts>;
  readonly held: () => readonly string[];
  /** The recorder of a camera that this node holds was restarted, and is back. */
  readonly ownerRestarted?: ((cameraId: string, pool: RecorderPool | undefined) => void) | undefined;
  /** Called when the operator has issued the requested certificate. */
  readonly certified: (signed: NonNullable<RecorderNode['spec']['certificate']>) => void;
  /** Called when other cameras, or the same with other settings, must be recorded. */
  readonly changed: () => void;
}

interface WantedSettings {
  readonly cameras: readonly CameraConfig[];
  readonly refused: readonly RefusedCamera[];
  /** Cameras to hold while other nodes record them. */
  readonly held: readonly CameraConfig[];
  readonly notHeld: readonly RefusedCamera[];
}

/** Of more, those with the newest footage are reported. */
const MAX_ARCHIVES = 1_000;
/** Longer reasons are truncated, because a report contains hundreds. */
const MAX_MESSAGE = 200;

export class Cluster {
  readonly peers: Peers;
  readonly #options: ClusterOptions;
  readonly #lease: NodeLease;
  readonly #mirror: AssignmentMirror;
  readonly #nodes: NodeReports;
  readonly #pool: Informer<RecorderPool, KubernetesObject>;
  readonly #report: Report;
  readonly #requests: Requests;
  readonly #logins: Logins;
  readonly #leftCameras: LeftCameras;
  #wanted: WantedSettings = { cameras: [], refused: [], held: [], notHeld: [] };
  #certified: string | undefined;

  constructor(options: ClusterOptions) {
    const { api, leaseApi, namespace, nodeId, pool, clock, log, random } = options;
    this.#options = options;
    this.#logins = new Logins({ api, namespace, changed: () => this.#mirror.loginsChanged(), clock, log });
    this.#mirror = new AssignmentMirror({
      ...options,
      logins: this.#logins,
      ownerRestarted: (cameraId) => options.ownerRestarted?.(cameraId, this.pool),
      changed: () => this.#apply(),
    });
    this.#nodes = new NodeReports({
      api,
      namespace,
      nodeId,
      pool,
      changed: () => {
        this.peers.changed();
        this.#answered();
      },
      clock,
      log,
      random,
    });
    this.#pool = openInformer(options, RECORDER_POOLS, `metadata.name=${pool}`, parseRecorderPool);
    this.#pool.onUpdate(() => this.#lease.renewalChanged());
    this.peers = new Peers(nodeId, () => ({ nodes: this.#nodes.objects, pool: this.pool }));
    this.#lease = new NodeLease({
      api: leaseApi,
      // A renewal that gets no response is the first sign of a broken link.
      reconnect: () => [leaseApi, api].forEach((one) => one.reconnect()),
      namespace,
      nodeId,
      pool,
      renewMs: () => (this.pool ? renewMsFor(this.pool.status?.nodes ?? 0, this.pool.spec.failover) : options.renewMs),
      recovered: () => this.#recovered(),
      clock,
      log,
    });
    this.#report = new Report({
      api,
      namespace,
      nodeId,
      status: () => this.#status(),
      mayTell: () => this.#lease.isOurs,
      clock,
      log,
    });
    this.#requests = new Requests(clock, () => this.#report.touch());
    this.#leftCameras = new LeftCameras({
      api,
      path: pathOf(namespace, CAMERAS),
      // Before the first lists, cameras of this node would count as well.
      held: () => (this.#mirror.isSynced ? options.held().filter((id) => !this.#mirror.all.has(id)) : []),
      changed: () => options.changed(),
      clock,
    });
  }

  /** Restores the last assignments if the copy is trustworthy, and starts to watch. Never rejects. */
  async start(): Promise<void> {
    await this.#mirror.restore();
    this.#lease.start();
    for (const watcher of [this.#mirror, ...this.#watchers]) watcher.start();
  }

  /** Tells the others that this recorder ends, before it stops its cameras. */
  release(): void {
    this.#lease.release();
  }

  async close(): Promise<void> {
    this.#requests.close();
    await Promise.all([this.#mirror.close(), this.#leftCameras.close()]);
    await Promise.all([this.#lease, this.#report, ...this.#watchers].map((part) => part.close()));
    await Promise.all([this.#options.api.close(), this.#options.leaseApi.close(), this.#options.state.close()]);
  }

  get #watchers() {
    return [this.#nodes, this.#pool];
  }

  /** The API server accepted the last renewals of our Lease. */
  get isReachable(): boolean {
    return this.#lease.isHeld;
  }

  /** How long no renewal of this node has been accepted: 0 while they are, Infinity if none ever was. */
  get unreachableMs(): number {
    const { isHeld, renewedMs } = this.#lease;
    return isHeld ? 0 : this.#options.clock.monotonicMs() - (renewedMs ?? -Infinity);
  }

  /** False after this node left or was removed: it records nothing of the cluster. */
  get isMember(): boolean {
    const role = this.nodes.get(this.#options.nodeId)?.spec.role;
    return this.isReachable && role !== undefined ? role !== 'Removed' : !this.#mirror.hasLeft;
  }

  get pool(): RecorderPool | undefined {
    return this.#pool.objects.get(this.#options.pool);
  }

  /** As of the last look in a large pool. */
  get nodes(): ReadonlyMap<string, RecorderNode> {
    return this.#nodes.objects;
  }

  /** To be awaited before `nodes` or `peers` are read for a client. Takes a second at most. Never rejects. */
  lookAtNodes(): Promise<void> {
    return this.#nodes.look();
  }

  /** The cameras assigned to this node, without those that it holds for others. */
  get assignments(): ReadonlyMap<string, Assignment> {
    return this.#mirror.own;
  }

  /** The epoch under which this node writes a camera: its own, or that of the node for which it holds the camera. */
  epochOf(cameraId: string): number | undefined {
    return this.#mirror.all.get(cameraId)?.epoch;
  }

  /** The assignment of a camera to this node; undefined for one that it holds for another. */
  assignmentOf(cameraId: string): Assignment | undefined {
    const assignment = this.#mirror.all.get(cameraId);
    return assignment?.state === 'standby' ? undefined : assignment;
  }

  /** The settings of the cameras that this node must record, and what is wrong with others. */
  cameras(): WantedSettings {
    return this.#wanted;
  }

  /** The retention limits of cameras of which this node has footage, also of those that another node records. */
  limits(): ReadonlyMap<string, RetentionLimits> {
    const limits = new Map(this.#leftCameras.limits);
    for (const [id, { camera }] of this.#mirror.all) {
      const own = retentionOf(camera);
      if (own) limits.set(id, own);
    }
    return limits;
  }

  /** Computed when an assignment or a login changes and not for each call, because the report calls several times a second. */
  #settings(): WantedSettings {
    const cameras: CameraConfig[] = [];
    const refused: RefusedCamera[] = [];
    const held: CameraConfig[] = [];
    const notHeld: RefusedCamera[] = [];
    for (const [id, assignment] of this.#mirror.all) {
      const login = this.#loginOf(assignment.camera);
      const settings = login && !isLogin(login) ? undefined : settingsOf(assignment.camera, login);
      const isHeld = assignment.state === 'standby';
      if (settings?.camera && isHeld) held.push(settings.camera);
      else if (settings?.camera) {
        cameras.push(isRecorded(assignment) ? settings.camera : { ...settings.camera, enabled: false });
      } else {
        const reason = settings?.problem ?? reasonFor(login as MissingLogin);
        (isHeld ? notHeld : refused).push({ id, reason });
      }
    }
    return { cameras, refused, held, notHeld };
  }

  /** Call several times a second; the facts may have changed. */
  tick(): void {
    const secrets = new Set<string>();
    const withdrawn = new Set<string>();
    for (const { camera } of this.#mirror.all.values()) {
      const { credentialsSecretRef: ref } = camera.spec;
      if (!ref) continue;
      secrets.add(ref.name);
      const version = camera.metadata.annotations?.[ROW_VERSION];
      if (version !== undefined) this.#logins.expect(ref.name, version);
      const told = camera.status?.conditions?.find(({ type }) => type === 'CredentialsResolved')?.reason;
      if (told === 'NoHosts') withdrawn.add(ref.name);
      // The operator has found hosts in the Secret: read them here before it forgets where the login was sent.
      if (told === 'Found' && !this.#logins.namesHosts(ref.name)) this.#logins.suspect(ref.name);
    }
    // A Secret that was not for a camera may have changed.
    const { refused, notHeld } = this.#wanted;
    for (const { id, reason } of [...refused, ...notHeld]) if (reason.code === 'no-credentials') this.loginRefused(id);
    this.#logins.tick(secrets, withdrawn);
    this.#leftCameras.tick();
    this.#report.touch();
  }

  /** Call when a camera refused its login. */
  loginRefused(cameraId: string): void {
    const ref = this.#mirror.all.get(cameraId)?.camera.spec.credentialsSecretRef;
    if (ref) this.#logins.suspect(ref.name);
  }

  /** Asks the operator to write what only it may write. */
  ask(question: Question): Promise<RequestOutcome> {
    return this.#requests.ask(question);
  }

  /** Stops every camera and forgets the assignments; key and certificate are kept. A new assignment brings the node back. */
  leave(): Promise<void> {
    return this.#mirror.leave();
  }

  #loginOf(camera: Camera): Login | MissingLogin | undefined {
    const ref = camera.spec.credentialsSecretRef;
    return ref && this.#logins.get(ref.name);
  }

  /** Applies the current assignments and logins to the recorder. */
  #apply(): void {
    this.#wanted = this.#settings();
    for (const id of this.#mirror.all.keys()) this.#leftCameras.taken(id);
    this.#options.changed();
    this.#report.touch();
  }

  /** The API server was unreachable or this process was frozen: the mirrors may be outdated. */
  #recovered(): void {
    for (const watcher of [this.#mirror, ...this.#watchers]) watcher.resync();
    this.#report.renew();
  }

  #answered(): void {
    const { responses, certificate } = this.#nodes.own?.spec ?? {};
    if (responses) this.#requests.answered(responses);
    // Not compared by `madeFrom`, which is the same for a renewed certificate.
    if (certificate && certificate.certificate !== this.#certified) {
      this.#certified = certificate.certificate;
      this.#options.certified(certificate);
    }
  }

  async #status(): Promise<RecorderNodeStatus> {
    const facts = await this.#options.facts();
    const { refused, notHeld } = this.cameras();
    const refusals = new Map([...refused, ...notHeld].map(({ id, reason }) => [id, reason]));
    const cameras = Array.from(this.assignments, ([name, { epoch, state }]): ReportedCamera | undefined => {
      if (state === 'suspended') return undefined;
      const refusal = refusals.get(name);
      const report = refusal ? { state: 'Failed' as const, reason: refusal } : facts.cameras.get(name);
      const { reason, lastWrittenMs } = report ?? {};
      return {
        name,
        epoch,
        state: report?.state ?? 'Connecting',
        ...reportedReason(reason),
        ...(lastWrittenMs !== undefined && { lastWrittenTime: timeOf(lastWrittenMs) }),
      };
    });
    const standbys = Array.from(this.#mirror.all).flatMap(([name, { camera, state }]): ReportedStandby[] => {
      const epoch = camera.status?.standby?.epoch;
      if (state !== 'standby' || epoch === undefined) return [];
      const refusal = refusals.get(name);
      const report = refusal ? { state: 'Failed' as const, reason: refusal } : facts.standbys.get(name);
      return [{ name, epoch, state: report?.state ?? 'Connecting', ...reportedReason(report?.reason) }];
    });
    const { fault } = facts;
    const now = timeOf(this.#options.clock.wallMs());
    const before = this.#nodes.own?.status?.conditions?.find(({ type }) => type === 'Ready');
    const status = fault ? 'False' : 'True';
    return {
      address: facts.address,
      playbackAddress: facts.playbackAddress,
      ...(facts.certificateRequest !== undefined && { certificateRequest: facts.certificateRequest }),
      sessionKey: facts.sessionKey,
      ...(facts.endedSessions.length > 0 && {
        endedSessions: facts.endedSessions.map(({ of, atMs }) => ({ of, endedTime: new Date(atMs).toISOString() })),
      }),
      version: facts.version,
      ...(facts.archiveID !== undefined && { archiveID: facts.archiveID }),
      ...(facts.freeBytes !== undefined && { freeBytes: Math.round(facts.freeBytes) }),
      cameras: cameras.filter((camera) => camera !== undefined),
      ...(standbys.length > 0 && { standbys }),
      archives: newestFirst(facts.archives)
        .slice(0, MAX_ARCHIVES)
        .map(({ camera, oldestMs, newestMs }) => ({
          camera,
          ...(oldestMs !== undefined && { oldestTime: timeOf(oldestMs) }),
          ...(newestMs !== undefined && { newestTime: timeOf(newestMs) }),
        })),
      ...(facts.targets && {
        targets: facts.targets.map(({ name, problem }) => ({ name, ...reportedReason(problem) })),
      }),
      ...(facts.objectives && facts.objectives.length > 0 && { objectives: facts.objectives.map(reportedObjective) }),
      requests: [...this.#requests.list()],
      conditions: [
        {
          type: 'Ready',
          status,
          reason: fault ? reasonOf(fault.code) : 'Recording',
          message: fault ? fault.message.slice(0, MAX_MESSAGE) : '',
          lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
        },
      ],
    };
  }
}

const newestFirst = (archives: NodeFacts['archives']): NodeFacts['archives'] =>
  archives.length <= MAX_ARCHIVES
    ? archives
    : archives.toSorted((a, b) => (b.newestMs ?? -Infinity) - (a.newestMs ?? -Infinity) || 0);

/** In whole seconds, of which never too few are missing and never too many left. */
const reportedObjective = (of: MeasuredObjective): ReportedObjective => ({
  name: of.name,
  measuredTime: timeOf(of.atMs),
  cameras: of.cameras,
  ...(of.achieved !== null && { achievedPercent: of.achieved }),
  missingSeconds: Math.ceil(of.missingMs / 1_000),
  budgetSeconds: Math.floor(of.budgetMs / 1_000),
  budgetLeftSeconds: Math.floor(of.budgetLeftMs / 1_000),
  worstCameras: of.worst.map(({ cameraId: camera, missingMs }) => ({
    camera,
    missingSeconds: Math.ceil(missingMs / 1_000),
  })),
});

const reportedReason = (reason: Reason | undefined) =>
  reason && { reason: reasonOf(reason.code), message: reason.message.slice(0, MAX_MESSAGE) };

/** Whole seconds: times in a status are coarse. */
const timeOf = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');

/** A Secret that was not read yet is no problem that a person has to solve. */
const reasonFor = ({ reason, message }: MissingLogin): Reason => ({
  code: reason === 'SecretUnread' ? 'login-unread' : 'no-credentials',
  message,
});
