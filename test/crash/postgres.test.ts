// The recorder is killed, Postgres is killed and stopped, the wire between them is cut, at random moments and together,
// while four cameras record. Afterwards rows and files are the same set and say the same.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SCHEMA_VERSION } from '../../recorder/database/migrations.ts';
import { writeArchive } from '../bench/archive.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { Child } from '../support/child.ts';
import { Postgres, postgresMissing, Wire } from '../support/postgres.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { assertRowsAreFiles, segmentFiles } from '../support/row-audit.ts';
import { until } from '../support/until.ts';
import { LONG } from '../support/variant.ts';
import { seeded } from '../support/random.ts';
import { workspace } from '../support/workspace.ts';

/** When things happen; of the seed that is printed. */
const random = seeded();

const ROUNDS = LONG ? 100 : 5;
const DATABASE = 'crash';

type Fault = 'kill recorder' | 'kill postgres' | 'stop postgres' | 'crash postgres' | 'cut' | 'hang' | 'blink';
const FAULTS: readonly Fault[] = [
  'kill recorder',
  'kill postgres',
  'stop postgres',
  'crash postgres',
  'cut',
  'hang',
  'blink',
];

const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
const chance = (part: number): boolean => random() < part;
async function kill(recorder: RecorderProcess): Promise<void> {
  recorder.child.signal('SIGKILL');
  await recorder.child.exit();
}

const moment = (maxMs: number): Promise<void> => sleep(random() * maxMs);

test(
  `rows are files after ${ROUNDS} rounds of crashes and outages with 4 cameras`,
  { skip: postgresMissing() },
  async (t) => {
    const directory = workspace(t);
    const postgres = await Postgres.start(t);
    const url = new URL(await postgres.createDatabase(DATABASE));
    const wire = await Wire.to(t, postgres.port);
    url.port = String(wire.port);
    const cameras: Camera[] = [];
    for (const tracks of [
      [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))],
      [videoTrack(await videoMedia('h265'))],
      [videoTrack(await videoMedia('h264-bframes')), audioTrack(await audioMedia('pcma'))],
      [videoTrack(await videoMedia('h264'))],
    ]) {
      const camera = await startCamera({ tracks, pace: 'realtime' });
      t.after(() => camera.close());
      cameras.push(camera);
    }
    const config = {
      database: { url: url.href },
      // Short segments: faults meet rows and files in every state. Old ones go, so that removals meet faults as well.
      archive: { segmentDuration: '1s', syncInterval: '1s', retention: { maxSize: '3MiB' } },
      cameras: cameras.map(({ url }, i) => ({ id: `cam${i}`, source: url, transport: 'tcp' })),
    };
    let running: RecorderProcess | undefined;
    t.after(() => running?.child[Symbol.asyncDispose]());
    const start = async (changes: object = {}): Promise<RecorderProcess> => {
      running = await RecorderProcess.start({ directory, config: { ...config, ...changes }, waitUntilReady: false });
      return running;
    };
    const kill = async (recorder: RecorderProcess): Promise<void> => {
      recorder.child.signal('SIGKILL');
      await recorder.child.exit();
    };

    const done: string[] = [];
    /** What the comparison at the start had to mend; all else came through the queue. */
    const mended = { added: 0, removed: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const fault = pick(FAULTS);
      const also = fault !== 'kill recorder' && chance(0.4);
      const step = `round ${round}: ${fault}${also ? ', then kill recorder' : ''}`;
      done.push(step);
      let recorder = await start();
      await until(`${step}: all cameras play`, () => cameras.every((camera) => camera.playing.length > 0));
      // Lasts: the cameras are recorded; the fault comes at any moment of it.
      await sleep(500);
      await moment(2_000);

      let mend = async (): Promise<void> => {};
      switch (fault) {
        case 'kill recorder':
          await kill(recorder);
          break;
        case 'kill postgres':
        case 'stop postgres':
        case 'crash postgres':
          await postgres.stop(
            ({ 'kill postgres': 'kill', 'stop postgres': 'fast', 'crash postgres': 'immediate' } as const)[fault],
          );
          mend = () => postgres.start();
          break;
        case 'blink':
          wire.blink();
          break;
        default:
          wire[fault]();
          mend = async () => wire.mend();
      }
      await moment(2_500);
      if (also) {
        await kill(recorder);
        // The next one starts without the database, and may be killed in the middle of that.
        recorder = await start();
        await moment(2_500);
        if (chance(0.5)) await kill(recorder);
      }
      await mend();
      await moment(1_000);
      if (!recorder.child.ended) {
        if (chance(0.5)) await kill(recorder);
        else {
          // While it starts, a process has no ear for signals yet, and just ends.
          const { code, signal } = await recorder.stop();
          assert.ok(
            code === 0 || (signal === 'SIGTERM' && !recorder.child.output.includes('recorder started')),
            `${step}: ${recorder.child.output}`,
          );
        }
      }

      // A start without cameras: what is not in order now is put in order by it.
      const repair = await start({ cameras: [] });
      try {
        await until('rows and files were compared', () => repair.child.output.includes('were compared with the files'));
        await until('the queue is empty', async () =>
          /kube_nvr_database_queue_rows 0$/m.test(await (await fetch(repair.metricsUrl)).text()),
        );
        assert.equal((await repair.stop()).code, 0);
        await assertRowsAreFiles(postgres, DATABASE, repair.recordPath);
        const [, added, removed] = /"added":(\d+),"removed":(\d+)/.exec(repair.child.output) ?? [];
        mended.added += Number(added);
        mended.removed += Number(removed);
      } catch (err) {
        const story = [...done, recorder.child.output.slice(-4_000), repair.child.output].join('\n');
        throw new Error(story, { cause: err });
      }
    }
    const [row] = await postgres.query<{ n: number; last: number }>(
      'SELECT count(*)::int AS n, max(id)::int AS last FROM recordings',
      [],
      DATABASE,
    );
    assert.ok((row?.n ?? 0) > 0);
    const { added, removed } = mended;
    const files = segmentFiles(`${directory}/recordings`).length;
    t.diagnostic(
      `${ROUNDS} rounds, ${row?.last} insertions, ${row?.n} rows of ${files} files; compared: ${added} added, ${removed} removed`,
    );
  },
);

