// Follows the rows of this node in the table `cameras`: immediately by notifications of the database, and by polling in case one
// is lost. Keeps a copy on disk, so that a start without the database records what was recorded before.

import { open, readFile, rename, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode, messageOf, quietly } from '../../base/error.ts';
import type { Log } from '../../base/log.ts';
import { lostByAccident, type AskedRemovals } from '../config/changes.ts';
import type { CameraConfig, CameraDefaults } from '../config/schema.ts';
import { NO_CAMERAS, type CameraList } from '../config/camera-list.ts';
import { CAMERA_COLUMNS, rowIn, toCameras, type CameraRow } from './camera-rows.ts';
import { clientConfig, type Connection } from './connection.ts';
import { unlessLogged } from './driver-error.ts';

interface CameraTableOptions {
  readonly url: string;
  readonly connection: Connection;
  readonly nodeName: string;
  /** The copy. It contains passwords, so only its owner may read it. */
  readonly copyFile: string;
  readonly defaults: () => CameraDefaults;
  /** Whether another program has made the table. */
  readonly isForeign: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with each list that differs from the previous one. */
  readonly changed: (list: CameraList) => void;
}

/** How often rows are read without a notification. */
const POLL_MS = 15_000;
/** A table that another program has made does not notify. */
const POLL_FOREIGN_MS = 2_000;
/** Changes within this time are read together. */
const GATHER_MS = 50;
const RETRY = { firstMs: 1_000, maxMs: 15_000 };
const CHANNEL = 'kube_nvr_cameras';

type ReadRow = Parameters<typeof rowIn>[0];

export class CameraTable {
  readonly #options: CameraTableOptions;
  #rows: readonly CameraRow[] | undefined;
  #lost: readonly string[] = [];
  #list: CameraList = NO_CAMERAS;
  #reading: Promise<void> | undefined;
  #again = false;
  #problem = '';

  constructor(options: CameraTableOptions) {
    this.#options = options;
  }

  get list(): CameraList {
    return this.#list;
  }

  /** Cameras whose rows are gone although nobody asked for that, and that are recorded as before (see `lostByAccident`). */
  get lost(): readonly string[] {
    return this.#lost;
  }

  /** Why the table cannot be read; empty if it can. */
  get problem(): string {
    return this.#problem;
  }

  /** Uses the copy of the last run, unless the table was read meanwhile. */
  async useCopy(): Promise<void> {
    const rows = await this.#copied();
    if (!rows || this.#rows) return;
    this.#options.log.info(
      { cameras: rows.length },
      'the database cannot be reached: its cameras are read from the last copy',
    );
    this.#take(rows);
  }

