// Hundreds of simulated recorders in one process. Towards the API server and the operator they are real: each renews its Lease
// and reports its RecorderNode with the recorder's code; one watch of the Cameras serves all. There is no media.

import { readFileSync } from 'node:fs';
import { Agent } from 'undici';
import { systemClock } from '../../../base/clock.ts';
import { type Connection, KubernetesClient } from '../../../base/kubernetes/client.ts';
import type { Log } from '../../../base/log.ts';
import { parseCamera, type CameraAssignment } from '../../../crds/camera.ts';
import { API_VERSION, CAMERAS } from '../../../crds/names.ts';
import type { RecorderNodeStatus } from '../../../crds/recorder-node.ts';
import { renewMsFor } from '../../../crds/renewal.ts';
import { NodeLease } from '../../../recorder/cluster/node-lease.ts';
import { Report } from '../../../recorder/cluster/report.ts';
import type { ControlPlane } from '../../cluster/control-plane.ts';
import { sleep } from '../processes.ts';

/** Time from the assignment to the first key frame in a file. */
const CONNECT_MS = 800;
/** As in real recorders. */
const REFRESH_TOUCH_MS = 10_000;

/** A change of a camera's assignment, and when it was seen. */
export interface Seen {
  readonly camera: string;
  readonly before: CameraAssignment | undefined;
  readonly now: CameraAssignment | undefined;
}

interface MembersOptions {
  readonly controlPlane: ControlPlane;
  readonly namespace: string;
  readonly pool: string;
  readonly nodes: readonly string[];
  readonly log: Log;
  readonly onAssigned: (seen: Seen) => void;
}

interface Recording {
  readonly epoch: number;
  readonly sinceMs: number;
}

export class Members {
  readonly #api: KubernetesClient;
  readonly #members: ReadonlyMap<string, Member>;
  readonly #assignments = new Map<string, CameraAssignment>();
  readonly #options: MembersOptions;
  readonly #stop = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#api = clientOf(options.controlPlane);
    this.#members = new Map(options.nodes.map((node) => [node, new Member(node, this.#api, options)]));
  }

  /** By camera. */
  get assignments(): ReadonlyMap<string, CameraAssignment> {
    return this.#assignments;
  }

  start(): void {
    this.#watching = this.#watch(this.#stop.signal);
    for (const member of this.#members.values()) member.start();
  }

  /** The node falls silent and continues to record what it knows. Resolves with the time of its last sign of life. */
  async silence(node: string): Promise<number> {
    return this.#of(node).silence();
  }

  speak(node: string): void {
    this.#of(node).start();
  }

  /** Every camera is reported by its node under its epoch. */
  get isTakenUp(): boolean {
    return [...this.#assignments].every(
      ([camera, { node, epoch }]) => node !== undefined && this.#members.get(node)?.told(camera) === epoch,
    );
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#members.values()].map((member) => member.silence()));
    await this.#watching;
    await this.#api.close();
  }

  #of(node: string): Member {
    const member = this.#members.get(node);
    if (!member) throw new Error(`no member ${node}`);
    return member;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const path = `/apis/${API_VERSION}/namespaces/${this.#options.namespace}/${CAMERAS}`;
    while (!signal.aborted) {
      try {
        const { items, resourceVersion } = await this.#api.list(path, { signal, timeoutMs: 60_000 });
        for (const item of items) this.#look(item);
        for await (const { type, object } of this.#api.watch(path, resourceVersion, { query: {}, signal })) {
          if (type !== 'BOOKMARK') this.#look(object);
        }
      } catch (err) {
        if (signal.aborted) return;
        this.#options.log.warn({ err }, 'watch of the bench ended');
        await sleep(1_000);
      }
    }
  }

  #look(object: unknown): void {
    const { metadata, status } = parseCamera(object);
    const camera = metadata.name;
    const now = status?.assignment;
    const before = this.#assignments.get(camera);
    if (before?.epoch === now?.epoch && before?.node === now?.node) return;
    if (now) this.#assignments.set(camera, now);
    if (before?.node !== undefined && before.node !== now?.node) this.#members.get(before.node)?.stop(camera);
    if (now?.node !== undefined) this.#members.get(now.node)?.record(camera, now.epoch);
    this.#options.onAssigned({ camera, before, now });
  }
}

