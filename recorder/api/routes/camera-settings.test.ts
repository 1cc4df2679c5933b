import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { AuditEntry } from '../../audit/entry.ts';
import { EditError, type CameraEditor, type EditErrorCode } from '../../config/editor.ts';
import { DoctorBusy, type Examiner } from '../../probe/report/examiner.ts';
import { as, build } from '../test-support.ts';

const SETTINGS = { id: 'gate', source: 'rtsp://admin@10.0.0.9/live' };

/** Knows `gate`, of the tag `now`, and fails as it is told. */
function editor(failure?: EditErrorCode): { cameraEditor: CameraEditor; given: unknown[] } {
  const given: unknown[] = [];
  const edit = async (...what: unknown[]) => {
    given.push(...what);
    if (failure) throw new EditError(failure, 'source: why', { mistakes: [{ key: 'source', problem: 'why' }] });
    return { settings: SETTINGS, tag: 'now' };
  };
  const conditional = (mayChange: (tag: string) => boolean): void => {
    if (!mayChange('now')) throw new EditError('precondition-failed', 'changed since');
  };
  return {
    given,
    cameraEditor: {
      read: async (id) => ({
        ...(await edit(id)),
        ...(id === 'by-hand' && { heldIn: '/etc/recorder/my cameras.yaml' }),
      }),
      add: (settings) => edit(settings),
      async change(id, settings, mayChange) {
        conditional(mayChange);
        return edit(id, settings);
      },
      async remove(id, mayChange) {
        conditional(mayChange);
        await edit(id);
      },
      async complete(id, source) {
        await edit(id);
        return source.replace('@', ':stored@');
      },
    },
  };
}

async function setup(t: TestContext, failure?: EditErrorCode, doctor?: Examiner) {
  const lines: AuditEntry[] = [];
  const { cameraEditor, given } = editor(failure);
  const { app } = await build(t, {
    cameraEditor,
    audit: { sink: { write: (line) => void lines.push(line) } },
    ...(doctor ? { doctor } : {}),
  });
  const ask = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, payload?: object, headers = {}) =>
    app.inject({ method, url, headers: { ...as('admin'), ...headers }, ...(payload ? { payload } : {}) });
  return { ask, given, lines };
}

test('settings go to the editor as they are written, and come back with an entity tag', async (t) => {
  const { ask, given } = await setup(t);
  const written = {
    id: 'gate',
    source: 'rtsp://admin:secret@10.0.0.9/live',
    record: { segmentDuration: '1m' },
    x: null,
  };
  const added = await ask('POST', '/api/cameras', written);
  assert.deepEqual([added.statusCode, added.json()], [201, SETTINGS]);
  assert.deepEqual([added.headers.etag, added.headers.location], ['"now"', '/api/cameras/gate']);
  const { id: _, ...others } = written;
  const changed = await ask('PUT', '/api/cameras/gate', others);
  assert.deepEqual([changed.statusCode, changed.headers.etag], [200, '"now"']);
  const read = await ask('GET', '/api/cameras/gate/settings');
  assert.deepEqual([read.json(), read.headers.etag], [SETTINGS, '"now"']);
  assert.deepEqual(given, [written, 'gate', others, 'gate']);
});

test('the settings of a camera that people wrote name its file', async (t) => {
  const { ask } = await setup(t);
  const { headers } = await ask('GET', '/api/cameras/by-hand/settings');
  assert.equal(headers['content-location'], 'file:///etc/recorder/my%20cameras.yaml');
  assert.equal((await ask('GET', '/api/cameras/gate/settings')).headers['content-location'], undefined);
});

test('a removed camera’s recordings stay, and the answer says so', async (t) => {
  const { ask } = await setup(t);
  const { statusCode, body } = await ask('DELETE', '/api/cameras/gate');
  assert.equal(statusCode, 200);
  assert.match(body, /its recordings stay until archive\.retention removes them/);
});

for (const { match, status } of [
  { match: '"now"', status: 200 },
  { match: '"before", "now"', status: 200 },
  { match: '*', status: 200 },
  { match: '"before"', status: 412 },
  { match: 'W/"now"', status: 412 },
]) {
  test(`If-Match: ${match} is answered by ${status}`, async (t) => {
    const { ask, given } = await setup(t);
    const headers = { 'if-match': match };
    const answers = [
      await ask('PUT', '/api/cameras/gate', SETTINGS, headers),
      await ask('DELETE', '/api/cameras/gate', undefined, headers),
    ];
    assert.deepEqual(
      answers.map(({ statusCode }) => statusCode),
      [status, status],
    );
    assert.equal(given.length > 0, status === 200);
  });
}

