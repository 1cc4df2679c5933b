import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { CameraFile } from '../../recorder/config/schema.ts';
import { hidePassword, keepPassword } from '../../recorder/config/passwords.ts';
import { draftOf, fieldOf, FIELDS, settingsOf, type Draft } from './fields.ts';

const SETTINGS = {
  id: 'gate',
  source: 'rtsp://admin@10.0.0.9/live',
  record: { retention: { maxAge: '30d' } },
  ptz: true,
};
const changed = (change: Draft, settings: Readonly<Record<string, unknown>> = SETTINGS) =>
  settingsOf(settings, { ...draftOf(settings), ...change });

test('every setting of a camera has a field, and every field is a setting', () => {
  const paths = (schema: unknown, prefix = ''): string[] => {
    const { properties } = schema as { readonly properties?: Readonly<Record<string, unknown>> };
    return properties
      ? Object.entries(properties).flatMap(([key, inner]) => paths(inner, prefix === '' ? key : `${prefix}.${key}`))
      : [prefix];
  };
  const wanted = paths(CameraFile.toJSONSchema({ io: 'input', unrepresentable: 'any' })).filter(
    (path) => path !== 'id',
  );
  const shown = FIELDS.map(({ path }) => path).filter((path) => path !== 'user' && path !== 'password');
  assert.deepEqual(shown.toSorted(), wanted.toSorted());
});

test('what is not changed stays, and a field that is emptied is a setting that is left out', () => {
  assert.deepEqual(changed({}), SETTINGS);
  assert.deepEqual(changed({ 'record.retention.maxAge': '', ptz: false, name: '前门' }), {
    id: 'gate',
    source: SETTINGS.source,
    name: '前门',
  });
  assert.deepEqual(changed({ maxBitrate: '20', 'edge.onvif': true, enabled: false }), {
    ...SETTINGS,
    maxBitrate: 20,
    edge: { onvif: true },
    enabled: false,
  });
});

test('user and password are fields of their own, and a login that is emptied is removed', () => {
  const draft = draftOf(SETTINGS);
  assert.deepEqual([draft['source'], draft['user'], draft['password']], ['rtsp://10.0.0.9/live', 'admin', '']);
  const sources = [
    { password: 'p@ss:w/rd' },
    { user: 'eve', password: 'x' },
    { user: '' },
    { source: 'rtsp://10.0.0.9/other' },
    { source: 'rtsp://bob:b@10.0.0.9/' },
  ].map((change) => changed(change)['source']);
  assert.deepEqual(sources, [
    'rtsp://admin:p%40ss%3Aw%2Frd@10.0.0.9/live',
    'rtsp://eve:x@10.0.0.9/live',
    'rtsp://@10.0.0.9/live',
    'rtsp://admin@10.0.0.9/other',
    'rtsp://bob:b@10.0.0.9/',
  ]);
  assert.equal(changed({ user: 'eve' }, { source: 'rtsp://10.0.0.9/' })['source'], 'rtsp://eve@10.0.0.9/');
});

test('whatever the login is, an address that is shown and saved again keeps it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (user, password) => {
      const stored = `rtsp://${encodeURIComponent(user.toWellFormed())}:${encodeURIComponent(password.toWellFormed())}@10.0.0.9/live`;
      const settings = { source: hidePassword(stored) };
      assert.equal(keepPassword(changed({ name: 'x' }, settings)['source'] as string, stored), stored);
      const moved = changed({ source: 'rtsp://10.0.0.9/other' }, settings)['source'] as string;
      assert.equal(keepPassword(moved, stored), stored.replace('/live', '/other'));
    }),
  );
});

test('an error is at its field, a missing password at that of the password', () => {
  assert.equal(fieldOf('record.retention.maxAge', 'expected a duration'), 'record.retention.maxAge');
  assert.equal(fieldOf('source', 'its host, port or user has changed: add the password'), 'password');
  assert.equal(fieldOf('source', 'expected an address'), 'source');
});
