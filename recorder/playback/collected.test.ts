// Footage of one camera on three nodes, asked at each of them: real archives, real TLS between the nodes.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Members } from '../../test/support/members.ts';
import { seeded } from '../../test/support/random.ts';
import { stopwatch } from '../../test/support/stopwatch.ts';
import { workspace } from '../../test/support/workspace.ts';
import { cameraOfFootage } from '../../base/camera-id.ts';
import { VirtualClock } from '../../base/clock.ts';
import { runOf, segmentPaths } from '../archive/test-support.ts';
import type { FootageHolder } from '../contract/other-node.ts';
import { openFootage } from '../footage/open.ts';
import { exportWindow } from '../jobs/export.ts';
import type { ReadAt } from '../mp4/reader.ts';
import type { PeerSender } from '../peers/peer-requests.ts';
import { readMovieIndex } from '../mp4/sample-index.ts';
import { silentLog } from '../../base/log.ts';
import { ApiError } from '../http/problem.ts';
import type { PlaybackCluster } from './deps.ts';
import { openPlayback } from './app.ts';
import { carriedTime, resolved, samplesOf, stage, type PlayedSample, type Stage } from './test-support.ts';

const START_MS = Date.UTC(2026, 0, 1, 12);
const NODES = ['a', 'b', 'c'] as const;
type NodeName = (typeof NODES)[number];

/** Seconds after the start: a takes over from b, which is cut off and goes on for ten seconds, and c from a. */
const RECORDED: Readonly<Record<NodeName, readonly [from: number, to: number]>> = {
  a: [50, 120],
  b: [0, 60],
  c: [120, 180],
};
const EPOCHS: Readonly<Record<NodeName, number>> = { b: 1, a: 2, c: 3 };
const BYTES: Readonly<Record<NodeName, number>> = { a: 200, b: 201, c: 202 };
const NOW_S = 300;
const BY = { name: 'guard', credential: 'Bearer guard' };
/** Less than a client waits, and enough for a busy machine. */
const SOON_MS = 30_000;

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');
const TOKENS = {
  mode: 'token',
  tokens: [
    { name: 'guard', role: 'viewer', sha256: digest('guard') },
    { name: 'porter', role: 'viewer', sha256: digest('porter'), cameras: ['yard'] },
  ],
} as const;

interface Node extends Stage {
  readonly name: NodeName;
  readonly ask: (
    path: string,
    token?: string,
  ) => Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>;
  /** Which node gives which part of an export. */
  readonly exported: (from: number, to: number) => Promise<NodeName[]>;
  /** Of which node it has asked what so far: the node, and the path or range. */
  readonly asked: string[];
  /** The node of the key frame of a moment, and its time in seconds after the start. */
  readonly stillAt: (seconds: number) => Promise<unknown>;
}

interface Recording {
  /** Of the footage. */
  readonly cameraId?: string;
  readonly recorded?: typeof RECORDED;
  /** How far the clock of each node is ahead. */
  readonly aheadMs?: Readonly<Record<NodeName, number>>;
  /** The node whose last file is still written. */
  readonly recording?: NodeName;
}

