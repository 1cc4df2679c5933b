// A recorder with a Postgres of its own: rows of what it records, cameras that it is given, lists that it answers, and
// a database that comes and goes.

import { after, before, describe, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { SCHEMA_VERSION } from '../../recorder/database/migrations.ts';
import { startCamera, type Camera } from '../camera/camera.ts';
import { Child } from '../support/child.ts';
import { Mount } from '../support/mount.ts';
import { Postgres, postgresMissing, Wire } from '../support/postgres.ts';
import { probe } from '../support/probe.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { untilRemovalIsTold } from '../support/removal.ts';
import { holdings } from '../support/resources.ts';
import { assertRowsAreFiles, rowsOf, segmentFiles } from '../support/row-audit.ts';
import { stopwatch } from '../support/stopwatch.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

let postgres: Postgres;
let made = 0;
const cleanups: (() => unknown)[] = [];

const skip = postgresMissing();

before(async () => {
  if (skip) return;
  postgres = await Postgres.start({ after: (cleanup) => void cleanups.push(cleanup as () => unknown) });
});
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** A database of the test's own. */
async function database(): Promise<string> {
  const name = `test${made++}`;
  await postgres.createDatabase(name);
  return name;
}

async function camera(t: TestContext): Promise<Camera> {
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  return camera;
}

interface Options {
  readonly name: string;
  readonly directory?: string;
  readonly url?: string;
  readonly cameras?: Readonly<Record<string, Camera>>;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly waitUntilReady?: boolean;
}

async function recorder(t: TestContext, options: Options): Promise<RecorderProcess> {
  const started = await RecorderProcess.start({
    directory: options.directory ?? workspace(t),
    config: {
      database: { url: options.url ?? postgres.url(options.name) },
      archive: { segmentDuration: '1s', syncInterval: '1s' },
      cameras: Object.entries(options.cameras ?? {}).map(([id, camera]) => ({ id, source: camera.url })),
      ...options.config,
    },
    waitUntilReady: options.waitUntilReady ?? true,
  });
  t.after(() => started.child[Symbol.asyncDispose]());
  return started;
}

const addCamera = (name: string, id: string, source: string, node = 'test-node', more = ''): Promise<unknown> =>
  postgres.query(
    `INSERT INTO cameras (id, node_name, source${more === '' ? '' : ', record'})
     VALUES ($1, $2, $3${more === '' ? '' : ', $4'})`,
    more === '' ? [id, node, source] : [id, node, source, more],
    name,
  );

const count = async (name: string): Promise<number> => (await rowsOf(postgres, name, 'test-node')).length;

interface Listing {
  readonly archive: readonly { filename: string; timestamp: string; size: number; mtime: number; is_open: boolean }[];
  readonly days: readonly string[];
}

const list = async (from: RecorderProcess, id: string, query = ''): Promise<Listing> =>
  (await from.get(`/api/archive/${id}/segments${query}`)) as Listing;

interface Ready {
  readonly status: number;
  readonly checks: { storage: { configured: boolean; reachable: boolean } };
  readonly failed?: string[];
  readonly warnings: readonly { readonly code: string; readonly detail: string }[];
}

async function ready(of: RecorderProcess): Promise<Ready> {
  const answer = await fetch(`${of.url}/api/health/ready`);
  return { ...((await answer.json()) as Ready), status: answer.status };
}

describe('rows of recordings', { skip }, () => {
  test('each closed segment has one row, which says what its file says, and lists from the table are those of the disk', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const cameras = { gate: await camera(t), yard: await camera(t) };
    const first = await recorder(t, { name, directory, cameras });
    await until('six rows', async () => (await count(name)) >= 6);

    // Between two segments there is a moment without an open one.
    const live = await until('the open segment is listed', async () => {
      const live = await list(first, 'gate');
      return live.archive.at(-1)?.is_open === true && live;
    });
    const starts = live.archive.map(({ timestamp }) => timestamp);
    assert.deepEqual(starts, starts.toSorted());
    assert.equal(new Set(live.archive.map(({ filename }) => filename)).size, live.archive.length);
    assert.deepEqual(live.days, [...new Set(live.archive.map(({ timestamp }) => timestamp.slice(0, 10)))]);
    assert.deepEqual(await list(first, 'nobody'), { archive: [], days: [] });
    assert.equal((await first.stop()).code, 0);

    const rows = await assertRowsAreFiles(postgres, name, first.recordPath);
    for (const row of await rowsOf(postgres, name, 'test-node')) {
      const path = join(first.recordPath, row.filename);
      assert.equal(row.size, (await stat(path)).size);
      const { durationSeconds } = await probe(path);
      const seconds = (row.end_ms - row.start_ms) / 1000;
      assert.ok(
        Math.abs(seconds - durationSeconds) < 0.06,
        `${row.filename}: ${seconds} s, ffprobe ${durationSeconds} s`,
      );
    }

    // The same archive, listed from the table and from the disk.
    const config = { cameras: [] };
    const withTable = await recorder(t, { name, directory, config });
    const queries = [
      '',
      '?tz_offset_minutes=840',
      '?tz_offset_minutes=-840',
      `?from=${Math.floor(Date.now() / 1000) - 5}`,
    ];
    const fromTable = await Promise.all(queries.map((query) => list(withTable, 'gate', query)));
    await withTable.stop();
    const plain = await recorder(t, { name, directory, config: { ...config, database: undefined } });
    const fromDisk = await Promise.all(queries.slice(0, 3).map((query) => list(plain, 'gate', query)));
    assert.deepEqual(fromTable.slice(0, 3), fromDisk);
    assert.ok((fromTable[0]?.archive.length ?? 0) + 3 <= rows);
  });

  test('while the database is away rows wait, lists are answered with 503, the node is not ready, and recording continues', async (t) => {
    const name = await database();
    const wire = await Wire.to(t, postgres.port);
    const cameras = { gate: await camera(t) };
    const node = await recorder(t, { name, url: postgres.url(name, wire.port), cameras });
    await until('two rows', async () => (await count(name)) >= 2);
    const areBack = holdings(node);
    wire.cut();
    await until('not ready', async () => (await ready(node)).status === 503);
    const { checks, failed } = await ready(node);
    assert.deepEqual(checks.storage, { configured: true, reachable: false });
    assert.deepEqual(failed, ['storage']);
    const answer = await fetch(`${node.url}/api/archive/gate/segments`);
    assert.equal(answer.status, 503);
    const problem = (await answer.json()) as { code: string; detail: string };
    assert.equal(problem.code, 'database-unreadable');
    assert.doesNotMatch(JSON.stringify(problem), /secret|postgres:/);

    const before = await count(name);
    const files = (await node.files()).length;
    await until('four more files', async () => (await node.files()).length >= files + 4);
    assert.equal(await count(name), before, 'no row came through');
    assert.equal(cameras.gate.connections.length, 1, 'the camera keeps its connection');

    wire.mend();
    await until('rows caught up', async () => (await count(name)) >= files + 3);
    await until('ready', async () => (await ready(node)).status === 200);
    await areBack();
    const ids = await postgres.query<{ filename: string }>('SELECT filename FROM recordings ORDER BY id', [], name);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => (a.filename < b.filename ? -1 : 1)),
      'in the order of closing',
    );
    assert.equal((await node.stop()).code, 0);
    await assertRowsAreFiles(postgres, name, node.recordPath);
    assert.doesNotMatch(node.child.output, /a-secret-of-the-database/);
  });

  test('a database that becomes read-only takes no rows: a warning says so, recording continues, and then all rows come', async (t) => {
    const name = await database();
    const node = await recorder(t, { name, cameras: { gate: await camera(t) } });
    await until('two rows', async () => (await count(name)) >= 2);
    const areBack = holdings(node);
    // What it forbids would keep this client, too, from taking it back.
    const own = 'postgres?options=-c%20default_transaction_read_only%3Doff';
    const makeReadOnly = async (value: 'on' | 'off'): Promise<void> => {
      await postgres.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`, [], own);
      await postgres.query('SELECT pg_reload_conf()', [], own);
    };
    const refusals = async () => (await ready(node)).warnings.filter(({ code }) => code === 'database-unusable');
    try {
      await makeReadOnly('on');
      await until('a warning', async () => (await refusals()).length === 1);
      assert.match((await refusals())[0]?.detail ?? '', /read-only transaction.*recording continues/);
      const [before, files] = [await count(name), (await node.files()).length];
      await until('four more files', async () => (await node.files()).length >= files + 4);
      assert.equal(await count(name), before, 'no row came through');
      assert.equal((await ready(node)).status, 200, 'what is there can be listed');
    } finally {
      await makeReadOnly('off');
    }
    await until('no warning', async () => (await refusals()).length === 0);
    await until('all rows', async () => (await count(name)) >= segmentFiles(node.recordPath).length - 1);
    await areBack();
    assert.equal((await node.stop()).code, 0);
    await assertRowsAreFiles(postgres, name, node.recordPath);
  });

  test('a connection that hangs without an error is detected, and rows are written again afterwards', async (t) => {
    const name = await database();
    const wire = await Wire.to(t, postgres.port);
    const node = await recorder(t, { name, url: postgres.url(name, wire.port), cameras: { gate: await camera(t) } });
    await until('a row', async () => (await count(name)) >= 1);
    const areBack = holdings(node);
    wire.hang();
    await until('not ready', async () => (await ready(node)).status === 503);
    // A statement alone may take ten seconds.
    const elapsedMs = stopwatch(node.child.pid);
    const list = await node.fetch('/api/archive/gate/segments');
    const ms = elapsedMs();
    assert.equal(list.status, 503);
    assert.ok(ms < 5_000, `answered after ${Math.round(ms)} ms`);
    const before = await count(name);
    wire.mend();
    await until('rows go on', async () => (await count(name)) > before + 2);
    await areBack();
    assert.equal((await node.stop()).code, 0);
    await assertRowsAreFiles(postgres, name, node.recordPath);
  });

  test('rows that could not be sent before a stop are sent after the next start', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const wire = await Wire.to(t, postgres.port);
    const url = postgres.url(name, wire.port);
    const node = await recorder(t, { name, directory, url, cameras: { gate: await camera(t) } });
    await until('a row', async () => (await count(name)) >= 1);
    wire.cut();
    const files = (await node.files()).length;
    await until('files go on', async () => (await node.files()).length >= files + 3);
    assert.equal((await node.stop()).code, 0);
    assert.ok((await count(name)) < segmentFiles(node.recordPath).length);
    wire.mend();
    const next = await recorder(t, { name, directory, url, config: { cameras: [] } });
    await until('all rows', async () => (await count(name)) === segmentFiles(node.recordPath).length);
    await next.stop();
    await assertRowsAreFiles(postgres, name, node.recordPath);
  });

  test('a file without a row gets one at the next start, a row without a file goes', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const node = await recorder(t, { name, directory, cameras: { gate: await camera(t) } });
    await until('five rows', async () => (await count(name)) >= 5);
    await node.stop();
    const files = segmentFiles(node.recordPath);
    // What a crash between file and row leaves, in both directions.
    await postgres.query('DELETE FROM recordings WHERE filename = $1', [files[1]], name);
    rmSync(join(node.recordPath, files[2] as string));
    const next = await recorder(t, { name, directory, config: { cameras: [] } });
    await until('compared', () => next.child.output.includes('the database rows were compared with the files'));
    await until('mended', async () => (await count(name)) === files.length - 1);
    await assertRowsAreFiles(postgres, name, node.recordPath);
  });

  test('--reindex fills a new database from the files alone, and can be repeated', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const node = await recorder(t, { name, directory, cameras: { gate: await camera(t), yard: await camera(t) } });
    await until('eight rows', async () => (await count(name)) >= 8);
    await node.stop();
    const rows = await rowsOf(postgres, name, 'test-node');
    const other = await database();
    node.rewriteConfig({ database: { url: postgres.url(other) } });
    for (let i = 0; i < 2; i++) {
      const child = new Child(process.execPath, [MAIN, '--config', node.configFile, '--reindex']);
      t.after(() => child[Symbol.asyncDispose]());
      assert.equal((await child.exit()).code, 0, child.output);
      assert.match(child.output, new RegExp(`${rows.length} files indexed`));
      assert.deepEqual(await rowsOf(postgres, other, 'test-node'), rows);
    }
    // A disk that is not there must not empty the table.
    rmSync(node.recordPath, { recursive: true });
    const child = new Child(process.execPath, [MAIN, '--config', node.configFile, '--reindex']);
    t.after(() => child[Symbol.asyncDispose]());
    assert.equal((await child.exit()).code, 1);
    assert.match(child.output, /a disk is not mounted/);
    assert.doesNotMatch(child.output, /a-secret-of-the-database/);
    assert.equal(await count(other), rows.length);
  });

  test('--reindex refuses what lies beneath the mount point of a disk that is not there', async (t) => {
    const mount = Mount.make(t, 'tmpfs', 16 * 1024 * 1024);
    if (!mount) return;
    const name = await database();
    const config = { record_path: mount.path };
    const node = await recorder(t, { name, cameras: { gate: await camera(t) }, config });
    await until('two rows', async () => (await count(name)) >= 2);
    assert.equal((await node.stop()).code, 0);
    const rows = await rowsOf(postgres, name, 'test-node');
    const path = join(mount.path, rows[0]?.filename ?? '');
    const recording = readFileSync(path);
    mount.detach();
    // Not even an empty directory: a recorder of old wrote here while the disk was away.
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, recording);
    const child = new Child(process.execPath, [MAIN, '--config', node.configFile, '--reindex']);
    assert.equal((await child.exit()).code, 1);
    assert.match(child.output, /^recorder: record_path .*disk.*archive\.json is missing/m);
    assert.deepEqual(await rowsOf(postgres, name, 'test-node'), rows);
    // Files without the recorder's notes are an archive where the node knows of none.
    rmSync(join(node.configFile, '../work/archive-id'));
    const again = new Child(process.execPath, [MAIN, '--config', node.configFile, '--reindex']);
    assert.equal((await again.exit()).code, 0, again.output);
    assert.equal(await count(name), 1);
  });
});

describe('cameras from the database', { skip }, () => {
  test('a camera of the table is recorded, changed and stopped within two seconds, the others are not touched', async (t) => {
    const name = await database();
    const cameras = { kept: await camera(t), moved: await camera(t), file: await camera(t) };
    const node = await recorder(t, { name, cameras: { file: cameras.file } });
    await addCamera(name, 'kept', cameras.kept.url);
    await addCamera(name, 'elsewhere', cameras.kept.url, 'test-node-2');
    await node.untilRecording('kept', 'file');
    const within = async (what: string, ask: () => boolean | Promise<boolean>): Promise<void> => {
      const elapsedMs = stopwatch(node.child.pid);
      await until(what, ask);
      const ms = elapsedMs();
      assert.ok(ms < 2_000, `${what} took ${Math.round(ms)} ms`);
    };
    await addCamera(name, 'moved', cameras.moved.url, 'test-node', '{"segmentDuration": "2s"}');
    await within('the new camera is asked', () => cameras.moved.connections.length === 1);
    await node.untilRecording('moved');
    await postgres.query(`UPDATE cameras SET node_name = 'other' WHERE id = 'moved'`, [], name);
    await within('the moved camera is left', () => cameras.moved.sessions.size === 0);
    await postgres.query(`UPDATE cameras SET node_name = 'test-node' WHERE id = 'moved'`, [], name);
    await within('the camera is taken again', () => cameras.moved.connections.length === 2);
    await postgres.query(`UPDATE cameras SET enabled = false WHERE id = 'moved'`, [], name);
    await within('the disabled camera is left', () => cameras.moved.sessions.size === 0);
    await postgres.query(`TRUNCATE cameras`, [], name);
    const refusal = async (): Promise<string> => {
      const { warnings } = (await node.get('/api/health/ready')) as Record<
        'warnings',
        { code: string; detail: string }[]
      >;
      return warnings.find(({ code }) => code === 'configuration-refused')?.detail ?? '';
    };
    await until('the empty table is refused', async () => (await refusal()).includes('no longer has kept, moved'));
    assert.equal(cameras.kept.sessions.size, 1, 'it is recorded as before');
    node.child.signal('SIGHUP');
    await until('all of them are left', () => cameras.kept.sessions.size === 0);
    await until('the refusal is withdrawn', async () => (await refusal()) === '');
    assert.equal(cameras.kept.connections.length, 1, 'the kept camera had one connection');
    assert.equal(cameras.file.connections.length, 1);
    assert.equal(cameras.file.sessions.size, 1);
    await until('only that of the files is known', async () => {
      const ids = (await node.cameras()).map(({ id }) => id);
      return ids.join() === 'file';
    });
    await untilRemovalIsTold(node, 'kept', 'moved');
  });

  test('a camera is stopped and started in its row; with the database away that is refused, and nothing changes', async (t) => {
    const name = await database();
    const gate = await camera(t);
    const yard = await camera(t);
    const wire = await Wire.to(t, postgres.port);
    const node = await recorder(t, { name, url: postgres.url(name, wire.port), cameras: { yard } });
    await addCamera(name, 'gate', gate.url);
    await node.untilRecording('gate', 'yard');
    const control = async (what: string, id: string): Promise<unknown> => {
      const body = JSON.stringify({ id });
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
      const answer = await fetch(`${node.url}/cameras/${what}`, init);
      const { code, status: _, ...counts } = (await answer.json()) as Record<string, unknown>;
      return answer.status === 200 ? counts : [answer.status, code];
    };
    const enabled = async (): Promise<unknown> =>
      (await postgres.query<{ enabled: boolean }>(`SELECT enabled FROM cameras WHERE id = 'gate'`, [], name))[0]
        ?.enabled;
    assert.deepEqual(await control('stop', 'gate'), { stopped: 1 });
    assert.equal(await enabled(), false);
    assert.equal(gate.sessions.size, 0);
    assert.deepEqual(await control('stop', 'gate'), { stopped: 0 });
    assert.deepEqual(await control('start', 'gate'), { started: 1 });
    await node.untilRecording('gate');
    assert.equal(await enabled(), true);

    wire.cut();
    assert.deepEqual(await control('stop', 'gate'), [503, 'switch-not-kept']);
    assert.deepEqual(await control('stop', 'nobody'), [404, 'unknown-camera']);
    assert.deepEqual(await control('stop', 'yard'), { stopped: 1 }, 'cameras of files need no database');
    assert.equal(gate.sessions.size, 1, 'it is recorded as before');
    wire.mend();
    assert.equal(await enabled(), true);
    await until('the database is there again', async () => {
      const answer = await control('stop', 'gate');
      return JSON.stringify(answer) === '{"stopped":1}';
    });
    assert.equal(gate.sessions.size, 0);
    assert.equal(await enabled(), false);
  });

  test('a change is noticed although the notification was lost', async (t) => {
    const name = await database();
    const node = await recorder(t, { name });
    const gate = await camera(t);
    await until('the recorder listens', async () => {
      const [row] = await postgres.query<{ n: number }>(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = $1 AND query LIKE 'LISTEN%'`,
        [name],
      );
      return row?.n === 1;
    });
    await postgres.query('ALTER TABLE cameras DISABLE TRIGGER ALL', [], name);
    await addCamera(name, 'gate', gate.url);
    await until('the camera is asked', () => gate.connections.length > 0);
    await node.untilRecording('gate');
  });

  test('a camera of the files wins over one of the table, a wrong row costs only itself, and both are shown', async (t) => {
    const name = await database();
    const gate = await camera(t);
    const yard = await camera(t);
    const node = await recorder(t, { name, cameras: { gate } });
    await addCamera(name, 'gate', 'rtsp://user:hidden-password@127.0.0.1:1/other');
    await addCamera(name, 'bad id', yard.url);
    await addCamera(name, 'nowhere', 'http://user:hidden-password@127.0.0.1/x');
    await addCamera(name, 'yard', yard.url, 'test-node', '{"segmentDuration": "soon"}');
    await node.untilRecording('gate', 'yard');
    const answer = await until('all are shown', async () => {
      const answer = (await node.get('/api/cameras')) as { refused: { id: string; reason: { code: string } }[] };
      return answer.refused.length === 4 && answer;
    });
    assert.deepEqual(Object.fromEntries(answer.refused.map(({ id, reason }) => [id, reason.code])), {
      'bad id': 'invalid-camera',
      nowhere: 'invalid-camera',
      yard: 'invalid-camera',
      gate: 'id-taken',
    });
    assert.doesNotMatch(JSON.stringify(answer) + node.child.output, /hidden-password/);
    assert.equal(gate.sessions.size, 1, 'the camera of the files is recorded');
    // Each closed file is in the queue for a moment.
    const metrics = await until('no row waits', async () => {
      const text = await (await fetch(node.metricsUrl)).text();
      return text.includes('kube_nvr_database_queue_rows 0\n') && text;
    });
    assert.match(metrics, /kube_nvr_database_cameras\{state="refused"\} 3/);
    assert.match(metrics, /kube_nvr_database_reachable 1/);

    // A mistake in a row that was right leaves the camera as it was.
    await postgres.query(`UPDATE cameras SET source = 'nonsense' WHERE id = 'yard'`, [], name);
    await until('the mistake is shown', () => node.child.output.includes('as it was before'));
    assert.equal(yard.sessions.size, 1);
  });

  test('a node with another name has no cameras, says so, and is healthy', async (t) => {
    const name = await database();
    const gate = await camera(t);
    const first = await recorder(t, { name });
    await addCamera(name, 'gate', gate.url, 'Test-node');
    const node = await recorder(t, { name, config: { nodeName: 'test-nod' } });
    await until('it says so', () => node.child.output.includes('no cameras for this node'));
    assert.deepEqual(await node.cameras(), []);
    assert.equal((await ready(node)).status, 200);
    assert.deepEqual(await first.cameras(), []);
    assert.equal(gate.connections.length, 0);
  });
});

