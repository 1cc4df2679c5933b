// The network of a test cluster: every node in a network namespace of its own, all joined by a router in another, where
// packets can be made to vanish. The host is joined to the router as well; nothing else of its network is touched, and all
// of it goes away with the processes that hold the namespaces.
//
//     host 198.18.2k.1 .2 .3 ──── router 198.18.2k.254 ──┬── node 198.18.2k+1.1
//                                                        └── node 198.18.2k+1.2
//
// With IPv6 the addresses are 2001:2:0:2k::1 and so on, and there is no IPv4. 198.18.0.0/15 and 2001:2::/48 are set aside for tests
// between machines (RFC 2544, RFC 5180): no network of anybody's uses them.

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

/** In a namespace of its own, whose settings these are. */
const FORWARD = 'echo 1 | tee /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding';
const MAX_NETWORKS = 128;
/** Of the network of nodes, whose upper half is for Services and pods. */
const MAX_NODES = 126;

export type Family = 'IPv4' | 'IPv6';

/** What differs between the two families. */
interface Plan {
  /** The flag of `ip`. */
  readonly flag: '-4' | '-6';
  /** Of a prefix that is one address. */
  readonly bits: 32 | 128;
  /** An address of the host's side (0) or of the nodes' side (1) of network `index`. */
  readonly address: (index: number, side: 0 | 1, number: number) => string;
  readonly nodesPrefix: (index: number) => string;
  /** The address of the router, the same on all its links. */
  readonly router: (index: number) => string;
  /** Gives the router its address, and an interface of the router an address on its link. */
  readonly routerHas: (router: string) => readonly string[];
  readonly linkHas: (router: string, device: string) => readonly string[];
}

const PLANS: Readonly<Record<Family, Plan>> = {
  IPv4: {
    flag: '-4',
    bits: 32,
    address: (index, side, number) => `198.18.${index * 2 + side}.${number}`,
    nodesPrefix: (index) => `198.18.${index * 2 + 1}.0/24`,
    router: (index) => `198.18.${index * 2}.254`,
    // ARP answers for it on every link.
    routerHas: (router) => [`addr add ${router}/32 dev lo`],
    linkHas: () => [],
  },
  IPv6: {
    flag: '-6',
    bits: 128,
    address: (index, side, number) => `2001:2:0:${(index * 2 + side).toString(16)}::${number.toString(16)}`,
    nodesPrefix: (index) => `2001:2:0:${(index * 2 + 1).toString(16)}::/64`,
    router: () => 'fe80::1',
    routerHas: () => [],
    linkHas: (router, device) => [`addr add ${router}/64 dev ${device} nodad`],
  },
};

