import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { nodeFileSystem, type FileSystem } from '../archive/disk/file-system.ts';
import { NodeCameraEditor, type NodeCameraEditorDeps } from './camera-editor.ts';
import { EditError, type EditErrorCode } from '../config/editor.ts';
import { loadConfig } from '../config/load.ts';
import type { CameraConfig } from '../config/schema.ts';
import type { CameraRow } from '../database/camera-rows.ts';

const GATE = { id: 'gate', source: 'rtsp://admin:secret@10.0.0.9/live' };
const always = (): boolean => true;

/** A configuration in a directory of its own, and what was taken up of it. */
function stage(
  t: TestContext,
  files: Readonly<Record<string, string>> = {},
  changes: Partial<NodeCameraEditorDeps> = {},
) {
  const directory = mkdtempSync(join(tmpdir(), 'editor-test-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const configFile = join(directory, 'config.yaml');
  for (const [name, text] of Object.entries({ 'config.yaml': 'nodeName: nvr-1\n', ...files })) {
    if (name.startsWith('conf.d/')) mkdirSync(join(directory, 'conf.d'), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  const taken: (readonly CameraConfig[])[] = [];
  const forgotten: string[] = [];
  const editor = new NodeCameraEditor({
    fs: nodeFileSystem,
    configFile,
    reload: async () => void taken.push((await loadConfig(configFile)).cameras),
    apply: async () => {},
    forget: async (id) => void forgotten.push(id),
    clock: new VirtualClock(),
    ...changes,
  });
  const file = (name: string): string => join(directory, 'conf.d', name);
  return { directory, editor, taken, forgotten, file };
}

const refusal = async (change: Promise<unknown>): Promise<{ code: EditErrorCode; message: string }> => {
  const err = await change.then(
    () => assert.fail('was accepted'),
    (err: unknown) => err,
  );
  assert.ok(err instanceof EditError, String(err));
  return err;
};

test('a camera that is added has a file of its own, of mode 0640, and is taken up before the answer', async (t) => {
  const { editor, taken, file } = stage(t);
  const { settings } = await editor.add({ ...GATE, record: { segmentDuration: '1m' } });
  assert.deepEqual(settings, { id: 'gate', source: 'rtsp://admin@10.0.0.9/live', record: { segmentDuration: '1m' } });
  assert.deepEqual(
    taken.map((cameras) => cameras.map(({ id, source, record }) => [id, source, record.segmentDurationMs])),
    [[['gate', GATE.source, 60_000]]],
  );
  assert.equal(statSync(file('camera-gate.yaml')).mode & 0o777, 0o640);
  assert.deepEqual((await editor.read('gate')).settings, settings);
});

test('what is wrong is named as it stands in the settings, and changes nothing', async (t) => {
  const { editor, taken, directory } = stage(t);
  for (const [given, message] of [
    [{ ...GATE, source: 'http://x/' }, /^source: expected an address that begins with rtsp:\/\//],
    [{ ...GATE, sorce: 'x' }, /^sorce: unknown key, did you mean source\?$/],
    [
      { ...GATE, record: { segmentDuraton: '1m' } },
      /^record\.segmentDuraton: unknown key, did you mean segmentDuration\?$/,
    ],
    [{ id: 'gate' }, /^source: is missing$/],
    [{ id: '../etc', source: null }, /^id: expected 1 to 63 letters.*; source: is missing$/],
    [{ ...GATE, record: { segmentDuration: '1ms' } }, /^record\.segmentDuration: expected a duration from 1s to 24h$/],
  ] as const) {
    const { code, message: told } = await refusal(editor.add(given));
    assert.equal(code, 'invalid-parameter');
    assert.match(told, message);
  }
  assert.deepEqual([taken, readdirSync(directory)], [[], ['config.yaml']]);
});

test('an id that another file has is refused, wherever that file stands in the order, and a name is not', async (t) => {
  const yard = 'cameras: [{ id: yard, name: The Yard, source: "rtsp://10.0.0.8/" }]\n';
  for (const name of ['config.yaml', 'conf.d/00.yaml', 'conf.d/zz.yaml']) {
    const { editor, taken } = stage(t, { [name]: yard });
    const id = await refusal(editor.add({ ...GATE, id: 'yard' }));
    assert.equal(id.code, 'id-taken');
    assert.match(id.message, /^id: .* has a camera with this id$/);
    assert.deepEqual(taken, []);
    await editor.add({ ...GATE, name: 'The Yard' });
    assert.equal(taken.length, 1);
  }
});

test('a change replaces all settings, and an address without a password keeps it', async (t) => {
  const { editor, taken } = stage(t);
  await editor.add({ ...GATE, name: 'Gate', snapshot: 'http://u:other@10.0.0.9/1.jpg' });
  const { settings } = await editor.change(
    'gate',
    { source: 'rtsp://admin@10.0.0.9/second', snapshot: 'http://u@10.0.0.9/1.jpg', ptz: true },
    always,
  );
  assert.deepEqual(settings, {
    id: 'gate',
    source: 'rtsp://admin@10.0.0.9/second',
    snapshot: 'http://u@10.0.0.9/1.jpg',
    ptz: true,
  });
  const [now] = taken.at(-1) ?? [];
  assert.deepEqual(
    [now?.source, now?.snapshot, now?.name, now?.ptz],
    ['rtsp://admin:secret@10.0.0.9/second', 'http://u:other@10.0.0.9/1.jpg', 'gate', true],
  );
  const elsewhere = await refusal(editor.change('gate', { source: 'rtsp://admin@10.0.0.66/' }, always));
  assert.deepEqual([elsewhere.code, elsewhere.message.split(':')[0]], ['invalid-parameter', 'source']);
  const other = await refusal(editor.change('gate', { ...GATE, id: 'yard' }, always));
  assert.match(other.message, /^id: a camera keeps its id/);
  assert.equal(taken.length, 2);
});

test('edge recovery is kept, and the password of its address is hidden', async (t) => {
  const { editor, taken } = stage(t);
  const replay = 'rtsp://viewer:hidden@10.0.0.9/tracks/101?starttime={start}&endtime={end}';
  const { settings } = await editor.add({ ...GATE, edge: { replay, maxBitrate: 20 } });
  assert.deepEqual(settings['edge'], { replay: replay.replace(':hidden', ''), maxBitrate: 20 });
  await editor.change('gate', { ...settings, edge: { replay: replay.replace(':hidden', ''), maxBitrate: 30 } }, always);
  assert.deepEqual(taken.at(-1)?.[0]?.edge, {
    source: { kind: 'address', replay, timeZone: undefined },
    maxBitrate: 30_000_000,
  });
});

test('the password of a preview is hidden and kept like that of the source', async (t) => {
  const { editor, taken } = stage(t);
  const preview = { source: 'rtsp://viewer:hidden@10.0.0.9/small' };
  const { settings } = await editor.add({ ...GATE, preview });
  assert.deepEqual(settings['preview'], { source: 'rtsp://viewer@10.0.0.9/small' });
  assert.deepEqual((await editor.read('gate')).settings['preview'], settings['preview']);
  await editor.change('gate', { ...settings, preview: { source: 'rtsp://viewer@10.0.0.9/smaller' } }, always);
  assert.equal(taken.at(-1)?.[0]?.preview?.source, 'rtsp://viewer:hidden@10.0.0.9/smaller');
  const moved = await refusal(
    editor.change('gate', { ...settings, preview: { source: 'rtsp://viewer@10.0.0.99/small' } }, always),
  );
  assert.match(moved.message, /^preview\.source: /);
});

test('of two changes of the same settings at once one is made, and without a condition the last one', async (t) => {
  const { editor } = stage(t);
  const { tag } = await editor.add(GATE);
  const named = (name: string) => ({ ...GATE, name });
  const both = await Promise.allSettled(
    ['One', 'Two'].map((name) => editor.change('gate', named(name), (now) => now === tag)),
  );
  assert.deepEqual(
    both.map((one) => (one.status === 'fulfilled' ? 'made' : (one.reason as EditError).code)),
    ['made', 'precondition-failed'],
  );
  assert.equal((await editor.read('gate')).settings['name'], 'One');
  await Promise.all(['Three', 'Four'].map((name) => editor.change('gate', named(name), always)));
  const { settings, tag: last } = await editor.read('gate');
  assert.equal(settings['name'], 'Four');
  assert.notEqual(last, tag);
  // A password alone makes another one.
  const after = await editor.change('gate', { ...named('Four'), source: 'rtsp://admin:new@10.0.0.9/live' }, always);
  assert.deepEqual(after.settings, settings);
  assert.notEqual(after.tag, last);
});

test('a camera that is removed has no file and is forgotten, and unknown ones are unknown', async (t) => {
  const { editor, taken, forgotten, file } = stage(t);
  await editor.add(GATE);
  assert.equal((await refusal(editor.remove('gate', () => false))).code, 'precondition-failed');
  await editor.remove('gate', always);
  assert.deepEqual([taken.at(-1), forgotten, existsSync(file('camera-gate.yaml'))], [[], ['gate'], false]);
  for (const change of [
    () => editor.read('gate'),
    () => editor.change('gate', GATE, always),
    () => editor.remove('gate', always),
  ]) {
    assert.equal((await refusal(change())).code, 'unknown-camera');
  }
});

test('a file that people wrote stays as it is, byte for byte', async (t) => {
  const text = `# The yard, see ticket 7.\ncameras:\n  - { id: yard,   source: "rtsp://u:secret@10.0.0.8/" } # main\n`;
  const { editor, taken, file } = stage(t, { 'conf.d/camera-yard.yaml': text });
  assert.deepEqual((await editor.read('yard')).settings, { id: 'yard', source: 'rtsp://u@10.0.0.8/' });
  for (const change of [
    () => editor.change('yard', { source: 'rtsp://10.0.0.8/' }, always),
    () => editor.remove('yard', always),
  ]) {
    const { code, message } = await refusal(change());
    assert.equal(code, 'camera-in-file');
    assert.match(message, /camera-yard\.yaml was written by hand: change the camera there/);
  }
  await editor.add(GATE);
  const commented = readFileSync(file('camera-gate.yaml'), 'utf8').replace('id: gate', 'id: gate # mine now');
  writeFileSync(file('camera-gate.yaml'), commented);
  assert.equal((await refusal(editor.change('gate', GATE, always))).code, 'camera-in-file');
  assert.equal(readFileSync(file('camera-gate.yaml'), 'utf8'), commented);
  assert.equal(readFileSync(file('camera-yard.yaml'), 'utf8'), text);
  assert.equal(taken.length, 1);
});

test('cameras in the file of recorder setup are changed and removed there, and all else in it stays', async (t) => {
  const text = [
    '# Written by recorder setup.',
    'record_path: /tmp # the large disk',
    '# 10.0.0.7: left out, it offers no H.264 or H.265',
    'cameras:',
    '  # Acme Dome at 10.0.0.9',
    '  - id: gate',
    '    source: rtsp://admin:secret@10.0.0.9/live # first input',
    '    ptz: true',
    '  # Acme Box at 10.0.0.8',
    '  - id: yard',
    '    source: rtsp://10.0.0.8/',
    '',
  ].join('\n');
  const { editor, taken, file } = stage(t, { 'conf.d/setup.yaml': text });
  const { settings, heldIn } = await editor.read('gate');
  assert.equal(heldIn, undefined);
  await editor.change('gate', { ...settings, name: 'Gate', ptz: undefined }, always);
  const changed = text.replace('    ptz: true', '    name: Gate');
  assert.equal(readFileSync(file('setup.yaml'), 'utf8'), changed);
  assert.equal(taken.at(-1)?.[0]?.source, 'rtsp://admin:secret@10.0.0.9/live');
  const { message } = await refusal(editor.change('yard', { source: 'x' }, always));
  assert.match(message, /^source: expected an address/);
  assert.equal(readFileSync(file('setup.yaml'), 'utf8'), changed);
  await editor.remove('yard', always);
  const kept = changed.slice(0, changed.indexOf('  # Acme Box'));
  assert.equal(readFileSync(file('setup.yaml'), 'utf8'), kept);
  await editor.remove('gate', always);
  assert.deepEqual(taken.at(-1), []);
  assert.match(
    readFileSync(file('setup.yaml'), 'utf8'),
    /^# Written by recorder setup\.\nrecord_path: \/tmp # the large disk\n/,
  );
  assert.ok(existsSync(file('setup.yaml')));
});

test('a camera that people wrote says in which file it is', async (t) => {
  const { editor, directory } = stage(t, { 'config.yaml': `cameras: [${JSON.stringify(GATE)}]\n` });
  assert.equal((await editor.read('gate')).heldIn, join(directory, 'config.yaml'));
  await editor.add({ ...GATE, id: 'yard' });
  assert.equal((await editor.read('yard')).heldIn, undefined);
});

test('each wrong setting is told by its path', async (t) => {
  const { editor } = stage(t);
  await editor.add(GATE);
  const wrong = { source: 'rtsp://other@10.0.0.9/live' };
  const err = await editor.change('gate', wrong, always).catch((error: unknown) => error);
  assert.ok(err instanceof EditError);
  assert.deepEqual(err.mistakes, [{ key: 'source', problem: 'its host, port or user has changed: add the password' }]);
  const two = await editor
    .change('gate', { ...GATE, transport: 'x', record: { retention: { maxAge: '1' } } }, always)
    .catch((error: unknown) => error);
  assert.ok(two instanceof EditError);
  assert.deepEqual(
    two.mistakes.map(({ key }) => key),
    ['transport', 'record.retention.maxAge'],
  );
});

test('an address is completed with the stored password on the same host alone', async (t) => {
  const { editor } = stage(t);
  await editor.add(GATE);
  assert.equal(await editor.complete('gate', 'rtsp://admin@10.0.0.9/other'), 'rtsp://admin:secret@10.0.0.9/other');
  assert.equal((await refusal(editor.complete('gate', 'rtsp://admin@10.0.0.66/live'))).code, 'invalid-parameter');
  assert.equal((await refusal(editor.complete('yard', GATE.source))).code, 'unknown-camera');
});

test('a file in the place of a new one is not replaced', async (t) => {
  const { editor, file } = stage(t, { 'conf.d/camera-gate.yaml': 'cameras: []\n' });
  assert.equal((await refusal(editor.add(GATE))).code, 'camera-in-file');
  assert.equal(readFileSync(file('camera-gate.yaml'), 'utf8'), 'cameras: []\n');
});

test('a mistake in another file is reported as such, and nothing is written', async (t) => {
  const { editor, taken, file } = stage(t, { 'conf.d/wrong.yaml': 'record_pth: /x\n' });
  const { code, message } = await refusal(editor.add(GATE));
  assert.equal(code, 'configuration-refused');
  assert.match(message, /wrong\.yaml:1:1: record_pth: unknown key/);
  assert.deepEqual([taken, existsSync(file('camera-gate.yaml'))], [[], false]);
});

test('a directory that cannot be written is reported, and leaves the file as it was', async (t) => {
  const full: FileSystem = {
    ...nodeFileSystem,
    rename: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOSPC' })),
  };
  const first = stage(t);
  await first.editor.add(GATE);
  const text = readFileSync(first.file('camera-gate.yaml'), 'utf8');
  const { editor, taken, file } = stage(t, { 'conf.d/camera-gate.yaml': text }, { fs: full });
  const { code, message } = await refusal(editor.change('gate', { ...GATE, name: 'Gate' }, always));
  assert.equal(code, 'camera-not-kept');
  assert.match(message, /conf\.d cannot be written: ENOSPC$/);
  assert.deepEqual([taken, readFileSync(file('camera-gate.yaml'), 'utf8')], [[], text]);
  assert.equal((await editor.read('gate')).settings['name'], undefined);
});

test('what a crash has left of a file that was being written hinders nothing', async (t) => {
  const { directory, editor, taken } = stage(t, { 'conf.d/camera-gate.yaml.new': 'cameras:\n  - id: ga' });
  await editor.add(GATE);
  assert.deepEqual(readdirSync(join(directory, 'conf.d')), ['camera-gate.yaml']);
  assert.equal(taken.length, 1);
});

test('an answer does not wait for longer than ten seconds for cameras that close', async (t) => {
  const clock = new VirtualClock();
  let asked = (): void => {};
  const hanging = new Promise<void>((resolve) => (asked = resolve));
  const reload = (): Promise<void> => {
    asked();
    return new Promise(() => {});
  };
  const { editor } = stage(t, {}, { clock, reload });
  const added = editor.add(GATE);
  await hanging;
  clock.advance(10_000);
  assert.equal((await added).settings['id'], 'gate');
});

test('in a cluster cameras are the cluster’s, and those that it has not given to this node are unknown', async (t) => {
  const { editor } = stage(t, {}, { cluster: { has: (id) => id === 'gate', mode: 'kubernetes' } });
  for (const change of [() => editor.add(GATE), () => editor.read('gate'), () => editor.remove('gate', always)]) {
    const { code, message } = await refusal(change());
    assert.deepEqual([code, /kubectl edit camera (gate|NAME)/.test(message)], ['managed-by-cluster', true]);
  }
  assert.equal((await refusal(editor.change('yard', GATE, always))).code, 'unknown-camera');
});

/** One row, as a table has it. */
function table() {
  const rows = new Map<string, CameraRow>();
  return {
    rows,
    row: (id: string) => rows.get(id),
    async edit(id: string, change: (row: CameraRow | undefined) => CameraRow | null | undefined) {
      const next = change(rows.get(id));
      if (next) rows.set(id, next);
      else if (next === null) rows.delete(id);
      return { changed: next !== undefined };
    },
  };
}

test('with a database new cameras are rows, changed and removed there, and files win', async (t) => {
  const database = table();
  const yard = 'cameras: [{ id: yard, source: "rtsp://10.0.0.8/" }]\n';
  const { editor, taken, file } = stage(t, { 'config.yaml': yard }, { database });
  const { tag } = await editor.add({ ...GATE, snapshot: 'http://10.0.0.9/1.jpg' });
  const row = { id: 'gate', name: '', source: GATE.source, snapuri: 'http://10.0.0.9/1.jpg', ptz: false, onvif: null };
  assert.deepEqual(database.rows.get('gate'), {
    ...row,
    group: null,
    preview: null,
    edge: null,
    events: null,
    activity: null,
    record: {},
    enabled: true,
  });
  assert.equal((await refusal(editor.add(GATE))).code, 'id-taken');
  assert.equal((await refusal(editor.add({ ...GATE, id: 'yard' }))).code, 'id-taken');
  assert.match((await refusal(editor.add({ ...GATE, id: 'x', transport: 'tcp' }))).message, /^transport: the table/);
  assert.equal((await editor.read('gate')).tag, tag);
  const change = { source: 'rtsp://admin@10.0.0.9/live', enabled: false };
  assert.equal((await refusal(editor.change('gate', change, () => false))).code, 'precondition-failed');
  const { settings } = await editor.change('gate', change, (now) => now === tag);
  assert.deepEqual(settings, { id: 'gate', ...change });
  assert.deepEqual([database.row('gate')?.source, database.row('gate')?.enabled], [GATE.source, false]);
  assert.equal((await refusal(editor.change('yard', { source: 'rtsp://10.0.0.8/' }, always))).code, 'camera-in-file');
  await editor.remove('gate', always);
  assert.equal((await refusal(editor.read('gate'))).code, 'unknown-camera');
  assert.deepEqual([taken, existsSync(file('camera-gate.yaml'))], [[], false]);
});

test('a database that is away is reported', async (t) => {
  const edit = () => Promise.reject(new Error('connect ECONNREFUSED'));
  const { editor } = stage(t, {}, { database: { row: () => undefined, edit } });
  const { code, message } = await refusal(editor.add(GATE));
  assert.deepEqual([code, message], ['camera-not-kept', 'the database cannot be changed: connect ECONNREFUSED']);
});
