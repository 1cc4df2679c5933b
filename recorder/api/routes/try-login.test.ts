import assert from 'node:assert/strict';
import { test } from 'node:test';
import { archiveStatus, as, build, cameraStatus, token } from '../test-support.ts';

test('an operator has a refused login tried again, which the audit records; a viewer and strangers may not', async (t) => {
  const tried: string[] = [];
  const lines: Readonly<Record<string, unknown>>[] = [];
  const scoped = { ...token('operator', 'scoped'), name: 'scoped', cameras: ['dock-*'] };
  const { app, cameras } = await build(t, {
    auth: { mode: 'token', tokens: [token('viewer'), token('operator'), scoped] },
    tryLogins: async (cameraId) => tried.push(cameraId),
    audit: { sink: { write: (line: object) => void lines.push({ ...line }) } },
  });
  cameras.push({ status: cameraStatus(), archive: archiveStatus(), live: undefined });
  const ask = async (id: string, headers: Record<string, string> = as('operator')) => {
    const answer = await app.inject({ method: 'POST', url: `/api/cameras/${id}/try-login`, headers });
    return [answer.statusCode, answer.json<{ readonly code?: string; readonly ended?: number }>()] as const;
  };
  assert.deepEqual(await ask('gate'), [200, { status: 'ok', ended: 1 }]);
  assert.equal((await ask('gate', {}))[0], 401);
  assert.equal((await ask('gate', as('viewer')))[0], 403);
  const [unknown, hidden] = [await ask('nobody'), await ask('gate', { authorization: 'Bearer scoped' })];
  for (const [status, { code }] of [unknown, hidden]) assert.deepEqual([status, code], [404, 'unknown-camera']);
  assert.deepEqual(tried, ['gate']);
  assert.deepEqual(
    lines.map(({ what, caller, camera, status }) => [what, caller, camera, status]),
    [
      ['try-login', 'operator', 'gate', 200],
      ['try-login', null, 'gate', 401],
      ['try-login', 'viewer', 'gate', 403],
      ['try-login', 'operator', 'nobody', 404],
      ['try-login', 'scoped', 'gate', 404],
    ],
  );
});
