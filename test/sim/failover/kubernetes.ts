// The simulated API server and clock as one process of the operator sees them: what its code asks for as promises, and
// objects as JSON.

import { sleepOn, type Clock, type Timer } from '../../../base/clock.ts';
import { API_VERSION, nodeLeaseName, nodeOfLease } from '../../../crds/names.ts';
import {
  ApiError,
  type CallOptions,
  type KubeApi,
  type KubeObject,
  type ObjectList,
  type ObjectName,
  type Resource,
  type Selection,
  type WriteOptions,
} from '../../../operator/kube/api.ts';
import type { Assignment, CameraView, NodeView, Role, Standby } from '../../../operator/plan/snapshot.ts';
import type { ApiServer, Kind, LeaseView, ObjectOf, Outcome, VersionedPool } from './api-server.ts';
import type { Monitor } from './monitor.ts';
import type { Process, Timeline } from './world.ts';

export const NAMESPACE = 'sim';
export const POOL = 'default';
/** The login of every camera. */
export const SECRET = 'login';
export const CAMERA_HOST = '10.0.0.9';
const TIME = '2026-01-01T00:00:00Z';
const CALL_MS = 10_000;
const KINDS: Readonly<Record<string, Kind>> = { cameras: 'Camera', recordernodes: 'RecorderNode', leases: 'Lease' };

export class ProcessClock implements Clock {
  readonly #process: Process;

  constructor(process: Process) {
    this.#process = process;
  }

  monotonicMs(): number {
    return this.#process.nowMs();
  }

  ranMs(): number {
    return this.#process.nowMs();
  }

  wallMs(): number {
    return this.#process.wallMs();
  }

  after(delayMs: number, callback: () => void): Timer {
    let isCancelled = false;
    this.#process.after(delayMs, () => {
      if (isCancelled) return;
      this.#process.timeline.isStirred = true;
      callback();
    });
    return { cancel: () => (isCancelled = true) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }
}

/** What `Camera.status.assignment` is patched with: null takes a field away. */
type AssignmentPatch = { readonly [F in keyof Assignment]: Assignment[F] | null };

type StandbyPatch = { readonly node: string | null; readonly epoch: number; readonly process: string | null };

interface Patch {
  readonly metadata: { readonly resourceVersion?: string };
  readonly status?: { readonly assignment: AssignmentPatch; readonly standby?: StandbyPatch };
  readonly spec?: { readonly role: Role };
}

interface ProcessApiOptions {
  readonly process: Process;
  readonly server: ApiServer;
  readonly monitor: Monitor;
  readonly timeline: Timeline;
}

/** As much of the API as the operator's assigner uses. */
export class ProcessApi implements KubeApi {
  readonly #o: ProcessApiOptions;

  constructor(options: ProcessApiOptions) {
    this.#o = options;
  }

  get(resource: Resource, { name }: ObjectName, { timeoutMs = CALL_MS }: CallOptions = {}): Promise<KubeObject> {
    const kind = kindOf(resource);
    const { server } = this.#o;
    return this.#call(timeoutMs, () => server.get(kind, viewName(kind, name))).then((view) => objectOf(kind, view));
  }

  list(resource: Resource, _selection: Selection, { timeoutMs = CALL_MS }: CallOptions = {}): Promise<ObjectList> {
    const kind = kindOf(resource);
    const { server } = this.#o;
    return this.#call(timeoutMs, () => ({ ok: [...server.all(kind).values()] })).then((views) => ({
      items: views.map((view) => objectOf(kind, view)),
      resourceVersion: '',
    }));
  }

  mergePatch(
    resource: Resource,
    { name }: ObjectName,
    patch: object,
    { timeoutMs = CALL_MS }: WriteOptions = {},
  ): Promise<KubeObject> {
    const { server, process, monitor, timeline } = this.#o;
    const { metadata, status, spec } = patch as Patch;
    const { resourceVersion } = metadata;
    if (kindOf(resource) === 'RecorderNode') {
      const role = spec?.role ?? 'Learner';
      const write = (): Outcome<NodeView> =>
        server.replace('RecorderNode', name, resourceVersion, (before) => ({ ...before, role }), process);
      return this.#call(timeoutMs, write).then((view) => objectOf('RecorderNode', view));
    }
    const patched = (before: CameraView | undefined): Assignment => merged(before?.assignment, status?.assignment);
    const planned = patched(server.all('Camera').get(name));
    try {
      monitor.decides(process, { camera: name, assignment: planned, fromEpoch: planned.epoch - 1 });
    } catch (violation) {
      timeline.failure ??= violation;
    }
    const write = (): Outcome<CameraView> =>
      server.replace(
        'Camera',
        name,
        resourceVersion,
        (before) => ({
          ...before,
          assignment: patched(before),
          ...(status?.standby && { standby: standbyOf(status.standby) }),
        }),
        process,
      );
    return this.#call(timeoutMs, write).then((view) => objectOf('Camera', view));
  }

  pages(): AsyncIterable<never> {
    throw new Error('caches are simulated (reflector.ts)');
  }

  watch(): AsyncIterable<never> {
    throw new Error('caches are simulated (reflector.ts)');
  }

  create(): Promise<never> {
    throw new Error('not simulated');
  }

  replace(): Promise<never> {
    throw new Error('not simulated');
  }

  apply(): Promise<never> {
    throw new Error('not simulated');
  }

  delete(): Promise<never> {
    throw new Error('not simulated');
  }

  #call<T>(timeoutMs: number, work: () => Outcome<T>): Promise<T> {
    const { server, process, timeline } = this.#o;
    timeline.isStirred = true;
    return new Promise((resolve, reject) => {
      server.call(process, timeoutMs, work, (answer) => {
        timeline.isStirred = true;
        if (!answer) reject(refusal(0, 'UNREACHABLE', 'no answer'));
        else if ('ok' in answer) resolve(answer.ok);
        else if ('conflict' in answer) reject(refusal(409, 'Conflict', 'somebody else wrote before'));
        else reject(refusal(404, 'NotFound', 'there is none'));
      });
    });
  }
}

