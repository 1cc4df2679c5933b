// Adds, changes and removes cameras while the recorder runs. The settings go into a file of `conf.d` or a row of the
// database, and are applied like any other change of them.

import { createHmac, randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { errorCode, messageOf } from '../../base/error.ts';
import { Turns } from '../../base/turns.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import { nodeFileSystem, type FileSystem } from '../archive/disk/file-system.ts';
import { makeDirectories, replaceFile } from '../archive/disk/state-file.ts';
import { cameraFileOf, formatCameraFile, isOurs, withCamera, type CameraSettings } from '../config/camera-file.ts';
import { EditError, type CameraEditor, type EditedCamera, type MayChange, type Mistake } from '../config/editor.ts';
import { ConfigError } from '../config/error.ts';
import { findCamera, loadConfig, mistakesInCamera, type WrittenCamera } from '../config/load.ts';
import { hidePassword, keepPassword, PasswordNeeded } from '../config/passwords.ts';
import type { Config } from '../config/schema.ts';
import { withoutNulls } from '../config/yaml-file.ts';
import { ROW_SETTINGS, rowOf, settingsOf, type CameraRow } from '../database/camera-rows.ts';
import type { RecorderDatabase } from '../database/database.ts';
import type { Engine } from '../model/engine.ts';
import type { FrontDeps } from './deps.ts';

export interface NodeCameraEditorDeps {
  readonly fs: FileSystem;
  /** The configuration file; `conf.d` is next to it. */
  readonly configFile: string;
  /** Reads and applies the files; `removed`: cameras that are to be missing. Rejects with ConfigError when they are refused. */
  readonly reload: (removed: readonly string[]) => Promise<void>;
  /** If there is a database, new cameras are stored in it. */
  readonly database?: {
    row(cameraId: string): CameraRow | undefined;
    /** `change` does not throw. Rejects when the database cannot be reached. */
    edit(
      cameraId: string,
      change: (row: CameraRow | undefined) => CameraRow | null | undefined,
    ): Promise<{ readonly changed: boolean }>;
  };
  /** Applies the cameras that are wanted now. */
  readonly apply: () => Promise<void>;
  /** Forgets what is stored about a removed camera: another camera may get its id. */
  readonly forget: (cameraId: string) => Promise<void>;
  /** In a cluster: whether it has assigned the camera to this node. */
  readonly cluster?: { has(cameraId: string): boolean; readonly mode: 'kubernetes' | 'etcd' };
  readonly clock: Clock;
}

/** Undefined when the configuration files are not known. */
export function openCameraEditor(
  { cluster }: Config,
  engine: Engine,
  database: RecorderDatabase | undefined,
  { configuration, clock }: Pick<FrontDeps, 'configuration' | 'clock'>,
): NodeCameraEditor | undefined {
  if (!configuration) return undefined;
  return new NodeCameraEditor({
    fs: nodeFileSystem,
    configFile: configuration.file,
    reload: configuration.reload,
    ...(database && {
      database: {
        row: (id: string) => database.cameraRow(id),
        edit: (id, change) => database.editCamera(id, change),
      },
    }),
    ...(cluster.mode !== 'none' && {
      cluster: { has: (id) => engine.cameras.get(id) !== undefined, mode: cluster.mode },
    }),
    apply: () => engine.applyCameras(),
    forget: (id) => engine.forgetCamera(id),
    clock,
  });
}

/** Files with passwords are readable by the user and group of the recorder only. */
const FILE_MODE = 0o640;
/** The longest time that an answer waits for the change to be applied; the change is stored already. */
const MAX_APPLY_MS = 10_000;
/** Settings that may contain a password, by their path in the settings of a camera. */
const ADDRESSES: readonly (readonly [key: string, within?: string])[] = [
  ['source'],
  ['source', 'preview'],
  ['snapshot'],
  ['onvif'],
  ['replay', 'edge'],
];

export class NodeCameraEditor implements CameraEditor {
  readonly #deps: NodeCameraEditorDeps;
  /** A key for entity tags: without it, a tag would allow guesses of the password. */
  readonly #key = randomBytes(32);
  /** One change at a time: each is checked against the result of the previous one. */
  readonly #changes = new Turns(1);

  constructor(deps: NodeCameraEditorDeps) {
    this.#deps = deps;
  }

  async read(cameraId: string): Promise<EditedCamera> {
    this.#refuseCluster(cameraId);
    const written = await this.#find(cameraId);
    if (written) return { ...this.#edited(written.camera), heldIn: isOurs(written.text) ? undefined : written.file };
    const row = this.#deps.database?.row(cameraId);
    if (!row) throw unknownCamera();
    return this.#edited(settingsOf(row));
  }

  add(given: CameraSettings): Promise<EditedCamera> {
    return this.#changes.take(async () => {
      this.#refuseCluster();
      const settings = withoutNulls(given) as CameraSettings;
      check(settings);
      const cameraId = settings['id'] as string;
      const written = await this.#find(cameraId);
      if (written) throw idTaken(`${written.file} has a camera with this id`);
      if (this.#deps.database) return this.#addRow(cameraId, settings);
      const file = cameraFileOf(this.#deps.configFile, cameraId);
      if (await this.#deps.fs.facts(file).catch(ignoreMissing)) {
        throw new EditError('camera-in-file', `${file} already exists and contains something else`);
      }
      await this.#keep(file, formatCameraFile(settings));
      return this.#edited(settings);
    });
  }

  change(cameraId: string, given: CameraSettings, mayChange: MayChange): Promise<EditedCamera> {
    return this.#changes.take(async () => {
      this.#refuseCluster(cameraId);
      const written = await this.#find(cameraId);
      if (!written) return this.#changeRow(cameraId, given, mayChange);
      this.#mayChange(written, mayChange);
      const settings = changed(cameraId, given, written.camera);
      await this.#keep(written.file, withCamera(written.text, cameraId, settings));
      return this.#edited(settings);
    });
  }

  remove(cameraId: string, mayChange: MayChange): Promise<void> {
    return this.#changes.take(async () => {
      this.#refuseCluster(cameraId);
      const written = await this.#find(cameraId);
      if (written) {
        this.#mayChange(written, mayChange);
        await this.#keep(written.file, withCamera(written.text, cameraId, undefined), [cameraId]);
      } else {
        await this.#editRow(cameraId, (row) => {
          this.#requireTag(settingsOf(row), mayChange);
          return null;
        });
      }
      await this.#deps.forget(cameraId);
    });
  }

  async complete(cameraId: string, source: string): Promise<string> {
    this.#refuseCluster(cameraId);
    const written = await this.#find(cameraId);
    const row = this.#deps.database?.row(cameraId);
    const before = written?.camera ?? (row && settingsOf(row));
    if (!before) throw unknownCamera();
    return changed(cameraId, { ...before, source }, before)['source'] as string;
  }

  #refuseCluster(cameraId?: string): void {
    const { cluster } = this.#deps;
    if (!cluster) return;
    if (cameraId !== undefined && !cluster.has(cameraId)) throw unknownCamera();
    const name = cameraId ?? 'NAME';
    const command =
      cluster.mode === 'kubernetes'
        ? `with Kubernetes: kubectl edit camera ${name}`
        : `without Kubernetes: recorder get camera ${name} -o yaml > camera.yaml, and recorder apply -f camera.yaml after the change`;
    throw new EditError('managed-by-cluster', `cameras are resources of the cluster: change them there (${command})`);
  }

  async #find(cameraId: string): Promise<WrittenCamera | undefined> {
    try {
      return await findCamera(this.#deps.configFile, cameraId);
    } catch (err) {
      throw refused(err);
    }
  }

  #edited(settings: CameraSettings): EditedCamera {
    const shown = structuredClone(settings) as Group;
    for (const [key, within] of ADDRESSES) {
      const group = groupOf(shown, within);
      const address = group?.[key];
      if (typeof address === 'string') group![key] = hidePassword(address);
    }
    return { settings: shown, tag: this.#tagOf(settings) };
  }

  #tagOf(settings: CameraSettings): string {
    return createHmac('sha256', this.#key).update(JSON.stringify(settings)).digest('base64url').slice(0, 27);
  }

  #requireTag(settings: CameraSettings, mayChange: MayChange): void {
    if (mayChange(this.#tagOf(settings))) return;
    throw new EditError('precondition-failed', 'the camera has been changed meanwhile: read its settings again');
  }

  #mayChange({ file, text, camera }: WrittenCamera, mayChange: MayChange): void {
    if (!isOurs(text)) {
      throw new EditError('camera-in-file', `${file} was written by hand: change the camera there`);
    }
    this.#requireTag(camera, mayChange);
  }

  /** Writes or removes `file`, and makes the recorder apply it. */
  async #keep(file: string, text: string | undefined, removed: readonly string[] = []): Promise<void> {
    const { fs, configFile, reload } = this.#deps;
    await loadConfig(configFile, { change: { file, text } }).catch((err: unknown) => {
      throw refused(err, file);
    });
    try {
      if (text === undefined) {
        await fs.remove(file);
        await fs.syncDirectory(dirname(file));
      } else {
        await makeDirectories(fs, dirname(file));
        await replaceFile(fs, file, text, FILE_MODE);
      }
    } catch (err) {
      const detail = `${dirname(file)} cannot be written: ${errorCode(err) ?? 'failed'}`;
      throw new EditError('camera-not-kept', detail, { cause: err });
    }
    await this.#soon(
      reload(removed).catch((err: unknown) => {
        throw refused(err);
      }),
    );
  }

  async #soon(work: Promise<void>): Promise<void> {
    const { clock } = this.#deps;
    const late = new AbortController();
    await Promise.race([work, clock.sleep(MAX_APPLY_MS, late.signal)]);
    late.abort();
  }

  async #addRow(cameraId: string, settings: CameraSettings): Promise<EditedCamera> {
    const row = toRow(settings);
    let isThere = false;
    const { changed } = await this.#edit(cameraId, (known) => {
      isThere = known !== undefined;
      return isThere ? undefined : row;
    });
    if (isThere || !changed) throw idTaken('the table cameras has a camera with this id');
    return this.#edited(settingsOf(row));
  }

  async #changeRow(cameraId: string, given: CameraSettings, mayChange: MayChange): Promise<EditedCamera> {
    const now = await this.#editRow(cameraId, (row) => {
      this.#requireTag(settingsOf(row), mayChange);
      return toRow(changed(cameraId, given, settingsOf(row)));
    });
    return this.#edited(settingsOf(now));
  }

  /** `change` may throw EditError. */
  async #editRow<T extends CameraRow | null>(cameraId: string, change: (row: CameraRow) => T): Promise<T> {
    const made: T[] = [];
    const failed: unknown[] = [];
    await this.#edit(cameraId, (row) => {
      if (!row) return undefined;
      try {
        made.push(change(row));
      } catch (err) {
        failed.push(err);
      }
      return made[0];
    });
    if (failed.length > 0) throw failed[0];
    if (made.length === 0) throw unknownCamera();
    return made[0] as T;
  }

  async #edit(
    cameraId: string,
    change: (row: CameraRow | undefined) => CameraRow | null | undefined,
  ): Promise<{ readonly changed: boolean }> {
    const { database, apply } = this.#deps;
    if (!database) throw unknownCamera();
    let edited: { readonly changed: boolean };
    try {
      edited = await database.edit(cameraId, change);
    } catch (err) {
      const detail = `the database cannot be changed: ${messageOf(err)}`;
      throw new EditError('camera-not-kept', detail, { cause: err });
    }
    if (edited.changed) await this.#soon(apply());
    return edited;
  }
}

