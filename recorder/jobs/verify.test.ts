// What `recorder verify` finds in cases and exports that were made from an archive on a real disk, and changed.

import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { caseStage, MADE_MS, type CaseStage, type MadeCase } from '../../test/support/case-stage.ts';
import { WALL_START_MS } from '../../test/support/joined-file.ts';
import { run } from '../commands/verify.ts';
import { exportWindow } from './export.ts';
import { signManifest, type Manifest } from './manifest.ts';
import { NodeKey } from './node-key.ts';
import { contradictionsOf } from './verify-manifest.ts';
import { verifyResult } from './verify.ts';

/** A second of it, so that much can be tried. */
const SHORT = { fromMs: WALL_START_MS + 7_500, toMs: WALL_START_MS + 8_500 };

/** The program: what it ends with, and prints. */
async function program(...args: string[]): Promise<{ code: number; output: string }> {
  let output = '';
  const code = await run(args, { print: (text) => void (output += text) });
  return { code, output };
}

async function shortCase(t: TestContext): Promise<CaseStage & MadeCase> {
  const stage = await caseStage(t);
  return { ...stage, ...(await stage.make(SHORT)) };
}

test('verify says that a case is as it was made, by whom, and what it holds; a key can be named in three ways', async (t) => {
  const { make, key, directory } = await caseStage(t);
  const { path, manifest } = await make();
  const { code, output } = await program(path, '--fingerprint', key.fingerprint);
  assert.equal(code, 0, output);
  assert.match(
    output,
    new RegExp(`^ok     the manifest was signed with key ${key.fingerprint} and has not been changed`, 'm'),
  );
  assert.match(
    output,
    /^ok     made by node rack-1 with kube-nvr 1\.2\.3 at 2026-01-05T11:00:00\.000Z, according to the manifest$/m,
  );
  assert.match(output, /^ok     camera gate: 4 s of movie, 1 gap of 6 s$/m);
  assert.match(output, /^ok     camera yard: 8 s of movie, 1 gap of 2 s$/m);
  assert.match(output, /^ok     camera porch: no footage, 1 gap of 10 s$/m);
  assert.match(output, /\nas it was made\n$/);
  for (const { name, sha256, size_bytes } of manifest.cameras.flatMap(({ files }) => files)) {
    assert.ok(output.includes(`ok     ${name}: ${size_bytes} bytes, SHA-256 ${sha256}\n`), output);
  }
  const pem = join(directory, 'node.pem');
  writeFileSync(pem, key.publicKey);
  const colons = key.fingerprint.toUpperCase().replace(/..(?=.)/g, '$&:');
  for (const named of [
    ['--key', pem],
    ['--fingerprint', key.fingerprint],
    ['--fingerprint', colons],
  ]) {
    const { code, output } = await program(path, ...named);
    assert.deepEqual([code, output.includes('ok     that is the expected key')], [0, true], output);
  }
});

test('one changed byte of a case is found, wherever it is', async (t) => {
  const { path, manifest, written } = await shortCase(t);
  const bytes = readFileSync(path);
  const movies = (written.outcome.parts ?? []).map(({ offset, sizeBytes }) => [offset, offset + sizeBytes] as const);
  assert.equal(movies.length, manifest.cameras.flatMap(({ files }) => files).length);
  const isMovie = (at: number): boolean => movies.some(([from, to]) => at >= from && at < to);
  const text = bytes.lastIndexOf(written.manifest.text);
  const isText = (at: number): boolean => at >= text && at < text + written.manifest.text.length;
  const places = Array.from(bytes.keys()).filter((at) => {
    // Every byte that surrounds the movies; of them and of the manifest, some.
    if (isMovie(at)) return at % 4_999 === 0 || movies.some(([from, to]) => at === from || at === to - 1);
    return !isText(at) || at % 23 === 0;
  });
  assert.ok(places.length > 900, `${places.length} places`);
  for (const at of places) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] as number) ^ (1 << (at % 8));
    writeFileSync(path, changed);
    const { wrong } = await verifyResult({ path });
    assert.ok(wrong.length > 0, `byte ${at} of ${bytes.length} was changed`);
  }
});

test('what is missing, and what is too much, is found', async (t) => {
  const { path } = await shortCase(t);
  const bytes = readFileSync(path);
  for (const [name, changed] of [
    ['the last byte', bytes.subarray(0, -1)],
    ['the second half', bytes.subarray(0, bytes.length / 2)],
    ['a byte behind the end', Buffer.concat([bytes, Buffer.of(0)])],
    ['a byte before the start', Buffer.concat([Buffer.of(0), bytes])],
  ] as const) {
    writeFileSync(path, changed);
    const { code, output } = await program(path);
    assert.ok(code === 1 || (code === 2 && name !== 'the last byte'), `${name}: ${code} ${output}`);
  }
});