  async #copied(): Promise<readonly CameraRow[] | undefined> {
    const { nodeName, copyFile, log } = this.#options;
    let copy: { nodeName?: string; cameras?: readonly CameraRow[] };
    try {
      copy = JSON.parse(await readFile(copyFile, 'utf8')) as typeof copy;
    } catch (err) {
      // The cameras come when the database answers.
      if (errorCode(err) !== 'ENOENT') log.error({ err }, 'the copy of the cameras in the database cannot be read');
      return undefined;
    }
    if (copy.nodeName !== nodeName || !Array.isArray(copy.cameras)) return undefined;
    const rows = copy.cameras as readonly (CameraRow | null)[];
    return rows.filter((row): row is CameraRow => typeof row?.id === 'string');
  }

  /** Reads the table now. `asked`: what may be missing. Throws DatabaseError. */
  async read(asked: AskedRemovals = []): Promise<void> {
    const { connection, nodeName, log } = this.#options;
    const sql = `SELECT ${CAMERA_COLUMNS} FROM cameras WHERE node_name = $1 ORDER BY id`;
    const rows = (await connection.run<ReadRow>(sql, [nodeName])).map(rowIn);
    const before = this.#rows ?? (await this.#copied()) ?? [];
    const lost = await this.#lostIn(before, rows, asked);
    if (lost.length > 0) {
      if (!isDeepStrictEqual(lost, this.#lost)) {
        log.error({ cameras: lost }, 'the table cameras has lost the rows of cameras, which are recorded as before');
      }
      this.#lost = lost;
      if (!this.#rows) this.#take(before);
      return;
    }
    this.#lost = [];
    if (isDeepStrictEqual(rows, this.#rows)) return;
    this.#take(rows);
    await this.#copy(rows);
  }

  /** A row with the name of another node is no loss. */
  async #lostIn(
    before: readonly CameraRow[],
    rows: readonly CameraRow[],
    asked: AskedRemovals,
  ): Promise<readonly string[]> {
    const [old, now] = [before, rows].map((list) => list.map(({ id }) => id)) as [string[], string[]];
    const missing = lostByAccident(old, now, asked);
    if (missing.length === 0) return [];
    const moved = await this.#options.connection.run<{ id: string }>('SELECT id FROM cameras WHERE id = ANY($1)', [
      missing,
    ]);
    return lostByAccident(old, [...now, ...moved.map(({ id }) => id)], asked);
  }

  /**
   * Sets whether a camera of this node is recorded and reads the table again. Resolves to whether that changed anything. Throws
   * DatabaseError.
   */
  async setEnabled(cameraId: string, enabled: boolean): Promise<boolean> {
    const { connection, nodeName } = this.#options;
    const sql = `UPDATE cameras SET enabled = $3 WHERE id = $1 AND node_name = $2 AND enabled <> $3 RETURNING id`;
    const rows = await connection.transaction((run) => run(sql, [cameraId, nodeName, enabled]));
    // The change is committed: if this read fails, the next one shows it later.
    await this.read().catch(unlessLogged(this.#options.log));
    return rows.length > 0;
  }

  /** As of the last read. */
  row(cameraId: string): CameraRow | undefined {
    return this.#rows?.find(({ id }) => id === cameraId);
  }

  /**
   * `change` gets the row of a camera of this node (undefined if there is none) and returns the new row, `null` to delete it, or
   * undefined to leave it. It must not throw. Resolves to whether the table changed: a row with this id may belong to another
   * node. Throws DatabaseError.
   */
  async edit(
    cameraId: string,
    change: (row: CameraRow | undefined) => CameraRow | null | undefined,
  ): Promise<{ readonly changed: boolean }> {
    const { connection, nodeName } = this.#options;
    const changed = await connection.transaction(async (run) => {
      const which = [cameraId, nodeName];
      const select = `SELECT ${CAMERA_COLUMNS} FROM cameras WHERE id = $1 AND node_name = $2 FOR UPDATE`;
      const row = (await run<ReadRow>(select, which)).map(rowIn)[0];
      const next = change(row);
      if (next === undefined) return [];
      if (next === null) return run(`DELETE FROM cameras WHERE id = $1 AND node_name = $2 RETURNING id`, which);
      const { name, group = null, source, preview = null, snapuri, ptz } = next;
      const { onvif = null, edge = null, events = null, activity = null, record, enabled } = next;
      const sql = row
        ? `UPDATE cameras SET name = $3, source = $4, snapuri = $5, ptz = $6, onvif = $7, record = $8, enabled = $9,
             preview = $10, edge = $11, "group" = $12, events = $13, activity = $14
           WHERE id = $1 AND node_name = $2 RETURNING id`
        : `INSERT INTO cameras (id, node_name, name, source, snapuri, ptz, onvif, record, enabled, preview, edge, "group", events, activity)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (id) DO NOTHING RETURNING id`;
      return run(sql, [
        ...which,
        name,
        source,
        snapuri,
        ptz,
        onvif,
        record,
        enabled,
        preview,
        edge,
        group,
        events,
        activity,
      ]);
    });
    // As in `setEnabled`.
    if (changed.length > 0) await this.read([cameraId]).catch(unlessLogged(this.#options.log));
    return { changed: changed.length > 0 };
  }

  /** Follows the table until `signal` aborts. The tables must exist. */
  async follow(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#poll(signal), this.#listen(signal)]);
  }

  async #poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#readSoon();
      await this.#options.clock.sleep(this.#options.isForeign() ? POLL_FOREIGN_MS : POLL_MS, signal);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const backoff = new Backoff(RETRY);
    while (!signal.aborted) {
      await this.#listenOnce(signal, () => backoff.reset()).catch(unlessLogged(this.#options.log));
      await clock.sleep(backoff.next(), signal);
    }
  }

  /** Listens until the connection breaks. */
  async #listenOnce(signal: AbortSignal, connected: () => void): Promise<void> {
    const { nodeName, clock } = this.#options;
    const client = new pg.Client(clientConfig(this.#options));
    const ended = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      await client.connect();
      client.on('notification', ({ payload }) => {
        // An empty payload means all nodes. Long node names are truncated in the payload.
        if (payload === undefined || payload === '' || nodeName.startsWith(payload)) void this.#readSoon();
      });
      await client.query(`LISTEN ${CHANNEL}`);
      connected();
      // For changes made before LISTEN.
      void this.#readSoon();
      await ended;
    } finally {
      await Promise.race([quietly(client.end()), clock.sleep(1_000)]);
    }
  }

  /** Reads once for all calls before the read starts, and once more for calls during it. */
  #readSoon(): Promise<void> {
    this.#again = true;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readAll(): Promise<void> {
    while (this.#again) {
      await this.#options.clock.sleep(GATHER_MS);
      this.#again = false;
      // The next poll reads again.
      await this.read().then(
        () => (this.#problem = ''),
        (err: unknown) => {
          unlessLogged(this.#options.log)(err);
          this.#tell(messageOf(err));
        },
      );
    }
  }

  #tell(reason: string): void {
    if (reason !== this.#problem) this.#options.log.warn({ reason }, 'the table cameras cannot be read');
    this.#problem = reason;
  }

  /** Call after a change of the defaults. `asked`: what may be missing from now on. */
  retake(asked: AskedRemovals): void {
    if (this.#rows?.length) this.#take(this.#rows);
    // The connection has logged the reason.
    if (this.#lost.length > 0) void this.read(asked).catch(unlessLogged(this.#options.log));
  }

  #take(rows: readonly CameraRow[]): void {
    const { defaults, changed, log, nodeName } = this.#options;
    this.#rows = rows;
    const before: readonly CameraConfig[] = this.#list.cameras;
    const list = toCameras(rows, defaults(), before);
    if (isDeepStrictEqual(list, this.#list) && rows.length > 0) return;
    // A wrong node name is not an error, but looks like this.
    if (rows.length === 0) log.info({ node: nodeName }, 'the database has no cameras for this node');
    this.#list = list;
    changed(list);
  }

  async #copy(rows: readonly CameraRow[]): Promise<void> {
    const { nodeName, copyFile, log } = this.#options;
    try {
      await mkdir(dirname(copyFile), { recursive: true });
      const temporary = `${copyFile}.new`;
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.chmod(0o600);
        await file.writeFile(JSON.stringify({ nodeName, cameras: rows }));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, copyFile);
    } catch (err) {
      log.warn({ file: copyFile, err }, 'the copy of the cameras in the database cannot be written');
    }
  }
}
