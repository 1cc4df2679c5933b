// Listing from Postgres: a day among 2.16 million rows of 50 cameras (30 days of one-minute segments), and the days of a year;
// then the same month listed from the disk without a database. All over HTTP.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from '../../../recorder/database/connection.ts';
import { daysSql, midnightsOf, segmentsSql } from '../../../recorder/database/listing.ts';
import { migrate } from '../../../recorder/database/migrations.ts';
import { offsetCalendar } from '../../../recorder/archive/catalogue/calendar.ts';
import { silentLog } from '../../../base/log.ts';
import { Postgres } from '../../support/postgres.ts';
import { writeArchive } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { askInTurns, pairedFigure, type Pair } from '../paired.ts';
import { sleep, start } from '../processes.ts';
import { cameraId, startRecorder } from '../recorder.ts';

const CAMERAS = 50;
const ROWS = 2_160_000;
const NODE = 'bench-node';
const DAY_MS = 86_400_000;
const DAY_SECONDS = 86_400;
/** Viewers live in all time zones; that of Nepal is not a whole hour. */
const OFFSETS = [0, 60, -300, 345, 840, -840];

interface Table {
  readonly name: string;
  readonly days: number;
  /** Start of the last day, milliseconds since 1970. */
  readonly lastDayMs: number;
}

export async function measureListingPostgres(bench: Bench): Promise<void> {
  const rows = bench.quick ? ROWS / 10 : ROWS;
  const cleanups: (() => unknown)[] = [];
  try {
    const postgres = await Postgres.start(
      { after: (cleanup) => void cleanups.push(cleanup as () => unknown) },
      // As installed, except for synchronous writes, for which filling the tables would wait.
      { shared_buffers: '128MB', fsync: 'off' },
    );
    const month = await fill(bench, postgres, 'month', rows, bench.quick ? 3 : 30);
    const year = await fill(bench, postgres, 'year', rows, 365);
    for (const table of [month, year]) await explain(bench, postgres, table);
    const day = `listing one day among ${rows} rows of ${CAMERAS} cameras, p99`;
    bench.figure(pairedFigure(day, await ask(bench, postgres, month), 20, { aim: 10 }));
    const days = `listing one day and the days of a year among ${rows} rows, p99`;
    bench.figure(pairedFigure(days, await ask(bench, postgres, year), 50, { aim: 20 }));
    await measureDisk(bench, postgres);
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
}

/** Rows in the order in which segments close, so that a camera's rows are as far apart as in real use. */
async function fill(bench: Bench, postgres: Postgres, name: string, rows: number, days: number): Promise<Table> {
  const startMs = performance.now();
  const connection = new Connection({ url: await postgres.createDatabase(name), nodeName: NODE, log: silentLog });
  await migrate(connection);
  await connection.close();
  const perCamera = Math.floor(rows / CAMERAS);
  const lastDayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
  const firstMs = lastDayMs - (days - 1) * DAY_MS;
  await postgres.query(
    `INSERT INTO recordings (camera_id, node_name, filename, sequence, run_id, started_at, ended_at, size, mtime, codecs)
     SELECT id, $1,
            to_char(start AT TIME ZONE 'UTC', 'YYYY/MM/DD') || '/Bench-camera-' || camera || '_' || id || '_' ||
              to_char(start AT TIME ZONE 'UTC', 'YYYYMMDD_HH24MISSMS') || '.mp4',
            n, '00000000000000aa', start, start + step, 30000000, start + step,
            '[{"kind": "video", "codec": "avc1.4d4028", "width": 1920, "height": 1080}]'
     FROM generate_series(0, $2 - 1) AS n,
          generate_series(0, $3 - 1) AS camera,
          LATERAL (SELECT 'bench-' || lpad(camera::text, 3, '0') AS id,
                          to_timestamp($4 / 1000.0) + n * $5::bigint * interval '1 millisecond' + camera * interval '7 milliseconds'
                            AS start,
                          $5::bigint * interval '1 millisecond' AS step) AS made`,
    [NODE, perCamera, CAMERAS, firstMs, Math.floor((days * DAY_MS) / perCamera)],
    name,
  );
  await postgres.query('VACUUM ANALYZE recordings', [], name);
  // Otherwise the gigabytes written just now would go to the disk during the measurement; a day's rows are megabytes.
  await postgres.query('CHECKPOINT', [], name);
  const [size] = await postgres.query<{ table: string; indexes: string }>(
    `SELECT pg_size_pretty(pg_table_size('recordings')) AS table, pg_size_pretty(pg_indexes_size('recordings')) AS indexes`,
    [],
    name,
  );
  bench.say(
    `${name}: ${perCamera * CAMERAS} rows over ${days} days, table ${size?.table}, indexes ${size?.indexes}, ` +
      `filled in ${((performance.now() - startMs) / 1000).toFixed(0)} s`,
  );
  return { name, days, lastDayMs };
}

/** Prints the query plans of a listing. */
async function explain(bench: Bench, postgres: Postgres, { name, days, lastDayMs }: Table): Promise<void> {
  const deps = { nodeName: NODE };
  const time = (ms: number): string => new Date(ms).toISOString();
  const show = async (what: string, sql: string, values: readonly unknown[]): Promise<void> => {
    const rows = await postgres.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, BUFFERS) ${sql}`, values, name);
    bench.say(`\n${name}, ${what}:\n${rows.map((row) => `  ${row['QUERY PLAN'].slice(0, 160)}`).join('\n')}`);
  };
  const camera = cameraId(7);
  const midnights = midnightsOf(offsetCalendar(345), lastDayMs - (days - 1) * DAY_MS, lastDayMs + DAY_MS);
  const interval = [time(lastDayMs), time(lastDayMs + DAY_MS), time(lastDayMs - 26 * 3_600_000)];
  await show('one day', segmentsSql(deps), [camera, ...interval, NODE]);
  await show(`days of ${days} days`, daysSql(deps), [camera, midnights.map(time), NODE]);
}

/** Every camera and many days, in an order that no cache favours; the recorder is otherwise idle. */
async function ask(bench: Bench, postgres: Postgres, { name, days, lastDayMs }: Table): Promise<Pair> {
  const directory = emptyDirectory(bench, 'listing-postgres');
  const recorder = await startRecorder({
    urls: [],
    directory,
    settings: { nodeName: NODE, database: { url: postgres.url(name) } },
  });
  try {
    const count = bench.quick ? 200 : 1_000;
    const urls = Array.from({ length: count + 1 }, (_, i) => {
      const offset = OFFSETS[i % OFFSETS.length] ?? 0;
      const from = lastDayMs / 1000 - ((i * 7) % (days - 1)) * DAY_SECONDS - offset * 60;
      const query = `from=${from}&to=${from + DAY_SECONDS}&tz_offset_minutes=${offset}`;
      return `http://${recorder.address}/api/archive/${cameraId((i * 13) % CAMERAS)}/segments?${query}`;
    });
    // The first response waits until rows and files have been compared, and does not count.
    return await askInTurns(bench, urls, ({ status, body }) => {
      const listed = JSON.parse(body) as { archive?: unknown[]; days?: unknown[] };
      const found = listed.days?.length ?? 0;
      if (status === 200 && (listed.archive?.length ?? 0) >= 10 && found >= days && found <= days + 1) return;
      throw new Error(`the listing answered ${status} with ${found} days: ${body.slice(0, 300)}`);
    });
  } finally {
    await recorder.stop();
  }
}