test('who signs what was changed with a key of his own is found by the key', async (t) => {
  const { path, key, make, directory } = await shortCase(t);
  const other = await NodeKey.open(join(directory, 'other'));
  const about = { kind: 'case', name: undefined, madeMs: MADE_MS, version: '1.2.3', node: 'rack-1' } as const;
  await make(SHORT, { sign: (written) => signManifest(about, written, other) });
  const unnamed = await program(path);
  assert.equal(unnamed.code, 2, 'nobody named a key');
  assert.match(unnamed.output, /\ncannot be determined: whose key this is;[^\n]*\n$/);
  assert.doesNotMatch(unnamed.output, /as it was made/);
  const { code, output } = await program(path, '--fingerprint', key.fingerprint);
  assert.equal(code, 1);
  assert.match(
    output,
    new RegExp(`WRONG  the manifest was signed with key ${other.fingerprint}, not with ${key.fingerprint}`),
  );
  const { wrong } = await verifyResult({ path, key: createPublicKey(key.publicKey) });
  assert.match(wrong.join('\n'), /the signature is not one of key/);
});

test('a manifest whose footage and gaps do not cover the window is wrong, whoever signed it', async (t) => {
  const { path, key, make } = await shortCase(t);
  const about = { kind: 'case', name: undefined, madeMs: MADE_MS, version: '1.2.3', node: 'rack-1' } as const;
  const withoutGaps = (written: Parameters<typeof signManifest>[1]) => ({
    ...written,
    cameras: written.cameras.map((camera) => ({ ...camera, gaps: [] })),
  });
  await make(SHORT, { sign: (written) => signManifest(about, withoutGaps(written), key) });
  const { code, output } = await program(path);
  assert.equal(code, 1, output);
  assert.match(output, /^WRONG {2}.* is neither footage nor a gap$/m);
});

test('a movie alone is checked with the manifest beside it', async (t) => {
  const { deps, directory, key } = await caseStage(t);
  const path = join(directory, 'saved', 'gate_20260105T100002Z.mp4');
  mkdirSync(join(directory, 'saved'));
  const window = { fromMs: WALL_START_MS + 2_000, toMs: WALL_START_MS + 12_000 };
  const { outcome, ...written } = await exportWindow(
    { cameraId: 'gate', ...window },
    path,
    deps,
    new AbortController().signal,
  );
  const about = { kind: 'export', madeMs: MADE_MS, version: '1.2.3', node: 'rack-1' } as const;
  const { text, signature } = signManifest(about, written, key);
  const missing = await program(path);
  assert.deepEqual([missing.code, /manifest\.json cannot be read \(ENOENT\)/.test(missing.output)], [2, true]);
  writeFileSync(`${path}.manifest.json`, text);
  writeFileSync(`${path}.manifest.json.sig`, signature);
  const { code, output } = await program(path, '--fingerprint', key.fingerprint);
  assert.equal(code, 0, output);
  assert.equal(statSync(path).size, outcome.sizeBytes);
  const bytes = readFileSync(path);
  for (const [file, what] of [
    [path, bytes],
    [`${path}.manifest.json`, text],
    [`${path}.manifest.json.sig`, signature],
  ] as const) {
    const changed = Buffer.from(what);
    changed[changed.length >> 1] = (changed[changed.length >> 1] as number) ^ 4;
    writeFileSync(file, changed);
    const { code, output } = await program(path);
    assert.deepEqual([code, /^WRONG/m.test(output)], [1, true], file);
    writeFileSync(file, what);
  }
  assert.equal((await program(path)).code, 2);
});

test('an export of several movies is an archive, and checked as one', async (t) => {
  const { deps, directory, key } = await caseStage(t);
  const path = join(directory, 'yard.zip');
  const { signal } = new AbortController();
  const written = await exportWindow({ cameraId: 'yard', ...SHORT }, path, deps, signal);
  const about = { kind: 'export', madeMs: MADE_MS, version: '1.2.3', node: 'rack-1' } as const;
  const { text, signature } = signManifest(about, written, key);
  const manifest = join(directory, 'manifest');
  writeFileSync(manifest, text);
  writeFileSync(`${manifest}.sig`, signature);
  assert.equal((await program(path, '--manifest', manifest)).code, 2);
  const bytes = readFileSync(path);
  for (const at of [0, 4, 20, 40, bytes.length >> 1, bytes.length - 200, bytes.length - 22, bytes.length - 1]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] as number) ^ 1;
    writeFileSync(path, changed);
    assert.equal((await program(path, '--manifest', manifest)).code, 1, `byte ${at}`);
  }
});

