// Follows the table `cameras` of each pool whose rows are Cameras, while this replica leads.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import type { RecorderPool } from '../../crds/recorder-pool.ts';
import type { CameraDefaults } from '../../recorder/config/schema.ts';
import type { CameraList } from '../../recorder/config/camera-list.ts';
import type { RowTable } from '../../recorder/database/row-table.ts';
import { keyOf, type KubeApi, type ObjectName } from '../kube/api.ts';
import type { Caches } from '../observe/caches.ts';
import { condition } from '../plan/parts.ts';
import type { PlannedCondition } from '../plan/snapshot.ts';
import type { RowCameras } from './row-cameras.ts';

/** The table of a pool; `close` returns its connections. */
interface PoolTable extends RowTable {
  close?(): Promise<void>;
}

/** Where rows come from. */
export interface RowSource {
  /** Names the database of a pool; undefined if its rows are no Cameras. */
  databaseOf(pool: RecorderPool): string | undefined;
  /** Loads the driver, too, which costs memory that an operator without rows does not need. */
  open(database: ObjectName): Promise<PoolTable>;
  defaults(): CameraDefaults;
}

interface PoolRowsOptions {
  /** Writes are refused while this replica does not lead. */
  readonly api: KubeApi;
  readonly caches: { readonly pools: Pick<Caches['pools'], 'list'> };
  readonly isLeader: () => boolean;
  readonly source: RowSource;
  readonly clock: Clock;
  readonly log: Log;
}

/** A pool whose table is followed. */
interface Followed {
  readonly database: string;
  rows: RowCameras | undefined;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

const LOOK_MS = 1_000;
/** A database that hangs does not hold up the stop. */
const STOP_MS = 1_000;

export class PoolRows {
  readonly #options: PoolRowsOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #stop = new AbortController();
  #following = Promise.resolve();

  constructor(options: PoolRowsOptions) {
    this.#options = options;
  }

  start(): void {
    this.#following = this.#follow();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    const ended = [...this.#followed.values()].map((one) => {
      one.stop.abort();
      return one.ended;
    });
    await Promise.race([Promise.all([this.#following, ...ended]), this.#options.clock.sleep(STOP_MS)]);
  }

  get refused(): CameraList['refused'] {
    return [...this.#followed.values()].flatMap(({ rows }) => rows?.refused ?? []);
  }

  warnings(): readonly Warning[] {
    return [...this.#followed.values()].flatMap(({ rows }) => rows?.warnings() ?? []);
  }

  /** The condition of a pool whose rows are Cameras. */
  conditionsOf(key: string): readonly PlannedCondition[] {
    const { rows } = this.#followed.get(key) ?? {};
    if (!rows) return [];
    const { problem, isRead, refused } = rows;
    if (problem !== '') {
      return [condition('RowsFollowed', 'False', 'TableUnusable', `its cameras stay as they are: ${problem}`)];
    }
    if (!isRead) return [condition('RowsFollowed', 'Unknown', 'Pending', 'the table cameras is being read')];
    const [restored] = rows.warnings();
    if (restored) return [condition('RowsFollowed', 'False', 'TableRestored', restored.message)];
    const [first] = refused;
    if (!first) return [condition('RowsFollowed', 'True', 'Followed', '')];
    const others = refused.length === 1 ? '' : `, and ${refused.length - 1} more`;
    return [condition('RowsFollowed', 'False', 'RowsRefused', `${first.id}: ${first.reason.message}${others}`)];
  }

  async #follow(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#look();
      await clock.sleep(LOOK_MS, this.#stop.signal);
    }
  }

  #look(): void {
    const { caches, source } = this.#options;
    const wanted = new Map(caches.pools.list().map((pool) => [keyOf(pool.metadata), pool]));
    for (const [key, { database, stop }] of this.#followed) {
      const pool = wanted.get(key);
      if (pool && source.databaseOf(pool) === database) continue;
      stop.abort();
      this.#followed.delete(key);
    }
    for (const [key, pool] of wanted) {
      const database = source.databaseOf(pool);
      if (database === undefined || this.#followed.has(key)) continue;
      const stop = new AbortController();
      const opened = (rows: RowCameras): void => void (one.rows = rows);
      const ended = this.#followTable({ ...pool.metadata, database }, opened, stop.signal);
      const one: Followed = { database, rows: undefined, stop, ended };
      this.#followed.set(key, one);
    }
  }

  async #followTable(
    { namespace, name: pool, database }: Readonly<Record<'namespace' | 'name' | 'database', string>>,
    opened: (rows: RowCameras) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, isLeader, source, clock, log } = this.#options;
    const [{ RowCameras }, table] = await Promise.all([
      import('./row-cameras.ts'),
      source.open({ namespace, name: database }),
    ]);
    const defaults = (): CameraDefaults => source.defaults();
    const rows = new RowCameras({ api, namespace, pool, table, defaults, clock, log });
    opened(rows);
    await rows.follow(isLeader, signal);
    await table.close?.();
  }
}
