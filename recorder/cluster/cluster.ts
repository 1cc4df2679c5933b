// A recorder as a member of a cluster: turns its assignments into cameras to record, reports what it does with them, and renews a
// Lease as its sign of life. As long as the API server does not answer, nothing changes.

import type { Clock, Timer } from '../../base/clock.ts';
import { Informer } from '../../base/kubernetes/informer.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { Log } from '../../base/log.ts';
import type { Reason } from '../../base/reason.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import {
  API_VERSION,
  ASSIGNED_NODE_FIELD,
  CAMERAS,
  PREVIOUS_NODE_FIELD,
  RECORDER_POOLS,
  STANDBY_NODE_FIELD,
} from '../../crds/names.ts';
import type { RecorderNode, RecorderNodeStatus, ReportedCamera, ReportedStandby } from '../../crds/recorder-node.ts';
import { reasonOf } from '../../crds/reasons.ts';
import { renewMsFor } from '../../crds/renewal.ts';
import { parseRecorderPool, type RecorderPool } from '../../crds/recorder-pool.ts';
import type { CameraConfig } from '../config/schema.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import {
  changesOf,
  decide,
  isOwnerRestarted,
  isRecorded,
  lostSince,
  vacantSince,
  type Assignment,
} from './assignments.ts';
import { retentionOf, settingsOf, type Login } from './camera-settings.ts';
import type { KeptState } from './kept-state.ts';
import { LeftCameras, type RetentionLimits } from './left-cameras.ts';
import { isLogin, Logins, type MissingLogin } from './logins.ts';
import { NodeLease } from './node-lease.ts';
import { NodeReports } from './node-reports.ts';
import { Peers } from './peers.ts';
import { Report } from './report.ts';
import { Requests, type Answer, type Question } from './requests.ts';

/** The state of one camera of this recorder. */
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
  readonly version: string;
  readonly archiveID: string | undefined;
  readonly freeBytes: number | undefined;
  /** Why nothing at all can be recorded. */
  readonly fault: Reason | undefined;
  readonly cameras: ReadonlyMap<string, CameraReport>;
  readonly standbys: ReadonlyMap<string, StandbyReport>;
  readonly archives: readonly { readonly camera: string; readonly oldestMs?: number; readonly newestMs?: number }[];
}

/**
 * For which period of a camera this node is responsible after a node was lost. Called before `changed`. Milliseconds since 1970.
 */
export interface TimeAccount {
  /** This node continues for a lost one: no node has recorded the camera since. */
  takeOver(cameraId: string, sinceMs: number): void;
  /** Another node has been responsible for the camera since then; undefined: since the last sign of life before this process. */
  giveUp(cameraId: string, sinceMs: number | undefined): void;
}

/** Notified when the cluster makes this node start or stop recording a camera. */
export interface AssignmentObserver {
  taken(cameraId: string): void;
  givenUp(cameraId: string): void;
  /** The recorder of a camera that this node holds was restarted, and is back. */
  ownerRestarted?(cameraId: string): void;
}

/** As much of the API server's client as a member uses. */
export type ClusterApi = Pick<ApiServer, 'get' | 'list' | 'pages' | 'watch' | 'call' | 'apply' | 'reconnect' | 'close'>;

export interface ClusterOptions {
  readonly api: ClusterApi;
  /** With separate connections, so that a renewal never waits for other requests. */
  readonly leaseApi: ClusterApi;
  readonly namespace: string;
  readonly nodeId: string;
  readonly pool: string;
  /** How often the Lease is renewed until the pool has been read, which says it from then on. */
  readonly renewMs: number;
  readonly state: Pick<KeptState, 'path' | 'load' | 'save' | 'erase' | 'close'>;
  readonly facts: () => Promise<NodeFacts>;
  /** The cameras of which this node has footage. */
  readonly held: () => readonly string[];
  readonly account: TimeAccount;
  readonly observer?: AssignmentObserver | undefined;
  /** Called when the operator has issued the requested certificate. */
  readonly certified: (signed: NonNullable<RecorderNode['spec']['certificate']>) => void;
  /** Called when other cameras, or the same with other settings, must be recorded. */
  readonly changed: () => void;
  /** What keeps the objects of the cluster, in messages; default: the API server. */
  readonly store?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Adds jitter to pauses. */
  readonly random?: () => number;
}

/** A camera that cannot be recorded as assigned. */
interface RefusedAssignment {
  readonly id: string;
  readonly reason: Reason;
}