/** Without a trace, which costs more than the rest of the request and is read by nobody. */
export function refusal(...what: ConstructorParameters<typeof ApiError>): ApiError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new ApiError(...what);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function kindOf({ plural }: Resource): Kind {
  const kind = KINDS[plural];
  if (!kind) throw new Error(`${plural} are not simulated`);
  return kind;
}

const viewName = (kind: Kind, name: string): string => (kind === 'Lease' ? (nodeOfLease(name) ?? name) : name);

const standbyOf = ({ node, epoch, process }: StandbyPatch): Standby => ({
  epoch,
  ...(node !== null && { node }),
  ...(process !== null && { process }),
});

/** RFC 7396: null takes a field away, and what is not named stays. */
function merged(before: Assignment | undefined, patch: Partial<AssignmentPatch> = {}): Assignment {
  const after: Record<string, unknown> = { epoch: 0, reason: '', ...before };
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete after[field];
    else if (value !== undefined && field !== 'time') after[field] = value;
  }
  return after as Assignment;
}

export function objectOf<K extends Kind>(kind: K, view: ObjectOf<K>): KubeObject {
  if (kind === 'Camera') return cameraOf(view as CameraView);
  if (kind === 'RecorderNode') return recorderNodeOf(view as NodeView);
  if (kind === 'RecorderPool') return recorderPoolOf(view as VersionedPool);
  return leaseOf(view as LeaseView);
}

/** Nothing decides by its time, but for a rule that is broken on purpose, which reads it as a number. */
export const leaseOf = ({
  name,
  resourceVersion,
  holder,
  renewedWallMs,
  leaseDurationSeconds,
}: LeaseView): KubeObject => ({
  metadata: { namespace: NAMESPACE, name: nodeLeaseName(name), resourceVersion },
  spec: {
    holderIdentity: holder,
    renewedWallMs,
    leaseDurationSeconds,
    renewTime: new Date(renewedWallMs).toISOString(),
  },
});

const recorderPoolOf = ({ name, resourceVersion, renewMs, unavailableAfterMs }: VersionedPool): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'RecorderPool',
  metadata: { namespace: NAMESPACE, name, resourceVersion },
  spec: {
    archive: { hostPath: '/srv' },
    failover: { renewSeconds: renewMs / 1_000, unavailableAfterSeconds: unavailableAfterMs / 1_000 },
  },
});

function cameraOf(view: CameraView): KubeObject {
  const { name, uid, resourceVersion, suspend, priority, nodeSelector, preferredNode, failover, assignment } = view;
  const { standby, wantsStandby } = view;
  return {
    apiVersion: API_VERSION,
    kind: 'Camera',
    metadata: { namespace: NAMESPACE, name, uid, resourceVersion },
    spec: {
      source: `rtsp://${CAMERA_HOST}/1`,
      poolRef: { name: POOL },
      credentialsSecretRef: { name: SECRET },
      suspend,
      placement: {
        priority,
        nodeSelector,
        failover,
        standby: wantsStandby,
        ...(preferredNode !== undefined && { preferredNode }),
      },
    },
    ...(assignment && { status: { assignment: { ...assignment, time: TIME }, standby } }),
  };
}

const recorderNodeOf = ({ name, resourceVersion, role, drain, cameras }: NodeView): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'RecorderNode',
  metadata: { namespace: NAMESPACE, name, resourceVersion },
  spec: { nodeName: name, poolRef: { name: POOL }, role, drain },
  status: {
    cameras: Array.from(cameras, ([camera, { epoch, state }]) => ({ name: camera, epoch, state })),
    // Without it, every report would have the time of a transition that is new.
    conditions: [{ type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: TIME }],
  },
});
