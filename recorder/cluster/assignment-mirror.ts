// The cameras that the cluster assigns to this node: mirrored from the Cameras that name the node, confirmed by a read before one is
// stopped, and kept on disk for a start without the API server.

import type { Clock, Timer } from '../../base/clock.ts';
import { Informer } from '../../base/kubernetes/informer.ts';
import { isNewer } from '../../base/kubernetes/resource-version.ts';
import type { Log } from '../../base/log.ts';
import { parseCamera, type Camera } from '../../crds/camera.ts';
import {
  API_VERSION,
  ASSIGNED_NODE_FIELD,
  CAMERAS,
  PREVIOUS_NODE_FIELD,
  STANDBY_NODE_FIELD,
} from '../../crds/names.ts';
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
import type { KeptState } from './kept-state.ts';
import type { Logins } from './logins.ts';

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
  /** No node records it any more: somebody has deleted it. */
  removed(cameraId: string): void;
}

interface MirrorSource {
  readonly api: Pick<ApiServer, 'get' | 'pages' | 'watch'>;
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Adds jitter to pauses. */
  readonly random?: () => number;
}

export interface AssignmentMirrorOptions extends MirrorSource {
  readonly nodeId: string;
  readonly pool: string;
  readonly state: Pick<KeptState, 'path' | 'load' | 'save' | 'erase'>;
  /** Kept on disk with the assignments that need them. */
  readonly logins: Pick<Logins, 'known' | 'restore'>;
  readonly account: TimeAccount;
  readonly observer?: AssignmentObserver | undefined;
  /** The recorder of a camera that this node holds was restarted, and is back. */
  readonly ownerRestarted: (cameraId: string) => void;
  /** What keeps the objects of the cluster, in messages; default: the API server. */
  readonly store?: string | undefined;
  /** Called when the assignments, or the logins for them, have changed. */
  readonly changed: () => void;
}

/** The pause after a failed read of a doubtful camera. */
const CONFIRM_RETRY_MS = 1_000;
/** Number of Cameras, including deleted ones. */
const MAX_SEEN_EPOCHS = 10_000;

export class AssignmentMirror {
  readonly #options: AssignmentMirrorOptions;
  readonly #owned: Informer<Camera, KubernetesObject>;
  readonly #previous: Informer<Camera, KubernetesObject>;
  readonly #standby: Informer<Camera, KubernetesObject>;
  /** Cameras that are being read, and whether they have changed since. */
  readonly #confirming = new Map<string, boolean>();
  readonly #timers = new Set<Timer>();
  /** The highest epoch seen of each Camera, by uid. */
  readonly #seenEpochs = new Map<string, number>();
  #assignments: ReadonlyMap<string, Assignment> = new Map();
  /** Cameras that only the copy on disk assigns to this node: the API server has not confirmed them since the start. */
  readonly #unconfirmed = new Set<string>();
  /** The fingerprint of the copy on disk. */
  #kept: string | undefined;
  /** The cameras that the observer knows to be recorded here. */
  #told: ReadonlySet<string> = new Set();
  /** After this node left: the last epochs of its cameras, by uid. A camera assigned with a later epoch is recorded again. */
  #left: ReadonlyMap<string, number> | undefined;
  #closed = false;

