// A cluster that records and that is measured, of any kind: cameras of the bench's sender, each with a preferred node, and what their
// files, their objects and the gap ledgers of the nodes say.

import { statSync } from 'node:fs';
import type { Camera, CameraAssignment } from '../../../crds/camera.ts';
import { nodeLeaseName, RECORDER_NODES } from '../../../crds/names.ts';
import type { RecorderPool } from '../../../crds/recorder-pool.ts';
import type { ApiClient, KubeObject } from '../../cluster/api-client.ts';
import { NAMESPACE, resource, RESOURCES } from '../../cluster/own-operator.ts';
import { until } from '../../support/until.ts';
import { cameraId } from '../recorder.ts';
import type { Sender } from '../sender.ts';
import { endOf, filesSince, footageOf, hasPicture, SEGMENT_SECONDS, type Disk, type Piece } from './footage.ts';

export const SLOW_MS = 120_000;
/** The interval of large list requests, to leave the API server time for other work while it is measured. */
export const SELDOM_MS = 500;
/** Cameras that lost their node return to it soon, so that the stage is in the same state before each run. */
export const FAILBACK_SECONDS = 5;
/** Size of a header without a picture. */
const EMPTY_BYTES = 1_000;
export const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;

/** Assignment by camera name. */
export type Assignments = ReadonlyMap<string, CameraAssignment>;

/** The first picture of a camera on another disk than before. */
interface FirstPicture {
  readonly node: string;
  readonly path: string;
  /** When it was seen there, in milliseconds since 1970. */
  readonly onDiskMs: number;
}

/** What a node's gap ledger says about a camera. */
export interface LedgerReport {
  readonly missing_seconds: number;
  readonly known_until_ms: number;
  readonly seconds_by_cause: Readonly<Record<string, number>>;
}

export type Lease = KubeObject & { readonly spec: { readonly holderIdentity: string; readonly renewTime: string } };

export abstract class RecordingStage {
  readonly nodes: readonly string[];
  readonly cameraNames: readonly string[];
  readonly #sender: Pick<Sender, 'stats'>;

  constructor(nodes: readonly string[], cameras: number, sender: Pick<Sender, 'stats'>) {
    this.nodes = nodes;
    this.cameraNames = Array.from({ length: cameras }, (_, i) => cameraId(i));
    this.#sender = sender;
  }

  /** Cameras with a memory, and with standbys, instead of those of the sender. */
  get haveMemory(): boolean {
    return false;
  }

  /** Reads and changes the objects of the cluster. */
  abstract get api(): Pick<ApiClient, 'get' | 'list' | 'patch'>;

  /** What the API of a node answers. */
  abstract ask<T>(node: string, path: string): Promise<T>;

  /** Of a node, on this machine. */
  abstract archiveOf(node: string): string;

  /** As when the power goes. */
  abstract killNode(node: string): Promise<void>;

  abstract startNode(node: string): Promise<void>;

  abstract close(): Promise<void>;

  get disks(): readonly Disk[] {
    return this.nodes.map((node) => ({ node, root: this.archiveOf(node) }));
  }

  /** The preferred node of a camera. */
  homeOf(camera: string): string {
    return this.nodes[Number(camera.split('-')[1]) % this.nodes.length]!;
  }

  camerasOf(node: string): readonly string[] {
    return this.cameraNames.filter((camera) => this.homeOf(camera) === node);
  }

  /** The manifests of all cameras. `specOf`: what is said of the i-th. */
  manifests(specOf: (i: number) => Readonly<Record<string, unknown>>): readonly Readonly<Record<string, unknown>>[] {
    return this.cameraNames.map((name, i) => {
      const { standby, ...spec } = specOf(i);
      const placement = { preferredNode: this.homeOf(name), ...(standby === undefined ? {} : { standby }) };
      return resource('Camera', name, {
        ...spec,
        transport: 'Tcp',
        record: { segmentSeconds: SEGMENT_SECONDS },
        placement,
      });
    });
  }

  /** Tells the cameras of a node to leave it, or that they may return. */
  async drain(node: string, isDrained: boolean): Promise<void> {
    await this.api.patch(`${RESOURCES}/${RECORDER_NODES}/${node}`, 'merge', { spec: { drain: isDrained } });
  }

  /** Pictures that cameras with an open connection could not send because the recorder did not read. */
  async dropped(): Promise<number> {
    const stats = await this.#sender.stats();
    return stats.filter(({ open }) => open).reduce((sum, { dropped }) => sum + dropped, 0);
  }

  /** When a node last renewed its Lease by its own clock, which is that of this machine; milliseconds since 1970. */
  async renewedMs(node: string): Promise<number> {
    const { spec } = await this.api.get<Lease>(`${LEASES}/${nodeLeaseName(node)}`);
    return Date.parse(spec.renewTime);
  }

