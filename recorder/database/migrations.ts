// Creates the database tables and migrates older ones to the current version, or refuses newer ones. All steps run in one
// transaction: a start that is killed leaves the old tables.

import type { Connection, Run } from './connection.ts';
import { DatabaseError } from './error.ts';
import { MINUTE_MS } from '../../base/units.ts';

interface Migration {
  readonly version: number;
  /** For a table `cameras` that the recorder has made: one of another program is only read. */
  readonly cameras?: string;
  readonly sql?: string;
}

/** Append only: existing databases have run each of these. */
const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    cameras: `
      CREATE TABLE cameras (
        id text PRIMARY KEY,
        name text NOT NULL DEFAULT '',
        node_name text NOT NULL,
        source text NOT NULL,
        snapuri text,
        ptz boolean NOT NULL DEFAULT false,
        record jsonb NOT NULL DEFAULT '{}',
        enabled boolean NOT NULL DEFAULT true,
        updated_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX cameras_by_node ON cameras (node_name);

      CREATE FUNCTION kube_nvr_camera_touched() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.updated_at := now();
        RETURN NEW;
      END $$;
      CREATE TRIGGER kube_nvr_touched BEFORE UPDATE ON cameras
        FOR EACH ROW EXECUTE FUNCTION kube_nvr_camera_touched();

      -- The payload is the name of the node concerned, empty for all of them; one is at most 8000 bytes.
      CREATE FUNCTION kube_nvr_camera_changed() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF TG_OP = 'TRUNCATE' THEN
          PERFORM pg_notify('kube_nvr_cameras', '');
          RETURN NULL;
        END IF;
        IF TG_OP <> 'INSERT' THEN
          PERFORM pg_notify('kube_nvr_cameras', left(OLD.node_name, 253));
        END IF;
        IF TG_OP <> 'DELETE' THEN
          PERFORM pg_notify('kube_nvr_cameras', left(NEW.node_name, 253));
        END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER kube_nvr_changed AFTER INSERT OR UPDATE OR DELETE ON cameras
        FOR EACH ROW EXECUTE FUNCTION kube_nvr_camera_changed();
      CREATE TRIGGER kube_nvr_truncated AFTER TRUNCATE ON cameras
        FOR EACH STATEMENT EXECUTE FUNCTION kube_nvr_camera_changed();
    `,
    sql: `
      CREATE TABLE recordings (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        camera_id text NOT NULL,
        node_name text NOT NULL,
        filename text NOT NULL,
        sequence bigint NOT NULL,
        run_id text,
        started_at timestamptz NOT NULL,
        ended_at timestamptz NOT NULL,
        size bigint NOT NULL,
        mtime timestamptz NOT NULL,
        codecs jsonb NOT NULL DEFAULT '[]',
        gap_before_ms bigint NOT NULL DEFAULT 0,
        lost_packets bigint NOT NULL DEFAULT 0,
        UNIQUE (node_name, filename)
      );
      -- Holds all that a listing shows: a day is a few pages of the index, not one page of the table a row.
      CREATE INDEX recordings_by_camera ON recordings (camera_id, started_at)
        INCLUDE (ended_at, node_name, filename, sequence, size, mtime);
    `,
  },
  {
    version: 2,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS onvif text`,
  },
  {
    version: 3,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS preview jsonb`,
  },
  {
    version: 4,
    sql: `
      ALTER TABLE recordings ADD COLUMN IF NOT EXISTS origin text NOT NULL DEFAULT 'live';
      DROP INDEX IF EXISTS recordings_by_camera;
      CREATE INDEX recordings_by_camera ON recordings (camera_id, started_at)
        INCLUDE (ended_at, node_name, filename, sequence, size, mtime, origin);
    `,
  },
  {
    version: 5,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS edge jsonb`,
  },
  {
    version: 6,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS "group" text`,
  },
  {
    version: 7,
    // How a cluster recognises the table `cameras` as the one that it read last (docs/design/rows-as-cameras.md).
    sql: `CREATE TABLE IF NOT EXISTS kube_nvr_rows (mark text NOT NULL)`,
  },
  {
    version: 8,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS events text`,
  },
  {
    version: 9,
    cameras: `ALTER TABLE cameras ADD COLUMN IF NOT EXISTS activity boolean`,
  },
];

/** The version that this program uses. */
export const SCHEMA_VERSION = MIGRATIONS.at(-1)?.version ?? 0;

/** An arbitrary number: equal in all recorders and unlikely in other programs. */
const LOCK_KEY = 7_235_419_082;
/** Another recorder may be migrating; building an index over years of rows takes time. */
const MIGRATION_TIMEOUT_MS = 10 * MINUTE_MS;

interface Migrated {
  readonly from: number;
  readonly to: number;
  /** Another program has made the table `cameras`: it is only read, whatever columns it has. */
  readonly isForeign: boolean;
}

/**
 * Migrates the database to `SCHEMA_VERSION`. Several recorders may call this at once: one works, the others find it done. Throws
 * DatabaseError, with `SCHEMA_TOO_NEW` if the tables are newer.
 */
export async function migrate(connection: Connection): Promise<Migrated> {
  // First without the lock: a normal start has nothing to do and needs no right to change tables.
  const [from, isForeign] = await connection.transaction(async (run) => [await versionOf(run), await hasForeign(run)]);
  check(from, connection.location);
  if (from === SCHEMA_VERSION) return { from, to: from, isForeign };
  return connection.transaction(async (run) => {
    // A recorder that freezes during a migration must not block the others for ever.
    await run(`SET LOCAL idle_in_transaction_session_timeout = '60s'`);
    await run(`SELECT pg_advisory_xact_lock($1)`, [LOCK_KEY], MIGRATION_TIMEOUT_MS);
    const version = await versionOf(run);
    const isForeign = await hasForeign(run);
    check(version, connection.location);
    if (version === 0) {
      await run(`CREATE TABLE IF NOT EXISTS kube_nvr_schema (
        version integer PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`);
    }
    for (const migration of MIGRATIONS) {
      if (migration.version <= version) continue;
      const { cameras = '', sql = '' } = migration;
      await run(isForeign ? sql : `${cameras};${sql}`, [], MIGRATION_TIMEOUT_MS);
      await run(`INSERT INTO kube_nvr_schema (version) VALUES ($1)`, [migration.version]);
    }
    return { from: version, to: SCHEMA_VERSION, isForeign };
  });
}

async function versionOf(run: Run): Promise<number> {
  const [table] = await run<{ there: boolean }>(`SELECT to_regclass('kube_nvr_schema') IS NOT NULL AS there`);
  if (!table?.there) return 0;
  const [row] = await run<{ version: number | null }>(`SELECT max(version) AS version FROM kube_nvr_schema`);
  return row?.version ?? 0;
}

/** The recorder's own table has a trigger that notifies. */
async function hasForeign(run: Run): Promise<boolean> {
  const [row] = await run<{ foreign: boolean }>(`
    SELECT to_regclass('cameras') IS NOT NULL AND NOT EXISTS (
      SELECT FROM pg_trigger WHERE tgrelid = to_regclass('cameras') AND tgname = 'kube_nvr_changed'
    ) AS foreign`);
  return row?.foreign ?? false;
}

function check(version: number, location: string): void {
  if (version <= SCHEMA_VERSION) return;
  throw new DatabaseError(
    'SCHEMA_TOO_NEW',
    `database.url: the tables at ${location} are of version ${version}, this recorder knows versions up to ${SCHEMA_VERSION}: install the recorder that made them, or a newer one`,
  );
}
