// Assemblies from peers that behave, and from peers that do not.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join as joinPath } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { systemClock } from '../../base/clock.ts';
import { decodePictures } from '../../test/camera/frame-numbers.ts';
import { browserMissing } from '../../test/support/browser.ts';
import { encodeAudio } from '../../test/support/encoded-samples.ts';
import { join, numberedVideo, recordedPart, wallWindow, WALL_START_MS } from '../../test/support/joined-file.ts';
import { openMovie } from '../../test/support/movie-page.ts';
import { file, json, PeerServer, status, type Answer } from '../../test/support/peer-server.ts';
import { probe } from '../../test/support/probe.ts';
import { until } from '../../test/support/until.ts';
import { workspace } from '../../test/support/workspace.ts';
import { assemble, type AssembleDeps } from './assemble.ts';
import type { JobOutcome, JobRequest } from './job.ts';
import { readNote, type PeerLimits } from './peer-part.ts';

const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
const LIMITS: PeerLimits = {
  silenceMs: 400,
  giveUpMs: 600,
  waitMs: 600,
  pollMs: 20,
  slowest: { bytes: 1000, ms: 300 },
  partMs: 30_000,
};
const FROM = WALL_START_MS / 1000;

/** An export of pictures [first, first + 100) without its first 0.52 s: decoding begins at a key frame before. */
interface Part {
  readonly bytes: Buffer;
  readonly job: Readonly<Record<string, unknown>>;
}
const parts: Part[] = [];
const directory = mkdtempSync(joinPath(tmpdir(), 'assemble-'));
after(() => rmSync(directory, { recursive: true, force: true }));

before(async () => {
  const audio = encodeAudio(directory, 'aac', 4);
  for (const [i, encoder] of [
    'keyint=25:min-keyint=25:scenecut=0',
    'keyint=25:bframes=3:b-adapt=0:scenecut=0',
  ].entries()) {
    const video = numberedVideo(directory, { firstNumber: i * 1000, encoder });
    const { bytes } = await join([recordedPart(video, { audio })], wallWindow(520, 3_520));
    const from = FROM + i * 10;
    const job = { camera_id: 'gate', from, to: from + 3, kind: 'export', state: 'done', size_bytes: bytes.length };
    parts.push({ bytes, job });
  }
});

interface Stage {
  readonly peers: readonly PeerServer[];
  readonly directory: string;
  readonly result: string;
  readonly run: (options?: {
    request?: Partial<JobRequest>;
    deps?: Partial<AssembleDeps>;
    credential?: string;
    signal?: AbortSignal;
    withCredential?: boolean;
  }) => Promise<JobOutcome>;
}

/** Two peers, each with its part. */
async function stage(t: TestContext): Promise<Stage> {
  const peers = [await PeerServer.start(t), await PeerServer.start(t)];
  for (const [i, { job, bytes }] of parts.entries()) peers[i]?.serve(`e${i}`, job, bytes);
  const space = workspace(t);
  const result = joinPath(space, 'a1.mp4');
  const partsDirectory = joinPath(space, 'a1.parts');
  // A peer that a test stops has no address any more.
  const addresses = peers.map(({ address }) => address);
  return {
    peers,
    directory: partsDirectory,
    result,
    async run({ request = {}, deps = {}, credential, signal, withCredential = credential !== undefined } = {}) {
      const asked: JobRequest = {
        kind: 'export',
        cameraId: 'gate',
        fromMs: 0,
        toMs: 0,
        assembly: {
          parts: addresses.map((peerAddress, i) => ({ peerAddress, peerJobId: `e${i}` })),
          withCredential,
        },
        ...request,
      };
      const all: AssembleDeps = {
        access: {
          members: () => addresses.map((address) => ({ address })),
          scheme: 'http',
          silenceMs: LIMITS.silenceMs,
        },
        limits: LIMITS,
        clock: systemClock,
        spareBytes: async () => Infinity,
        version: '1.2.3',
        report: { progress: () => {}, window: async () => {} },
        ...deps,
      };
      const until = signal ?? new AbortController().signal;
      return (await assemble(asked, credential, partsDirectory, result, all, until)).outcome;
    },
  };
}

const JOB = '/api/archive/jobs/e1';
const DOWNLOAD = `${JOB}/download`;
const second = (): Part => parts[1] as Part;

