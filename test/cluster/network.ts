// The network of a test cluster: every node in a network namespace of its own, all joined by a router in another, where
// packets can be made to vanish. The host is joined to the router as well; nothing else of its network is touched, and all
// of it goes away with the processes that hold the namespaces.
//
//     host 198.18.2k.1 .2 .3 ──── router 198.18.2k.254 ──┬── node 198.18.2k+1.1
//                                                        └── node 198.18.2k+1.2
//
// 198.18.0.0/15 is set aside for tests between machines (RFC 2544): no network of anybody's uses it.

import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { until } from '../support/until.ts';
import { Program } from './program.ts';

/** Addresses of the host, apart so that each can be cut off by itself. */
export interface HostAddresses {
  /** Where the control plane listens. */
  readonly api: string;
  /** Where cameras listen. */
  readonly cameras: string;
  /** Whence a test's own requests come, and where any other service of the host may listen. */
  readonly viewers: string;
}

/** What a node can be cut off from. */
export type Side = 'api' | 'cameras' | 'peers' | 'viewers';

export const SIDES: readonly Side[] = ['api', 'cameras', 'peers', 'viewers'];

const MAX_NETWORKS = 128;
/** Of the network of nodes, whose upper half is for Services and pods. */
const MAX_NODES = 126;

function ip(commands: readonly string[], namespacePid?: number): void {
  const options = { input: `${commands.join('\n')}\n`, stdio: 'pipe' } as const;
  if (namespacePid === undefined) execFileSync('ip', ['-batch', '-'], options);
  else execFileSync('nsenter', [`--net=/proc/${namespacePid}/ns/net`, 'ip', '-batch', '-'], options);
}

/** Why nodes cannot have networks of their own here; false when they can. */
export function namespacesMissing(): string | false {
  if (process.getuid?.() !== 0) return 'nodes have network namespaces of their own, which takes root';
  const probe = 'ip link add name a0 type veth peer name a1 && ip rule add from 10.0.0.1 to 10.0.0.2 blackhole';
  const namespaces = ['--net', '--mount', '--pid', '--uts', '--fork', '--mount-proc'];
  const { status, stderr, error } = spawnSync('unshare', [...namespaces, 'sh', '-c', probe], { encoding: 'utf8' });
  return status !== 0 && `no namespaces here: ${error?.message ?? stderr.trim()}`;
}

export class Network {
  readonly addresses: HostAddresses;
  /** Of all nodes, as `198.18.1.0/24`. */
  readonly nodesPrefix: string;
  readonly #index: number;
  readonly #router: Program;
  readonly #interface: string;
  #nodes = 0;

  private constructor(index: number, router: Program) {
    this.#index = index;
    this.#router = router;
    this.#interface = `kubenvr${index}`;
    this.addresses = { api: this.#host(1), cameras: this.#host(2), viewers: this.#host(3) };
    this.nodesPrefix = `${this.#second(1)}.0/24`;
  }

  /** Makes one that no other has. */
  static async make(directory: string): Promise<Network> {
    const router = new Program('router', {
      command: 'unshare',
      // ip_forward is a namespace's own.
      args: ['--net', 'sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward && echo ready && exec sleep infinity'],
      logFile: join(directory, 'router.log'),
    });
    router.start();
    try {
      await until('the router is there', () => router.logTail.includes('ready') || !router.running);
      const network = new Network(claim(router), router);
      network.#joinHost();
      return network;
    } catch (error) {
      const { logTail } = router;
      await router.kill();
      throw new Error(`no network for nodes: ${logTail}`, { cause: error });
    }
  }

  /** Addresses of Services and of the pods of one node, which the host can reach as it reaches nodes. */
  get ranges(): { readonly services: string; readonly pods: string; readonly all: string } {
    const prefix = this.#second(1);
    return { services: `${prefix}.128/26`, pods: `${prefix}.192/26`, all: `${prefix}.128/25` };
  }

  /** Of the next node. */
  nextAddress(): string {
    if (this.#nodes === MAX_NODES) throw new Error(`more than ${MAX_NODES} nodes in one network`);
    return `${this.#second(1)}.${++this.#nodes}`;
  }

  /** Joins the network namespace of this process, which has nothing yet, under the address. */
  join(address: string, pid: number): void {
    const name = `n${address.split('.').at(-1)}`;
    const router = this.#host(254);
    ip([`link add name ${name} type veth peer name eth0 netns ${pid}`], this.#router.pid);
    ip([`link set ${name} up`, `route add ${address}/32 dev ${name} src ${router}`], this.#router.pid);
    ip(
      [
        'link set lo up',
        'link set eth0 up',
        `addr add ${address}/32 dev eth0`,
        `route add ${router} dev eth0`,
        `route add default via ${router} dev eth0`,
      ],
      pid,
    );
  }

  /** Leads a part of the nodes' prefix, beyond the addresses of nodes, to the node that has joined under `address`. */
  route(prefix: string, address: string): void {
    ip([`route add ${prefix} via ${address} dev n${address.split('.').at(-1)}`], this.#router.pid);
  }

  /** From now on packets between them vanish, both ways, without a word to either. */
  cut(address: string, side: Side): void {
    ip(this.#rules('add', address, side), this.#router.pid);
  }

  mend(address: string, side: Side): void {
    ip(this.#rules('del', address, side), this.#router.pid);
  }

  async close(): Promise<void> {
    // With one end gone the other goes too, but a moment later: here, so that nothing is left when this returns.
    spawnSync('ip', ['link', 'del', this.#interface]);
    await this.#router.kill();
  }

  #rules(what: 'add' | 'del', address: string, side: Side): readonly string[] {
    const other = side === 'peers' ? this.nodesPrefix : `${this.addresses[side]}/32`;
    return [`rule ${what} from ${address} to ${other} blackhole`, `rule ${what} from ${other} to ${address} blackhole`];
  }

  #joinHost(): void {
    const router = this.#host(254);
    ip([
      `link set ${this.#interface} up`,
      ...Object.values(this.addresses).map((address: string) => `addr add ${address}/32 dev ${this.#interface}`),
      `route add ${router} dev ${this.#interface}`,
      `route add ${this.nodesPrefix} via ${router} dev ${this.#interface} src ${this.addresses.viewers}`,
    ]);
    ip(
      [
        'link set lo up',
        `addr add ${router}/32 dev lo`,
        // Who sends to a node that is dead hears nothing.
        `route add blackhole ${this.nodesPrefix}`,
        'link set host up',
        ...Object.values(this.addresses).map((address: string) => `route add ${address}/32 dev host src ${router}`),
      ],
      this.#router.pid,
    );
  }

  #second(offset: 0 | 1): string {
    return `198.18.${this.#index * 2 + offset}`;
  }

  #host(last: number): string {
    return `${this.#second(0)}.${last}`;
  }
}

/** The name of an interface is taken by one cluster only: its number is the network's. */
function claim(router: Program): number {
  let reason: unknown;
  for (let index = 0; index < MAX_NETWORKS; index++) {
    try {
      ip([`link add name kubenvr${index} type veth peer name host netns ${router.pid}`]);
      return index;
    } catch (error) {
      reason = error;
      if (!String(error).includes('File exists')) break;
    }
  }
  throw new Error('no network is free', { cause: reason });
}