const unknownCamera = (): EditError => new EditError('unknown-camera', 'this node does not know such a camera');
const idTaken = (detail: string): EditError => new EditError('id-taken', `id: ${detail}`);
const invalid = (...mistakes: readonly Mistake[]): EditError =>
  new EditError('invalid-parameter', mistakes.map(({ key, problem }) => `${key}: ${problem}`).join('; '), { mistakes });

/** Throws EditError, whose message names every wrong field. */
function check(settings: CameraSettings): void {
  const mistakes = mistakesInCamera(settings);
  if (mistakes.length > 0) throw invalid(...mistakes);
}

/** The new settings of a camera, checked, with the stored passwords filled in. */
function changed(cameraId: string, given: CameraSettings, before: CameraSettings): CameraSettings {
  const settings: Group = structuredClone({ id: cameraId, ...(withoutNulls(given) as CameraSettings) });
  if (settings['id'] !== cameraId) throw invalid({ key: 'id', problem: 'a camera keeps its id; add another camera' });
  for (const [key, within] of ADDRESSES) {
    const group = groupOf(settings, within);
    const [now, old] = [group?.[key], groupOf(before, within)?.[key]];
    if (!group || typeof now !== 'string' || typeof old !== 'string') continue;
    try {
      group[key] = keepPassword(now, old);
    } catch (err) {
      if (err instanceof PasswordNeeded)
        throw invalid({ key: `${within ? `${within}.` : ''}${key}`, problem: err.message });
      throw err;
    }
  }
  check(settings);
  return settings;
}

type Group = Record<string, unknown>;

function groupOf(settings: Group, within: string | undefined): Group | undefined {
  const group = within === undefined ? settings : settings[within];
  return typeof group === 'object' && group !== null ? (group as Group) : undefined;
}

function toRow(settings: CameraSettings): CameraRow {
  const foreign = Object.keys(settings).find((key) => !ROW_SETTINGS.has(key));
  if (foreign !== undefined)
    throw invalid({ key: foreign, problem: 'the table cameras does not have this setting; configuration files do' });
  return rowOf(settings);
}

/** Converts an error of loading: a mistake in `file` is the caller's. */
function refused(err: unknown, file?: string): unknown {
  if (!(err instanceof ConfigError)) return err;
  const own = err.mistakes.filter((mistake) => mistake.file === file);
  if (own.length === 0) {
    return new EditError('configuration-refused', `the configuration has a mistake elsewhere: ${err.message}`);
  }
  return invalid(...own.map(({ key, problem }) => ({ key: key.replace(/^cameras\[\d+\]\.?/, ''), problem })));
}
