import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log } from '../../base/log.ts';
import { silentLog } from '../../base/log.ts';
import { ArchiveError } from '../archive/disk/faults.ts';
import type { ListQuery } from '../archive/catalogue/listing.ts';
import { standaloneChecks } from './deps.ts';
import { archiveStatus, as, build, cameraStatus, emptyArchive, fakeCluster, token } from './test-support.ts';

const NO_PACKETS = {
  received: 0,
  lost: 0,
  late: 0,
  not_rtp: 0,
  other_source: 0,
  other_payload_type: 0,
  sequence_restarts: 0,
  faults: [],
  last_fault: null,
};
const NOW_MS = Date.UTC(2026, 0, 1, 12);

test('live answers anyone', async (t) => {
  const { app } = await build(t);
  const answer = await app.inject('/api/health/live');
  assert.equal(answer.statusCode, 200);
});

test('ready shows checks only to callers with a role', async (t) => {
  const { app, recordPath } = await build(t);
  const anyone = await app.inject('/api/health/ready');
  assert.equal(anyone.statusCode, 200);
  assert.deepEqual(anyone.json(), { status: 'ready', version: '1.2.3', timestamp: '2026-01-01T12:00:00.000+00:00' });
  const wrong = await app.inject({ url: '/api/health/ready', headers: { authorization: 'Bearer guess' } });
  assert.deepEqual(wrong.json(), anyone.json());
  const viewer = await app.inject({ url: '/api/health/ready', headers: as('viewer') });
  assert.deepEqual(viewer.json().checks, {
    storage: { configured: false, reachable: false },
    cluster_store: { configured: false },
    recordings_dir: { path: recordPath, writable: true },
    license: { valid: true },
  });
});

test('not ready: 503 names the failed checks to callers with a role, and only the status to others', async (t) => {
  const { app } = await build(t, {
    archive: { ...emptyArchive, checkWritable: async () => false },
    checks: { ...standaloneChecks, storage: async () => ({ configured: true, reachable: false }) },
  });
  const anyone = await app.inject('/api/health/ready');
  assert.equal(anyone.statusCode, 503);
  assert.deepEqual(Object.keys(anyone.json()), ['status', 'version', 'timestamp']);
  assert.equal(anyone.json().status, 'not_ready');
  const viewer = await app.inject({ url: '/api/health/ready', headers: as('viewer') });
  assert.equal(viewer.statusCode, 503);
  assert.deepEqual(viewer.json().failed, ['storage', 'recordings_dir']);
  assert.equal(viewer.json().checks.recordings_dir.writable, false);
});

test('ready: a disk that does not answer is not writable, and probes do not pile up on it', async (t) => {
  let looks = 0;
  const { app, clock } = await build(t, {
    archive: {
      ...emptyArchive,
      checkWritable() {
        looks++;
        return new Promise(() => {});
      },
    },
  });
  const probes = [app.inject('/api/health/ready'), app.inject('/api/health/ready')];
  const moved = setInterval(() => clock.advance(5_000), 1);
  const answers = await Promise.all(probes);
  clearInterval(moved);
  assert.deepEqual(
    answers.map((a) => a.statusCode),
    [503, 503],
  );
  assert.equal(looks, 1);
});

test('ready: a database that does not answer fails within two seconds, and probes do not pile up on it', async (t) => {
  let looks = 0;
  const asked = Promise.withResolvers<void>();
  const storage = (): Promise<never> => {
    looks++;
    asked.resolve();
    return new Promise(() => {});
  };
  const { app, clock } = await build(t, { checks: { ...standaloneChecks, storage } });
  const probes = [app.inject('/api/health/ready'), app.inject('/api/health/ready')];
  await asked.promise;
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(2_000);
  for (const { statusCode } of await Promise.all(probes)) assert.equal(statusCode, 503);
  assert.equal(looks, 1);
});

