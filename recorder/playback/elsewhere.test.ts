import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import type { PlaybackCluster, RecordingHolder } from './deps.ts';
import { elsewhere } from './elsewhere.ts';
import { stage } from './test-support.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 1, 12);

const holder = (nodeId: string, fromHours: number, toHours: number): RecordingHolder => ({
  nodeId,
  playbackUrl: `http://${nodeId}:9996`,
  oldestMs: NOW_MS + fromHours * HOUR_MS,
  newestMs: NOW_MS + toHours * HOUR_MS,
});

const clusterOf = (nodeId: string, ...holders: readonly RecordingHolder[]): PlaybackCluster => ({
  nodeId,
  lookAtNodes: async () => {},
  holdersOf: (cameraId) => (cameraId === 'gate' ? holders : []),
  places: () => [],
  origins: () => [],
});

const first = (...args: Parameters<typeof elsewhere>): string | undefined => elsewhere(...args)[0]?.location;

const between = (fromHours: number, toHours: number) => ({
  cameraId: 'gate',
  fromMs: NOW_MS + fromHours * HOUR_MS,
  toMs: NOW_MS + toHours * HOUR_MS,
});

test('what is sought is asked of the node whose footage is there, with the query and the name of this node', () => {
  const cluster = clusterOf('a', holder('b', -9, -5), holder('c', -5, -1));
  assert.equal(
    elsewhere('/window/gate.mp4?from=1&access_token=x', between(-3, -2), cluster)[0]?.location,
    'http://c:9996/window/gate.mp4?from=1&access_token=x&asked=a',
  );
  assert.match(first('/x', between(-8, -6), cluster) ?? '', /^http:\/\/b:/);
});

test('what nodes tell is minutes old: the nearest is asked for a file that none of them has told of', () => {
  const cluster = clusterOf('a', holder('b', -9, -5), holder('c', -5, -0.1));
  assert.match(first('/x', between(-0.01, 0), cluster) ?? '', /^http:\/\/c:/);
  assert.match(first('/x', between(-12, -12), cluster) ?? '', /^http:\/\/b:/);
});

test('a request is sent to each node at most once, whatever they believe of each other', () => {
  const names = ['a', 'b', 'c', 'd'];
  const beliefs = fc.array(fc.subarray(names), { minLength: names.length, maxLength: names.length });
  fc.assert(
    fc.property(beliefs, (believed) => {
      const visited: string[] = [];
      for (let url: string | undefined = 'http://a:9996/hls/gate/index.m3u8?from=1'; url !== undefined;) {
        const node = new URL(url).hostname;
        assert.ok(!visited.includes(node), `${node} was asked before: ${visited.join()}`);
        visited.push(node);
        const others = (believed[names.indexOf(node)] ?? []).filter((other) => other !== node);
        const cluster = clusterOf(node, ...others.map((other) => holder(other, -9, 0)));
        url = first(url.replace(/^http:\/\/[^/]+/, ''), between(-2, -1), cluster);
      }
    }),
  );
});

test('a caller who may not see a camera does not learn where its files are', async (t) => {
  const token = (name: string, ...cameras: string[]) => {
    const sha256 = createHash('sha256').update(name).digest('hex');
    return { name, role: 'viewer', sha256, cameras } as const;
  };
  const cluster = clusterOf('a', { ...holder('b', 0, 0), oldestMs: 0, newestMs: Infinity });
  const auth = { mode: 'token', tokens: [token('guard', 'yard'), token('porter', 'gate')] } as const;
  const { app } = await stage(t, { playback: { cluster, auth } });
  const ask = async (name: string) =>
    (await app.inject(`/2026/01/01/Gate_gate_20260101_120000000.mp4?access_token=${name}`)).statusCode;
  assert.deepEqual([await ask('guard'), await ask('porter')], [404, 307]);
});