test('parts of two nodes are one movie: the pictures of both windows, sound, and the gap between them', async (t) => {
  const { run, result, peers } = await stage(t);
  const windows: number[][] = [];
  const shares: number[] = [];
  const report = {
    progress: (share: number) => void shares.push(share),
    window: async (...window: number[]) => void windows.push(window),
  };
  const outcome = await run({ deps: { report }, credential: 'Bearer one' });
  const gaps = [{ fromMs: WALL_START_MS + 3_000, toMs: WALL_START_MS + 10_000 }];
  assert.deepEqual(windows, [[WALL_START_MS, WALL_START_MS + 13_000]]);
  const seen = await decodePictures(result);
  assert.equal(seen.complaints, '');
  // What the second needs to decode its first picture passes within ticks.
  assert.deepEqual(seen.numbers, [...numbers(13, 88), ...numbers(1000, 1088)]);
  const { streams, durationSeconds } = await probe(result);
  assert.ok(Math.abs(durationSeconds - 6) < 0.002, `${durationSeconds} s`);
  assert.equal(Math.round(outcome.durationMs), 6_000);
  assert.deepEqual(outcome.gaps, gaps);
  const sound = streams.find(({ codec_type }) => codec_type === 'audio');
  assert.ok(Math.abs(Number(sound?.duration) - 6) < 0.05, `${sound?.duration} s of sound`);
  assert.equal(shares.at(-1), 1);
  for (const peer of peers) assert.deepEqual([...peer.credentials], ['Bearer one']);
});

test('an archive of movies is taken apart, and what has several codecs is put together as one', async (t) => {
  const { run, result, peers, directory: place } = await stage(t);
  const space = workspace(t);
  const encoder = 'keyint=25:min-keyint=25:scenecut=0';
  const movies = await Promise.all(
    (['h265', 'h264'] as const).map(async (codec, i) => {
      const video = numberedVideo(space, { codec, encoder, firstNumber: 2000 + i * 1000 });
      return (await join([recordedPart(video)], wallWindow(0, 3_000))).bytes;
    }),
  );
  const filling = Buffer.from('what an archive has between them');
  const [h265, h264] = movies as [Buffer, Buffer];
  const bytes = Buffer.concat([filling, h265, filling, h264, filling]);
  const at = (from: number, offset: number, size: number) => ({
    offset,
    size_bytes: size,
    from_ms: WALL_START_MS + from,
    to_ms: WALL_START_MS + from + 3_000,
  });
  const job = {
    camera_id: 'gate',
    from_ms: WALL_START_MS + 10_000,
    to_ms: WALL_START_MS + 18_000,
    kind: 'export',
    state: 'done',
    size_bytes: bytes.length,
    gaps: [
      { start: new Date(WALL_START_MS + 13_000).toISOString(), end: new Date(WALL_START_MS + 15_000).toISOString() },
    ],
    parts: [at(10_000, filling.length, h265.length), at(15_000, 2 * filling.length + h265.length, h264.length)],
  };
  peers[1]?.serve('e1', job, bytes);
  const outcome = await run();
  assert.equal(outcome.parts?.length, 3);
  const gapsOf = ({ gaps }: JobOutcome): number[][] =>
    gaps.map(({ fromMs, toMs }) => [fromMs - WALL_START_MS, toMs - WALL_START_MS]);
  const missing = [
    [3_000, 10_000],
    [13_000, 15_000],
  ];
  assert.deepEqual(gapsOf(outcome), missing);
  const made = readFileSync(result);
  const expected = [numbers(13, 88), numbers(2000, 2075), numbers(3000, 3075)];
  const apart = joinPath(space, 'apart.mp4');
  for (const [i, { offset, sizeBytes }] of (outcome.parts ?? []).entries()) {
    writeFileSync(apart, made.subarray(offset, offset + sizeBytes));
    assert.deepEqual((await decodePictures(apart)).numbers, expected[i]);
  }
  assert.deepEqual(
    outcome.parts?.map(({ name, fromMs, toMs }) => [name, fromMs - WALL_START_MS, toMs - WALL_START_MS]),
    [
      ['gate_20260105T100000Z_1_h264.mp4', 0, 3_000],
      ['gate_20260105T100010Z_2_h265.mp4', 10_000, 13_000],
      ['gate_20260105T100015Z_3_h264.mp4', 15_000, 18_000],
    ],
  );
  rmSync(place, { recursive: true });
  const lapse = await run({ request: { kind: 'timelapse', speed: 10 } });
  assert.deepEqual(gapsOf(lapse), missing);
  assert.deepEqual([lapse.parts?.length, Math.round(lapse.durationMs)], [3, 9_000]);
});