  /** Waits until every node has renewed its Lease after this time. */
  async heardSince(ms: number): Promise<void> {
    await until(
      'every node renews its Lease',
      async () => (await Promise.all(this.nodes.map((node) => this.renewedMs(node)))).every((at) => at > ms),
      SLOW_MS,
      SELDOM_MS,
    );
  }

  async pool(): Promise<RecorderPool> {
    return (await this.api.get(`${RESOURCES}/recorderpools/default`)) as unknown as RecorderPool;
  }

  async cameras(): Promise<readonly Camera[]> {
    return (await this.api.list(`${RESOURCES}/cameras`)) as unknown as readonly Camera[];
  }

  async assignments(): Promise<Assignments> {
    const cameras = await this.cameras();
    return new Map(
      cameras.flatMap(({ metadata, status }) => (status?.assignment ? [[metadata.name, status.assignment]] : [])),
    );
  }

  /** Waits for the state before each run: every node is live and a voter, and every camera is recorded by its preferred node. */
  async atHome(timeoutMs = SLOW_MS): Promise<void> {
    let away: readonly string[] = [];
    try {
      await until(
        'every node is live and votes, and every camera is recorded at home',
        async () => {
          const { status } = await this.pool();
          if (status?.nodesReady !== this.nodes.length || status.voters?.length !== this.nodes.length) return false;
          if (status.camerasRecording !== this.cameraNames.length) return false;
          const cameras = await this.cameras();
          away = cameras.filter((camera) => !this.#isAtHome(camera)).map(({ metadata }) => metadata.name);
          return cameras.length === this.cameraNames.length && away.length === 0;
        },
        timeoutMs,
        SELDOM_MS,
      );
    } catch (err) {
      throw new Error(`not at home: ${away.join(' ')}`, { cause: err });
    }
  }

  #isAtHome({ metadata, status }: Camera): boolean {
    const { assignment, conditions } = status ?? {};
    return (
      assignment?.node === this.homeOf(metadata.name) &&
      assignment.handover !== 'Pending' &&
      conditions?.some(({ type, status: is }) => type === 'Recording' && is === 'True') === true
    );
  }

  /**
   * The first picture of each camera in a new file since `sinceMs` on a disk of `nodes`, as soon as it is there. Throws after a
   * time limit.
   */
  async firstPictures(
    cameras: readonly string[],
    nodes: readonly string[],
    sinceMs: number,
  ): Promise<ReadonlyMap<string, FirstPicture>> {
    const disks = this.disks.filter(({ node }) => nodes.includes(node));
    const found = new Map<string, FirstPicture>();
    const wanted = new Set(cameras);
    /** The sizes at which files were examined, so that they are examined again only after they have grown. */
    const sizes = new Map<string, number>();
    const hasMore = (path: string): boolean => {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      const isNew = size > EMPTY_BYTES && size !== sizes.get(path);
      sizes.set(path, size);
      return isNew;
    };
    const look = async (): Promise<boolean> => {
      for (const { node, root } of disks) {
        for (const { camera, path } of filesSince(root, sinceMs)) {
          if (found.has(camera) || !wanted.has(camera) || !hasMore(path) || !(await hasPicture(path))) continue;
          found.set(camera, { node, path, onDiskMs: Date.now() });
        }
      }
      return found.size === cameras.length;
    };
    try {
      await until('every camera has a picture', look, SLOW_MS);
    } catch (err) {
      const without = cameras.filter((camera) => !found.has(camera));
      throw new Error(`no picture on ${nodes.join(' or ')} of ${without.join(' ')}`, { cause: err });
    }
    return found;
  }

  footage(cameras: readonly string[], fromMs: number): Promise<ReadonlyMap<string, readonly Piece[]>> {
    return footageOf(this.disks, cameras, fromMs);
  }

  /** The footage of the cameras, once the files of each reach `toMs`. */
  async footageUntil(
    cameras: readonly string[],
    fromMs: number,
    toMs: number,
  ): Promise<ReadonlyMap<string, readonly Piece[]>> {
    return until(
      `the footage of ${cameras.length} cameras reaches ${new Date(toMs).toISOString()}`,
      async () => {
        const footage = await this.footage(cameras, fromMs);
        return [...footage.values()].every((pieces) => endOf(pieces) >= toMs) && footage;
      },
      SLOW_MS,
    );
  }

  /** The gap ledger of a camera on a node, once it covers the whole interval. */
  async ledger(node: string, camera: string, fromMs: number, toMs: number): Promise<LedgerReport> {
    const query = `from=${(fromMs / 1000).toFixed(3)}&to=${(toMs / 1000).toFixed(3)}`;
    return until(
      `the ledger of ${node} knows ${camera}`,
      async () => {
        const report = await this.ask<LedgerReport>(node, `/api/archive/${camera}/gaps?${query}`);
        return report.known_until_ms >= toMs - 1 && report;
      },
      SLOW_MS,
    );
  }
}
