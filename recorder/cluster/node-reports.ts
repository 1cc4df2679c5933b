// The RecorderNodes of the pool. In a small pool they are watched. In a large one each change of each report would go
// to every recorder, a load that grows with the square of the pool: there they are listed when a request needs to know
// what other nodes have, and otherwise rarely. A recorder's own RecorderNode is always watched.

import type { Clock } from '../../base/clock.ts';
import { Informer } from '../../base/kubernetes/informer.ts';
import type { Log } from '../../base/log.ts';
import { API_VERSION, POOL_LABEL, RECORDER_NODES } from '../../crds/names.ts';
import { parseRecorderNode, type RecorderNode } from '../../crds/recorder-node.ts';
import type { ApiServer, KubernetesObject } from './api-server.ts';

interface NodeReportsOptions {
  readonly api: Pick<ApiServer, 'pages' | 'watch'>;
  readonly namespace: string;
  readonly nodeId: string;
  readonly pool: string;
  /** Called when a RecorderNode may have changed. */
  readonly changed: () => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: (() => number) | undefined;
}

/** In larger pools the nodes are listed instead of watched. */
const WATCHED_NODES = 100;
/** In large pools a list begins this long after the last one for each node, so that all lists grow only with the pool. */
const PAUSE_PER_NODE_MS = 2_000;
/** Questions within this time for each node after a list share it; a list that takes long is made less often. */
const FRESH_PER_NODE_MS = 10;
const FRESH_PER_LIST = 20;
/** A reader waits at most this long for a list, and then gets the last known one. */
const WAIT_MS = 1_000;
/** A list that has not arrived after this time is requested again. */
const ASK_AGAIN_MS = 30_000;

export class NodeReports {
  readonly #options: NodeReportsOptions;
  readonly #own: Informer<RecorderNode, KubernetesObject>;
  readonly #all: Informer<RecorderNode, KubernetesObject>;
  /** The number of nodes in the last list. */
  #listed = 0;
  #freshUntilMs = -Infinity;
  /** The list that was requested and has not arrived yet. */
  #asked: { readonly sinceMs: number; readonly done: PromiseWithResolvers<void> } | undefined;

  constructor(options: NodeReportsOptions) {
    const { api, namespace, nodeId, pool, changed, clock, log, random } = options;
    this.#options = options;
    const path = `/apis/${API_VERSION}/namespaces/${namespace}/${RECORDER_NODES}`;
    const ofOwn = { fieldSelector: `metadata.name=${nodeId}` };
    const ofPool = { labelSelector: `${POOL_LABEL}=${pool}` };
    const common = {
      parse: parseRecorderNode,
      keyOf: ({ name }: { readonly name: string }) => name,
      clock,
      log,
      ...(random && { random }),
    };
    this.#own = new Informer<RecorderNode, KubernetesObject>({
      ...common,
      source: {
        name: `${RECORDER_NODES} of this node`,
        pages: (signal) => api.pages(path, { query: ofOwn, signal }),
        watch: (resourceVersion, signal) => api.watch(path, resourceVersion, { query: ofOwn, signal }),
      },
    });
    this.#all = new Informer<RecorderNode, KubernetesObject>({
      ...common,
      source: {
        name: RECORDER_NODES,
        pages: (signal) => this.#pages(path, ofPool, signal),
        watch: (resourceVersion, signal) =>
          this.isWatched ? api.watch(path, resourceVersion, { query: ofPool, signal }) : this.#pause(signal),
      },
    });
    this.#own.onUpdate(changed);
    this.#all.onUpdate(() => {
      this.#asked?.done.resolve();
      this.#asked = undefined;
      changed();
    });
  }

  /** By name; in a large pool as of the last list. */
  get objects(): ReadonlyMap<string, RecorderNode> {
    return this.#all.objects;
  }

  get own(): RecorderNode | undefined {
    return this.#own.get(this.#options.nodeId);
  }

  get isWatched(): boolean {
    return this.#listed <= WATCHED_NODES;
  }

  start(): void {
    for (const informer of [this.#own, this.#all]) informer.start();
  }

  /** Lists again at once. */
  resync(): void {
    for (const informer of [this.#own, this.#all]) informer.resync();
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.close(), this.#all.close()]);
  }

  /**
   * To be awaited before the objects are read for a client. Takes no time in a small pool, otherwise a second at most.
   * Never rejects.
   */
  async look(): Promise<void> {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.isWatched || nowMs < this.#freshUntilMs) return;
    if (!this.#asked || nowMs - this.#asked.sinceMs >= ASK_AGAIN_MS) {
      this.#asked = { sinceMs: nowMs, done: Promise.withResolvers() };
      this.#all.resync();
    }
    const leftMs = this.#asked.sinceMs + WAIT_MS - nowMs;
    // The API server is late: waiting for the list again would delay every reader.
    if (leftMs <= 0) return;
    const enough = new AbortController();
    await Promise.race([this.#asked.done.promise, clock.sleep(leftMs, enough.signal)]);
    enough.abort();
  }

  async *#pages(path: string, query: Record<string, string>, signal: AbortSignal) {
    const { api, clock } = this.#options;
    const startMs = clock.monotonicMs();
    let listed = 0;
    for await (const page of api.pages(path, { query, signal })) {
      listed += page.items.length;
      yield page;
    }
    this.#listed = listed;
    const tookMs = clock.monotonicMs() - startMs;
    this.#freshUntilMs = startMs + Math.max(FRESH_PER_NODE_MS * listed, FRESH_PER_LIST * tookMs);
  }

  /** Stands for a watch: when it ends, the next list is due. */
  // oxlint-disable-next-line require-yield
  async *#pause(signal: AbortSignal): AsyncGenerator<never> {
    await this.#options.clock.sleep(this.#listed * PAUSE_PER_NODE_MS, signal);
  }
}
