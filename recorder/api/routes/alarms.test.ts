import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Alarm } from '../../alarms/alarm.ts';
import { HappeningError } from '../../happenings/happening.ts';
import { as, build, token } from '../test-support.ts';

const alarm = (id: string, cameraId: string | undefined, startMs: number): Alarm => ({
  id,
  cameraId,
  code: 'camera-unreachable',
  message: undefined,
  startMs,
  endMs: undefined,
  count: 1,
  acknowledged: undefined,
  isMailed: false,
  isEscalated: false,
});

async function stage(t: TestContext, { isBroken = false } = {}) {
  const list = [alarm('3', 'yard', 3_000), alarm('2', 'gate', 2_000), alarm('1', undefined, 1_000)];
  const asked: unknown[] = [];
  const refuse = (): void => {
    if (isBroken) throw new HappeningError('not-kept', 'the disk hangs');
  };
  const { app } = await build(t, {
    auth: { mode: 'token', tokens: [token('viewer'), { ...token('operator'), cameras: ['gate'] }] },
    alarms: {
      list,
      notes: [{ id: 'n', by: 'anna', atMs: 5_000, note: 'all quiet' }],
      async acknowledge(id, by, note) {
        refuse();
        asked.push([id, by, note]);
        const found = list.find((one) => one.id === id);
        return found && { ...found, acknowledged: { by, atMs: 9_000, note } };
      },
      async write(by, note) {
        refuse();
        return { id: 'm', by, atMs: 9_000, note };
      },
    },
  });
  const list_ = async (role: 'viewer' | 'operator') =>
    (await app.inject({ url: '/api/alarms?scope=cluster', headers: as(role) })).json() as {
      alarms: { id: string }[];
      log: unknown[];
    };
  const post = async (role: 'viewer' | 'operator', path: string, payload: object) => {
    const answer = await app.inject({ method: 'POST', url: `/api/alarms/${path}`, headers: as(role), payload });
    return { status: answer.statusCode, body: answer.json() as Record<string, unknown> };
  };
  return { list: list_, post, asked };
}

test('alarms are listed newest first, those of cameras only for who may see them', async (t) => {
  const { list } = await stage(t);
  const all = await list('viewer');
  assert.deepEqual(
    all.alarms.map(({ id }) => id),
    ['3', '2', '1'],
  );
  assert.deepEqual(all.log, [{ id: 'n', node_id: 'rack-1', by: 'anna', at_ms: 5_000, text: 'all quiet' }]);
  assert.deepEqual(
    (await list('operator')).alarms.map(({ id }) => id),
    ['2', '1'],
  );
});

test('an operator acknowledges an alarm of a camera that is in scope, with or without a note', async (t) => {
  const { post, asked } = await stage(t);
  const { status, body } = await post('operator', '2/acknowledge', { note: ' the cable was cut ' });
  assert.deepEqual([status, body['acknowledged']], [200, { by: 'operator', at_ms: 9_000, note: 'the cable was cut' }]);
  assert.equal((await post('operator', '1/acknowledge', {})).status, 200);
  assert.deepEqual(asked, [
    ['2', 'operator', 'the cable was cut'],
    ['1', 'operator', undefined],
  ]);
  for (const id of ['3', 'none']) {
    const refused = await post('operator', `${id}/acknowledge`, {});
    assert.deepEqual([refused.status, refused.body['code']], [404, 'alarm-not-found']);
  }
  assert.equal((await post('viewer', '2/acknowledge', {})).status, 403);
  assert.equal((await post('operator', '2/acknowledge', { note: 'x'.repeat(1_001) })).status, 400);
});

test('an operator writes into the log of the shift, and an empty text is refused', async (t) => {
  const { post } = await stage(t);
  const { status, body } = await post('operator', 'log', { text: 'round made' });
  assert.deepEqual([status, body['by'], body['text']], [201, 'operator', 'round made']);
  assert.equal((await post('operator', 'log', { text: '  ' })).status, 400);
  assert.equal((await post('viewer', 'log', { text: 'x' })).status, 403);
});

test('what the disk does not take is refused', async (t) => {
  const { post } = await stage(t, { isBroken: true });
  assert.equal((await post('operator', '2/acknowledge', {})).status, 503);
  assert.equal((await post('operator', 'log', { text: 'x' })).status, 503);
});
