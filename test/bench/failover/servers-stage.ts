// Three servers without Kubernetes for measuring failover: containers of Debian with the package, systemd and etcd, made into a cluster by
// the commands of the recorder.

import { mkdirSync } from 'node:fs';
import { ownPackages } from '../../packages/packages.ts';
import { Servers, untilReady } from '../../packages/servers.ts';
import type { StoreApi } from '../../cluster/store-api.ts';
import { resource } from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import type { Media } from '../media.ts';
import { cpuOf, memoryOf, sleep } from '../processes.ts';
import { FAILBACK_SECONDS, RecordingStage, SLOW_MS } from './recording-stage.ts';

interface StageOptions {
  readonly media: Media;
  readonly keyFrameMs: number;
  readonly directory: string;
  readonly camerasPerNode: number;
}

export class ServersStage extends RecordingStage {
  readonly servers: Servers;
  readonly #packages: ReturnType<typeof ownPackages>;
  #isNext = false;

  private constructor(servers: Servers, packages: ReturnType<typeof ownPackages>) {
    super(servers.names, servers.sender.urls.length, servers.sender);
    this.servers = servers;
    this.#packages = packages;
  }

  static async start({ media, keyFrameMs, directory, camerasPerNode }: StageOptions): Promise<ServersStage> {
    mkdirSync(directory, { recursive: true });
    const packages = ownPackages();
    const { deb } = packages;
    const servers = await Servers.start({ directory, deb, media, cameras: 3 * camerasPerNode, keyFrameMs });
    const stage = new ServersStage(servers, packages);
    try {
      const failover = { failbackAfterSeconds: FAILBACK_SECONDS };
      await servers.apply([
        resource('RecorderPool', 'default', { failover }),
        ...stage.manifests((i) => ({ source: servers.sender.urls[i] })),
      ]);
      await stage.atHome();
    } catch (error) {
      await stage.close();
      throw error;
    }
    return stage;
  }

  get api(): StoreApi {
    return this.servers.api;
  }

  ask<T>(node: string, path: string): Promise<T> {
    return this.servers.get(node, path);
  }

  archiveOf(node: string): string {
    return this.servers.archive(node);
  }

  killNode(node: string): Promise<void> {
    return this.servers.kill(node);
  }

  startNode(node: string): Promise<void> {
    return this.servers.start(node);
  }

  close(): Promise<void> {
    return this.servers.close();
  }

  leader(): Promise<string> {
    return this.servers.leader();
  }

  /** In turns, one whose operator does not lead. */
  async follower(run: number): Promise<string> {
    const leader = await this.leader();
    const others = this.nodes.filter((node) => node !== leader);
    return others[run % others.length]!;
  }

  /** Another version is installed, which changes nothing yet; the next call installs the first one again. */
  async install(node: string, isNext: boolean): Promise<void> {
    const { deb, nextDeb } = this.#packages;
    const server = this.servers.server(node);
    await server.run(
      `apt-get install -y --no-install-recommends --allow-downgrades ${server.bring(isNext ? nextDeb : deb)}`,
    );
  }

  /** One server after the other, as docs/operations/upgrade.md says. */
  async upgrade(drained: (node: string) => Promise<void>): Promise<void> {
    this.#isNext = !this.#isNext;
    for (const node of this.nodes) {
      await this.install(node, this.#isNext);
      await drained(node);
      await this.servers.server(node).run('systemctl restart recorder');
      await untilReady(this.servers.server(node));
      const version = await this.ask<{ readonly version: string }>(node, '/api/health/ready');
      const other = this.nodes.find((one) => one !== node)!;
      await until(
        `${node} is online`,
        async () => {
          const { nodes } = await this.servers.metrics(other);
          return nodes.some((one) => one.node_id === node && one.online && one.version === version.version);
        },
        SLOW_MS,
      );
      await this.drain(node, false);
    }
  }

  /** Memory in bytes and processor in cores of recorder and etcd of a server, over so many milliseconds. */
  async use(
    node: string,
    ms: number,
  ): Promise<Readonly<Record<'recorder' | 'etcd', { bytes: number; cores: number }>>> {
    const pids = this.servers.pids(node);
    const before = { recorder: cpuOf([pids.recorder]), etcd: cpuOf([pids.etcd]) };
    await sleep(ms);
    const of = (name: 'recorder' | 'etcd') => ({
      bytes: memoryOf(pids[name]).resident,
      cores: (cpuOf([pids[name]]) - before[name]) / (ms / 1_000),
    });
    return { recorder: of('recorder'), etcd: of('etcd') };
  }
}
