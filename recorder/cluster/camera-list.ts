// Lists every camera of the namespace and the node that records it, for clients that ask one node about all of them. Combines the
// Cameras, as last read from the API server, with the reports of the nodes. The result comes quickly, whatever the state of API
// server and nodes.

import type { Clock } from '../../base/clock.ts';
import type { Reason } from '../../base/reason.ts';
import { isSuspended, parseCamera, type Camera, type CameraAssignment } from '../../crds/camera.ts';
import { API_VERSION, CAMERAS, RECORDER_NODES } from '../../crds/names.ts';
import { codeOf } from '../../crds/reasons.ts';
import {
  believedReports,
  parseRecorderNode,
  type RecorderNode,
  type ReportedCamera,
} from '../../crds/recorder-node.ts';
import { ApiServerError, type ApiServer, type KubernetesObject } from './api-server.ts';
import { groupOf } from './camera-settings.ts';
import type { Cluster } from './cluster.ts';
import type { Membership } from './membership.ts';
import { archiveTimes, type Holder } from './peers.ts';

/** A camera of the namespace, as this node knows it. */
export interface ListedCamera {
  readonly id: string;
  readonly name: string;
  readonly group?: string | undefined;
  /** The node that records it now, even while another one takes it over; for a suspended camera, the last one. */
  readonly nodeId: string | undefined;
  readonly epoch: number;
  /** `unknown`: its node shows no sign of life, or reports a state of a newer version. */
  readonly state: 'connecting' | 'recording' | 'silent' | 'failed' | 'stopped' | 'unassigned' | 'unknown';
  readonly reason: Reason | undefined;
  readonly lastWrittenMs: number | undefined;
  /** All nodes that have footage of it. */
  readonly archives: readonly ListedArchive[];
}

/** Milliseconds since 1970, coarse. */
type ListedArchive = Pick<Holder, 'nodeId' | 'oldestMs' | 'newestMs'>;

interface ListedNode {
  readonly nodeId: string;
  /** Base URL of its API; undefined until the operator has set it. */
  readonly url: string | undefined;
  readonly playbackUrl: string | undefined;
  readonly isOnline: boolean;
  /** Time since its last sign of life. */
  readonly lastSeenMs: number | undefined;
}

export interface ListedCameras {
  readonly nodes: readonly ListedNode[];
  readonly cameras: readonly ListedCamera[];
}

interface CameraListOptions {
  readonly api: Pick<ApiServer, 'list'>;
  readonly cluster: Pick<Cluster, 'nodes'>;
  readonly membership: Pick<Membership, 'look' | 'sinceSeenMs' | 'isOnline'>;
  readonly namespace: string;
  readonly clock: Clock;
}

/** The fields of a Camera that are kept, because there may be thousands. */
interface SeenCamera {
  readonly name: string;
  readonly group?: string | undefined;
  readonly suspended: boolean;
  readonly assignment: CameraAssignment | undefined;
}

interface Report extends ReportedCamera {
  readonly nodeId: string;
}

/** Calls within this time share one read; a list of thousands is read less often. */
const FRESH_MS = 2_000;
const FRESH_PER_LOOK = 20;
/** If nothing newer arrives within this time, the last known state is returned. */
const WAIT_MS = 1_000;

export class CameraList {
  readonly #options: CameraListOptions;
  /** Undefined until the API server has answered once. */
  #cameras: ReadonlyMap<string, SeenCamera> | undefined;
  /** RecorderNodes of other pools. */
  #foreign: ReadonlyMap<string, RecorderNode> = new Map();
  #looking: Promise<void> | undefined;
  #freshUntilMs = -Infinity;

  constructor(options: CameraListOptions) {
    this.#options = options;
  }

  /** Ids of the cameras that existed at the last read. */
  ids(): Iterable<string> {
    return this.#cameras?.keys() ?? [];
  }

  /** Reads which nodes are alive. Waits a second at most. */
  lookAtNodes(): Promise<void> {
    return this.#forAWhile(this.#options.membership.look());
  }

  async list(): Promise<ListedCameras> {
    await this.#forAWhile(Promise.all([this.#lookOnce(), this.#options.membership.look()]));
    return { nodes: this.#nodes(), cameras: this.#list() };
  }

  /** A read that takes longer continues, for the next call. */
  async #forAWhile(reading: Promise<unknown>): Promise<void> {
    const enough = new AbortController();
    await Promise.race([reading, this.#options.clock.sleep(WAIT_MS, enough.signal)]);
    enough.abort();
  }

  #lookOnce(): Promise<void> {
    if (this.#options.clock.monotonicMs() < this.#freshUntilMs) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { clock, cluster } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      const cameras = await this.#read(CAMERAS, parseCamera);
      const seen = new Map(cameras.map((camera): [string, SeenCamera] => [camera.metadata.name, seenOf(camera)]));
      const owners = [...seen.values()].flatMap(({ assignment }) => assignment?.node ?? []);
      if (owners.some((node) => !cluster.nodes.has(node))) {
        const nodes = await this.#read(RECORDER_NODES, parseRecorderNode);
        this.#foreign = new Map(nodes.map((node) => [node.metadata.name, node]));
      }
      this.#cameras = seen;
    } catch (err) {
      if (!(err instanceof ApiServerError)) throw err;
    }
    const tookMs = clock.monotonicMs() - startMs;
    this.#freshUntilMs = startMs + Math.max(FRESH_MS, FRESH_PER_LOOK * tookMs);
  }

  async #read<T>(plural: string, parse: (object: KubernetesObject) => T): Promise<T[]> {
    const { api, namespace } = this.#options;
    // 0: from the cache of the API server. It may be slightly outdated, and reports with a higher epoch take precedence anyway.
    const query = { resourceVersion: '0' };
    const { items } = await api.list(`/apis/${API_VERSION}/namespaces/${namespace}/${plural}`, { query });
    return items.flatMap((item) => {
      try {
        return [parse(item)];
      } catch {
        // The operator says in the status of the object what is wrong with it.
        return [];
      }
    });
  }