for (const [code, status] of [
  ['unknown-camera', 404],
  ['invalid-parameter', 400],
  ['id-taken', 409],
  ['camera-in-file', 409],
  ['managed-by-cluster', 409],
  ['configuration-refused', 409],
  ['camera-not-kept', 503],
] as const) {
  test(`${code} is answered by ${status}`, async (t) => {
    const { ask } = await setup(t, code);
    for (const answer of [
      await ask('POST', '/api/cameras', SETTINGS),
      await ask('PUT', '/api/cameras/gate', SETTINGS),
      await ask('DELETE', '/api/cameras/gate'),
    ]) {
      assert.deepEqual([answer.statusCode, answer.json().code], [status, code]);
      if (status === 404) continue;
      assert.equal(answer.json().detail, 'source: why');
      assert.deepEqual(answer.json().errors, [{ field: 'source', detail: 'why' }]);
    }
  });
}

test('a body that is no object is refused before the editor is asked', async (t) => {
  const { ask, given } = await setup(t);
  for (const body of [[], 'text', undefined]) {
    const { statusCode } = await ask('POST', '/api/cameras', body as object | undefined);
    assert.ok([400, 415].includes(statusCode), String(statusCode));
  }
  assert.deepEqual(given, []);
});

test('the audit has who changed which camera, and nothing of its settings', async (t) => {
  const { ask, lines } = await setup(t);
  const written = { ...SETTINGS, source: 'rtsp://admin:secret@10.0.0.9/live' };
  await ask('POST', '/api/cameras', written);
  await ask('PUT', '/api/cameras/gate', written, as('operator'));
  await ask('DELETE', '/api/cameras/gate');
  assert.deepEqual(
    lines.map(({ what, caller, camera, outcome }) => [what, caller, camera, outcome]),
    [
      ['add-camera', 'admin', 'gate', 'done'],
      ['change-camera', 'operator', 'gate', 'denied'],
      ['remove-camera', 'admin', 'gate', 'done'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(lines), /secret|10\.0\.0\.9/);
});

test('an address is tried out by the doctor, one at a time, and the audit has its host', async (t) => {
  const asked: unknown[] = [];
  let busy = false;
  const doctor: Examiner = {
    report: () => assert.fail('not asked'),
    capture: () => assert.fail('not asked'),
    async tryOut(camera, seconds) {
      if (busy) throw new DoctorBusy('another camera is being examined');
      asked.push([camera, seconds]);
      const none = {
        login: [],
        methods: [],
        answers: [],
        unanswered: [],
        streams: [],
        not_recorded: [],
        not_believed: [],
      };
      const reason = { code: 'refused-login', message: 'the camera refuses the login' };
      return { seconds: 1, state: 'retrying', reason, ...none, recorded: {}, runs_ended: [], rows: [] };
    },
  };
  const { ask, lines } = await setup(t, undefined, doctor);
  const source = 'rtsp://admin:secret@10.0.0.9/live';
  const tried = await ask('POST', '/api/cameras/test', { source });
  assert.deepEqual([tried.statusCode, tried.json().reason.code], [200, 'refused-login']);
  assert.match(tried.json().reason.todo, /password/, 'what to do');
  const defaults = { transport: 'auto', tls: { verify: false }, allowPlaintextLogin: false };
  assert.deepEqual(asked, [[{ source, ...defaults }, 10]]);
  const own = await ask('POST', '/api/cameras/test', { source: 'rtsp://admin@10.0.0.9/live', id: 'gate' });
  assert.equal(own.statusCode, 200);
  assert.deepEqual(asked.at(-1), [{ source: 'rtsp://admin:stored@10.0.0.9/live', ...defaults }, 10]);
  for (const [wrong, detail] of [
    [{}, /^source: is missing/],
    [{ source: 'http://x/' }, /^source: expected an address/],
    [{ source, seconds: 31 }, /^seconds: expected a number of seconds from 1 to 30/],
    [{ source, transport: 'x' }, /^transport: expected one of auto/],
  ] as const) {
    const { statusCode, body } = await ask('POST', '/api/cameras/test', wrong);
    assert.equal(statusCode, 400);
    assert.match(JSON.parse(body).detail, detail);
  }
  busy = true;
  const refused = await ask('POST', '/api/cameras/test', { source });
  assert.deepEqual([refused.statusCode, refused.json().code], [409, 'doctor-busy']);
  assert.deepEqual([lines[0]?.what, lines[0]?.['host']], ['test-camera', '10.0.0.9']);
  assert.doesNotMatch(JSON.stringify(lines), /secret/);
});
