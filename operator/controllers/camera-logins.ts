// Which Secrets the recorders of a pool may read: those that name hosts of cameras in their own annotation. A Camera that names a
// Secret is not enough, because its author may not be the owner of the Secret.

import type { Clock } from '../../base/clock.ts';
import { concurrently } from '../../base/concurrently.ts';
import { addressesOf, type Camera } from '../../crds/camera.ts';
import { hostIn, hostsNamedBy } from '../../crds/login-hosts.ts';
import { GRANTS_NAMED_LOGINS } from '../../crds/names.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import { hasStatus, isNotFound, type KubeApi, type KubeObject, type ObjectName } from '../kube/api.ts';
import { CAMERA, ROLE, SECRET } from '../kube/resources.ts';
import { controllerOf } from '../kube/owned.ts';
import { roleOf } from '../manifests/recorder-access.ts';

interface CameraLoginsOptions {
  readonly api: KubeApi;
  /** Called when what is known about the Secret of a camera has changed. */
  readonly changed: (camera: Camera) => void;
  readonly clock: Clock;
}

/** How long the annotation of a Secret is cached; a Secret without one is read again soon. */
const FRESH_MS = 600_000;
const RETRY_MS = 10_000;
/** How many Secrets are read at once. */
const READS = 16;

/**
 * How long a Secret must have named hosts before the note in the Camera's status is removed. Recorders get the note with the
 * Camera but read the Secret separately: a recorder that saw neither would stop its camera for a moment.
 */
const LET_GO_MS = 60_000;

/**
 * What the operator knows of a Secret. `Missing`: it is not there, or the operator may not read it. That says nothing about what it
 * was for, so recorders that have read it keep its login.
 */
export type LoginSecret = 'NamesHosts' | 'NamesNone' | 'Missing';

interface Read {
  readonly state: LoginSecret;
  /** Since when it is in this state. */
  readonly sinceMs: number;
  readonly readMs: number;
}

export class CameraLogins {
  readonly #options: CameraLoginsOptions;
  /** By pool and name of the Secret. */
  readonly #reads = new Map<string, ReadonlyMap<string, Read>>();
  /** For each pool, the cameras whose logins were taken over from before Secrets had to name hosts. */
  readonly #takenOver = new Map<string, Set<string>>();

  constructor(options: CameraLoginsOptions) {
    this.#options = options;
  }