function ip(commands: readonly string[], namespacePid?: number, flag = '-4'): void {
  const options = { input: `${commands.join('\n')}\n`, stdio: 'pipe' } as const;
  const args = [flag, '-batch', '-'];
  if (namespacePid === undefined) execFileSync('ip', args, options);
  else execFileSync('nsenter', [`--net=/proc/${namespacePid}/ns/net`, 'ip', ...args], options);
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
  readonly #plan: Plan;
  readonly #router: Program;
  readonly #interface: string;
  #nodes = 0;

  private constructor(index: number, router: Program, plan: Plan) {
    this.#index = index;
    this.#plan = plan;
    this.#router = router;
    this.#interface = `kubenvr${index}`;
    const host = (number: number): string => plan.address(index, 0, number);
    this.addresses = { api: host(1), cameras: host(2), viewers: host(3) };
    this.nodesPrefix = plan.nodesPrefix(index);
  }

  /** Makes one that no other has. */
  static async make(directory: string, family: Family = 'IPv4'): Promise<Network> {
    const router = new Program('router', {
      command: 'unshare',
      args: ['--net', 'sh', '-c', `${FORWARD} && echo ready && exec sleep infinity`],
      logFile: join(directory, 'router.log'),
    });
    router.start();
    try {
      await until('the router is there', () => router.logTail.includes('ready') || !router.running);
      const network = new Network(claim(router), router, PLANS[family]);
      network.#joinHost();
      return network;
    } catch (error) {
      const { logTail } = router;
      await router.kill();
      throw new Error(`no network for nodes: ${logTail}`, { cause: error });
    }
  }

  /** IPv4 addresses of Services and of the pods of one node, which the host can reach as it reaches nodes. */
  get ranges(): { readonly services: string; readonly pods: string; readonly all: string } {
    const at = (number: number): string => this.#plan.address(this.#index, 1, number);
    return { services: `${at(128)}/26`, pods: `${at(192)}/26`, all: `${at(128)}/25` };
  }

  /** Of the next node. */
  nextAddress(): string {
    if (this.#nodes === MAX_NODES) throw new Error(`more than ${MAX_NODES} nodes in one network`);
    return this.#plan.address(this.#index, 1, ++this.#nodes);
  }

  /** Joins the network namespace of this process, which has nothing yet, under the address. A dead node had it perhaps. */
  join(address: string, pid: number): void {
    const { bits, flag, linkHas } = this.#plan;
    const name = linkOf(address);
    // The link of a dead node stays as long as its namespace: with a process in it, or for two minutes with a socket that was cut off.
    spawnSync('nsenter', [`--net=/proc/${this.#router.pid}/ns/net`, 'ip', 'link', 'del', name]);
    const router = this.#plan.router(this.#index);
    this.#onRouter([`link add name ${name} type veth peer name eth0 netns ${pid}`, `link set ${name} up`]);
    this.#onRouter([...linkHas(router, name), `route add ${address}/${bits} dev ${name} src ${router}`]);
    ip(
      [
        'link set lo up',
        'link set eth0 up',
        `addr add ${address}/${bits} dev eth0${this.#now}`,
        `route add ${router} dev eth0`,
        `route add default via ${router} dev eth0`,
      ],
      pid,
      flag,
    );
  }

  /** Leads a part of the nodes' prefix, beyond the addresses of nodes, to the node that has joined under `address`. */
  route(prefix: string, address: string): void {
    this.#onRouter([`route add ${prefix} via ${address} dev ${linkOf(address)}`]);
  }

  /** From now on packets between them vanish, both ways, without a word to either. */
  cut(address: string, side: Side): void {
    this.#onRouter(rules('add', address, this.#on(side)));
  }

  mend(address: string, side: Side): void {
    this.#onRouter(rules('del', address, this.#on(side)));
  }

  /** The same between two addresses. */
  cutBetween(address: string, other: string): void {
    this.#onRouter(rules('add', address, `${other}/${this.#plan.bits}`));
  }

  mendBetween(address: string, other: string): void {
    this.#onRouter(rules('del', address, `${other}/${this.#plan.bits}`));
  }

  async close(): Promise<void> {
    // With one end gone the other goes too, but a moment later: here, so that nothing is left when this returns.
    spawnSync('ip', ['link', 'del', this.#interface]);
    await this.#router.kill();
  }

  #on(side: Side): string {
    return side === 'peers' ? this.nodesPrefix : `${this.addresses[side]}/${this.#plan.bits}`;
  }

  #joinHost(): void {
    const { bits, flag, linkHas, routerHas } = this.#plan;
    const addresses: readonly string[] = Object.values(this.addresses);
    const router = this.#plan.router(this.#index);
    const device = this.#interface;
    this.#onRouter([
      'link set lo up',
      ...routerHas(router),
      // Who sends to a node that is dead hears nothing.
      `route add blackhole ${this.nodesPrefix}`,
      'link set host up',
      ...linkHas(router, 'host'),
      ...addresses.map((address) => `route add ${address}/${bits} dev host src ${router}`),
    ]);
    const hostCommands = [
      `link set ${device} up`,
      ...addresses.map((address) => `addr add ${address}/${bits} dev ${device}${this.#now}`),
      `route add ${router} dev ${device}`,
      `route add ${this.nodesPrefix} via ${router} dev ${device} src ${this.addresses.viewers}`,
    ];
    ip(hostCommands, undefined, flag);
  }

  /** An IPv6 address that is not checked for duplicates can be used at once. */
  get #now(): string {
    return this.#plan.flag === '-6' ? ' nodad' : '';
  }

  #onRouter(commands: readonly string[]): void {
    ip(commands, this.#router.pid, this.#plan.flag);
  }
}

const rules = (what: 'add' | 'del', address: string, other: string): readonly string[] => [
  `rule ${what} from ${address} to ${other} blackhole`,
  `rule ${what} from ${other} to ${address} blackhole`,
];

/** The interface of the router to the node with this address. */
const linkOf = (address: string): string => `n${address.split(/[.:]/).at(-1)}`;

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