describe('the start', { skip }, () => {
  test('without the database, cameras of the files and of the last copy are recorded, and rows come later', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const wire = await Wire.to(t, postgres.port);
    const url = postgres.url(name, wire.port);
    const cameras = { file: await camera(t), table: await camera(t) };
    const first = await recorder(t, { name, directory, url, cameras: { file: cameras.file } });
    await addCamera(name, 'table', cameras.table.url);
    await first.untilRecording('file', 'table');
    await until('the copy is there', () => stat(join(directory, 'work/database/cameras.json')).then(() => true));
    assert.equal((await stat(join(directory, 'work/database/cameras.json'))).mode & 0o777, 0o600);
    await first.stop();
    wire.cut();
    const node = await recorder(t, { name, directory, url, cameras: { file: cameras.file }, waitUntilReady: false });
    await until('both are recorded', async () => {
      const states = await node.cameras();
      return states.length === 2 && states.every(({ state }) => state === 'recording');
    });
    assert.equal((await fetch(`${node.url}/api/archive/file/segments`)).status, 503);
    assert.equal((await fetch(`${node.url}/api/health/live`)).status, 200);
    const files = segmentFiles(node.recordPath).length;
    await until('files go on', () => segmentFiles(node.recordPath).length >= files + 4);
    wire.mend();
    await until('rows caught up', async () => (await count(name)) >= files + 3);
    assert.equal((await node.stop()).code, 0);
    await assertRowsAreFiles(postgres, name, node.recordPath);
  });

  test('two recorders that start at once make the tables once', async (t) => {
    const name = await database();
    const nodes = await Promise.all(['a', 'b', 'c'].map((nodeName) => recorder(t, { name, config: { nodeName } })));
    const [row] = await postgres.query<{ n: number }>('SELECT count(*)::int AS n FROM kube_nvr_schema', [], name);
    assert.equal(row?.n, SCHEMA_VERSION);
    for (const node of nodes) {
      assert.equal((await ready(node)).checks.storage.reachable, true);
      assert.equal((await node.stop()).code, 0);
    }
    const made = nodes.filter((node) => node.child.output.includes('the database tables were migrated'));
    assert.equal(made.length, 1);
  });

  test('tables of the first version get the columns onvif, preview, edge and group, and a camera is moved through what a row says there', async (t) => {
    const name = await database();
    const directory = workspace(t);
    const first = await recorder(t, { name, directory });
    assert.equal((await first.stop()).code, 0);
    await postgres.query(
      'ALTER TABLE cameras DROP COLUMN onvif, DROP COLUMN preview, DROP COLUMN edge, DROP COLUMN "group"',
      [],
      name,
    );
    await postgres.query('DELETE FROM kube_nvr_schema WHERE version > 1', [], name);
    await addCamera(name, 'gate', (await camera(t)).url.replace('rtsp://', 'rtsp://admin:pw@'));
    const node = await recorder(t, { name, directory });
    await until('the camera is recorded', async () => (await node.cameras())[0]?.state === 'recording');
    const asked: string[] = [];
    const device = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(500).end();
    });
    t.after(() => device.close());
    await new Promise<void>((resolve) => device.listen(0, '127.0.0.1', resolve));
    const { port } = device.address() as AddressInfo;
    const onvif = `http://127.0.0.1:${port}/of/the/row`;
    await postgres.query('UPDATE cameras SET onvif = $1, ptz = true', [onvif], name);
    await until('the row is followed', async () => {
      const { ptz } = (await node.get('/api/cameras/gate')) as { ptz: boolean };
      return ptz;
    });
    const small = JSON.stringify({ source: (await camera(t)).url });
    await postgres.query('UPDATE cameras SET preview = $1', [small], name);
    await until('it has a preview', async () => {
      const { preview } = (await node.get('/api/cameras/gate')) as { preview: { state: string } | null };
      return preview?.state === 'idle';
    });
    const hasGroup = (wanted: string | null) => async () =>
      ((await node.get('/api/cameras/gate')) as { group: string | null }).group === wanted;
    await postgres.query(`UPDATE cameras SET "group" = 'Entrances'`, [], name);
    await until('it is in its group', hasGroup('Entrances'));
    // The table can be read without the column, too.
    await postgres.query('ALTER TABLE cameras DROP COLUMN "group"', [], name);
    await postgres.query(`UPDATE cameras SET name = 'Front gate'`, [], name);
    await until('it has no group', hasGroup(null));
    const answer = await fetch(`${node.url}/api/ptz/move`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ camera_id: 'gate', pan: 1, tilt: 0, zoom: 0 }),
    });
    assert.equal(answer.status, 502, await answer.text());
    assert.equal(asked[0], '/of/the/row');
    assert.equal((await node.stop()).code, 0);
  });

  test('a table of another program, with other columns and no right to change it, is read as it is, and what it lacks is named', async (t) => {
    const name = await database();
    const gate = await camera(t);
    const sql = (text: string, values: readonly unknown[] = []) => postgres.query(text, values, name);
    await sql('CREATE TABLE cameras (site uuid, source text, id integer PRIMARY KEY, vendor text)');
    await sql(`CREATE ROLE reader LOGIN PASSWORD 'reader'`);
    await sql('GRANT SELECT ON cameras TO reader');
    await sql('GRANT CREATE, USAGE ON SCHEMA public TO reader');
    await sql('INSERT INTO cameras (id, source) VALUES (7, $1)', [gate.url]);
    const url = postgres.url(name).replace(/\/\/[^@]*@/, '//reader:reader@');
    const node = await recorder(t, { name, url });
    await until('it says what is missing', () => /column .*node_name.* does not exist/.test(node.child.output));
    // The rest works, and nothing flaps.
    const { status, warnings } = await ready(node);
    assert.deepEqual([status, warnings.map(({ code }) => code)], [200, ['database-unusable']]);
    assert.match(warnings[0]?.detail ?? '', /node_name/);
    assert.ok(!node.child.output.includes('the database cannot be used'));
    await sql('ALTER TABLE cameras ADD COLUMN node_name text');
    await sql(`UPDATE cameras SET node_name = 'test-node'`);
    await until('it is recorded', async () => (await node.cameras())[0]?.state === 'recording');
    assert.equal((await node.cameras())[0]?.id, '7');
    assert.deepEqual(
      (await ready(node)).warnings.filter(({ code }) => code !== 'machine-frozen'),
      [],
    );
    await sql('UPDATE cameras SET node_name = NULL');
    await until('it is given up', async () => (await node.cameras()).length === 0);
    assert.deepEqual(await sql('SELECT tgname FROM pg_trigger WHERE NOT tgisinternal'), []);
  });

  test('a database in which no tables may be made is no storage, and ready says why until they may', async (t) => {
    const name = await database();
    const sql = (text: string) => postgres.query(text, [], name);
    await sql(`CREATE ROLE guest LOGIN PASSWORD 'guest'`);
    await sql('REVOKE CREATE ON SCHEMA public FROM public');
    const url = postgres.url(name).replace(/\/\/[^@]*@/, '//guest:guest@');
    const node = await recorder(t, { name, url, waitUntilReady: false });
    const [warning] = await until('it warns', async () => {
      const { warnings } = await ready(node);
      return warnings.length > 0 && warnings;
    });
    assert.equal(warning?.code, 'database-unusable');
    assert.match(warning?.detail ?? '', /permission denied for schema public/);
    assert.deepEqual((await ready(node)).failed, ['storage']);
    await sql('GRANT CREATE ON SCHEMA public TO guest');
    await until('it can be used', async () => (await ready(node)).status === 200);
    assert.deepEqual(
      (await ready(node)).warnings.filter(({ code }) => code !== 'machine-frozen'),
      [],
    );
  });

  test('tables of a newer recorder are refused in one line without a secret', async (t) => {
    const name = await database();
    const node = await recorder(t, { name });
    await node.stop();
    await postgres.query('INSERT INTO kube_nvr_schema (version) VALUES (999)', [], name);
    const child = new Child(process.execPath, [MAIN, '--config', node.configFile]);
    t.after(() => child[Symbol.asyncDispose]());
    assert.notEqual((await child.exit()).code, 0);
    const last = child.output.trim().split('\n').at(-1) ?? '';
    assert.match(last, /^recorder: database\.url: .*version 999/);
    assert.doesNotMatch(child.output, /a-secret-of-the-database/);
  });
});