test('ready: a passing outage of the cluster only warns; after five minutes, and before the node ever joined, it fails', async (t) => {
  let unreachableMs = Infinity;
  const clusterStore = () => ({ configured: true, unreachableMs }) as const;
  const { app } = await build(t, { checks: { ...standaloneChecks, clusterStore } });
  const ask = async () => {
    const answer = await app.inject({ url: '/api/health/ready', headers: as('viewer') });
    return [answer.statusCode, answer.json().checks.cluster_store, answer.json().failed];
  };
  assert.deepEqual(await ask(), [503, { configured: true, reachable: false }, ['cluster_store']]);
  unreachableMs = 0;
  assert.deepEqual(await ask(), [200, { configured: true, reachable: true }, undefined]);
  unreachableMs = 299_999;
  assert.deepEqual(await ask(), [200, { configured: true, reachable: false, unreachable_seconds: 299 }, undefined]);
  unreachableMs = 300_000;
  assert.deepEqual(await ask(), [
    503,
    { configured: true, reachable: false, unreachable_seconds: 300 },
    ['cluster_store'],
  ]);
});

test('node metrics are whole numbers under the names of the specification', async (t) => {
  const { app } = await build(t);
  const answer = await app.inject({ url: '/api/metrics', headers: as('viewer') });
  assert.deepEqual(answer.json(), {
    online: true,
    node_name: 'rack-1',
    cpu_load: 13,
    mem_used_gb: 3,
    mem_total_gb: 16,
    storage_free_gb: 900,
    storage_total_gb: 1024,
    storage_used_gb: 100,
    timestamp: '2026-01-01T12:00:00.000+00:00',
  });
});

test('node metrics list disks of an archive that has several, and targets, with what has one copy only', async (t) => {
  const fault = { code: 'disk-read-only', message: 'the file system is read-only (EROFS)' };
  const { app, cameras } = await build(t, {
    archive: {
      ...emptyArchive,
      disks: async () => [
        { path: '/mnt/a', isLeaving: false, fault: undefined },
        { path: '/mnt/b', isLeaving: false, fault },
        { path: '/mnt/c', isLeaving: true, fault: undefined },
      ],
    },
    copies: {
      holders: [],
      places: (ids) => ({
        targets: [{ name: ids.join(), problem: fault, lackingFiles: 3, lagMs: 61_500, keepMs: Infinity }],
        uncopied: 1,
      }),
    },
  });
  cameras.push({ status: cameraStatus({ id: 'gate' }), archive: undefined, live: undefined });
  const answer = (await app.inject({ url: '/api/metrics', headers: as('viewer') })).json();
  assert.deepEqual(answer.disks, [
    { path: '/mnt/a', state: 'in-use', free_gb: 900, total_gb: 1_024 },
    { path: '/mnt/b', state: 'failing', problem: fault.message, free_gb: 0, total_gb: 0 },
    { path: '/mnt/c', state: 'leaving', free_gb: 900, total_gb: 1_024 },
  ]);
  assert.deepEqual([answer.storage_free_gb, answer.storage_total_gb], [1_799, 2_048], 'the sums');
  assert.deepEqual(answer.targets, [
    { name: 'gate', problem: fault.message, lacking_files: 3, lag_seconds: 61, keeps_days: null },
  ]);
  assert.equal(answer.uncopied_cameras, 1);
});

test('what is known of how long footage is kept is in the list of cameras and in node metrics', async (t) => {
  const day = 86_400_000;
  const { app, cameras } = await build(t, {
    keeping: { wantedMs: (id) => (id === 'gate' ? 30 * day : undefined), outlookMs: () => 12.34 * day },
  });
  for (const id of ['gate', 'yard'])
    cameras.push({ status: cameraStatus({ id }), archive: undefined, live: undefined });
  const answer = async (url: string) => (await app.inject({ url, headers: as('viewer') })).json();
  const listed: { max_age_seconds: number | null }[] = (await answer('/api/cameras')).cameras;
  assert.deepEqual(
    listed.map(({ max_age_seconds }) => max_age_seconds),
    [2_592_000, null],
  );
  assert.equal((await answer('/api/metrics')).storage_days, 12.3);
});

