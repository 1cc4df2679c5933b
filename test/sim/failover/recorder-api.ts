// The simulated API server as a recorder sees it: the calls of its own client (recorder/cluster), with lists, watches that the
// server ends from time to time, and Secrets that cannot always be read.

import type { WatchEvent } from '../../../base/kubernetes/client.ts';
import { CAMERA_HOSTS, nodeOfLease, STANDBY_NODE_FIELD } from '../../../crds/names.ts';
import type { ClusterApi } from '../../../recorder/cluster/cluster.ts';
import type { KubernetesObject } from '../../../recorder/cluster/api-server.ts';
import type { CameraReport } from '../../../operator/plan/snapshot.ts';
import type { ApiServer, Kind, ObjectOf, Outcome, VersionedPool, Watcher } from './api-server.ts';
import { CAMERA_HOST, objectOf, POOL, refusal, SECRET } from './kubernetes.ts';
import type { Process, Random, Timeline } from './world.ts';

const CALL_MS = 5_000;
/** The server ends a watch after some time, and a client gives up one that is silent for longer. */
const WATCH_MS = { least: 30_000, most: 40_000 };
const SILENCE_MS = 45_000;
const KINDS: Readonly<Record<string, Kind>> = {
  cameras: 'Camera',
  recordernodes: 'RecorderNode',
  recorderpools: 'RecorderPool',
  leases: 'Lease',
};
const SECRET_OBJECT: KubernetesObject = {
  metadata: { name: SECRET, resourceVersion: '1', annotations: { [CAMERA_HOSTS]: CAMERA_HOST } },
  data: { username: btoa('user'), password: btoa('word') },
};

interface RecorderApiOptions {
  readonly process: Process;
  readonly server: ApiServer;
  readonly timeline: Timeline;
  readonly random: Random;
  /** The pool as a recorder sees it that no longer follows it; undefined: as it is. */
  readonly oldPool: () => VersionedPool | undefined;
  /** The network lost a request for the Lease, or its reply. */
  readonly renewalLost: () => void;
}

interface LeaseBody {
  readonly metadata: { readonly resourceVersion?: string };
  readonly spec: { readonly holderIdentity: string; readonly leaseDurationSeconds: number };
}

interface StatusBody {
  readonly status: { readonly cameras?: readonly ({ readonly name: string } & CameraReport)[] };
}

export class RecorderApi implements ClusterApi {
  readonly #o: RecorderApiOptions;

  constructor(options: RecorderApiOptions) {
    this.#o = options;
  }