/** The same month on disk, in segments of the usual length: listed without a database, and indexed into one. */
async function measureDisk(bench: Bench, postgres: Postgres): Promise<void> {
  const directory = emptyDirectory(bench, 'listing-walk');
  const days = bench.quick ? 3 : 30;
  const archive = writeArchive(`${directory}/recordings`, CAMERAS, CAMERAS * days * 288, Date.now());
  const recorder = await startRecorder({ urls: [], directory });
  try {
    const urls = Array.from({ length: CAMERAS * Math.max(1, days - 2) }, (_, i) => {
      const from = archive.dayStart - Math.floor(i / CAMERAS) * DAY_SECONDS;
      return `http://${recorder.address}/api/archive/${cameraId(i % CAMERAS)}/segments?from=${from}&to=${from + DAY_SECONDS}`;
    });
    const walk = await askInTurns(bench, urls, ({ status, body }) => {
      if (status !== 200) throw new Error(`the listing answered ${status}: ${body.slice(0, 300)}`);
    });
    const name = `without a database, one day among ${archive.files} files of ${CAMERAS} cameras, p99`;
    bench.figure(pairedFigure(name, walk, 20));
  } finally {
    await recorder.stop();
  }
  await measureIndexing(bench, directory, archive.files, await postgres.createDatabase('disk'));
}

async function measureIndexing(bench: Bench, directory: string, files: number, url: string): Promise<void> {
  // The recorder's configuration plus the database.
  const configPath = join(directory, 'config.yaml');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as object;
  const settings = { nodeName: NODE, database: { url } };
  writeFileSync(configPath, JSON.stringify({ ...config, ...settings }));
  const startMs = performance.now();
  const reindex = start(
    process.execPath,
    [join(import.meta.dirname, '../../../recorder/main.ts'), '--config', configPath, '--reindex'],
    join(directory, 'reindex.log'),
    directory,
  );
  const code = await reindex.exited;
  const seconds = (performance.now() - startMs) / 1000;
  if (code !== 0)
    throw new Error(`--reindex ended with ${code}: ${readFileSync(join(directory, 'reindex.log'), 'utf8')}`);
  bench.figure({ figure: `  --reindex of these ${files} files`, unit: 's', measured: Math.round(seconds) });

  const startedMs = performance.now();
  const recorder = await startRecorder({ urls: [], directory, settings });
  try {
    const readyMs = performance.now() - startedMs;
    // It answers as soon as rows and files have been compared.
    const url = `http://${recorder.address}/api/archive/${cameraId(0)}/segments`;
    while ((await fetch(url)).status !== 200) await sleep(20);
    bench.figure({
      figure: '  start to ready with that archive and its rows',
      unit: 'ms',
      measured: Math.round(readyMs),
      note: `lists ${Math.round(performance.now() - startedMs)} ms after the start`,
    });
  } finally {
    await recorder.stop();
  }
}