test('node metrics say so when the file system of the archive cannot be measured', async (t) => {
  const machine = { cpuPercent: () => 0, memory: () => ({ usedBytes: 0, totalBytes: 0 }) };
  const disk = async (): Promise<never> => {
    throw Object.assign(new Error('no'), { code: 'ENOENT' });
  };
  const { app } = await build(t, { machine: { ...machine, disk } });
  const answer = await app.inject({ url: '/api/metrics', headers: as('viewer') });
  assert.equal(answer.json().storage_total_gb, 0);
  assert.equal(answer.json().storage_error, 'the file system of the archive cannot be measured: ENOENT');
});

test('segments: the wire form of the specification', async (t) => {
  const { app } = await build(t, {
    segments: {
      list: async () => ({
        segments: [
          {
            startMs: NOW_MS + 1,
            sequence: 7,
            path: '2026/01/01/Gate_gate_20260101_120000001.mp4',
            sizeBytes: 123,
            mtimeMs: NOW_MS + 1999,
            isOpen: true,
          },
        ],
        days: ['2025-12-31', '2026-01-01'],
      }),
    },
  });
  const answer = await app.inject({ url: '/api/archive/gate/segments', headers: as('viewer') });
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(answer.json(), {
    archive: [
      {
        timestamp: '2026-01-01T12:00:00.001+00:00',
        start_ms: NOW_MS + 1,
        end: null,
        end_ms: null,
        duration_seconds: null,
        duration_ms: null,
        sequence: 7,
        filename: '2026/01/01/Gate_gate_20260101_120000001.mp4',
        size: 123,
        mtime: NOW_MS / 1000 + 1,
        is_open: true,
      },
    ],
    days: ['2025-12-31', '2026-01-01'],
  });
});

const HOUR = 3_600;
const NOON = NOW_MS / 1000;
// Of the day that it is here: east of UTC+12 it is tomorrow already.
const localMidnight = new Date(NOW_MS).setHours(0, 0, 0, 0);
const intervals: { query: string; expected: ListQuery }[] = [
  {
    query: '',
    expected: { fromMs: localMidnight, toMs: localMidnight + 24 * HOUR * 1000, tzOffsetMinutes: undefined },
  },
  {
    query: '?tz_offset_minutes=-720',
    expected: { fromMs: NOW_MS, toMs: NOW_MS + 24 * HOUR * 1000, tzOffsetMinutes: -720 },
  },
  {
    query: `?from=${NOON}`,
    expected: { fromMs: NOW_MS, toMs: NOW_MS + 24 * HOUR * 1000, tzOffsetMinutes: undefined },
  },
  {
    query: `?to=${NOON}`,
    expected: { fromMs: NOW_MS - 24 * HOUR * 1000, toMs: NOW_MS, tzOffsetMinutes: undefined },
  },
  {
    query: `?from=${NOON}&to=${NOON + 25 * HOUR}&tz_offset_minutes=840`,
    expected: { fromMs: NOW_MS, toMs: NOW_MS + 25 * HOUR * 1000, tzOffsetMinutes: 840 },
  },
  { query: `?from=${NOON}&to=${NOON}`, expected: { fromMs: NOW_MS, toMs: NOW_MS, tzOffsetMinutes: undefined } },
];
for (const { query, expected } of intervals) {
  test(`segments${query} asks for the right interval`, async (t) => {
    const asked: ListQuery[] = [];
    const { app } = await build(t, {
      segments: {
        async list(cameraId, query) {
          assert.equal(cameraId, 'gate');
          asked.push(query);
          return { segments: [], days: [] };
        },
      },
    });
    const answer = await app.inject({ url: `/api/archive/gate/segments${query}`, headers: as('viewer') });
    assert.equal(answer.statusCode, 200, answer.body);
    assert.deepEqual(asked, [expected]);
  });
}

