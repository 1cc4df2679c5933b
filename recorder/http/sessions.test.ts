import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { DAY_MS, HOUR_MS } from '../../base/units.ts';
import { Seal, SEAL_KEY_BYTES } from './seal.ts';
import { Sessions } from './sessions.ts';

const request = { protocol: 'https' } as const;

/** How long a session lasts whose cookie is replaced by each request, at this interval: looked at for 60 days. */
function lastsWith(intervalMs: number): number {
  const clock = new VirtualClock();
  const sessions = new Sessions(new Seal({ nodeId: 'node-1', secret: randomBytes(SEAL_KEY_BYTES) }), clock);
  const startMs = clock.wallMs();
  let { setCookie } = sessions.begin(request, { user: 'anna' });
  while (clock.wallMs() - startMs < 60 * DAY_MS) {
    clock.advance(intervalMs);
    const open = sessions.of({ ...request, headers: { cookie: setCookie.split(';', 1)[0] } });
    if (!open) return clock.wallMs() - startMs;
    ({ setCookie } = sessions.begin(request, open.holder, open));
  }
  return Infinity;
}

test('a session that is used ends 30 days after its password was entered', () => {
  assert.equal(lastsWith(HOUR_MS), 30 * DAY_MS);
  assert.equal(lastsWith(10 * HOUR_MS), 30 * DAY_MS);
});

test('a session that is not used ends after 12 hours', () => {
  assert.equal(lastsWith(12 * HOUR_MS), 12 * HOUR_MS);
});

test('over TLS the cookie has a name that browsers take from this origin only, and no other is accepted', () => {
  const sessions = new Sessions(
    new Seal({ nodeId: 'node-1', secret: randomBytes(SEAL_KEY_BYTES) }),
    new VirtualClock(),
  );
  const { setCookie } = sessions.begin(request, { user: 'anna' });
  assert.match(
    setCookie,
    /^__Host-kube_nvr_session=[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  );
  assert.match(sessions.forget(request), /^__Host-kube_nvr_session=; Path=\/; Max-Age=0;.*; Secure$/);
  const [cookie = ''] = setCookie.split(';', 1);
  const accepts = (protocol: 'http' | 'https', text: string): boolean =>
    sessions.of({ protocol, headers: { cookie: text } }) !== undefined;
  assert.equal(accepts('https', `kube_nvr_session=x; ${cookie}`), true);
  assert.equal(accepts('https', cookie.replace('__Host-', '')), false);
  assert.equal(accepts('http', cookie), false);
});