interface WantedSettings {
  readonly cameras: readonly CameraConfig[];
  readonly refused: readonly RefusedAssignment[];
  /** Cameras to hold while other nodes record them. */
  readonly held: readonly CameraConfig[];
  readonly notHeld: readonly RefusedAssignment[];
}

/** The pause after a failed read of a doubtful camera. */
const CONFIRM_RETRY_MS = 1_000;
/** Number of Cameras, including deleted ones. */
const MAX_SEEN_EPOCHS = 10_000;
/** Of more, those with the newest footage are reported. */
const MAX_ARCHIVES = 1_000;
/** Longer reasons are truncated, because a report contains hundreds. */
const MAX_MESSAGE = 200;

export class Cluster {
  readonly peers: Peers;
  readonly #o: ClusterOptions;
  readonly #node: { nodeId: string; pool: string };
  readonly #base: string;
  readonly #lease: NodeLease;
  readonly #owned: Informer<Camera, KubernetesObject>;
  readonly #previous: Informer<Camera, KubernetesObject>;
  readonly #standby: Informer<Camera, KubernetesObject>;
  readonly #nodes: NodeReports;
  readonly #pool: Informer<RecorderPool, KubernetesObject>;
  readonly #report: Report;
  readonly #requests: Requests;
  readonly #logins: Logins;
  readonly #leftCameras: LeftCameras;
  readonly #confirming = new Set<string>();
  readonly #timers = new Set<Timer>();
  /** The highest epoch seen of each Camera, by uid. */
  readonly #seenEpochs = new Map<string, number>();
  /** With the cameras that this node holds for others. */
  #assignments: ReadonlyMap<string, Assignment> = new Map();
  /** Cameras that only the copy on disk assigns to this node: the API server has not confirmed them since the start. */
  readonly #unconfirmed = new Set<string>();
  #wanted: WantedSettings = { cameras: [], refused: [], held: [], notHeld: [] };
  #kept: string | undefined;
  /** The cameras that the observer knows to be recorded here. */
  #told: ReadonlySet<string> = new Set();
  /** After this node left: the last epochs of its cameras, by uid. A camera assigned with a later epoch is recorded again. */
  #left: ReadonlyMap<string, number> | undefined;
  #certified: string | undefined;
  #closed = false;