test('windows, gaps and movie times that do not add up are found', async (t) => {
  const { manifest } = await (await caseStage(t)).make();
  assert.deepEqual(contradictionsOf(manifest), []);
  const changed = (change: (manifest: Manifest) => void): string => {
    const copy = structuredClone(manifest);
    change(copy);
    return contradictionsOf(copy).join('\n');
  };
  const [from, to] = ['2026-01-05T10:00:04.000Z', '2026-01-05T10:00:10.000Z'];
  const gate = (copy: Manifest) => copy.cameras[0] as Manifest['cameras'][number];
  const fileOf = (copy: Manifest) => gate(copy).files[0] as (typeof manifest.cameras)[number]['files'][number];
  assert.equal(
    changed((copy) => void (gate(copy).gaps = [])),
    `gate: ${from} to ${to} is neither footage nor a gap`,
  );
  assert.match(
    changed((copy) => void (gate(copy).gaps = [{ from, to: '2026-01-05T10:00:10.001Z' }])),
    /^gate: .* is a gap, but has footage from 2026-01-05T10:00:10\.000Z/,
  );
  assert.match(
    changed((copy) => void (copy.to = '2026-01-05T10:00:11.000Z')),
    /is not within the window/,
  );
  assert.match(
    changed((copy) => void (copy.to = '2026-01-05T10:00:13.000Z')),
    /gate: 2026-01-05T10:00:12\.000Z to 2026-01-05T10:00:13\.000Z is neither footage nor a gap/,
  );
  assert.match(
    changed((copy) => void (copy.from = copy.to)),
    /^the window ends before it begins/,
  );
  assert.match(
    changed((copy) => void (fileOf(copy).duration_seconds = 4.1)),
    /its footage ends at 4 s of 4\.1 s/,
  );
  assert.match(
    changed((copy) => {
      const [, second] = fileOf(copy).footage;
      if (second) second.movie_from_seconds = 1;
    }),
    /footage at 1 s does not follow what ends at 2 s/,
  );
  assert.match(
    changed((copy) => void copy.cameras.push(gate(copy))),
    /^gate_20260105T100002Z\.mp4 is listed twice/,
  );
});

test('footage and gaps add up wherever a window lies between the ticks of a movie', async (t) => {
  const { make } = await caseStage(t);
  for (let ms = 1_000; ms < 1_020; ms++) {
    const window = { fromMs: WALL_START_MS + ms, toMs: WALL_START_MS + 6_000 + ms };
    const { path, manifest } = await make({ cameraIds: ['lane'], ...window });
    assert.deepEqual((await verifyResult({ path })).wrong, [], `from ${ms} ms`);
    assert.equal(manifest.cameras[0]?.files[0]?.footage[0]?.from, manifest.from);
    // The name of the next file says when the gap ends.
    assert.deepEqual(manifest.cameras[0]?.gaps, [
      { from: '2026-01-05T10:00:04.000Z', to: '2026-01-05T10:00:06.000Z', cause: 'camera-unreachable' },
    ]);
  }
});

test('what cannot be checked ends with 2 and says why', async (t) => {
  const { directory, key } = await caseStage(t);
  const notes = join(directory, 'notes.txt');
  writeFileSync(notes, 'no movie');
  for (const [args, said] of [
    [[join(directory, 'nothing')], /nothing cannot be read \(ENOENT\)/],
    [[directory], /is not a file/],
    [[notes], /notes\.txt\.manifest\.json cannot be read/],
    [[notes, '--key', notes], /--key .*notes\.txt: not a public key/],
    [[notes, '--fingerprint', key.fingerprint.slice(1)], /--fingerprint .*: expected 64 hexadecimal digits/],
  ] as const) {
    const { code, output } = await program(...args);
    assert.equal(code, 2, args.join(' '));
    assert.match(output, said);
  }
});

test('wrong arguments are refused, for the usage on standard error', async () => {
  for (const [args, message] of [
    [[], /expected a file/],
    [['a', 'b'], /expected one file/],
    [['--colour'], /Unknown option '--colour'/],
  ] as const) {
    await assert.rejects(program(...args), { name: 'UsageError', message });
  }
});
