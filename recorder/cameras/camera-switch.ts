// Starts and stops cameras at the request of users. The choice is stored in a file of the node for cameras of configuration
// files, and in the column `enabled` for cameras of the database.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { errorCode, messageOf } from '../../base/error.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import type { Reason } from '../../base/reason.ts';
import { Turns } from '../../base/turns.ts';
import { parseJson } from '../../base/parse-json.ts';
import type { FileSystem } from '../archive/disk/file-system.ts';
import { makeDirectories, readIfThere, replaceFile } from '../archive/disk/state-file.ts';
import type { WantedCamera } from './camera-set.ts';
import { SwitchError, type CameraSwitch, type SwitchErrorCode } from '../contract/camera-switch.ts';
import type { CameraConfig } from '../config/schema.ts';

export interface NodeCameraSwitchDeps {
  readonly fs: FileSystem;
  /** The directory of the file; created when it is missing. */
  readonly workDir: string;
  readonly files: () => readonly CameraConfig[];
  /** Cameras of the database that are not in the files. */
  readonly database?: {
    cameras(): readonly CameraConfig[];
    /** Whether the row changed. Rejects when the database cannot be reached. */
    setEnabled(cameraId: string, enabled: boolean): Promise<boolean>;
  };
  /** Why a stopped camera could not be recorded if it were started. */
  readonly refusal: (cameraId: string) => { readonly code: SwitchErrorCode; readonly message: string } | undefined;
  /** Applies the cameras that are wanted now. */
  readonly apply: () => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The choice of a user for a camera of a file, and the setting that it overrules. */
interface Overrule {
  readonly enabled: boolean;
  readonly atMs: number;
  readonly by: string;
}

const FILE = 'switched-cameras.json';
/** The longest time that an answer waits for the change to be applied; the change is stored already. */
const MAX_APPLY_MS = 10_000;

export class NodeCameraSwitch implements CameraSwitch {
  readonly #deps: NodeCameraSwitchDeps;
  #overrules: ReadonlyMap<string, Overrule> = new Map();
  /** One change at a time, so that the last call wins. */
  readonly #changes = new Turns(1);

  constructor(deps: NodeCameraSwitchDeps) {
    this.#deps = deps;
  }

  /** Reads the stored choices; to be called once, before the cameras are first applied. Never rejects. */
  async load(): Promise<void> {
    const path = this.#path;
    try {
      const text = await readIfThere(this.#deps.fs, path);
      if (text === undefined) return;
      this.#overrules = parseOverrules(text);
    } catch (err) {
      this.#deps.log.error(
        { path, err },
        'the list of cameras that users have stopped cannot be read: these cameras are recorded',
      );
    }
  }

  start(cameraId: string, by: string): Promise<number> {
    return this.#changes.take(() => this.#set(cameraId, true, by));
  }

  stop(cameraId: string, by: string): Promise<number> {
    return this.#changes.take(() => this.#set(cameraId, false, by));
  }