async function cluster(
  t: TestContext,
  { cameraId: footageId = 'gate', recorded = RECORDED, aheadMs = { a: 0, b: 0, c: 0 }, recording }: Recording = {},
) {
  const members = await Members.open(t);
  const online = new Set<string>(NODES);
  const nodes = {} as Record<NodeName, Node>;
  const holders = (except: string): FootageHolder[] =>
    NODES.filter((name) => name !== except).map((nodeId) => ({
      nodeId,
      oldestMs: START_MS + recorded[nodeId][0] * 1_000,
      newestMs: START_MS + recorded[nodeId][1] * 1_000,
      isOnline: online.has(nodeId),
    }));
  for (const name of NODES) {
    const clock = new VirtualClock(START_MS);
    const others: PlaybackCluster & NonNullable<Parameters<typeof openFootage>[0]['cluster']> = {
      nodeId: name,
      lookAtNodes: async () => {},
      holdersOf: () => [],
      footageHolders: async (cameraId) => (cameraOfFootage(cameraId) === 'gate' ? holders(name) : []),
      origins: () => [],
      places: () => [],
    };
    const requests = await members.requestsOf(name);
    const asked: string[] = [];
    const peers: PeerSender = {
      request: (nodeId, request) => {
        asked.push(`${nodeId} ${String(request.headers?.['range'] ?? request.path)}`);
        return requests.request(nodeId, request);
      },
      upgrade: (...of) => requests.upgrade(...of),
      answers: (nodeId) => requests.answers(nodeId),
    };
    const made = await stage(t, {
      clock,
      cameraId: footageId,
      epoch: EPOCHS[name],
      playback: { cluster: others, peers, auth: TOKENS, around: { cluster: others, peers } },
    });
    const { app, camera, fs } = made;
    const [from, to] = recorded[name];
    clock.advance(from * 1_000 + aheadMs[name]);
    camera.bytesPerFrame = BYTES[name];
    camera.begin(runOf());
    await camera.play(to - from, fs);
    if (recording !== name) camera.end();
    await fs.idle();
    clock.advance((NOW_S - to) * 1_000);
    await members.listen(name, { api: app, playback: app });
    const ask = async (path: string, token = 'guard') => {
      const answer = await app.inject({ url: path, headers: { authorization: `Bearer ${token}` } });
      return { status: answer.statusCode, headers: answer.headers, body: answer.rawPayload };
    };
    const collector = openFootage({
      recordPath: made.root,
      archive: made.archive,
      clock,
      cluster: others,
      peers,
      log: silentLog,
    });
    const exported = async (from: number, to: number): Promise<NodeName[]> => {
      const window = { cameraId: 'gate', fromMs: START_MS + from * 1_000, toMs: START_MS + to * 1_000 };
      const path = join(workspace(t), 'export.mp4');
      const deps = {
        recordPath: made.root,
        archive: made.archive,
        wallMs: () => clock.wallMs(),
        version: '',
        spareBytes: async () => Infinity,
        cluster: { collector, by: BY, clock },
      };
      await exportWindow({ ...window, isOfAllNodes: true }, path, deps, new AbortController().signal);
      const bytes = readFileSync(path);
      const read: ReadAt = async (offset, length) => bytes.subarray(offset, offset + length);
      const [video] = (await readMovieIndex(read, bytes.length)).tracks;
      assert.ok(video);
      return Array.from(video.sizes, (size) => NODES.find((one) => BYTES[one] === size) as NodeName).filter(
        (_, i) => (video.dts[i] as number) >= 0,
      );
    };
    const { keyFrameAt } = openPlayback({ version: '', footage: collector, auth: made.auth, clock, log: silentLog });
    const stillAt = async (seconds: number): Promise<unknown> => {
      const frame = await keyFrameAt('gate', START_MS + seconds * 1_000, BY);
      const node = NODES.find((one) => frame?.id.startsWith(one)) as NodeName;
      const bytes = await frame?.read();
      return bytes && [node, carriedTime({ bytes } as PlayedSample) / 90_000 - FIRST_DTS / 90_000 + recorded[node][0]];
    };
    nodes[name] = { ...made, name, ask, exported, asked, stillAt };
  }
  const kill = async (name: NodeName): Promise<void> => {
    await members.kill(name);
    online.delete(name);
  };
  return { nodes, kill };
}

const FIRST_DTS = 900_000;

/** The wall time of each picture in seconds after the start, and its node. */
async function pictures(movie: Buffer): Promise<{ at: number; node: NodeName }[]> {
  const found = await samplesOf(movie, movie.indexOf('moof') - 4);
  return (found.get(1) ?? []).map((sample) => {
    const node = NODES.find((name) => BYTES[name] === sample.bytes.length) as NodeName;
    return { at: Math.round((carriedTime(sample) - FIRST_DTS) / 90 + RECORDED[node][0] * 1_000) / 1_000, node };
  });
}

const expected = Array.from({ length: 180 * 25 }, (_, i) => ({
  at: Math.round(i * 40) / 1_000,
  node: i * 40 < 50_000 ? 'b' : i * 40 < 120_000 ? 'a' : 'c',
}));

const BETWEEN = `from=${START_MS / 1_000}&to=${START_MS / 1_000 + 180}`;

test('a window over three nodes is the same at each, with every picture once, of the newest epoch', async (t) => {
  const { nodes } = await cluster(t);
  for (const name of NODES) {
    const { status, headers, body } = await nodes[name].ask(`/window/gate.mp4?${BETWEEN}`);
    assert.equal(status, 200);
    assert.equal(headers['x-elsewhere'], undefined);
    assert.deepEqual(await pictures(body), expected, name);
  }
  const { body } = await nodes.c.ask(`/window/gate.mp4?from=${START_MS / 1_000 + 45.5}&to=${START_MS / 1_000 + 55}`);
  const shown = await pictures(body);
  assert.deepEqual(
    shown.filter(({ at }) => at >= 45.48),
    expected.filter(({ at }) => at >= 45.48 && at < 55),
  );
});

test('an export takes the pictures that are played, whichever node is asked', async (t) => {
  const { nodes } = await cluster(t, { aheadMs: { a: 0.4, b: 0, c: 0.3 } });
  for (const [from, to] of [
    [0, 180],
    [52, 58],
  ] as const) {
    for (const name of NODES) {
      const played = expected.filter(({ at }) => at >= from && at < to).map(({ node }) => node);
      assert.deepEqual(await nodes[name].exported(from, to), played, `${from} to ${to} s, asked at ${name}`);
    }
  }
});

