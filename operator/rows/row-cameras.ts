// Keeps a Camera for each row of the table `cameras`: so a row has the failover, the epochs, the redirects and the gaps of every other
// camera. The operator that leads does this. Nothing is ever written into the table (docs/design/rows-as-cameras.md).

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { concurrently } from '../../base/concurrently.ts';
import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import type { Reason, Warning } from '../../base/reason.ts';
import {
  CAMERA_GROUP_LABEL,
  CAMERA_HOSTS,
  ROW_LABEL,
  ROW_VERSION,
  ROWS_MANAGER,
  ROWS_MARK,
  SEALED_ROW,
} from '../../crds/names.ts';
import type { CameraSettings } from '../../recorder/config/camera-file.ts';
import { CameraFile, toCameraConfig, type CameraDefaults } from '../../recorder/config/schema.ts';
import type { CameraList } from '../../recorder/config/camera-list.ts';
import { usableOf, type CameraRow } from '../../recorder/database/camera-rows.ts';
import type { RowTable } from '../../recorder/database/row-table.ts';
import { hasStatus, isNotFound, type KubeApi, type KubeObject, type Resource } from '../kube/api.ts';
import { CAMERA, RECORDER_NODE, RECORDER_POOL, SECRET } from '../kube/resources.ts';

interface RowCamerasOptions {
  readonly api: Pick<KubeApi, 'get' | 'list' | 'apply' | 'mergePatch' | 'delete'>;
  readonly namespace: string;
  readonly pool: string;
  readonly table: RowTable;
  readonly defaults: () => CameraDefaults;
  readonly clock: Clock;
  readonly log: Log;
}

/** Changes of rows take effect within two seconds. */
const READ_MS = 1_000;
/** How often the objects are compared although no row has changed. */
const COMPARE_MS = 30_000;
const RETRY = { firstMs: 1_000, maxMs: 15_000 };
const WRITES = 8;
const SECRET_TYPE = 'kube-nvr.dev/camera-row';

/** The data of the Secret of a row: what its Camera is recorded with, the row that said so, and the row as it was read last. */
interface Sealed {
  readonly settings: CameraSettings;
  readonly applied: CameraRow;
  /** Another one than `applied` only after the table was restored. null: it is not there. */
  readonly known: CameraRow | null;
}

/** The Camera of a row. `sealed` undefined: somebody has deleted its Secret. */
interface OwnedCamera {
  readonly camera: KubeObject;
  readonly sealed: Sealed | undefined;
  readonly version: string | undefined;
}

const IS_MANIFEST = 'a Camera of the cluster has this id; the row of the table cameras is not used';

export class RowCameras {
  readonly #options: RowCamerasOptions;
  #read: unknown;
  #comparedMs = -Infinity;
  #refused: CameraList['refused'] = [];
  /** Cameras that are recorded as before, although the table was restored from an older state. */
  #restored: readonly string[] = [];
  #problem = '';

  constructor(options: RowCamerasOptions) {
    this.#options = options;
  }

  /** Rows that have no Camera, and why; other mistakes are those of the table. */
  get refused(): CameraList['refused'] {
    return this.#refused;
  }

  /** Whether it is known what the table says now. */
  get isRead(): boolean {
    return this.#read !== undefined;
  }

  /** Why the table could not be followed the last time; empty if it was. */
  get problem(): string {
    return this.#problem;
  }