  /** Forgets the choice for a removed camera: another camera may get its id. */
  forget(cameraId: string): Promise<void> {
    return this.#changes.take(async () => {
      if (!this.#overrules.has(cameraId)) return;
      const next = new Map(this.#overrules);
      next.delete(cameraId);
      await this.#write(next).catch((err: unknown) => {
        this.#deps.log.warn({ camera: cameraId, err }, 'the choice to stop a removed camera cannot be deleted');
      });
    });
  }

  /** Cameras of files, with the choices of users applied. */
  overrule(cameras: readonly CameraConfig[]): WantedCamera[] {
    return cameras.map((camera) => {
      const overrule = this.#overrules.get(camera.id);
      if (overrule?.enabled === false) return { ...camera, enabled: false, halted: haltedBy(overrule) };
      if (camera.enabled || overrule) return { ...camera, enabled: true };
      return { ...camera, halted: { reason: DISABLED_IN_FILE } };
    });
  }

  get #path(): string {
    return `${withoutTrailingSlash(this.#deps.workDir)}/${FILE}`;
  }

  async #set(cameraId: string, enabled: boolean, by: string): Promise<number> {
    const { apply, clock, log, refusal } = this.#deps;
    const change = this.#changeOf(cameraId, enabled, by);
    if (!change) throw new SwitchError('unknown-camera', 'id: this node does not know such a camera');
    const reason = enabled ? refusal(cameraId) : undefined;
    if (reason) throw new SwitchError(reason.code, reason.message);
    if (!(await change())) return 0;
    log.info({ camera: cameraId, by }, enabled ? 'a user has started a camera' : 'a user has stopped a camera');
    await Promise.race([apply(), clock.sleep(MAX_APPLY_MS)]);
    return 1;
  }

  /** Stores the change; resolves to whether anything changed. Undefined for an unknown camera. */
  #changeOf(cameraId: string, enabled: boolean, by: string): (() => Promise<boolean>) | undefined {
    const { database, files } = this.#deps;
    const ofFile = files().find(({ id }) => id === cameraId);
    if (ofFile) return () => this.#keep(ofFile, enabled, by);
    if (!database?.cameras().some(({ id }) => id === cameraId)) return undefined;
    return async () => {
      try {
        return await database.setEnabled(cameraId, enabled);
      } catch (err) {
        const detail = messageOf(err);
        throw new SwitchError('switch-not-kept', `the database cannot be changed: ${detail}`, { cause: err });
      }
    };
  }

  async #keep(camera: CameraConfig, enabled: boolean, by: string): Promise<boolean> {
    const { clock } = this.#deps;
    const before = this.#overrules.get(camera.id)?.enabled ?? camera.enabled;
    if (before === enabled) return false;
    const next = new Map(this.#overrules);
    // A choice that agrees with the file is not stored: a later change of the file then applies.
    if (camera.enabled === enabled) next.delete(camera.id);
    else next.set(camera.id, { enabled, atMs: Math.floor(clock.wallMs()), by });
    try {
      await this.#write(next);
    } catch (err) {
      const detail = errorCode(err) ?? 'failed';
      throw new SwitchError('switch-not-kept', `the working directory cannot be written: ${detail}`, { cause: err });
    }
    return true;
  }

  async #write(overrules: ReadonlyMap<string, Overrule>): Promise<void> {
    const { fs, workDir } = this.#deps;
    await makeDirectories(fs, withoutTrailingSlash(workDir));
    await replaceFile(fs, this.#path, formatOverrules(overrules));
    this.#overrules = overrules;
  }
}

const DISABLED_IN_FILE: Reason = { code: 'disabled', message: 'enabled is false in the configuration' };

const haltedBy = ({ by, atMs }: Overrule): NonNullable<WantedCamera['halted']> => ({
  reason: { code: 'stopped-by-user', message: `stopped by ${by}` },
  sinceMs: atMs,
});

function formatOverrules(overrules: ReadonlyMap<string, Overrule>): string {
  const cameras = Object.fromEntries(
    Array.from(overrules, ([id, { enabled, atMs, by }]) => [id, { enabled, at: new Date(atMs).toISOString(), by }]),
  );
  return `${JSON.stringify({ version: 1, cameras }, undefined, 2)}\n`;
}

/** Throws for text that `formatOverrules` did not write. */
function parseOverrules(text: string): Map<string, Overrule> {
  const { cameras } = (parseJson(text) ?? {}) as { cameras?: unknown };
  if (typeof cameras !== 'object' || cameras === null) throw new Error('the file is damaged');
  return new Map(
    Object.entries(cameras as Record<string, { enabled?: unknown; at?: unknown; by?: unknown } | null>).flatMap(
      ([id, value]): [string, Overrule][] => {
        const atMs = Date.parse(String(value?.at));
        if (typeof value?.enabled !== 'boolean' || Number.isNaN(atMs)) return [];
        return [[id, { enabled: value.enabled, atMs, by: typeof value.by === 'string' ? value.by : 'somebody' }]];
      },
    ),
  );
}
