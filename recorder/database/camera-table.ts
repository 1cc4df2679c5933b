// Follows the table `cameras`: rows of this node out, at once when the database tells of a change, and by a look every
// now and then in case it did not. Keeps a copy on the disk, so that a start without the database records what the last
// one recorded.

import { open, readFile, rename, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { Backoff } from '../../base/backoff.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CameraConfig, CameraDefaults } from '../config/schema.ts';
import { CAMERA_COLUMNS, NO_CAMERAS, toCameras, type CameraList, type CameraRow } from './camera-rows.ts';
import { clientConfig, type Connection } from './connection.ts';

export interface CameraTableOptions {
  readonly url: string;
  readonly connection: Connection;
  readonly nodeName: string;
  /** The copy, with passwords in it: only its owner may read it. */
  readonly copyFile: string;
  /** Of cameras that have none of their own. */
  readonly defaults: () => CameraDefaults;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with every list that differs from the one before. */
  readonly changed: (list: CameraList) => void;
}

/** Rows are read this often although the database told of no change. */
const POLL_MS = 15_000;
/** Changes that come together are read together. */
const GATHER_MS = 50;
const RETRY = { firstMs: 1_000, maxMs: 15_000 };
const CHANNEL = 'kube_nvr_cameras';

export class CameraTable {
  readonly #o: CameraTableOptions;
  #rows: readonly CameraRow[] | undefined;
  #list: CameraList = NO_CAMERAS;
  #reading: Promise<void> | undefined;
  #again = false;

  constructor(options: CameraTableOptions) {
    this.#o = options;
  }

  get list(): CameraList {
    return this.#list;
  }

  /** Takes the copy of the last run, unless the table was read meanwhile. */
  async useCopy(): Promise<void> {
    const { nodeName, copyFile, log } = this.#o;
    let copy: { nodeName?: string; cameras?: readonly CameraRow[] };
    try {
      copy = JSON.parse(await readFile(copyFile, 'utf8')) as typeof copy;
    } catch {
      return;
    }
    if (copy.nodeName !== nodeName || !Array.isArray(copy.cameras) || this.#rows) return;
    const rows = (copy.cameras as readonly (CameraRow | null)[]).filter((row) => typeof row?.id === 'string');
    log.info({ cameras: rows.length }, 'cameras of the database are taken from the last copy');
    this.#take(rows as readonly CameraRow[]);
  }

  /** Reads the table now. Throws DatabaseError. */
  async read(): Promise<void> {
    const { connection, nodeName } = this.#o;
    const sql = `SELECT ${CAMERA_COLUMNS} FROM cameras WHERE node_name = $1 ORDER BY id`;
    const rows = await connection.run<CameraRow & pg.QueryResultRow>(sql, [nodeName]);
    if (isDeepStrictEqual(rows, this.#rows)) return;
    this.#take(rows);
    await this.#copy(rows);
  }

  /**
   * Writes whether a camera of this node is to be recorded, and takes what the table says then. Resolves to whether that
   * changed. Throws DatabaseError.
   */
  async setEnabled(cameraId: string, enabled: boolean): Promise<boolean> {
    const { connection, nodeName } = this.#o;
    const sql = `UPDATE cameras SET enabled = $3 WHERE id = $1 AND node_name = $2 AND enabled <> $3 RETURNING id`;
    const rows = await connection.transaction((run) => run(sql, [cameraId, nodeName, enabled]));
    // The change is made: a look that fails now only comes later.
    await this.read().catch(() => {});
    return rows.length > 0;
  }

  /** As of the last look. */
  row(cameraId: string): CameraRow | undefined {
    return this.#rows?.find(({ id }) => id === cameraId);
  }

  /**
   * `change` is given the row of a camera of this node, undefined when there is none, and says what becomes of it: another
   * one, `null` for none, undefined for what it is. It does not throw. Resolves to whether the table changed: one of this id
   * may be another node's. Throws DatabaseError.
   */
  async edit(
    cameraId: string,
    change: (row: CameraRow | undefined) => CameraRow | null | undefined,
  ): Promise<{ readonly changed: boolean }> {
    const { connection, nodeName } = this.#o;
    const changed = await connection.transaction(async (run) => {
      const which = [cameraId, nodeName];
      const select = `SELECT ${CAMERA_COLUMNS} FROM cameras WHERE id = $1 AND node_name = $2 FOR UPDATE`;
      const [row] = await run<CameraRow & pg.QueryResultRow>(select, which);
      const next = change(row);
      if (next === undefined) return [];
      if (next === null) return run(`DELETE FROM cameras WHERE id = $1 AND node_name = $2 RETURNING id`, which);
      const { name, source, snapuri, ptz, onvif = null, record, enabled } = next;
      const sql = row
        ? `UPDATE cameras SET name = $3, source = $4, snapuri = $5, ptz = $6, onvif = $7, record = $8, enabled = $9
           WHERE id = $1 AND node_name = $2 RETURNING id`
        : `INSERT INTO cameras (id, node_name, name, source, snapuri, ptz, onvif, record, enabled)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING id`;
      return run(sql, [...which, name, source, snapuri, ptz, onvif, record, enabled]);
    });
    // As with `setEnabled`.
    if (changed.length > 0) await this.read().catch(() => {});
    return { changed: changed.length > 0 };
  }

  /** Follows the table until `signal` aborts. The tables must be there. */
  async follow(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#poll(signal), this.#listen(signal)]);
  }

  async #poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#readSoon();
      await this.#o.clock.sleep(POLL_MS, signal);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { clock } = this.#o;
    const backoff = new Backoff(RETRY);
    while (!signal.aborted) {
      // Whether it works is seen from the connection that reads; this one says nothing.
      await this.#listenOnce(signal, () => backoff.reset()).catch(() => {});
      await clock.sleep(backoff.next(), signal);
    }
  }

  /** Listens until the connection breaks. */
  async #listenOnce(signal: AbortSignal, connected: () => void): Promise<void> {
    const { nodeName, clock } = this.#o;
    const client = new pg.Client(clientConfig(this.#o));
    const ended = new Promise<void>((resolve) => {
      client.on('error', () => resolve());
      client.on('end', () => resolve());
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    try {
      await client.connect();
      client.on('notification', ({ payload }) => {
        // Empty: all of them. The payload is cut where a name is too long for one.
        if (payload === undefined || payload === '' || nodeName.startsWith(payload)) void this.#readSoon();
      });
      await client.query(`LISTEN ${CHANNEL}`);
      connected();
      // What changed before anybody listened.
      void this.#readSoon();
      await ended;
    } finally {
      await Promise.race([client.end().catch(() => {}), clock.sleep(1_000)]);
    }
  }

  /** Reads once for all who ask meanwhile, and once more for those who ask during it. */
  #readSoon(): Promise<void> {
    this.#again = true;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readAll(): Promise<void> {
    while (this.#again) {
      await this.#o.clock.sleep(GATHER_MS);
      this.#again = false;
      // The connection has said why; the next look comes.
      await this.read().catch(() => {});
    }
  }

  /** After a change of what cameras inherit. */
  retake(): void {
    if (this.#rows?.length) this.#take(this.#rows);
  }

  #take(rows: readonly CameraRow[]): void {
    const { defaults, changed, log, nodeName } = this.#o;
    this.#rows = rows;
    const before: readonly CameraConfig[] = this.#list.cameras;
    const list = toCameras(rows, defaults(), before);
    if (isDeepStrictEqual(list, this.#list) && rows.length > 0) return;
    // A name that differs in one character is no error, and looks like this.
    if (rows.length === 0) log.info({ node: nodeName }, 'the database has no cameras for this node');
    this.#list = list;
    changed(list);
  }

  async #copy(rows: readonly CameraRow[]): Promise<void> {
    const { nodeName, copyFile, log } = this.#o;
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
      log.warn({ file: copyFile, err }, 'cameras of the database cannot be copied to the disk');
    }
  }
}