test(
  'in Chromium, the last picture of a part stays until its end, and the next shows what its own window begins with',
  { skip: browserMissing() },
  async (t) => {
    const { run, result } = await stage(t);
    await run();
    const { durationSeconds, numberAt } = await openMovie(t, readFileSync(result));
    assert.ok(Math.abs(durationSeconds - 6) < 0.002, `${durationSeconds} s`);
    // Parts begin in the middle of pictures 13 and 1013 and last three seconds.
    for (const [seconds, number] of [
      [0.001, 13],
      [4.5, 1050],
      [2.99, 87],
      [5.99, 1087],
      [3.06, 1014],
    ] as const) {
      const seen = await numberAt(seconds);
      assert.ok(Math.abs(seen - number) <= 1, `picture ${seen} at ${seconds} s`);
      if (number > 1000) assert.ok(seen >= 1013);
    }
  },
);

test('a time-lapse is made from the pictures alone', async (t) => {
  const { run, result } = await stage(t);
  await run({ request: { kind: 'timelapse', speed: 4 } });
  const { streams } = await probe(result);
  assert.deepEqual(
    streams.map(({ codec_type }) => codec_type),
    ['video'],
  );
});

test('gaps that the nodes know of keep their causes; what no node has is a gap as well', async (t) => {
  const { run, peers } = await stage(t);
  const at = (seconds: number): string => new Date(WALL_START_MS + seconds * 1000).toISOString();
  // The first node stood still for two seconds and was never asked for what is between.
  const [first] = parts as [Part];
  const gaps = [{ start: at(1), end: at(3), cause: 'process-down' }];
  peers[0]?.serve('e0', { ...first.job, to: FROM + 5, gaps }, first.bytes);
  assert.deepEqual((await run()).gaps, [
    { fromMs: WALL_START_MS + 1_000, toMs: WALL_START_MS + 3_000, cause: 'process-down' },
    { fromMs: WALL_START_MS + 5_000, toMs: WALL_START_MS + 10_000 },
  ]);
});

test('parts are fetched at the same time', async (t) => {
  const { run, peers, result } = await stage(t);
  // Each peer sends its part once the other one is asked for its own.
  const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  for (const [i, { bytes }] of parts.entries()) {
    peers[i]?.routes.set(`/api/archive/jobs/e${i}/download`, (request, response) => {
      both[i]?.resolve();
      void both[1 - i]?.promise.then(() => file(bytes)(request, response));
    });
  }
  const patient = { members: () => peers, scheme: 'http', silenceMs: 60_000 } as const;
  await run({ deps: { access: patient, limits: { ...LIMITS, silenceMs: 60_000, giveUpMs: 60_000 } } });
  assert.equal((await decodePictures(result)).complaints, '');
});

test('a job of a peer that is not done is waited for', async (t) => {
  const { run, peers, result } = await stage(t);
  const { job } = second();
  for (const state of ['running', 'pending']) peers[1]?.once(JOB, json({ ...job, state, size_bytes: undefined }));
  peers[1]?.once(DOWNLOAD, status(202));
  await run();
  const asked = peers[1]?.asked.map((line) => line.replace(/^GET \/api\/archive\/jobs/, ''));
  assert.deepEqual(asked, ['/e1', '/e1', '/e1', '/e1/download', '/e1/download']);
  assert.equal((await decodePictures(result)).complaints, '');
});

test('a part that is done soon is fetched soon, and one that takes long is asked for less and less often', async (t) => {
  const { run, peers } = await stage(t);
  const running = json({ ...second().job, state: 'running' });
  for (let i = 0; i < 8; i++) peers[1]?.once(JOB, running);
  const waits: number[] = [];
  const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) };
  await run({ deps: { clock, limits: { ...LIMITS, waitMs: 60_000, pollMs: 1_000 } } });
  assert.equal(waits.length, 8);
  assert.ok((waits[0] ?? 0) <= 100, `${waits[0]} ms`);
  assert.ok((waits[7] ?? 0) >= 500 && Math.max(...waits) <= 1_000, waits.join(' '));
});