test('a file of another node, one that grows as well, is exported with one request after the list, which has its index', async (t) => {
  const { nodes } = await cluster(t, { recording: 'c' });
  const { exported, asked } = nodes.a;
  assert.equal((await exported(0, 170)).length, 170 * 25);
  const ranges = (node: NodeName): string[] => asked.filter((one) => one.startsWith(`${node} bytes=`));
  assert.equal(ranges('b').length, 2, ranges('b').join());
  assert.equal(ranges('c').length, 2, ranges('c').join());
});

test('the still of a moment is the picture that is played then, whichever node is asked', async (t) => {
  const { nodes, kill } = await cluster(t);
  for (const seconds of [0.5, 49.96, 50.5, 55, 60, 119.5, 120, 179]) {
    const node = seconds < 50 ? 'b' : seconds < 120 ? 'a' : 'c';
    for (const name of NODES) {
      assert.deepEqual(await nodes[name].stillAt(seconds), [node, Math.floor(seconds)], `${seconds} s at ${name}`);
    }
  }
  assert.equal(await nodes.a.stillAt(200), undefined);
  await kill('a');
  await assert.rejects(nodes.b.stillAt(90), (err) => err instanceof ApiError && err.code === 'node-away');
  assert.deepEqual(await nodes.c.stillAt(55), ['b', 55], 'what another node has is shown');
  assert.equal(await nodes.c.stillAt(-3_600), undefined, 'no node reports so old footage');
});

test('a recorded preview is played from all nodes as well, as the lower variant of its camera', async (t) => {
  const { nodes } = await cluster(t, { cameraId: 'gate~preview' });
  for (const name of NODES) {
    const { body } = await nodes[name].ask(`/window/gate~preview.mp4?${BETWEEN}`);
    assert.deepEqual(await pictures(body), expected, name);
    const variants = (await nodes[name].ask(`/hls/gate/variants.m3u8?${BETWEEN}`)).body.toString();
    assert.match(variants, /^\.\.\/gate~preview\/index\.m3u8/m);
  }
  assert.equal((await nodes.c.ask(`/window/gate~preview.mp4?${BETWEEN}`, 'porter')).status, 404);
});

test('a window that begins while two nodes recorded begins there, with the node of the newest epoch alone', async (t) => {
  const { nodes } = await cluster(t);
  for (let from = 50; from < 62; from += 0.8) {
    const { body } = await nodes.a.ask(
      `/window/gate.mp4?from=${START_MS / 1_000 + from}&to=${START_MS / 1_000 + from + 5}`,
    );
    const [first, ...others] = await pictures(body);
    assert.ok(first && first.at > from - 1.04, `from ${from} it begins at ${first?.at}`);
    assert.deepEqual([...new Set([first, ...others].map(({ node }) => node))], ['a'], `from ${from}`);
  }
});

test('where clocks of nodes differ, a window still has every picture of a handover once', async (t) => {
  const random = seeded();
  const ahead = (): number => Math.round((random() - 0.5) * 400);
  const recorded = { b: [0, 53], a: [50, 123], c: [120, 180] } as const;
  const { nodes } = await cluster(t, { recorded, aheadMs: { b: 0, a: ahead(), c: ahead() } });
  for (const name of NODES) {
    const { body } = await nodes[name].ask(`/window/gate.mp4?${BETWEEN}.9`);
    assert.deepEqual(await pictures(body), expected, name);
  }
});

/** The parts of a playlist: address, range and time. */
function partsIn(playlist: string): { address: string; range?: string; seconds: number }[] {
  const parts: { address: string; range?: string; seconds: number }[] = [];
  let seconds = 0;
  let range: string | undefined;
  for (const line of playlist.split('\n')) {
    if (line.startsWith('#EXTINF:')) seconds = Number(/[\d.]+/.exec(line)?.[0]);
    const asked = /^#EXT-X-BYTERANGE:(\d+)@(\d+)$/.exec(line);
    if (asked) range = `bytes=${asked[2]}-${Number(asked[1]) + Number(asked[2]) - 1}`;
    if (line === '' || line.startsWith('#')) continue;
    parts.push({ address: line, seconds, ...(range !== undefined && { range }) });
    range = undefined;
  }
  return parts;
}

