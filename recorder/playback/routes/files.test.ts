import assert from 'node:assert/strict';
import { readFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { FastifyRequest, LightMyRequestResponse } from 'fastify';
import { token } from '../../api/test-support.ts';
import { AUDIO, runOf, segmentPaths } from '../../archive/test-support.ts';
import { readSampleIndex } from '../../mp4/sample-index.ts';
import { resolved, stage } from '../test-support.ts';

const readFrom =
  (bytes: Buffer) =>
  async (offset: number, length: number): Promise<Buffer> =>
    bytes.subarray(offset, offset + length);

const indexOf = (bytes: Buffer) => readSampleIndex(readFrom(bytes), bytes.length);

const head = ({ statusCode, headers }: LightMyRequestResponse) => ({
  statusCode,
  length: Number(headers['content-length']),
  range: headers['content-range'],
});

test('a finished file: whole, in ranges, by HEAD, and not again to a client that has it', async (t) => {
  const { app, camera, fs, root } = await stage(t);
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(40, fs);
  const [path = ''] = segmentPaths(root);
  const bytes = readFileSync(join(root, path));
  const url = `/${path}`;

  const whole = await app.inject(url);
  assert.deepEqual(head(whole), { statusCode: 200, length: bytes.length, range: undefined });
  assert.deepEqual(whole.rawPayload, bytes);
  assert.equal(whole.headers['content-type'], 'video/mp4');
  assert.equal(whole.headers['accept-ranges'], 'bytes');
  assert.equal(whole.headers['cache-control'], 'private, max-age=3600');
  assert.match(String(whole.headers['content-disposition']), /^inline; filename="Front-Gate_gate_\d{8}_\d{9}\.mp4"$/);
  const etag = String(whole.headers.etag);

  const part = await app.inject({ url, headers: { range: 'bytes=100-199' } });
  assert.deepEqual(head(part), { statusCode: 206, length: 100, range: `bytes 100-199/${bytes.length}` });
  assert.deepEqual(part.rawPayload, bytes.subarray(100, 200));
  const suffix = await app.inject({ url, headers: { range: 'bytes=-50', 'if-range': etag } });
  assert.deepEqual(suffix.rawPayload, bytes.subarray(-50));
  const changed = await app.inject({ url, headers: { range: 'bytes=-50', 'if-range': '"other"' } });
  assert.deepEqual(head(changed), { statusCode: 200, length: bytes.length, range: undefined });

  const beyond = await app.inject({ url, headers: { range: `bytes=${bytes.length}-` } });
  assert.deepEqual([beyond.statusCode, beyond.headers['content-range']], [416, `bytes */${bytes.length}`]);
  assert.equal(beyond.json().code, 'range-not-satisfiable');

  const asked = await app.inject({ method: 'HEAD', url, headers: { range: 'bytes=0-9' } });
  assert.deepEqual(head(asked), { statusCode: 200, length: bytes.length, range: undefined });
  assert.equal(asked.rawPayload.length, 0);

  const known = await app.inject({ url, headers: { 'if-none-match': etag } });
  assert.deepEqual([known.statusCode, known.rawPayload.length, known.headers.etag], [304, 0, etag]);
  const lastModified = String(whole.headers['last-modified']);
  assert.equal((await app.inject({ url, headers: { 'if-modified-since': lastModified } })).statusCode, 304);
  assert.equal((await app.inject({ url, headers: { 'if-match': '"other"' } })).statusCode, 412);

  const download = await app.inject(`${url}?download=1`);
  assert.match(String(download.headers['content-disposition']), /^attachment;/);
});

test('several ranges come as parts of one answer', async (t) => {
  const { app, camera, fs, root } = await stage(t);
  camera.begin();
  await camera.play(40, fs);
  const [path = ''] = segmentPaths(root);
  const bytes = readFileSync(join(root, path));
  const answer = await app.inject({ url: `/${path}`, headers: { range: 'bytes=10-19,500-509,-5' } });
  assert.equal(answer.statusCode, 206);
  assert.equal(Number(answer.headers['content-length']), answer.rawPayload.length);
  const [, boundary = ''] =
    /^multipart\/byteranges; boundary=(\w+)$/.exec(String(answer.headers['content-type'])) ?? [];
  const parts = answer.rawPayload.toString('latin1').split(`\r\n--${boundary}`);
  assert.deepEqual([parts[0], parts.at(-1)], ['', '--\r\n']);
  const expected = [
    [10, 20],
    [500, 510],
    [bytes.length - 5, bytes.length],
  ] as const;
  for (const [i, [from, to]] of expected.entries()) {
    const [headers, body] = (parts[i + 1] as string).split('\r\n\r\n');
    assert.match(headers as string, new RegExp(`Content-Range: bytes ${from}-${to - 1}/${bytes.length}`));
    assert.deepEqual(Buffer.from(body as string, 'latin1'), bytes.subarray(from, to));
  }
});

test('a growing file is served as it would be had it just been closed', async (t) => {
  const { app, camera, fs, root } = await stage(t, { segmentDurationMs: 300_000 });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(20, fs);
  const [path = ''] = segmentPaths(root);
  const answer = await app.inject(`/${path}`);
  assert.equal(answer.statusCode, 200);
  assert.equal(answer.headers['cache-control'], 'private, no-cache');
  const { meta, tracks } = await indexOf(answer.rawPayload);
  assert.ok(meta.mediaDurationMs > 18_500 && meta.mediaDurationMs <= 20_000, `${meta.mediaDurationMs} ms`);
  const [video] = tracks;
  for (const [i, offset] of Array.from(video?.offsets ?? []).entries()) {
    const carried = answer.rawPayload.readUIntBE(offset + 5, 6) - 900_000;
    assert.equal(carried, video?.dts[i]);
  }
});

test('a link to a growing file leads to a state of it, with a link of its own', async (t) => {
  const access = { mode: 'token', tokens: [token('viewer')] } as const;
  const { app, auth, camera, fs, root } = await stage(t, { segmentDurationMs: 300_000, playback: { auth: access } });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(12, fs);
  const [path = ''] = segmentPaths(root);
  const maker = { headers: { authorization: 'Bearer viewer' } } as unknown as FastifyRequest;
  const { url = '' } = auth.linkTo(`/playback/${path}`, maker) ?? {};
  const headers = { range: 'bytes=0-' };
  const first = await app.inject({ url: url.replace('/playback', ''), headers });
  assert.equal(first.statusCode, 307, first.body);
  const state = String(first.headers.location);
  assert.equal((await app.inject({ url: state, headers })).statusCode, 206);
  assert.equal((await app.inject({ url: state.replace(/size=\d+/, 'size=1'), headers })).statusCode, 401);
});

test('a player that asks a growing file for ranges is sent to one state of it, and keeps that when it grows and closes', async (t) => {
  const { app, camera, fs, root, archive } = await stage(t, { segmentDurationMs: 300_000 });
  camera.begin(runOf({ audio: AUDIO }));
  await camera.play(12, fs);
  const [path = ''] = segmentPaths(root);
  const first = await app.inject({ url: `/${path}?access_token=x`, headers: { range: 'bytes=0-' } });
  assert.equal(first.statusCode, 307);
  assert.equal(first.headers['cache-control'], 'no-store');
  const ofFfmpeg = { range: 'bytes=0-', 'icy-metadata': '1' };
  const kept = await app.inject({ url: `/${path}?access_token=x`, headers: ofFfmpeg });
  assert.equal(kept.headers['cache-control'], 'max-age=60, private');
  const written = archive.openEntries('gate')[0]?.sizeBytes;
  assert.equal(first.headers.location, `/${path}?access_token=x&size=${written}`);
  const pinned = first.headers.location ?? '';
  const begun = await app.inject({ url: pinned, headers: { range: 'bytes=0-' } });
  assert.equal(begun.statusCode, 206);
  const state = begun.rawPayload;
  const etag = begun.headers.etag;
  await indexOf(state);

  const again = async (moment: string): Promise<void> => {
    const rest = await app.inject({ url: pinned, headers: { range: 'bytes=5000-' } });
    assert.deepEqual([rest.statusCode, rest.headers.etag], [206, etag], moment);
    assert.deepEqual(rest.rawPayload, state.subarray(5000), moment);
    // Players that stay with the first address name the state by its tag.
    const tagged = await app.inject({ url: `/${path}`, headers: { range: 'bytes=5000-', 'if-range': String(etag) } });
    assert.deepEqual([tagged.statusCode, tagged.headers.etag], [206, etag], moment);
    assert.deepEqual(tagged.rawPayload, state.subarray(5000), moment);
  };
  await again('at once');
  await camera.play(8, fs);
  await again('when it has grown');
  const newer = await app.inject({ url: `/${path}`, headers: { range: 'bytes=0-' } });
  assert.notEqual(newer.headers.location, pinned);
  camera.end();
  await fs.idle();
  assert.deepEqual(archive.openEntries('gate'), []);
  await again('when it is closed');
  const closed = await app.inject(`/${path}`);
  assert.deepEqual(closed.rawPayload, readFileSync(join(root, path)));
});

test('what the archive reports as current is what can be played', async (t) => {
  const { app, camera, fs, archive } = await stage(t, { segmentDurationMs: 300_000 });
  assert.equal(await archive.current('gate'), undefined);
  camera.begin();
  await camera.play(5, fs);
  const current = await archive.current('gate');
  assert.ok(current);
  const answer = await app.inject(`/${current.path}?size=${current.sizeBytes}`);
  assert.equal(answer.statusCode, 200);
  const { meta } = await indexOf(answer.rawPayload);
  assert.ok(meta.mediaDurationMs > 3_000);
});

test('a file of record.format mp4 is played when it is closed, and not before', async (t) => {
  const { app, camera, fs, root } = await stage(t, { format: 'mp4', segmentDurationMs: 300_000 });
  camera.begin();
  await camera.play(10, fs);
  const [path = ''] = segmentPaths(root);
  const open = await app.inject(`/${path}`);
  assert.deepEqual([open.statusCode, open.json().code], [404, 'not-written-out']);
  camera.end();
  await fs.idle();
  const closed = await app.inject(`/${path}`);
  assert.equal(closed.statusCode, 200);
  assert.deepEqual(closed.rawPayload, readFileSync(join(root, path)));
});

test('a file that a failed disk left open is played as far as it is whole', async (t) => {
  const { app, camera, fs, root, archive } = await stage(t, { segmentDurationMs: 300_000 });
  camera.begin();
  await camera.play(10, fs);
  const [path = ''] = segmentPaths(root);
  const growing = readFileSync(join(root, path));
  const copy = path.replace('_gate_', '_hall_');
  writeFileSync(join(root, copy), Buffer.concat([growing, growing.subarray(-300)]));
  assert.deepEqual(archive.openEntries('hall'), []);
  const answer = await app.inject(`/${copy}`);
  assert.equal(answer.statusCode, 200);
  assert.ok((await indexOf(answer.rawPayload)).meta.mediaDurationMs > 8_000);
});

test('a file in which nothing is recorded yet is 404', async (t) => {
  const { app, root } = await stage(t);
  mkdirSync(join(root, '2026/01/01'), { recursive: true });
  const path = '2026/01/01/Gate_gate_20260101_120000001.mp4';
  writeFileSync(join(root, path), Buffer.alloc(500));
  const answer = await app.inject(`/${path}`);
  assert.deepEqual([answer.statusCode, answer.json().code], [404, 'nothing-recorded']);
});

const ESCAPES = [
  '/secret.txt',
  '/../secret.txt',
  '/%2e%2e/secret.txt',
  '/..%2fsecret.txt',
  '/2026/01/01/../../../secret.txt',
  '/2026%2f01%2f01%2fGate_gate_20260101_120000000.mp4x',
  '/2026/01/01/',
  '/2026/01/02/Gate_gate_20260101_120000000.mp4',
  '/.kube-nvr/open/0_Gate_gate_20260101_120000000.mp4',
  '/2026/01/01/Gate_gate_20260101_120000000.mp4%00.txt',
  '/2026/01/01/Gate_gate_20260101_120000000.mp4/',
  '//etc/passwd',
  '/C:/x',
];
test('nothing but segments in their places is served', async (t) => {
  const { app, root } = await stage(t);
  mkdirSync(join(root, '2026/01/01'), { recursive: true });
  writeFileSync(join(root, 'secret.txt'), 'secret');
  for (const url of ESCAPES) {
    const answer = await app.inject(url);
    assert.equal(answer.statusCode, 404, url);
    assert.match(String(answer.headers['content-type']), /^application\/problem\+json/);
  }
  assert.equal((await app.inject('/%zz')).statusCode, 400);
  const removal = await app.inject({ method: 'DELETE', url: '/2026' });
  assert.deepEqual([removal.statusCode, removal.headers.allow], [405, 'GET, HEAD, OPTIONS']);
});

test('a token is needed for everything, in the header or in the address, and no line of the log holds it', async (t) => {
  const lines: string[] = [];
  const write = (fields: object): void => void lines.push(JSON.stringify(fields));
  const log = { debug: write, info: write, warn: write, error: write, bug: write, child: () => log };
  const { app, camera, fs, root, start } = await stage(t, {
    playback: { auth: { mode: 'token', tokens: [token('viewer', 'sesame')] }, log },
  });
  camera.begin();
  await camera.play(40, fs);
  const [path = ''] = segmentPaths(root);
  const urls = [
    `/${path}`,
    `/hls/gate/index.m3u8?from=${start}`,
    `/hls/gate/init/${path}`,
    `/hls/gate/parts/0/${path}`,
    `/window/gate.mp4?from=${start}`,
  ];
  for (const url of urls) {
    const refused = await app.inject(url);
    assert.deepEqual([refused.statusCode, refused.json().code], [401, 'unauthorized'], url);
    const separator = url.includes('?') ? '&' : '?';
    assert.equal((await app.inject(`${url}${separator}access_token=wrong`)).statusCode, 401, url);
    assert.equal((await app.inject(`${url}${separator}access_token=sesame`)).statusCode, 200, url);
    const headers = { authorization: 'Bearer sesame' };
    assert.equal((await app.inject({ url, headers })).statusCode, 200, url);
  }
  // Players that cannot send headers follow the addresses of a playlist.
  const playlist = `/hls/gate/index.m3u8?from=${start}&access_token=sesame`;
  const { body } = await app.inject(playlist);
  const addresses = [...body.matchAll(/^[^#].*$|URI="(.*)"/gm)].map(([line, uri]) => resolved(uri ?? line, playlist));
  assert.ok(addresses.length > 3);
  for (const address of addresses) assert.equal((await app.inject(address)).statusCode, 200, address);
  const bare = await app.inject({ url: urls[1] as string, headers: { authorization: 'Bearer sesame' } });
  assert.doesNotMatch(bare.body, /sesame|access_token/);
  assert.ok(lines.length > 20);
  assert.doesNotMatch(lines.join('\n'), /sesame/);
});

test('one camera is not reached through the address of another', async (t) => {
  const { app, camera, fs, root } = await stage(t);
  camera.begin();
  await camera.play(40, fs);
  const [path = ''] = segmentPaths(root);
  for (const url of [`/hls/hall/init/${path}`, `/hls/hall/parts/0/${path}`]) {
    assert.equal((await app.inject(url)).statusCode, 404, url);
  }
});

test('pages of the same host and of the origins that are named may play, no others', async (t) => {
  const origin = 'http://nvr.example:9997';
  const foreign = 'https://elsewhere.example';
  const allowed = (answer: LightMyRequestResponse) => answer.headers['access-control-allow-origin'];
  const open = await stage(t);
  const host = 'nvr.example:9996';
  assert.equal(allowed(await open.app.inject({ url: '/x', headers: { origin, host } })), origin);
  assert.equal(allowed(await open.app.inject({ url: '/x', headers: { origin: foreign, host } })), undefined);
  const named = await stage(t, { playback: { auth: { mode: 'token', tokens: [] }, origins: [foreign] } });
  assert.equal(allowed(await named.app.inject({ url: '/x', headers: { origin: foreign, host } })), foreign);
  assert.equal(
    allowed(await named.app.inject({ url: '/x', headers: { origin: 'https://x.example', host } })),
    undefined,
  );
  const preflight = await named.app.inject({ method: 'OPTIONS', url: '/2026/x', headers: { origin: foreign } });
  assert.deepEqual([preflight.statusCode, allowed(preflight)], [204, foreign]);
  assert.match(String(preflight.headers['access-control-allow-headers']), /authorization.*range/);
});