const refused: { query: string; detail: RegExp }[] = [
  { query: 'from=yesterday', detail: /^from: / },
  { query: 'from=', detail: /^from: / },
  { query: 'from=1&from=2', detail: /^from: / },
  { query: 'to=0x10', detail: /^to: / },
  { query: 'to=1e400', detail: /^to: / },
  { query: 'from=99999999999999999999', detail: /^from: / },
  { query: `to=${Date.UTC(10_000, 0) / 1000}`, detail: /^to: / },
  { query: `from=${Date.UTC(-1, 0) / 1000}`, detail: /^from: / },
  { query: `from=${NOON + 1}&to=${NOON}`, detail: /^from: .*not later than to/ },
  { query: `from=${NOON}&to=${NOON + 25 * HOUR + 1}`, detail: /^to: .*25 hours/ },
  { query: 'tz_offset_minutes=841', detail: /^tz_offset_minutes: .*-840 to 840/ },
  { query: 'tz_offset_minutes=-841', detail: /^tz_offset_minutes: / },
  { query: 'tz_offset_minutes=1.5', detail: /^tz_offset_minutes: / },
  { query: 'tz_offset_minutes=east', detail: /^tz_offset_minutes: / },
];
for (const { query, detail } of refused) {
  test(`segments?${query} is refused, and the answer names the parameter`, async (t) => {
    const { app } = await build(t);
    const answer = await app.inject({ url: `/api/archive/gate/segments?${query}`, headers: as('viewer') });
    assert.equal(answer.statusCode, 400);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
    const body = answer.json();
    assert.deepEqual(Object.keys(body).sort(), ['code', 'detail', 'request_id', 'status', 'title']);
    assert.equal(body.status, 400);
    assert.equal(body.title, 'Bad Request');
    assert.match(body.detail, detail);
  });
}

test('segments: an archive that cannot be read is 500, and never an empty list', async (t) => {
  const { app } = await build(t, {
    segments: { list: () => Promise.reject(new ArchiveError('2026/01 cannot be read')) },
  });
  const answer = await app.inject({ url: '/api/archive/gate/segments', headers: as('viewer') });
  assert.equal(answer.statusCode, 500);
  assert.deepEqual(answer.json(), {
    title: 'Internal Server Error',
    status: 500,
    detail: '2026/01 cannot be read',
    code: 'archive-unreadable',
    request_id: answer.headers['x-request-id'],
  });
});

test('segments: a camera that the node does not know has empty lists', async (t) => {
  const { app } = await build(t);
  const answer = await app.inject({ url: '/api/archive/nobody/segments', headers: as('viewer') });
  assert.deepEqual([answer.statusCode, answer.json()], [200, { archive: [], days: [] }]);
});

test('current: what is being written, and 404 when nothing can be reported', async (t) => {
  const { app } = await build(t, {
    archive: {
      ...emptyArchive,
      current: async (id) => (id === 'gate' ? { path: 'a/b.mp4', startMs: NOW_MS, sizeBytes: 99 } : undefined),
    },
  });
  const found = await app.inject({ url: '/api/archive/gate/current', headers: as('viewer') });
  assert.deepEqual(found.json(), {
    camera_id: 'gate',
    filename: 'a/b.mp4',
    start: '2026-01-01T12:00:00.000+00:00',
    start_ms: NOW_MS,
    size: 99,
  });
  const missing = await app.inject({ url: '/api/archive/door/current', headers: as('viewer') });
  assert.equal(missing.statusCode, 404);
  assert.equal(missing.json().code, 'nothing-recorded');
});