test('a download whose connection breaks continues where it was; of another result it begins again', async (t) => {
  const { run, peers, result, directory: partsDirectory } = await stage(t);
  const { bytes } = second();
  peers[1]?.once(DOWNLOAD, file(bytes, { cutAt: 9_000 }));
  peers[1]?.once(DOWNLOAD, file(bytes, { cutAt: 5_000 }));
  await run();
  const [, ...downloads] = peers[1]?.asked ?? [];
  const [whole, ...resumed] = downloads;
  assert.equal(whole, `GET ${DOWNLOAD}`);
  const at = resumed.map((line) => Number(/bytes=(\d+)-$/.exec(line)?.[1]));
  assert.equal(at.length, 2);
  assert.ok((at[0] as number) > 0 && (at[0] as number) <= 5_000 && (at[1] as number) <= 9_000, at.join());
  const before = (await decodePictures(result)).numbers;

  rmSync(partsDirectory, { recursive: true });
  peers[1]?.asked.splice(0);
  peers[1]?.once(DOWNLOAD, file(bytes, { cutAt: 5_000, etag: '"two"' }));
  await run();
  assert.match(peers[1]?.asked.at(-1) ?? '', /bytes=\d+-$/, 'it asked for the rest and got all');
  assert.deepEqual((await decodePictures(result)).numbers, before);
});

test('a peer that fails for a moment is asked again', async (t) => {
  const { run, peers } = await stage(t);
  peers[1]?.once(JOB, status(503));
  peers[1]?.once(DOWNLOAD, status(500));
  peers[1]?.once(DOWNLOAD, (_request, response) => void response.destroy());
  await run();
  assert.equal(peers[1]?.asked.length, 5);
});

/** What a peer does wrong, as answers of its job and its download; what the reason says. */
const faults: readonly [string, { job?: () => Answer; download?: () => Answer }, RegExp][] = [
  ['does not know the job', { job: () => status(404) }, /it has no such job \(404\)/],
  ['refuses the credential', { job: () => status(401) }, /it does not accept the credential of the caller \(401\)/],
  ['does not let the caller see it', { job: () => status(403) }, /it does not let the caller see this job \(403\)/],
  ['fails for good', { job: () => status(500) }, /it answers 500/],
  ['says what is no job', { job: () => json({ state: 'done' }) }, /its answer is not a job/],
  ['says what is no JSON', { job: () => (_, response) => void response.end('<html>') }, /its answer is not a job/],
  [
    'says more than anyone reads',
    { job: () => (_, response) => void response.end(Buffer.alloc(9 * 1024 * 1024, 32)) },
    /its answer is too long/,
  ],
  [
    'has failed itself',
    { job: () => json({ ...second().job, state: 'failed', reason: 'no footage' }) },
    /its job failed: no footage/,
  ],
  ['is never done', { job: () => json({ ...second().job, state: 'running' }) }, /its job is still running after 1 s/],
  ['is never done, as it says late', { download: () => status(202) }, /its result is still not there after 1 s/],
  [
    'offers a time-lapse',
    { job: () => json({ ...second().job, kind: 'timelapse' }) },
    /its job is a time-lapse, not an export/,
  ],
  [
    'offers another camera',
    { job: () => json({ ...second().job, camera_id: 'yard' }) },
    /its job is of camera yard, not gate/,
  ],
  ['has let the result expire', { download: () => status(410) }, /its result has expired \(410\)/],
  [
    'announces another length than it said',
    { download: () => file(second().bytes.subarray(100)) },
    /it reported a result of \d+ bytes, but sends \d+/,
  ],
  [
    'sends less than it announced, again and again',
    { download: () => file(second().bytes, { cutAt: 5_000, etag: 'none' }) },
    /the connection failed/,
  ],
  [
    'sends more than it said',
    {
      download: () => (_, response) => {
        response.writeHead(200).write(second().bytes);
        response.end('more');
      },
    },
    /it sends more than \d+ bytes/,
  ],
  [
    'sends another range than the requested one',
    { download: () => (_, response) => void response.writeHead(206, { 'content-range': 'bytes 7-8/9' }).end() },
    /it sends another range than the requested one/,
  ],
  ['falls silent before it answers', { job: () => () => {} }, /it does not answer/],
  [
    'falls silent in the middle',
    { download: () => (_, response) => void response.writeHead(200).write(second().bytes.subarray(0, 2_000)) },
    /it does not answer|the connection failed/,
  ],
  [
    'dribbles',
    {
      download: () => (_, response) => {
        const dribble = setInterval(() => response.write('x'), 50);
        response.once('close', () => clearInterval(dribble));
      },
    },
    /it sends less than 1000 bytes in 0.3 s/,
  ],
  [
    'sends what is no movie',
    { download: () => file(Buffer.alloc(second().bytes.length, 7)) },
    /its result is not a movie that can be joined/,
  ],
  [
    'redirects to a stranger',
    { job: () => status(307, { location: 'http://127.0.0.1:9/api/archive/jobs/e1' }) },
    /it redirects to 127.0.0.1:9, which is not a member of the cluster/,
  ],
  ['redirects to itself', { job: () => status(307, { location: JOB }) }, /it redirects too often/],
  ['redirects to nowhere', { job: () => status(302) }, /it redirects without a valid address/],
];