class Member {
  readonly #node: string;
  readonly #api: KubernetesClient;
  readonly #options: MembersOptions;
  readonly #recordings = new Map<string, Recording>();
  readonly #archives = new Map<string, string>();
  readonly #told = new Map<string, number>();
  #lease: NodeLease | undefined;
  #report: Report | undefined;
  #tick: NodeJS.Timeout | undefined;
  #renewedMs = 0;
  readonly #renewMs: number;

  constructor(node: string, api: KubernetesClient, options: MembersOptions) {
    this.#node = node;
    this.#api = api;
    this.#options = options;
    this.#renewMs = renewMsFor(options.nodes.length, { renewSeconds: 2, unavailableAfterSeconds: 15 });
  }

  start(): void {
    const { namespace, pool, log } = this.#options;
    const common = { namespace, nodeId: this.#node, clock: systemClock, log };
    const api = this.#api;
    this.#lease = new NodeLease({
      ...common,
      // One member must not close the connections of all.
      reconnect: () => {},
      api: {
        get: (path, options) => api.get(path, options),
        call: async (...call) => {
          const answer = await api.call(...call);
          this.#renewedMs = Date.now();
          return answer;
        },
      },
      pool,
      renewMs: () => this.#renewMs,
      recovered: () => this.#report?.renew(),
    });
    this.#report = new Report({
      ...common,
      mayTell: () => true,
      api: {
        apply: async (path, manager, body) => {
          const answer = await api.apply(path, manager, body);
          const { cameras = [] } = (body as { status: RecorderNodeStatus }).status;
          this.#told.clear();
          for (const { name, epoch } of cameras) this.#told.set(name, epoch);
          return answer;
        },
      },
      status: () => Promise.resolve(this.#status()),
    });
    // Recorders do not all start at the same moment.
    setTimeout(() => this.#lease?.start(), Math.random() * this.#renewMs);
    this.#tick = setInterval(() => this.#report?.touch(), REFRESH_TOUCH_MS);
    this.#report.touch();
  }

  async silence(): Promise<number> {
    clearInterval(this.#tick);
    await Promise.all([this.#lease?.close(), this.#report?.close()]);
    this.#report = undefined;
    return this.#renewedMs;
  }

  told(camera: string): number | undefined {
    return this.#told.get(camera);
  }

  record(camera: string, epoch: number): void {
    this.#recordings.set(camera, { epoch, sinceMs: Date.now() });
    this.#report?.touch();
    setTimeout(() => {
      if (this.#recordings.get(camera)?.epoch !== epoch) return;
      this.#archives.set(camera, this.#archives.get(camera) ?? timeOf(Date.now()));
      this.#report?.touch();
    }, CONNECT_MS);
  }

  stop(camera: string): void {
    this.#recordings.delete(camera);
    this.#report?.touch();
  }

  #status(): RecorderNodeStatus {
    const now = Date.now();
    return {
      address: `${this.#node}:9997`,
      playbackAddress: `${this.#node}:9996`,
      version: '0.1.0',
      archiveID: `archive-of-${this.#node}`,
      freeBytes: 10 ** 12,
      cameras: Array.from(this.#recordings, ([name, { epoch, sinceMs }]) => {
        const isWritten = now - sinceMs >= CONNECT_MS;
        return {
          name,
          epoch,
          state: isWritten ? ('Recording' as const) : ('Connecting' as const),
          ...(isWritten && { lastWrittenTime: timeOf(now) }),
        };
      }),
      archives: Array.from(this.#archives, ([camera, oldestTime]) => ({ camera, oldestTime, newestTime: timeOf(now) })),
      requests: [],
      conditions: [
        { type: 'Ready', status: 'True', reason: 'Recording', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    };
  }
}

/** A client for all recorders; the audit log identifies them by their user. */
function clientOf({ server, authority }: ControlPlane): KubernetesClient {
  const files = authority.issue('recorders', { commonName: 'recorders', organizations: ['system:masters'] });
  const [ca, cert, key] = [authority.certFile, files.cert, files.key].map((file) => readFileSync(file, 'utf8'));
  const dispatcher = new Agent({ connections: 64, connect: { ca, cert, key, timeout: 10_000 } });
  const connection: Connection = {
    url: server,
    prepare: () => Promise.resolve({ headers: {}, dispatcher }),
    reconnect: () => {},
    close: () => dispatcher.destroy(),
  };
  return new KubernetesClient(connection, {
    userAgent: 'bench-recorders',
    callTimeoutMs: 10_000,
    watchSeconds: { least: 240, most: 360 },
    watchSilenceMs: 150_000,
  });
}

const timeOf = (ms: number): string => new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