test('cameras: state, reason, codecs and what is being written', async (t) => {
  const { app, cameras } = await build(t, { address: 'rack-1:9997', playback: { port: () => 9996 } });
  cameras.push({
    status: cameraStatus({
      reason: { code: 'stream-silent', message: 'no video for 10 s' },
      video: {
        kind: 'video',
        codec: 'h264',
        width: 1920,
        height: 1080,
        vps: [],
        sps: [],
        pps: [],
        codecString: 'avc1.64001f',
        reorderDepth: 0,
      },
      audio: {
        kind: 'audio',
        codec: 'aac',
        sampleRate: 48_000,
        channels: 2,
        config: Buffer.alloc(2),
        codecString: 'mp4a.40.2',
      },
      bitrate: 4_000_000.4,
      frameRate: 24.94,
      usualFrameRate: 25,
      lastFrameMs: NOW_MS,
    }),
    archive: archiveStatus({ lastWrittenMs: NOW_MS - 500, currentFile: '2026/01/01/x.mp4' }),
    live: undefined,
  });
  const answer = await app.inject({ url: '/api/cameras/gate', headers: as('viewer') });
  assert.equal(answer.statusCode, 200, answer.body);
  assert.deepEqual(answer.json(), {
    id: 'gate',
    name: 'Gate',
    state: 'recording',
    state_since: '2026-01-01T11:00:00.000+00:00',
    silent: false,
    silent_since: null,
    reason: { code: 'stream-silent', message: 'no video for 10 s', todo: 'restart the camera' },
    node: { name: 'rack-1', address: 'rack-1:9997', playback: 'http://localhost:9996' },
    transport: 'tcp',
    codecs: {
      video: { codec: 'h264', codec_string: 'avc1.64001f', width: 1920, height: 1080 },
      video_remark: null,
      audio: { codec: 'aac', codec_string: 'mp4a.40.2', sample_rate: 48_000, channels: 2 },
      mime: 'video/mp4; codecs="avc1.64001f, mp4a.40.2"',
      audio_dropped: null,
    },
    not_recorded: [],
    not_believed: [],
    group: null,
    bitrate: 4_000_000,
    frame_rate: 24.9,
    usual_frame_rate: 25,
    max_age_seconds: null,
    last_frame: '2026-01-01T12:00:00.000+00:00',
    frames: { video: 0, audio: 0, discarded: 0, lost_packets: 0 },
    packet_counts: { video: NO_PACKETS, audio: NO_PACKETS, skipped_bytes: 0 },
    recording: {
      state: 'writing',
      reason: null,
      last_written: '2026-01-01T11:59:59.500+00:00',
      filename: '2026/01/01/x.mp4',
    },
    viewers: 0,
    preview: null,
    ptz: false,
  });
  const list = await app.inject({ url: '/api/cameras', headers: as('viewer') });
  assert.deepEqual(list.json(), { cameras: [answer.json()], warnings: [] });
  const unknown = await app.inject({ url: '/api/cameras/nobody', headers: as('viewer') });
  assert.deepEqual([unknown.statusCode, unknown.json().code], [404, 'unknown-camera']);
});

test('the list of cameras says what somebody should look at, as ready does, to those whom it concerns', async (t) => {
  const warnings = () => [
    { code: 'ffmpeg-missing', message: 'ffmpeg is not installed', cameraId: undefined },
    { code: 'unknown-protection', message: 'nobody knows it', cameraId: 'gate' },
  ];
  const { app } = await build(t, { warnings });
  for (const url of ['/api/cameras', '/api/health/ready']) {
    const answer = (await app.inject({ url, headers: as('viewer') })).json<{ warnings: unknown }>();
    assert.deepEqual(answer.warnings, [
      {
        code: 'ffmpeg-missing',
        detail: 'ffmpeg is not installed',
        todo: 'install ffmpeg, or correct ffmpeg.path',
      },
      { code: 'unknown-protection', detail: 'nobody knows it', camera_id: 'gate' },
    ]);
  }
});

const PROTECTED = [
  '/api/metrics',
  '/api/cameras',
  '/api/cameras/x',
  '/api/archive/x/segments',
  '/api/archive/x/current',
];
for (const url of PROTECTED) {
  test(`${url}: 401 without a token and with a wrong one`, async (t) => {
    const { app } = await build(t);
    for (const headers of [
      {},
      { authorization: 'Bearer guess' },
      { authorization: 'Basic !!' },
      { authorization: 'Bearer' },
    ]) {
      const answer = await app.inject({ url, headers });
      assert.equal(answer.statusCode, 401);
      assert.equal(answer.json().code, 'unauthorized');
      assert.equal(answer.headers['www-authenticate'], 'Bearer realm="recorder"');
    }
  });
}