/** Statements that make the tables, from the first to the last. */
const MIGRATION_STATEMENTS = 11;
/** Longer than it takes to see it and to kill. */
const PAUSE_SECONDS = 2;

/** The `at`th statement that makes a thing in this database takes a while before the next begins. */
async function pauseMigration(postgres: Postgres, database: string, at: number): Promise<void> {
  await postgres.query(
    `CREATE SEQUENCE made;
     CREATE FUNCTION pause() RETURNS event_trigger LANGUAGE plpgsql AS $$
     BEGIN
       IF nextval('made') = ${at} THEN PERFORM pg_sleep(${PAUSE_SECONDS}); END IF;
     END $$;
     CREATE EVENT TRIGGER pausing ON ddl_command_end EXECUTE FUNCTION pause()`,
    [],
    database,
  );
}

test(
  'a recorder that is killed while it makes the tables leaves none of them, and the next one makes them',
  { skip: postgresMissing() },
  async (t) => {
    const postgres = await Postgres.start(t);
    const all = Array.from({ length: MIGRATION_STATEMENTS }, (_, i) => i + 1);
    for (const at of LONG ? all : [1, 6, MIGRATION_STATEMENTS]) {
      const name = `migration${at}`;
      const url = await postgres.createDatabase(name);
      await pauseMigration(postgres, name, at);
      const options = { directory: workspace(t), config: { database: { url } }, waitUntilReady: false };
      const sessions = (): Promise<{ wait_event: string | null }[]> =>
        postgres.query(`SELECT wait_event FROM pg_stat_activity WHERE datname = $1`, [name]);
      const killed = await RecorderProcess.start(options);
      t.after(() => killed.child[Symbol.asyncDispose]());
      await until(`statement ${at} is done`, async () =>
        (await sessions()).some(({ wait_event }) => wait_event === 'PgSleep'),
      );
      await kill(killed);
      if (at > 1) {
        await until('the transaction is over', async () => (await sessions()).length === 0);
        const tables = await postgres.query(
          `SELECT relname FROM pg_class WHERE relname IN ('cameras', 'recordings', 'kube_nvr_schema')`,
          [],
          name,
        );
        assert.deepEqual(tables, [], `killed behind statement ${at}`);
      }
      // The first time it comes while the server still holds the lock for the one that is dead.
      const next = await RecorderProcess.start({ ...options, waitUntilReady: true });
      t.after(() => next.child[Symbol.asyncDispose]());
      assert.equal((await next.stop()).code, 0);
      const versions = await postgres.query('SELECT version FROM kube_nvr_schema ORDER BY version', [], name);
      assert.deepEqual(
        versions,
        Array.from({ length: SCHEMA_VERSION }, (_, i) => ({ version: i + 1 })),
      );
      await postgres.query('SELECT filename, source FROM recordings, cameras', [], name);
    }
  },
);

test(
  '--reindex that is killed and begun again ends with the rows of all files',
  { skip: postgresMissing() },
  async (t) => {
    const postgres = await Postgres.start(t);
    await postgres.createDatabase(DATABASE);
    const recorder = await RecorderProcess.start({
      directory: workspace(t),
      config: { database: { url: postgres.url(DATABASE) } },
    });
    await recorder.stop();
    const { files } = writeArchive(recorder.recordPath, 5, LONG ? 50_000 : 6_000, Date.now());
    const reindex = (): Child => {
      const child = new Child(process.execPath, [MAIN, '--config', recorder.configFile, '--reindex']);
      t.after(() => child[Symbol.asyncDispose]());
      return child;
    };
    for (let round = 0; round < 3; round++) {
      const child = reindex();
      // Lasts: the table is filled; the kill comes at any moment of it.
      await sleep(400);
      await moment(LONG ? 8_000 : 800);
      child.signal('SIGKILL');
      await child.exit();
    }
    const last = reindex();
    assert.equal((await last.exit()).code, 0, last.output);
    assert.equal(await assertRowsAreFiles(postgres, DATABASE, recorder.recordPath), files);
  },
);