  constructor(options: ClusterOptions) {
    const { api, leaseApi, namespace, nodeId, pool, clock, log, random } = options;
    this.#o = options;
    this.#node = { nodeId, pool };
    this.#base = `/apis/${API_VERSION}/namespaces/${namespace}`;
    this.#owned = this.#cameras(ASSIGNED_NODE_FIELD);
    this.#previous = this.#cameras(PREVIOUS_NODE_FIELD);
    this.#standby = this.#cameras(STANDBY_NODE_FIELD);
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
    this.#pool = this.#mirror(RECORDER_POOLS, `metadata.name=${pool}`, parseRecorderPool, () =>
      this.#lease.renewalChanged(),
    );
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
    this.#logins = new Logins({ api, namespace, changed: () => this.#apply(), clock, log });
    this.#leftCameras = new LeftCameras({
      api,
      path: `${this.#base}/${CAMERAS}`,
      // Before the first lists, cameras of this node would count as well.
      held: () => (this.#isSynced ? options.held().filter((id) => !this.#assignments.has(id)) : []),
      changed: () => options.changed(),
      clock,
    });
  }

  /** The Cameras that name this node in a field. */
  #cameras(field: string): Informer<Camera, KubernetesObject> {
    return this.#mirror(CAMERAS, `${field}=${this.#o.nodeId}`, parseCamera, () => this.#look());
  }

  #mirror<T>(
    plural: string,
    fieldSelector: string,
    parse: (object: unknown) => T,
    changed: () => void,
  ): Informer<T, KubernetesObject> {
    const { api, clock, log, random } = this.#o;
    const path = `${this.#base}/${plural}`;
    const query = { fieldSelector };
    const informer = new Informer<T, KubernetesObject>({
      source: {
        name: plural,
        pages: (signal) => api.pages(path, { query, signal }),
        watch: (resourceVersion, signal) => api.watch(path, resourceVersion, { query, signal }),
      },
      parse,
      keyOf: ({ name }) => name,
      clock,
      log,
      ...(random && { random }),
    });
    informer.onUpdate(changed);
    return informer;
  }

  /** Restores the last assignments if the copy is trustworthy, and starts to watch. Never rejects. */
  async start(): Promise<void> {
    const { state, log, store = 'the API server' } = this.#o;
    try {
      const loaded = await state.load();
      if (loaded.kind === 'kept') {
        this.#assignments = loaded.kept.assignments;
        for (const name of loaded.kept.assignments.keys()) this.#unconfirmed.add(name);
        this.#told = recordedOf(this.#assignments);
        this.#logins.restore(loaded.kept.logins);
        this.#kept = this.#fingerprint();
        log.info(
          { cameras: this.#assignments.size },
          `${store} cannot be reached: recording the cameras that were assigned last`,
        );
      } else if (loaded.kind !== 'none') {
        log.error(
          { path: state.path },
          loaded.kind === 'stale'
            ? `the copy of the assignments is from a backup and is not used: waiting for ${store}`
            : `the copy of the assignments is damaged: waiting for ${store}`,
        );
      }
    } catch (err) {
      log.error({ path: state.path, err }, `the copy of the assignments cannot be read: waiting for ${store}`);
    }
    this.#lease.start();
    for (const watcher of this.#watchers) watcher.start();
    this.#apply();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
    this.#requests.close();
    await this.#leftCameras.close();
    await Promise.all([this.#lease.close(), this.#report.close(), ...this.#watchers.map((watcher) => watcher.close())]);
    await Promise.all([this.#o.api.close(), this.#o.leaseApi.close(), this.#o.state.close()]);
  }

  get #watchers() {
    return [this.#owned, this.#previous, this.#standby, this.#nodes, this.#pool];
  }

  /** The API server accepted the last renewals of our Lease. */
  get isReachable(): boolean {
    return this.#lease.isHeld;
  }

  /** How long no renewal of this node has been accepted: 0 while they are, Infinity if none ever was. */
  get unreachableMs(): number {
    const { isHeld, renewedMs } = this.#lease;
    return isHeld ? 0 : this.#o.clock.monotonicMs() - (renewedMs ?? -Infinity);
  }

  get pool(): RecorderPool | undefined {
    return this.#pool.objects.get(this.#o.pool);
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
    return new Map([...this.#assignments].filter(([, { state }]) => state !== 'standby'));
  }

  /** The epoch under which this node writes a camera: its own, or that of the node for which it holds the camera. */
  epochOf(cameraId: string): number | undefined {
    return this.#assignments.get(cameraId)?.epoch;
  }

  /** The assignment of a camera to this node; undefined for one that it holds for another. */
  assignmentOf(cameraId: string): Assignment | undefined {
    const assignment = this.#assignments.get(cameraId);
    return assignment?.state === 'standby' ? undefined : assignment;
  }

  /** The settings of the cameras that this node must record, and what is wrong with others. */
  cameras(): WantedSettings {
    return this.#wanted;
  }

  /** The retention limits of cameras of which this node has footage, also of those that another node records. */
  limits(): ReadonlyMap<string, RetentionLimits> {
    const limits = new Map(this.#leftCameras.limits);
    for (const [id, { camera }] of this.#assignments) {
      const own = retentionOf(camera);
      if (own) limits.set(id, own);
    }
    return limits;
  }

  /** Computed when an assignment or a login changes and not for each call, because the report calls several times a second. */
  #settings(): WantedSettings {
    const cameras: CameraConfig[] = [];
    const refused: RefusedAssignment[] = [];
    const held: CameraConfig[] = [];
    const notHeld: RefusedAssignment[] = [];
    for (const [id, assignment] of this.#assignments) {
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
    for (const { camera } of this.#assignments.values()) {
      const { credentialsSecretRef: ref } = camera.spec;
      if (!ref) continue;
      secrets.add(ref.name);
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
    const ref = this.#assignments.get(cameraId)?.camera.spec.credentialsSecretRef;
    if (ref) this.#logins.suspect(ref.name);
  }

  /** Asks the operator to write what only it may write. */
  ask(question: Question): Promise<Answer> {
    return this.#requests.ask(question);
  }

  /** Stops every camera and forgets the assignments; key and certificate are kept. A new assignment brings the node back. */
  async leave(): Promise<void> {
    this.#left = new Map(
      Array.from(this.#assignments.values(), ({ camera, epoch }) => [camera.metadata.uid ?? '', epoch]),
    );
    this.#assignments = new Map();
    this.#apply();
    await this.#o.state.erase();
    this.#kept = undefined;
  }

  #loginOf(camera: Camera): Login | MissingLogin | undefined {
    const ref = camera.spec.credentialsSecretRef;
    return ref && this.#logins.get(ref.name);
  }

  get #isSynced(): boolean {
    return this.#owned.isSynced && this.#previous.isSynced;
  }

  /** Call when one of the mirrors has changed. */
  #look(): void {
    if (this.#closed || !this.#isSynced) return;
    const mirrored = new Map(this.#previous.objects);
    for (const [name, camera] of [...this.#owned.objects, ...this.#standby.objects]) {
      const other = mirrored.get(name);
      if (!other || isLater(camera, other)) mirrored.set(name, camera);
    }
    for (const [name, camera] of mirrored) {
      if (this.#wasLeft(camera) || !this.#isNewest(camera)) mirrored.delete(name);
    }
    const { assignments, doubtful } = changesOf(this.#node, mirrored, this.#assignments);
    for (const [name, now] of assignments) {
      if (mirrored.has(name) && !doubtful.includes(name)) this.#taken(name, now, this.#assignments.get(name));
    }
    this.#assignments = assignments;
    for (const name of doubtful) void this.#confirm(name);
    this.#apply();
  }

  /** A list may come from a server that lags behind: never go back to an older epoch. */
  #isNewest(camera: Camera): boolean {
    const uid = camera.metadata.uid ?? '';
    const seen = this.#seenEpochs.get(uid) ?? 0;
    if (epochOf(camera) > seen) {
      if (this.#seenEpochs.size >= MAX_SEEN_EPOCHS) this.#seenEpochs.clear();
      this.#seenEpochs.set(uid, epochOf(camera));
    }
    return epochOf(camera) >= seen;
  }

  #wasLeft(camera: Camera): boolean {
    const leftAt = this.#left?.get(camera.metadata.uid ?? '');
    return leftAt !== undefined && leftAt >= epochOf(camera);
  }

  /** Reads a Camera that may have to be stopped, and acts on the result. */
  async #confirm(name: string): Promise<void> {
    if (this.#confirming.has(name) || this.#closed) return;
    this.#confirming.add(name);
    try {
      const read = await this.#readCamera(name);
      const camera = read && this.#wasLeft(read) ? undefined : read;
      if (camera && !this.#isNewest(camera)) return this.#later(CONFIRM_RETRY_MS, () => this.#look());
      const before = this.#assignments.get(name);
      const now = decide(this.#node, camera, before);
      const assignments = new Map(this.#assignments);
      if (before && before.state !== 'standby' && (!now || now.state === 'standby')) this.#givenUp(name, read);
      if (now) {
        this.#taken(name, now, before);
        assignments.set(name, now);
      } else assignments.delete(name);
      this.#assignments = assignments;
      this.#apply();
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
      this.#later(CONFIRM_RETRY_MS, () => this.#look());
    } finally {
      this.#confirming.delete(name);
    }
  }

  /** The API server has confirmed that a camera belongs to this node. */
  #taken(name: string, now: Assignment, before: Assignment | undefined): void {
    const { account } = this.#o;
    const isFirstAnswer = this.#unconfirmed.delete(name);
    // It moved away and came back while this process did not run.
    if (isFirstAnswer && now.state === 'own' && before && before.epoch < now.epoch) account.giveUp(name, undefined);
    const sinceMs = vacantSince(now, before);
    if (sinceMs !== undefined) account.takeOver(name, sinceMs);
    if (isOwnerRestarted(now, before)) this.#o.observer?.ownerRestarted?.(name);
  }

  /** The API server has confirmed that a camera no longer belongs to this node. */
  #givenUp(name: string, camera: Camera | undefined): void {
    const sinceMs = lostSince(this.#node, camera);
    if (this.#unconfirmed.delete(name) || sinceMs !== undefined) this.#o.account.giveUp(name, sinceMs);
  }

  /** Undefined if there is none. Throws ApiServerError if there is no response or it is not a Camera. */
  async #readCamera(name: string): Promise<Camera | undefined> {
    try {
      const object = await this.#o.api.get(`${this.#base}/${CAMERAS}/${encodeURIComponent(name)}`);
      return parseCamera(object);
    } catch (err) {
      if (err instanceof ApiServerError && err.status === 404) return undefined;
      if (err instanceof ApiServerError) throw err;
      throw new ApiServerError(0, 'INVALID_ANSWER', 'a Camera is not valid', { cause: err });
    }
  }

  /** Applies the current assignments to the recorder and saves them. */
  #apply(): void {
    if (this.#closed) return;
    this.#wanted = this.#settings();
    for (const id of this.#assignments.keys()) this.#leftCameras.taken(id);
    this.#tell();
    this.#o.changed();
    this.#report.touch();
    const fingerprint = this.#fingerprint();
    if (fingerprint === this.#kept || (this.#left && this.assignments.size === 0)) return;
    this.#kept = fingerprint;
    this.#o.state.save({ assignments: this.#assignments, logins: this.#logins.known() }).catch((err: unknown) => {
      this.#o.log.error({ err, path: this.#o.state.path }, 'the copy of the assignments cannot be written');
      this.#kept = undefined;
    });
  }

  #tell(): void {
    const before = this.#told;
    this.#told = recordedOf(this.#assignments);
    for (const id of this.#told) if (!before.has(id)) this.#o.observer?.taken(id);
    for (const id of before) if (!this.#told.has(id)) this.#o.observer?.givenUp(id);
  }

  /** Changes whenever the copy must be saved. */
  #fingerprint(): string {
    const cameras = Array.from(this.assignments.values(), ({ camera, state, epoch }) => [
      camera.metadata.uid,
      camera.metadata.generation,
      camera.status?.login,
      state,
      epoch,
    ]);
    return JSON.stringify([cameras, [...this.#logins.known()]]);
  }

  /** The API server was unreachable or this process was frozen: the mirrors may be outdated. */
  #recovered(): void {
    for (const watcher of this.#watchers) watcher.resync();
    this.#report.renew();
  }

  #answered(): void {
    const { responses, certificate } = this.#nodes.own?.spec ?? {};
    if (responses) this.#requests.answered(responses);
    // Not compared by `madeFrom`, which is the same for a renewed certificate.
    if (certificate && certificate.certificate !== this.#certified) {
      this.#certified = certificate.certificate;
      this.#o.certified(certificate);
    }
  }

  #later(delayMs: number, work: () => void): void {
    const timer = this.#o.clock.after(delayMs, () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }

  async #status(): Promise<RecorderNodeStatus> {
    const facts = await this.#o.facts();
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
    const standbys = Array.from(this.#assignments).flatMap(([name, { camera, state }]): ReportedStandby[] => {
      const epoch = camera.status?.standby?.epoch;
      if (state !== 'standby' || epoch === undefined) return [];
      const refusal = refusals.get(name);
      const report = refusal ? { state: 'Failed' as const, reason: refusal } : facts.standbys.get(name);
      return [{ name, epoch, state: report?.state ?? 'Connecting', ...reportedReason(report?.reason) }];
    });
    const { fault } = facts;
    const now = timeOf(this.#o.clock.wallMs());
    const before = this.#nodes.own?.status?.conditions?.find(({ type }) => type === 'Ready');
    const status = fault ? 'False' : 'True';
    return {
      address: facts.address,
      playbackAddress: facts.playbackAddress,
      ...(facts.certificateRequest !== undefined && { certificateRequest: facts.certificateRequest }),
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

const recordedOf = (assignments: ReadonlyMap<string, Assignment>): ReadonlySet<string> =>
  new Set([...assignments].flatMap(([id, assignment]) => (isRecorded(assignment) ? [id] : [])));

const newestFirst = (archives: NodeFacts['archives']): NodeFacts['archives'] =>
  archives.length <= MAX_ARCHIVES
    ? archives
    : archives.toSorted((a, b) => (b.newestMs ?? -Infinity) - (a.newestMs ?? -Infinity) || 0);

const reportedReason = (reason: Reason | undefined) =>
  reason && { reason: reasonOf(reason.code), message: reason.message.slice(0, MAX_MESSAGE) };

/** Watches are not ordered relative to each other. */
function isLater(a: Camera, b: Camera): boolean {
  if (epochOf(a) !== epochOf(b)) return epochOf(a) > epochOf(b);
  return isNewer(a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? '');
}

const epochOf = (camera: Camera): number => camera.status?.assignment?.epoch ?? 0;

/** Whole seconds: times in a status are coarse. */
const timeOf = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');

/** A Secret that was not read yet is no problem that a person has to solve. */
const reasonFor = ({ reason, message }: MissingLogin): Reason => ({
  code: reason === 'SecretUnread' ? 'login-unread' : 'no-credentials',
  message,
});