  warnings(): readonly Warning[] {
    if (this.#restored.length === 0) return [];
    const names = this.#restored.slice(0, 5).join(', ') + (this.#restored.length > 5 ? ', …' : '');
    const message = `the table cameras was restored from an older state: ${names} ${this.#restored.length === 1 ? 'is' : 'are'} recorded as before`;
    return [{ code: 'rows-restored', message, cameraId: undefined }];
  }

  /** Follows the table while `isLeading`, until `signal` aborts. */
  async follow(isLeading: () => boolean, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const backoff = new Backoff(RETRY);
    while (!signal.aborted) {
      if (isLeading()) {
        try {
          await this.once();
          backoff.reset();
          this.#problem = '';
        } catch (err) {
          const reason = messageOf(err);
          if (reason !== this.#problem) log.warn({ reason }, 'the cameras of the database stay as they are');
          this.#problem = reason;
          this.#read = undefined;
          await clock.sleep(backoff.next(), signal);
          continue;
        }
      } else {
        this.#read = undefined;
        this.#problem = '';
        this.#refused = [];
        this.#restored = [];
      }
      await clock.sleep(READ_MS, signal);
    }
  }

  /** Carries out what has changed. Throws DatabaseError and ApiServerError: nothing else has changed then. */
  async once(): Promise<void> {
    const { table, clock } = this.#options;
    const read = await table.allRows();
    const nowMs = clock.monotonicMs();
    if (isDeepStrictEqual(read, this.#read) && nowMs - this.#comparedMs < COMPARE_MS) return;
    await this.#compare(plain(read.rows), read.marks);
    this.#comparedMs = nowMs;
    this.#read = read;
  }

  async #compare(rows: readonly CameraRow[], inTable: readonly string[]): Promise<void> {
    const { api, namespace, pool, log } = this.#options;
    const listed = async (kind: Resource): Promise<ReadonlyMap<string, KubeObject>> =>
      new Map((await api.list(kind, { namespace })).items.map((item) => [item.metadata.name, item]));
    const [cameras, nodes, pools] = await Promise.all([listed(CAMERA), listed(RECORDER_NODE), listed(RECORDER_POOL)]);
    const own = pools.get(pool);
    // The first server has not made it yet.
    if (!own) return;
    const marks = marksIn(own);
    const isRestored = marks.length > 0 && !marks.some((mark) => inTable.includes(mark));
    const isInPool = (object: KubeObject | undefined): boolean =>
      (object?.['spec'] as { readonly poolRef?: { readonly name: string } } | undefined)?.poolRef?.name === pool;
    // As on a single server, a row that names no node is nobody's.
    const wanted = new Map(
      rows.filter(({ nodeName = '' }) => isInPool(nodes.get(nodeName))).map((row) => [row.id, row]),
    );
    const ofRows = [...cameras.values()].filter(
      (camera) => camera.metadata.labels?.[ROW_LABEL] !== undefined && isInPool(camera),
    );
    const kept = new Map<string, OwnedCamera>();
    await concurrently(ofRows, WRITES, async (camera) => {
      kept.set(camera.metadata.name, keptOf(camera, await this.#secretOf(camera.metadata.name)));
    });
    const refused: { id: string; reason: Reason }[] = [];
    const restored: string[] = [];
    let writes = 0;

    const follow = async (id: string): Promise<void> => {
      const row = wanted.get(id) ?? null;
      const now = kept.get(id);
      const { applied, known } = now?.sealed ?? {};
      if (!now?.sealed) {
        if (!now && cameras.has(id)) refused.push({ id, reason: { code: 'id-taken', message: IS_MANIFEST } });
        else if (row && (await this.#apply(id, row, undefined))) writes++;
      } else if (isRestored) {
        if (!isDeepStrictEqual(row, known)) await this.#seal(id, { ...now.sealed, known: row }, now.version);
        if (!isDeepStrictEqual(row, applied)) restored.push(id);
      } else if (!isDeepStrictEqual(row, known)) {
        if (row) await this.#apply(id, row, now.sealed);
        else await this.#remove(id);
        writes++;
      } else if (!isDeepStrictEqual(known, applied)) restored.push(id);
      else await this.#mend(id, now);
    };
    await concurrently([...new Set([...wanted.keys(), ...kept.keys()])], WRITES, async (id) => {
      try {
        await follow(id);
      } catch (err) {
        if (!hasStatus(err, 422)) throw err;
        refused.push({ id, reason: { code: 'invalid-camera', message: messageOf(err) } });
      }
    });
    this.#refused = refused;
    this.#restored = restored.sort();
    if (isRestored && restored.length > 0) log.error({ cameras: restored }, 'the table cameras was restored');
    if (writes > 0 || isRestored || marks.length === 0) await this.#mark(marks);
  }

  /** Resolves to whether anything was written: a row with a mistake that its camera needs changes only whether that is recorded. */
  async #apply(id: string, row: CameraRow, before: Sealed | undefined): Promise<boolean> {
    const settings = usableOf(row).settings ?? before?.settings;
    if (!settings) return false;
    const sealed = { settings, applied: row, known: row };
    const version = randomUUID();
    // First: recorders read it as soon as the Camera has this version.
    await this.#seal(id, sealed, version);
    await this.#write(CAMERA, this.#manifest(id, sealed, version));
    return true;
  }

  /** Somebody may have changed the Camera, or this process has ended between two writes. */
  async #mend(id: string, { camera, sealed, version = '' }: OwnedCamera): Promise<void> {
    const wanted = this.#manifest(id, sealed as Sealed, version);
    if (!isWithin(wanted, camera)) await this.#write(CAMERA, wanted);
  }

  #manifest(id: string, { settings, applied }: Sealed, version: string): KubeObject {
    const { namespace, pool, defaults } = this.#options;
    const { group, record, ...camera } = toCameraConfig(CameraFile.parse(settings), defaults());
    const { maxAgeMs, maxSizeBytes, minFree } = record.retention;
    return {
      metadata: {
        name: id,
        namespace,
        labels: { [ROW_LABEL]: 'true', ...(group && LABEL_VALUE.test(group) && { [CAMERA_GROUP_LABEL]: group }) },
        annotations: { [ROW_VERSION]: version },
      },
      spec: {
        displayName: camera.name,
        // Path and query may contain a password, too: the whole address is in the Secret.
        source: camera.source.replace(/^([a-z+]+:\/\/)(?:[^/?#]*@)?([^/?#]*).*$/is, '$1$2/'),
        credentialsSecretRef: { name: secretOf(id) },
        ptz: camera.ptz,
        suspend: !applied.enabled,
        record: {
          format: record.format,
          segmentSeconds: Math.max(1, Math.round(record.segmentDurationMs / 1000)),
          retention: {
            ...(maxAgeMs !== undefined && { maxAgeSeconds: Math.round(maxAgeMs / 1000) }),
            ...(maxSizeBytes !== undefined && { maxSize: String(maxSizeBytes) }),
            ...(minFree && { minFree: minFree.kind === 'percent' ? `${minFree.percent}%` : String(minFree.bytes) }),
          },
        },
        poolRef: { name: pool },
        placement: { preferredNode: applied.nodeName },
      },
    };
  }

  async #write(kind: Resource, manifest: KubeObject): Promise<void> {
    await this.#options.api.apply(kind, manifest, { fieldManager: ROWS_MANAGER, force: true });
  }

  async #secretOf(id: string): Promise<KubeObject | undefined> {
    const { api, namespace } = this.#options;
    try {
      return await api.get(SECRET, { namespace, name: secretOf(id) });
    } catch (err) {
      if (!isNotFound(err)) throw err;
      return undefined;
    }
  }

  async #seal(id: string, { settings, applied, known }: Sealed, version: string | undefined): Promise<void> {
    const { namespace } = this.#options;
    const values = Object.entries({ [SEALED_ROW]: settings, applied, known });
    await this.#write(SECRET, {
      metadata: {
        name: secretOf(id),
        namespace,
        labels: { [ROW_LABEL]: 'true' },
        // The addresses are in the Secret itself.
        annotations: { [CAMERA_HOSTS]: '*', ...(version !== undefined && { [ROW_VERSION]: version }) },
      },
      type: SECRET_TYPE,
      data: Object.fromEntries(values.map(([key, value]) => [key, base64(JSON.stringify(value))])),
    });
  }

  async #remove(id: string): Promise<void> {
    const { api, namespace } = this.#options;
    for (const [kind, name] of [
      [CAMERA, id],
      [SECRET, secretOf(id)],
    ] as const) {
      await api.delete(kind, { namespace, name }).catch((err: unknown) => {
        if (!isNotFound(err)) throw err;
      });
    }
  }

  /** All marks are known until the table has the new one. */
  async #mark(before: readonly string[]): Promise<void> {
    const { api, namespace, pool, table } = this.#options;
    const next = randomUUID();
    const note = (marks: readonly string[]): Promise<unknown> => {
      const annotations = { [ROWS_MARK]: marks.join(' ') };
      return api.mergePatch(RECORDER_POOL, { namespace, name: pool }, { metadata: { annotations } });
    };
    await note([...before, next]);
    await table.setMark(next, before);
    await note([next]);
  }
}