  async get(path: string, { timeoutMs = CALL_MS }: { readonly timeoutMs?: number } = {}): Promise<KubernetesObject> {
    const { server } = this.#o;
    const { kind, name } = partsOf(path);
    if (kind === undefined) return this.#call(timeoutMs, () => ({ ok: SECRET_OBJECT }));
    const lost = kind === 'Lease' ? this.#o.renewalLost : undefined;
    return asObject(kind, await this.#call(timeoutMs, () => server.get(kind, viewName(kind, name)), lost));
  }

  async list(path: string, { query = {} }: { readonly query?: Readonly<Record<string, string>> } = {}) {
    const { server, process, timeline } = this.#o;
    const { kind } = partsOf(path);
    if (kind === undefined) throw new Error(`${path} is not simulated`);
    timeline.isStirred = true;
    const { objects, version } = await new Promise<{ objects: readonly ObjectOf<Kind>[]; version: number }>(
      (resolve, reject) => {
        server.list({ kind, client: process, selects: selectorOf(query) }, CALL_MS, (listed) => {
          timeline.isStirred = true;
          if (listed) resolve(listed);
          else reject(refusal(0, 'UNREACHABLE', 'no answer'));
        });
      },
    );
    const oldPool = kind === 'RecorderPool' ? this.#o.oldPool() : undefined;
    const shown = oldPool ? [oldPool] : objects;
    return { items: shown.map((object) => asObject(kind, object)), resourceVersion: String(version) };
  }

  async *pages(...args: Parameters<RecorderApi['list']>) {
    yield await this.list(...args);
  }

  async *watch(
    path: string,
    resourceVersion: string,
    { query = {}, signal }: { readonly query?: Readonly<Record<string, string>>; readonly signal: AbortSignal },
  ): AsyncGenerator<WatchEvent> {
    const { server, process, timeline, random } = this.#o;
    const { kind } = partsOf(path);
    if (kind === undefined) throw new Error(`${path} is not simulated`);
    const events: WatchEvent[] = [];
    const state: { ended: 'no' | 'by the server' | Error } = { ended: 'no' };
    let heardMs = process.nowMs();
    let wake = (): void => {};
    const stir = (): void => {
      timeline.isStirred = true;
      wake();
    };
    const end = (how: 'by the server' | Error): void => {
      if (state.ended === 'no') state.ended = how;
      stir();
    };
    let stop = (): void => {};
    const watcher: Watcher<Kind> = {
      kind,
      client: process,
      selects: selectorOf(query),
      onEvent: (name, view, version) => {
        if (kind === 'RecorderPool' && this.#o.oldPool()) return;
        heardMs = process.nowMs();
        const gone = { metadata: { name, resourceVersion: String(version) } };
        events.push(view ? { type: 'MODIFIED', object: asObject(kind, view) } : { type: 'DELETED', object: gone });
        stir();
      },
      onEnd: () => end('by the server'),
    };
    server.watch(watcher, Number(resourceVersion), CALL_MS, (opened, stopIt) => {
      stop = stopIt;
      if (opened === 'Expired') end(refusal(410, 'Expired', 'too old'));
      if (opened === undefined) end(refusal(0, 'UNREACHABLE', 'no answer'));
      if (opened === 'open' && !signal.aborted) {
        // A dead connection does not bring the end.
        process.after(random.between(WATCH_MS.least, WATCH_MS.most), () => !process.isCut && end('by the server'));
      }
    });
    const watchdog = (): void => {
      const leftMs = heardMs + SILENCE_MS - process.nowMs();
      if (state.ended !== 'no' || signal.aborted) return;
      if (leftMs <= 1) end(refusal(0, 'UNREACHABLE', 'a silent watch'));
      else process.after(leftMs, watchdog);
    };
    process.after(SILENCE_MS, watchdog);
    const abort = (): void => stir();
    signal.addEventListener('abort', abort);
    try {
      while (!signal.aborted) {
        const event = events.shift();
        if (event) yield event;
        else if (state.ended instanceof Error) throw state.ended;
        else if (state.ended === 'by the server') return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      signal.removeEventListener('abort', abort);
      state.ended = 'by the server';
      stop();
    }
  }

  /** The renewal of a Lease. */
  async call(
    _method: string,
    path: string,
    body?: unknown,
    { timeoutMs = CALL_MS }: { readonly timeoutMs?: number } = {},
  ): Promise<unknown> {
    const { server, process } = this.#o;
    const { metadata, spec } = body as LeaseBody;
    const { kind, name } = partsOf(path);
    if (kind !== 'Lease') throw new Error(`${path} is not simulated`);
    const node = viewName(kind, name);
    const { holderIdentity: holder, leaseDurationSeconds } = spec;
    const renewedWallMs = process.wallMs();
    const write = () =>
      server.replace(
        'Lease',
        node,
        metadata.resourceVersion,
        () => ({ name: node, holder, leaseDurationSeconds, renewedWallMs }),
        process,
      );
    return asObject('Lease', await this.#call(timeoutMs, write, this.#o.renewalLost));
  }

  /** The report of the recorder. */
  async apply(path: string, _manager: string, body: object): Promise<KubernetesObject> {
    const { server, process } = this.#o;
    const { name } = partsOf(path);
    const { cameras: told = [] } = (body as StatusBody).status;
    const cameras = new Map(told.map(({ name: camera, epoch, state }) => [camera, { epoch, state }]));
    const write = () => server.replace('RecorderNode', name, undefined, (node) => ({ ...node, cameras }), process);
    return asObject('RecorderNode', await this.#call(CALL_MS, write));
  }

  reconnect(): void {}

  async close(): Promise<void> {}

  #call<T>(timeoutMs: number, work: () => Outcome<T>, lost?: () => void): Promise<T> {
    const { server, process, timeline } = this.#o;
    timeline.isStirred = true;
    return new Promise((resolve, reject) => {
      const answered = (answer: Outcome<T> | undefined): void => {
        timeline.isStirred = true;
        if (!answer) reject(refusal(0, 'UNREACHABLE', 'no answer'));
        else if ('ok' in answer) resolve(answer.ok);
        else if ('conflict' in answer) reject(refusal(409, 'Conflict', 'somebody else wrote before'));
        else reject(refusal(404, 'NotFound', 'there is none'));
      };
      server.call(process, timeoutMs, work, answered, lost);
    });
  }
}

const asObject = (kind: Kind, view: ObjectOf<Kind>): KubernetesObject => objectOf(kind, view) as KubernetesObject;

const viewName = (kind: Kind, name: string): string => (kind === 'Lease' ? (nodeOfLease(name) ?? name) : name);

/** `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL[/NAME[/status]]`; kind undefined: a Secret. */
function partsOf(path: string): { readonly kind: Kind | undefined; readonly name: string } {
  const [plural = '', name = ''] = path.split('/namespaces/')[1]?.split('/').slice(1) ?? [];
  return { kind: KINDS[plural], name };
}

function selectorOf(query: Readonly<Record<string, string>>): (object: ObjectOf<Kind>) => boolean {
  const [field, value] = query['fieldSelector']?.split('=') ?? [];
  if (field === undefined) return () => true;
  if (field === 'metadata.name') return ({ name }) => name === (value ?? POOL);
  if (field === STANDBY_NODE_FIELD) return (object) => 'uid' in object && object.standby?.node === value;
  const key = field.endsWith('previousNode') ? 'previousNode' : 'node';
  return (object) => 'assignment' in object && object.assignment?.[key] === value;
}