  constructor(options: AssignmentMirrorOptions) {
    this.#options = options;
    const camerasWith = (field: string): Informer<Camera, KubernetesObject> =>
      openInformer(options, CAMERAS, `${field}=${options.nodeId}`, parseCamera);
    this.#owned = camerasWith(ASSIGNED_NODE_FIELD);
    this.#previous = camerasWith(PREVIOUS_NODE_FIELD);
    this.#standby = camerasWith(STANDBY_NODE_FIELD);
    for (const informer of this.#informers) informer.onUpdate(() => this.#look());
  }

  get #informers() {
    return [this.#owned, this.#previous, this.#standby];
  }

  /** By camera, with the cameras that this node holds for others. */
  get all(): ReadonlyMap<string, Assignment> {
    return this.#assignments;
  }

  /** Without the cameras that this node holds for others. */
  get own(): ReadonlyMap<string, Assignment> {
    return new Map([...this.#assignments].filter(([, { state }]) => state !== 'standby'));
  }

  /** The cameras of this node have been listed since the start. */
  get isSynced(): boolean {
    return this.#owned.isSynced && this.#previous.isSynced;
  }

  /** Restores the last assignments if the copy is trustworthy. Never rejects. */
  async restore(): Promise<void> {
    const { state, log, logins, store = 'the API server' } = this.#options;
    try {
      const loaded = await state.load();
      if (loaded.kind === 'kept') {
        this.#assignments = loaded.kept.assignments;
        for (const name of loaded.kept.assignments.keys()) this.#unconfirmed.add(name);
        this.#told = recordedOf(this.#assignments);
        logins.restore(loaded.kept.logins);
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
  }

  start(): void {
    for (const informer of this.#informers) informer.start();
    this.#apply();
  }

  /** The API server was unreachable or this process was frozen: the mirror may be outdated. */
  resync(): void {
    for (const informer of this.#informers) informer.resync();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) timer.cancel();
    await Promise.all(this.#informers.map((informer) => informer.close()));
  }

  /** Call when a login has changed: the copy on disk contains them. */
  loginsChanged(): void {
    this.#apply();
  }

  get hasLeft(): boolean {
    return this.#left !== undefined;
  }

  /** Forgets the assignments. A new assignment brings the node back. */
  async leave(): Promise<void> {
    this.#left = new Map(
      Array.from(this.#assignments.values(), ({ camera, epoch }) => [camera.metadata.uid ?? '', epoch]),
    );
    this.#assignments = new Map();
    this.#apply();
    await this.#options.state.erase();
    this.#kept = undefined;
  }

  /** Call when one of the mirrors has changed. */
  #look(): void {
    if (this.#closed || !this.isSynced) return;
    const mirrored = new Map(this.#previous.objects);
    for (const [name, camera] of [...this.#owned.objects, ...this.#standby.objects]) {
      const other = mirrored.get(name);
      if (!other || isLater(camera, other)) mirrored.set(name, camera);
    }
    for (const [name, camera] of mirrored) {
      if (this.#wasLeft(camera) || !this.#isNewest(camera)) mirrored.delete(name);
    }
    const { assignments, doubtful } = changesOf(this.#options, mirrored, this.#assignments);
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
    if (this.#closed) return;
    const isRead = this.#confirming.has(name);
    this.#confirming.set(name, isRead);
    if (isRead) return;
    try {
      const read = await this.#readCamera(name);
      const camera = read && this.#wasLeft(read) ? undefined : read;
      if (camera && !this.#isNewest(camera)) return this.#later(CONFIRM_RETRY_MS, () => this.#look());
      const before = this.#assignments.get(name);
      const now = decide(this.#options, camera, before);
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
      const hasChanged = this.#confirming.get(name) === true;
      this.#confirming.delete(name);
      // The answer may be older than the change.
      if (hasChanged) this.#look();
    }
  }

  /** The API server has confirmed that a camera belongs to this node. */
  #taken(name: string, now: Assignment, before: Assignment | undefined): void {
    const { account } = this.#options;
    const isFirstAnswer = this.#unconfirmed.delete(name);
    // It moved away and came back while this process did not run.
    if (isFirstAnswer && now.state === 'own' && before && before.epoch < now.epoch) account.giveUp(name, undefined);
    const sinceMs = vacantSince(now, before);
    if (sinceMs !== undefined) account.takeOver(name, sinceMs);
    if (isOwnerRestarted(now, before)) this.#options.ownerRestarted(name);
  }

  /** The API server has confirmed that a camera no longer belongs to this node. */
  #givenUp(name: string, camera: Camera | undefined): void {
    const sinceMs = lostSince(this.#options, camera);
    if (this.#unconfirmed.delete(name) || sinceMs !== undefined) this.#options.account.giveUp(name, sinceMs);
    if (!camera || camera.metadata.deletionTimestamp !== undefined) this.#options.observer?.removed(name);
  }

  /** Undefined if there is none. Throws ApiServerError if there is no response or it is not a Camera. */
  async #readCamera(name: string): Promise<Camera | undefined> {
    const { api, namespace } = this.#options;
    try {
      const object = await api.get(`${pathOf(namespace, CAMERAS)}/${encodeURIComponent(name)}`);
      return parseCamera(object);
    } catch (err) {
      if (err instanceof ApiServerError && err.status === 404) return undefined;
      if (err instanceof ApiServerError) throw err;
      throw new ApiServerError(0, 'INVALID_ANSWER', 'a Camera is not valid', { cause: err });
    }
  }

  /** Reports the current assignments and saves them. */
  #apply(): void {
    if (this.#closed) return;
    this.#tell();
    this.#options.changed();
    const fingerprint = this.#fingerprint();
    if (fingerprint === this.#kept || (this.#left && this.own.size === 0)) return;
    this.#kept = fingerprint;
    const { state, logins, log } = this.#options;
    state.save({ assignments: this.#assignments, logins: logins.known() }).catch((err: unknown) => {
      log.error({ err, path: state.path }, 'the copy of the assignments cannot be written');
      this.#kept = undefined;
    });
  }

  #tell(): void {
    const before = this.#told;
    this.#told = recordedOf(this.#assignments);
    for (const id of this.#told) if (!before.has(id)) this.#options.observer?.taken(id);
    for (const id of before) if (!this.#told.has(id)) this.#options.observer?.givenUp(id);
  }

  /** Changes whenever the copy must be saved. */
  #fingerprint(): string {
    const cameras = Array.from(this.own.values(), ({ camera, state, epoch }) => [
      camera.metadata.uid,
      camera.metadata.generation,
      camera.status?.login,
      state,
      epoch,
    ]);
    return JSON.stringify([cameras, [...this.#options.logins.known()]]);
  }

  #later(delayMs: number, work: () => void): void {
    const timer = this.#options.clock.after(delayMs, () => {
      this.#timers.delete(timer);
      work();
    });
    this.#timers.add(timer);
  }
}

export const pathOf = (namespace: string, plural: string): string =>
  `/apis/${API_VERSION}/namespaces/${namespace}/${plural}`;

/** Mirrors the objects that a field selector selects. */
export function openInformer<T>(
  { api, namespace, clock, log, random }: MirrorSource,
  plural: string,
  fieldSelector: string,
  parse: (object: unknown) => T,
): Informer<T, KubernetesObject> {
  const path = pathOf(namespace, plural);
  const query = { fieldSelector };
  return new Informer<T, KubernetesObject>({
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
}

const recordedOf = (assignments: ReadonlyMap<string, Assignment>): ReadonlySet<string> =>
  new Set([...assignments].flatMap(([id, assignment]) => (isRecorded(assignment) ? [id] : [])));

/** Watches are not ordered relative to each other. */
function isLater(a: Camera, b: Camera): boolean {
  if (epochOf(a) !== epochOf(b)) return epochOf(a) > epochOf(b);
  return isNewer(a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? '');
}

const epochOf = (camera: Camera): number => camera.status?.assignment?.epoch ?? 0;