/** Values of labels may not have other characters: the list of the cluster then shows no group. */
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

const secretOf = (id: string): string => `row-${id}`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');

const marksIn = ({ metadata }: KubeObject): readonly string[] =>
  (metadata.annotations?.[ROWS_MARK] ?? '').split(' ').filter((mark) => mark !== '');

function keptOf(camera: KubeObject, secret: KubeObject | undefined): OwnedCamera {
  const data = (secret?.['data'] ?? {}) as Readonly<Record<string, string>>;
  const read = (key: string): unknown =>
    data[key] === undefined ? undefined : JSON.parse(Buffer.from(data[key], 'base64').toString('utf8'));
  const sealed = { settings: read(SEALED_ROW), applied: read('applied'), known: read('known') };
  const isWhole = Object.values(sealed).every((value) => value !== undefined);
  return {
    camera,
    sealed: isWhole ? (sealed as Sealed) : undefined,
    version: secret?.metadata.annotations?.[ROW_VERSION],
  };
}

/** Whether `whole` has every value of `part`. */
const isWithin = (part: unknown, whole: unknown): boolean =>
  typeof part === 'object' && part !== null && typeof whole === 'object' && whole !== null
    ? Object.entries(part).every(([key, value]) => isWithin(value, (whole as Record<string, unknown>)[key]))
    : isDeepStrictEqual(part, whole);

/** As it is kept. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