test('a token is accepted as Bearer and as the password of Basic, and not in the query', async (t) => {
  const { app } = await build(t);
  const basic = Buffer.from('anybody:viewer').toString('base64');
  for (const authorization of ['Bearer viewer', 'bearer viewer', `Basic ${basic}`]) {
    const answer = await app.inject({ url: '/api/cameras', headers: { authorization } });
    assert.equal(answer.statusCode, 200);
  }
  assert.equal((await app.inject('/api/cameras?access_token=viewer')).statusCode, 401);
});

test('a role that is too little is 403', async (t) => {
  const { app } = await build(t);
  app.get('/only-admin', { config: { role: 'admin' } }, async () => 'ok');
  const viewer = await app.inject({ url: '/only-admin', headers: as('viewer') });
  assert.deepEqual([viewer.statusCode, viewer.json().code], [403, 'forbidden']);
  const operator = await app.inject({ url: '/only-admin', headers: as('operator') });
  assert.equal(operator.statusCode, 403);
  const admin = await app.inject({ url: '/only-admin', headers: as('admin') });
  assert.equal(admin.statusCode, 200);
});

test('auth.mode none lets anyone do everything', async (t) => {
  const { app } = await build(t, { auth: { mode: 'none', tokens: [token('viewer')] } });
  assert.equal((await app.inject('/api/cameras')).statusCode, 200);
});

test('unknown routes, methods and broken requests are problems too', async (t) => {
  const { app } = await build(t);
  app.post('/echo', async () => 'ok');
  const unknown = await app.inject('/nothing?access_token=secret');
  assert.equal(unknown.statusCode, 404);
  assert.match(String(unknown.headers['content-type']), /^application\/problem\+json/);
  assert.deepEqual(unknown.json(), {
    title: 'Not Found',
    status: 404,
    detail: 'there is no GET /nothing',
    code: 'not-found',
    request_id: unknown.headers['x-request-id'],
  });
  const body = await app.inject({ method: 'POST', url: '/api/cameras', payload: '{' });
  assert.deepEqual([body.statusCode, body.json().code, body.headers.allow], [405, 'method-not-allowed', 'GET, HEAD']);
  const broken = await app.inject({
    method: 'POST',
    url: '/echo',
    payload: '{',
    headers: { 'content-type': 'application/json' },
  });
  assert.deepEqual([broken.statusCode, broken.json().code], [400, 'invalid-request']);
  const escape = await app.inject('/api/cameras/%ff');
  assert.equal(escape.statusCode, 400);
  assert.match(String(escape.headers['content-type']), /^application\/problem\+json/);
  const upgrade = await app.inject('/websocket/gate');
  assert.deepEqual([upgrade.statusCode, upgrade.json().code], [426, 'upgrade-required']);
});

test('a fault of the recorder is logged once and told without its inside', async (t) => {
  const lines: unknown[] = [];
  const log: Log = { ...silentLog, bug: (fields) => void lines.push(fields) };
  const { app } = await build(t, {
    log,
    archive: { ...emptyArchive, current: () => Promise.reject(new Error('rtsp://user:secret@camera')) },
  });
  const answer = await app.inject({ url: '/api/archive/gate/current?access_token=secret', headers: as('viewer') });
  assert.equal(answer.statusCode, 500);
  assert.doesNotMatch(answer.body, /secret/);
  assert.equal(lines.length, 1);
  assert.equal((lines[0] as { path: string }).path, '/api/archive/gate/current');
});

test('no log line holds an access token', async (t) => {
  const lines: string[] = [];
  const write = (fields: object): void => void lines.push(JSON.stringify(fields));
  const log: Log = { debug: write, info: write, warn: write, error: write, bug: write, child: () => log };
  const { app } = await build(t, { log });
  await app.inject('/api/cameras?access_token=viewer-secret');
  await app.inject({ url: '/api/cameras/x', headers: { authorization: 'Bearer viewer-secret' } });
  assert.equal(lines.length, 2);
  assert.doesNotMatch(lines.join('\n'), /viewer-secret/);
});