for (const [name, { job, download }, reason] of faults) {
  test(`a peer that ${name} fails the assembly with a reason that names it, within bounds, and leaves no result`, async (t) => {
    const { run, peers, result } = await stage(t);
    if (job) peers[1]?.routes.set(JOB, job());
    if (download) peers[1]?.routes.set(DOWNLOAD, download());
    await assert.rejects(run({ credential: 'Bearer one' }), (err: Error) => {
      assert.match(err.message, new RegExp(`^part 1 from ${peers[1]?.address}: `));
      assert.match(err.message, reason);
      assert.doesNotMatch(err.message, /Bearer/);
      return true;
    });
    assert.deepEqual(
      readdirSync(dirname(result)).filter((left) => left !== 'a1.parts'),
      [],
    );
  });
}

test('a peer that is gone is given up', async (t) => {
  const { run, peers } = await stage(t);
  await peers[1]?.stop();
  await assert.rejects(run(), /^JobError: part 1 from [^ ]+: the connection failed \(ECONNREFUSED\)/);
});

test('a redirect to another member is followed, with the credential', async (t) => {
  const { run, peers } = await stage(t);
  const [first, other] = peers as [PeerServer, PeerServer];
  first.serve('e1', second().job, second().bytes);
  for (const path of [JOB, DOWNLOAD])
    other.routes.set(path, status(307, { location: `http://${first.address}${path}` }));
  await run({ credential: 'Bearer one' });
  assert.ok(first.asked.includes(`GET ${DOWNLOAD}`));
  assert.deepEqual([...first.credentials], ['Bearer one']);
});

test('an address that is no member any more when the job begins is not asked', async (t) => {
  const { run, peers } = await stage(t);
  const access = { members: () => [{ address: peers[0]?.address ?? '' }], scheme: 'http', silenceMs: 400 } as const;
  await assert.rejects(
    run({ deps: { access } }),
    /^JobError: part 1 from [^ ]+: it is no longer a member of the cluster/,
  );
  assert.deepEqual(peers[1]?.asked, []);
});

test('what does not fit beside what recording needs is not fetched', async (t) => {
  const { run, peers } = await stage(t);
  const total = parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
  await assert.rejects(run({ deps: { spareBytes: async () => 2 * total - 1 } }), { code: 'disk-full' });
  for (const peer of peers) assert.equal(peer.asked.length, 1, 'only how large it is was asked');
});

test('a cancelled assembly lets go of its connections', async (t) => {
  const { run, peers } = await stage(t);
  const cancel = new AbortController();
  const closed = new Promise<void>((resolve) => {
    peers[1]?.routes.set(DOWNLOAD, (_request, response) => {
      response.once('close', resolve);
      response.writeHead(200).write('x');
      cancel.abort(new Error('cancelled'));
    });
  });
  await assert.rejects(run({ signal: cancel.signal }), { message: 'cancelled' });
  await closed;
});

test('after a restart, parts that are here are used; what is missing is not fetched without its credential', async (t) => {
  const { run, peers, result, directory: partsDirectory } = await stage(t);
  peers[1]?.routes.set(DOWNLOAD, status(410));
  // The failure of a part cancels the other one, which may not be whole by then.
  await until('the first part is here', async () => {
    await assert.rejects(run({ credential: 'Bearer one' }), { code: 'peer-failed' });
    return readNote(joinPath(partsDirectory, '0.mp4'));
  });
  await assert.rejects(run({ withCredential: true }), {
    code: 'interrupted',
    message: /^the recorder was restarted before all parts were fetched/,
  });
  // Without a credential there is none to lose.
  peers[1]?.serve('e1', second().job, second().bytes);
  peers[0]?.asked.splice(0);
  await run();
  assert.deepEqual(peers[0]?.asked, [], 'the first part was here');
  const once = (await decodePictures(result)).numbers;
  // With all parts here nobody has to be asked.
  await Promise.all(peers.map((peer) => peer.stop()));
  rmSync(result);
  await run({ withCredential: true });
  assert.deepEqual((await decodePictures(result)).numbers, once);
  for (const name of readdirSync(partsDirectory)) assert.match(name, /^\d\.mp4(\.json)?$/);
});