  forget(key?: string): void {
    for (const kept of [this.#reads, this.#takenOver]) {
      if (key === undefined) kept.clear();
      else kept.delete(key);
    }
  }

  /** The Secret of a camera; undefined until it is read. */
  secretOf(key: string, { spec }: Camera): LoginSecret | undefined {
    return this.#reads.get(key)?.get(spec.credentialsSecretRef?.name ?? '')?.state;
  }

  /** The names of the Secrets that the recorders may read. Throws ApiError; call it again then. */
  async granted(key: string, pool: RecorderPool, cameras: readonly Camera[]): Promise<readonly string[]> {
    await this.#read(key, pool, cameras);
    await this.#takeOver(key, pool, cameras);
    await this.#letGo(key, cameras);
    const names = cameras.flatMap((camera) => {
      const name = camera.spec.credentialsSecretRef?.name;
      const isUsedBefore = isPinned(camera) || (this.#takenOver.get(key)?.has(pinOf(camera)) ?? false);
      return name !== undefined && (this.secretOf(key, camera) === 'NamesHosts' || isUsedBefore) ? [name] : [];
    });
    return [...new Set(names)];
  }

  /** Reads the Secrets that are due. */
  async #read(key: string, { metadata: { namespace } }: RecorderPool, cameras: readonly Camera[]): Promise<void> {
    const { clock, changed } = this.#options;
    const before = this.#reads.get(key);
    const names = [...new Set(cameras.flatMap(({ spec }) => spec.credentialsSecretRef?.name ?? []))];
    const reads = new Map<string, Read>();
    const read = async (name: string): Promise<void> => {
      const known = before?.get(name);
      const nowMs = clock.monotonicMs();
      const isDue = !known || nowMs - known.readMs >= (known.state === 'NamesHosts' ? FRESH_MS : RETRY_MS);
      if (!isDue) return void reads.set(name, known);
      const state = await this.#readSecret({ namespace, name });
      const sinceMs = known?.state === state ? known.sinceMs : nowMs;
      reads.set(name, { state, sinceMs, readMs: nowMs });
    };
    await concurrently(names, READS, read);
    this.#reads.set(key, reads);
    for (const camera of cameras) {
      const name = camera.spec.credentialsSecretRef?.name ?? '';
      if (reads.get(name)?.state !== before?.get(name)?.state) changed(camera);
    }
  }

  async #readSecret(name: ObjectName): Promise<LoginSecret> {
    try {
      const { annotations } = (await this.#options.api.get(SECRET, name)).metadata;
      return hostsNamedBy(annotations) === undefined ? 'NamesNone' : 'NamesHosts';
    } catch (err) {
      // If the operator may not read a Secret, it cannot grant it.
      if (isNotFound(err) || hasStatus(err, 403)) return 'Missing';
      throw err;
    }
  }

  /**
   * Once per pool: logins that its recorders were granted before Secrets had to name hosts stay granted. The operator notes in
   * the status of each Camera, which its author cannot write, to which hosts the login was sent.
   */
  async #takeOver(key: string, pool: RecorderPool, cameras: readonly Camera[]): Promise<void> {
    if (this.#takenOver.has(key)) return;
    const { api } = this.#options;
    const { namespace } = pool.metadata;
    const granted = await this.#grantedBefore(pool);
    const taken = new Set<string>();
    for (const camera of cameras) {
      const { credentialsSecretRef: ref } = camera.spec;
      if (!ref || !granted.includes(ref.name) || this.secretOf(key, camera) === 'NamesHosts' || isPinned(camera))
        continue;
      const hosts = addressesOf(camera).flatMap((address) => hostIn(address) ?? []);
      const { uid, name } = camera.metadata;
      const patch = { metadata: { uid }, status: { login: { secretName: ref.name, hosts: [...new Set(hosts)] } } };
      await ignoreMissing(api.mergePatch(CAMERA, { namespace, name }, patch, { subresource: 'status' }));
      taken.add(pinOf(camera));
    }
    this.#takenOver.set(key, taken);
  }

  /**
   * Once a Secret names hosts, the note no longer counts, even if the annotation is removed again: the owner has then said
   * that the Secret is for no camera.
   */
  async #letGo(key: string, cameras: readonly Camera[]): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    for (const camera of cameras) {
      const read = this.#reads.get(key)?.get(camera.spec.credentialsSecretRef?.name ?? '');
      if (read?.state !== 'NamesHosts' || nowMs - read.sinceMs < LET_GO_MS) continue;
      this.#takenOver.get(key)?.delete(pinOf(camera));
      if (!isPinned(camera)) continue;
      const { namespace, name, uid } = camera.metadata;
      const patch = { metadata: { uid }, status: { login: null } };
      await ignoreMissing(this.#options.api.mergePatch(CAMERA, { namespace, name }, patch, { subresource: 'status' }));
    }
  }

  /** Whether an older version made the Role, which granted every Secret that a Camera named. */
  async #grantedBefore({ metadata: { namespace, name, uid } }: RecorderPool): Promise<readonly string[]> {
    let role: KubeObject;
    try {
      role = await this.#options.api.get(ROLE, roleOf({ namespace, name }, []).metadata);
    } catch (err) {
      if (isNotFound(err)) return [];
      throw err;
    }
    if (role.metadata.annotations?.[GRANTS_NAMED_LOGINS] !== undefined || controllerOf(role)?.uid !== uid) return [];
    const rules = (role['rules'] ?? []) as readonly {
      resources?: readonly string[];
      resourceNames?: readonly string[];
    }[];
    return rules.flatMap(({ resources, resourceNames }) =>
      resources?.includes('secrets') ? (resourceNames ?? []) : [],
    );
  }
}

/** Whether the camera got its login before Secrets had to name hosts. */
export const isPinned = ({ spec, status }: Camera): boolean =>
  spec.credentialsSecretRef !== undefined && status?.login?.secretName === spec.credentialsSecretRef.name;

/** Identifies a camera that was noted a moment ago; caches may not show the note yet. */
const pinOf = ({ metadata, spec }: Camera): string => `${metadata.uid}/${spec.credentialsSecretRef?.name}`;

async function ignoreMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}