test('openapi.json describes the routes from the same schemas', async (t) => {
  const { app } = await build(t);
  const document = (await app.inject('/openapi.json')).json();
  const own = [
    '/api/accounts',
    '/api/archive/{camera_id}/current',
    '/api/archive/{camera_id}/gaps',
    '/api/archive/{camera_id}/segments',
    '/api/cameras',
    '/api/cameras/{id}',
    '/api/health/live',
    '/api/health/ready',
    '/api/links',
    '/api/metrics',
    '/api/session',
    '/websocket/{camera_id}',
  ];
  assert.deepEqual(
    own.filter((path) => !(path in document.paths)),
    [],
  );
  const segments = document.paths['/api/archive/{camera_id}/segments'].get;
  assert.deepEqual(segments.parameters.map((p: { name: string }) => p.name).sort(), [
    'camera_id',
    'cursor',
    'from',
    'limit',
    'local',
    'to',
    'tz_offset_minutes',
  ]);
  assert.deepEqual(Object.keys(segments.responses).sort(), ['200', '307', '400', '401', '414', '429', '500', '503']);
});

test('the page is served to anyone, with its policy', async (t) => {
  const { app } = await build(t, { playback: { port: () => 9996 } });
  for (const url of [
    '/',
    '/reference',
    '/page/console.css',
    '/page/app/main.ts',
    '/page/player.js',
    '/page/cluster.js',
    '/page/api.js',
  ]) {
    const answer = await app.inject({ url, headers: { host: 'nvr.example:9997' } });
    assert.equal(answer.statusCode, 200);
    const policy = String(answer.headers['content-security-policy']);
    assert.match(policy, /default-src 'self'/);
  }
  const own = policyIn((await app.inject({ url: '/', headers: { host: 'nvr.example:9997' } })).body);
  assert.deepEqual(own, {
    'connect-src': ["'self'", 'ws://nvr.example:9997', 'wss://nvr.example:9997', 'http://nvr.example:9996'],
    'media-src': ["'self'", 'blob:', 'http://nvr.example:9996'],
    'img-src': ["'self'", 'data:', 'blob:'],
  });
  // A host that would add to the policy is not taken into it.
  const odd = await app.inject({ url: '/', headers: { host: "x;script-src 'unsafe-inline'" } });
  assert.deepEqual(policyIn(odd.body), {
    'connect-src': ["'self'"],
    'media-src': ["'self'", 'blob:'],
    'img-src': ["'self'", 'data:', 'blob:'],
  });
});

test('the page of a cluster goes to the nodes that the cluster names, and nowhere else', async (t) => {
  const cluster = fakeCluster('rack-1', {
    origins: () => ['https://10.0.0.7:9997', 'https://10.0.0.8:9997'],
    playbackOrigins: () => ['https://10.0.0.7:9996'],
  });
  const { app } = await build(t, { playback: { port: () => undefined }, cluster });
  assert.deepEqual(policyIn((await app.inject({ url: '/', headers: { host: 'nvr.example' } })).body), {
    'connect-src': [
      "'self'",
      'ws://nvr.example',
      'wss://nvr.example',
      'https://10.0.0.7:9997',
      'https://10.0.0.8:9997',
      'wss://10.0.0.7:9997',
      'wss://10.0.0.8:9997',
      'https://10.0.0.7:9996',
    ],
    'media-src': ["'self'", 'blob:', 'https://10.0.0.7:9996'],
    'img-src': ["'self'", 'data:', 'blob:', 'https://10.0.0.7:9997', 'https://10.0.0.8:9997'],
  });
});

/** Of the document itself, before anything that it loads. */
function policyIn(html: string): Record<string, readonly string[]> {
  const [, policy = ''] =
    /^[^]*?<meta charset="utf-8" \/>\s*<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html) ?? [];
  return Object.fromEntries(
    policy.split('; ').map((directive) => {
      const [name = '', ...sources] = directive.split(' ');
      return [name, sources];
    }),
  );
}