test('a playlist over three nodes is the same at each, and all its parts come through any of them', async (t) => {
  const { nodes } = await cluster(t);
  const seen = new Set<string>();
  for (const name of NODES) {
    const { ask } = nodes[name];
    // As at the address of a Service, where the next request reaches another node.
    const { app } = nodes[NODES[(NODES.indexOf(name) + 1) % NODES.length] as NodeName];
    const { status, body } = await ask(`/hls/gate/index.m3u8?${BETWEEN}`);
    assert.equal(status, 200);
    const playlist = body.toString();
    const shown: { at: number; node: NodeName }[] = [];
    let seconds = 0;
    for (const part of partsIn(playlist)) {
      seconds += part.seconds;
      const headers = { authorization: 'Bearer guard', ...(part.range !== undefined && { range: part.range }) };
      const answer = await app.inject({ url: part.address, headers });
      assert.ok(answer.statusCode === 206 || answer.statusCode === 200, `${answer.statusCode} for ${part.address}`);
      // Of a part that is no range of a file, ffmpeg would wait for the bytes of the range before it.
      assert.equal(answer.headers['content-length'] === undefined, part.address.includes('until='), part.address);
      shown.push(...(await pictures(answer.rawPayload)));
    }
    assert.deepEqual(shown, expected, name);
    assert.ok(Math.abs(seconds - 180) < 0.1, `${seconds} s`);
    for (const [, address = ''] of playlist.matchAll(/#EXT-X-MAP:URI="([^"]+)"/g)) {
      assert.equal((await ask(address)).status, 200);
    }
    seen.add(playlist);
  }
  assert.equal(seen.size, 1, 'times, numbers and addresses are the same at each node');
});

test('while a node is away, the others play what they have, and say what is missing and where', async (t) => {
  const { nodes, kill } = await cluster(t);
  await kill('a');
  const missing = `"a";from=${START_MS / 1_000 + 50}.000;to=${START_MS / 1_000 + 180}.000;online=?0`;
  for (const name of ['b', 'c'] as const) {
    const elapsedMs = stopwatch();
    const window = await nodes[name].ask(`/window/gate.mp4?${BETWEEN}`);
    assert.ok(elapsedMs() < SOON_MS);
    assert.equal(window.status, 200);
    assert.equal(window.headers['x-elsewhere'], missing);
    const shown = await pictures(window.body);
    assert.deepEqual([...new Set(shown.map(({ node }) => node))], ['b', 'c']);
    assert.equal(shown.filter(({ node }) => node === 'b').length, 60 * 25, 'all that b recorded while it was cut off');
    const playlist = await nodes[name].ask(`/hls/gate/index.m3u8?${BETWEEN}`);
    assert.equal(playlist.headers['x-elsewhere'], missing);
    const only = `from=${START_MS / 1_000 + 70}&to=${START_MS / 1_000 + 100}`;
    const nothing = await nodes[name].ask(`/window/gate.mp4?${only}`);
    assert.equal(nothing.status, 503);
    assert.equal((JSON.parse(nothing.body.toString()) as { code: string }).code, 'node-away');
    assert.match(String(nothing.headers['x-elsewhere']), /^"a";/);
  }
});

test('a node that dies after it has told of its footage is named in the next answer', async (t) => {
  const { nodes, kill } = await cluster(t);
  const { ask } = nodes.b;
  const urls = [`/hls/gate/index.m3u8?${BETWEEN}`, `/window/gate.mp4?${BETWEEN}`];
  for (const url of urls) assert.equal((await ask(url)).headers['x-elsewhere'], undefined);
  await kill('a');
  for (const url of urls) {
    const { status, headers } = await ask(url);
    assert.equal(status, 200);
    assert.match(String(headers['x-elsewhere']), /^"a";.*;online=\?0$/);
  }
});

test('a token for other cameras sees nothing of this one through any node', async (t) => {
  const { nodes } = await cluster(t);
  const [path] = segmentPaths(nodes.b.root);
  const asked = [`/window/gate.mp4?${BETWEEN}`, `/hls/gate/index.m3u8?${BETWEEN}`, `/node/b/${path}`];
  for (const address of [...asked, ...asked.map((one) => `/node/b${one}`)]) {
    assert.equal((await nodes.a.ask(address, 'porter')).status, 404, address);
  }
  assert.equal((await nodes.a.ask(`/node/b/${path}`, 'nobody')).status, 401);
  assert.equal((await nodes.a.ask(`/node/b/${path}`)).status, 200);
});

test('a node relays to members alone, once, and through it a playlist stays with the node that was named', async (t) => {
  const { nodes } = await cluster(t);
  const { ask } = nodes.a;
  const [path] = segmentPaths(nodes.b.root);
  for (const address of [
    `/node/z/${path}`,
    `/node/127.0.0.1:9995/${path}`,
    '/node/b//evil.example/x',
    `/node/a/${path}`,
  ]) {
    assert.equal((await ask(address)).status, 404, address);
  }
  assert.equal((await ask(`/node/b/node/c/${path}`)).status, 404);
  const url = `/node/b/hls/gate/index.m3u8?${BETWEEN}&local=1`;
  const [first] = partsIn((await ask(url)).body.toString());
  const address = resolved(first?.address ?? '', url);
  assert.match(address, /^\/node\/b\/2026\//);
  assert.equal((await ask(address)).status, 200);
});
