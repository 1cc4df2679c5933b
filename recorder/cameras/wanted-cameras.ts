// The cameras that are wanted now: those of the files and of the database or the cluster, with the choices of users
// applied.

import { cameraOfFootage, previewId } from '../../base/camera-id.ts';
import type { Log } from '../../base/log.ts';
import type { Limits, RetentionLimits } from '../archive/retention/plan.ts';
import type { HeldCameras, WantedCamera } from './camera-set.ts';
import type { CameraConfig, Config } from '../config/schema.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import { mergeCameras, NO_CAMERAS, type CameraList } from '../config/camera-list.ts';

/** What the cluster says about the cameras of this node. */
interface AssignedCameras {
  cameras(): CameraList;
  /** The retention limits of cameras of which this node may have footage, whether or not it records them. */
  limits(): ReadonlyMap<string, RetentionLimits>;
  epochOf(cameraId: string): number | undefined;
  held(): HeldCameras;
  /** Wall time from which to write the pictures of a camera that this node held before. */
  fromMs(cameraId: string): number;
}

/** Where cameras come from besides the configuration files. */
export interface CameraSources {
  /** Applies the choices of users on this node. */
  readonly cameraSwitch: { overrule(files: readonly CameraConfig[]): readonly WantedCamera[] };
  readonly database: { readonly cameras: CameraList } | undefined;
  readonly member: AssignedCameras | undefined;
}

const SUSPENDED = {
  reason: { code: 'suspended', message: 'stopped through the API, or spec.suspend of the Camera is true' },
} as const;
export const DISABLED_ROW = {
  reason: { code: 'disabled', message: 'enabled is false in the table cameras' },
} as const;

/**
 * Created before the parts that report changes to it and need it; `join` and `follow` connect it with them. Until then it
 * knows the configuration files only, and applies nothing.
 */
export class WantedCameras {
  readonly #config: CurrentConfig;
  readonly #log: Log;
  #sources: CameraSources | undefined;
  #applied: (wanted: readonly WantedCamera[]) => Promise<void> = () => Promise.resolve();
  #follows = false;
  #limits: Limits;

  constructor(config: CurrentConfig, log: Log) {
    this.#config = config;
    this.#log = log;
    this.#limits = limitsOf(config.value, config.value.cameras, new Map());
  }

  join(sources: CameraSources): void {
    this.#sources = sources;
  }

  /** From now on `apply` is called for every change; it is called at once for the current cameras. */
  follow(apply: (wanted: readonly WantedCamera[]) => Promise<void>): Promise<void> {
    this.#applied = apply;
    this.#follows = true;
    return this.apply();
  }

  /** Stops following changes. */
  leave(): void {
    this.#follows = false;
  }

  /** The epoch of a camera's assignment to this node; undefined if the cluster does not assign it. */
  epochOf(cameraId: string): number | undefined {
    return this.#sources?.member?.epochOf(cameraOfFootage(cameraId));
  }

  /** Wall time from which to write the pictures of a camera that this node held before. */
  fromMs(cameraId: string): number {
    return this.#sources?.member?.fromMs(cameraId) ?? -Infinity;
  }

  /** The cameras to hold while another node records them. */
  get held(): HeldCameras | undefined {
    return this.#sources?.member?.held();
  }

  get files(): readonly CameraConfig[] {
    return this.#config.value.cameras;
  }

  list(): CameraList & { readonly cameras: readonly WantedCamera[] } {
    const { cameraSwitch, database, member } = this.#sources ?? {};
    const files = cameraSwitch?.overrule(this.files) ?? this.files;
    const others = camerasOfOthers(this.#config.value, member?.cameras(), database?.cameras);
    const halted = member ? SUSPENDED : DISABLED_ROW;
    const { cameras, refused } = mergeCameras<WantedCamera>(files, others);
    return { refused, cameras: cameras.map((camera) => (camera.enabled ? camera : { halted, ...camera })) };
  }

  get enabledCount(): number {
    return this.list().cameras.filter(({ enabled }) => enabled).length;
  }

  /** The retention limits of the node and of each camera, at the last change. */
  get limits(): Limits {
    return this.#limits;
  }

  /** Applies the wanted cameras. Resolves when the change is carried out. */
  apply(): Promise<void> {
    const { cameras, refused } = this.list();
    for (const { id, reason } of refused)
      this.#log.warn({ camera: id, ...reason }, 'the settings of a camera cannot be used');
    this.#limits = limitsOf(this.#config.value, cameras, this.#sources?.member?.limits() ?? new Map());
    return this.#applied(cameras);
  }

  /** Applies a change of another source. */
  changed(): void {
    if (!this.#follows) return;
    this.apply().catch((err: unknown) => this.#log.error({ err }, 'cameras could not be changed'));
  }
}

const limitsOf = (
  config: Config,
  cameras: readonly CameraConfig[],
  others: ReadonlyMap<string, RetentionLimits>,
): Limits => ({
  node: config.archive.retention,
  cameras: new Map([...others, ...cameras.flatMap(limitsOfCamera)]),
});

/** The limits of its footage, and of that of its preview. */
const limitsOfCamera = ({ id, record, preview }: CameraConfig): [id: string, limits: RetentionLimits][] => [
  [id, record.retention],
  ...(preview?.recorded ? [[previewId(id), preview.retention] as [string, RetentionLimits]] : []),
];

/**
 * Cameras of the cluster or, outside of one, of the database: in a cluster of servers, rows are cameras of the cluster. What is wrong with
 * the rows that name this node is shown here.
 */
export const camerasOfOthers = (
  { cluster }: Pick<Config, 'cluster'>,
  assigned: CameraList | undefined,
  rows: CameraList = NO_CAMERAS,
): CameraList =>
  assigned
    ? { cameras: assigned.cameras, refused: [...assigned.refused, ...(cluster.mode === 'etcd' ? rows.refused : [])] }
    : rows;