const elsewhere = { origin: 'https://elsewhere.example' };
const preflight = (url: string) => ({
  method: 'OPTIONS' as const,
  url,
  headers: { ...elsewhere, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
});

test('a page of another origin may read nothing and change nothing, whatever token or mode', async (t) => {
  for (const auth of [{}, { auth: { mode: 'none' as const, tokens: [], allowedHosts: ['nvr'] } }]) {
    const { app } = await build(t, auth);
    app.post('/change', async () => 'changed');
    assert.equal((await app.inject(preflight('/api/cameras'))).headers['access-control-allow-origin'], undefined);
    const answer = await app.inject({ url: '/api/cameras', headers: { ...elsewhere, ...as('viewer') } });
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
    // Browsers send such a request without a preflight: it must not be carried out.
    for (const origin of ['https://elsewhere.example', 'null', 'http://localhost:1234']) {
      const change = await app.inject({ method: 'POST', url: '/change', headers: { origin, ...as('admin') } });
      assert.deepEqual([change.statusCode, change.json().code], [403, 'foreign-origin'], origin);
    }
    for (const own of [{}, { origin: 'http://nvr:9997', host: 'nvr:9997' }]) {
      const headers = { ...own, ...as('admin') };
      assert.equal((await app.inject({ method: 'POST', url: '/change', headers })).statusCode, 200);
    }
  }
});

test('a page of an origin that is named may use the API with its own token, and read the refusals', async (t) => {
  const { app } = await build(t, { origins: [elsewhere.origin] });
  const asked = await app.inject(preflight('/api/cameras'));
  assert.equal(asked.statusCode, 204);
  assert.equal(asked.headers['access-control-allow-origin'], elsewhere.origin);
  assert.equal(asked.headers.vary, 'origin');
  assert.match(String(asked.headers['access-control-allow-headers']), /authorization/);
  const answer = await app.inject({ url: '/api/cameras', headers: { ...elsewhere, ...as('viewer') } });
  assert.deepEqual([answer.statusCode, answer.headers['access-control-allow-origin']], [200, elsewhere.origin]);
  // Browsers leave out credentials of their own.
  assert.equal(answer.headers['access-control-allow-credentials'], undefined);
  const refused = await app.inject({ url: '/api/cameras', headers: elsewhere });
  assert.deepEqual([refused.statusCode, refused.headers['access-control-allow-origin']], [401, elsewhere.origin]);
  const another = await app.inject({ url: '/api/cameras', headers: { origin: 'https://third.example' } });
  assert.equal(another.headers['access-control-allow-origin'], undefined);
});

test('with * every page may, but none without an origin', async (t) => {
  const { app } = await build(t, { origins: ['*'] });
  for (const [origin, allowed] of [
    ['https://elsewhere.example', 'https://elsewhere.example'],
    ['null', undefined],
  ] as const) {
    const answer = await app.inject({ url: '/api/cameras', headers: { origin, ...as('viewer') } });
    assert.equal(answer.headers['access-control-allow-origin'], allowed);
  }
});

test('a request has an id: its own if it can stand in a log, else a new one', async (t) => {
  const lines: Record<string, unknown>[] = [];
  const log: Log = { ...silentLog, debug: (fields) => void lines.push(fields) };
  const { app } = await build(t, { log });
  const given = await app.inject({ url: '/api/cameras/x', headers: { 'x-request-id': 'proxy-7', ...as('viewer') } });
  assert.equal(given.headers['x-request-id'], 'proxy-7');
  assert.equal(given.json().request_id, 'proxy-7');
  assert.deepEqual([lines[0]?.['requestId'], lines[0]?.['caller']], ['proxy-7', 'viewer']);
  for (const id of ['', 'two words', '"', 'x'.repeat(129), 'line\tbreak']) {
    const answer = await app.inject({ url: '/api/health/live', headers: { 'x-request-id': id } });
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  }
});