  #known(): readonly RecorderNode[] {
    const { nodes } = this.#options.cluster;
    return [...nodes.values(), ...[...this.#foreign].flatMap(([id, node]) => (nodes.has(id) ? [] : [node]))];
  }

  #nodes(): readonly ListedNode[] {
    const { membership } = this.#options;
    return this.#known()
      .map(({ metadata: { name }, spec }): ListedNode => {
        const lastSeenMs = membership.sinceSeenMs(name);
        return {
          nodeId: name,
          url: spec.address,
          playbackUrl: spec.playbackAddress,
          isOnline: membership.isOnline(name),
          lastSeenMs,
        };
      })
      .sort((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  }

  #list(): readonly ListedCamera[] {
    const { membership } = this.#options;
    const nodes = this.#known();
    const reports = new Map<string, Report[]>();
    const archives = new Map<string, ListedArchive[]>();
    for (const node of nodes) {
      const nodeId = node.metadata.name;
      for (const report of believedReports(node)) append(reports, report.name, { ...report, nodeId });
      for (const archive of node.status?.archives ?? []) {
        append(archives, archive.camera, { nodeId, ...archiveTimes(archive) });
      }
    }
    const isOnline = (nodeId: string): boolean => membership.isOnline(nodeId);
    // Until the API server has answered, the reports of the nodes are all there is.
    const cameras = this.#cameras ?? new Map([...reports.keys()].map((id) => [id, UNREAD]));
    return Array.from(cameras, ([id, seen]): ListedCamera => ({
      id,
      name: seen.name || id,
      group: seen.group,
      archives: archives.get(id) ?? [],
      ...whereIs(seen, reports.get(id) ?? [], isOnline),
    })).sort((a, b) => (a.id < b.id ? -1 : 1));
  }
}

const UNREAD: SeenCamera = { name: '', group: undefined, suspended: false, assignment: undefined };

const seenOf = ({ metadata, spec, status }: Camera): SeenCamera => ({
  name: spec.displayName ?? '',
  group: groupOf({ metadata }),
  suspended: isSuspended({ spec, status }),
  assignment: status?.assignment,
});

type RecordingPlace = Pick<ListedCamera, 'nodeId' | 'epoch' | 'state' | 'reason' | 'lastWrittenMs'>;

/**
 * The node that records a camera: that with the highest epoch, except that during a handover the old one counts until the next
 * has a picture on disk.
 */
function whereIs(
  { suspended, assignment }: SeenCamera,
  reports: readonly Report[],
  isOnline: (nodeId: string) => boolean,
): RecordingPlace {
  const newest = reports.reduce<Report | undefined>((a, b) => (a && a.epoch >= b.epoch ? a : b), undefined);
  const epoch = Math.max(assignment?.epoch ?? 0, newest?.epoch ?? 0);
  const told = newest && newest.epoch >= (assignment?.epoch ?? 0) ? newest : undefined;
  const none = { epoch, reason: undefined, lastWrittenMs: undefined };
  if (suspended && !told) return { ...none, nodeId: assignment?.previousNode ?? assignment?.node, state: 'stopped' };
  const nodeId = told?.nodeId ?? assignment?.node;
  const before = assignment?.handover === 'Pending' ? assignment.previousNode : undefined;
  const handing = before === undefined ? undefined : reports.find((report) => report.nodeId === before);
  if (handing && told?.state !== 'Recording' && isOnline(handing.nodeId)) return { ...placeOf(handing), epoch };
  if (nodeId === undefined) {
    const reason = {
      code: 'unassigned',
      message: 'no node records this camera: the condition Assigned of its Camera says why',
    };
    return { ...none, nodeId, state: 'unassigned', reason };
  }
  if (!isOnline(nodeId)) {
    const reason = { code: 'node-unreachable', message: `the node ${nodeId} has stopped renewing` };
    return { ...none, nodeId, state: 'unknown', reason };
  }
  return told ? { ...placeOf(told), epoch } : { ...none, nodeId, state: 'connecting' };
}

function placeOf({ nodeId, state, reason, message, lastWrittenTime }: Report): Omit<RecordingPlace, 'epoch'> {
  return {
    nodeId,
    state: STATES.get(String(state)) ?? 'unknown',
    reason: reason === undefined ? undefined : { code: codeOf(reason), message: message ?? '' },
    lastWrittenMs: lastWrittenTime === undefined ? undefined : Date.parse(lastWrittenTime),
  };
}

/** A newer recorder may report others. */
const STATES: ReadonlyMap<string, ListedCamera['state']> = new Map([
  ['Connecting', 'connecting'],
  ['Recording', 'recording'],
  ['Silent', 'silent'],
  ['Failed', 'failed'],
  ['Stopped', 'stopped'],
]);

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
