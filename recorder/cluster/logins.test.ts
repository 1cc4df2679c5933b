import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { ApiServerError, type KubernetesObject } from './api-server.ts';
import { isLogin, Logins } from './logins.ts';

const NAME = 'gate-login';
const SECRETS = new Set([NAME]);
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** `answer`: returns or throws the API server's response. */
function setting(answer: () => KubernetesObject) {
  const clock = new VirtualClock();
  const api = { get: async () => answer() };
  const logins = new Logins({ api, namespace: 'home', changed: () => {}, clock, log: silentLog });
  return {
    logins,
    /** Advances the time, and reads what is due. */
    look: async (ms: number, withdrawn: ReadonlySet<string> = new Set()): Promise<void> => {
      clock.advance(ms);
      logins.tick(SECRETS, withdrawn);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const secret = (hosts?: string): KubernetesObject =>
  ({
    metadata: { name: NAME, ...(hosts && { annotations: { 'kube-nvr.dev/camera-hosts': hosts } }) },
    data: { username: base64('u'), password: base64('p') },
  }) as unknown as KubernetesObject;

const forbidden = (): never => {
  throw new ApiServerError(403, 'Forbidden', 'no');
};

test('a Secret that names hosts no more has its login without them at the next look', async () => {
  let hosts: string | undefined = '10.0.0.9';
  const { logins, look } = setting(() => secret(hosts));
  await look(0);
  assert.deepEqual(logins.get(NAME), { username: 'u', password: 'p', hosts: ['10.0.0.9'] });
  hosts = undefined;
  await look(600_000);
  assert.deepEqual(logins.get(NAME), { username: 'u', password: 'p', hosts: undefined });
});

test('a login that was read is kept while its Secret is gone or has no keys, until it is there again', async () => {
  let answer = (): KubernetesObject => secret('10.0.0.9');
  const { logins, look } = setting(() => answer());
  await look(0);
  const absent = (): never => {
    throw new ApiServerError(404, 'NotFound', 'no');
  };
  const empty = (): KubernetesObject => ({ ...secret('10.0.0.9'), data: {} });
  for (const gone of [absent, empty]) {
    answer = gone;
    await look(600_000);
    await look(10_000);
    assert.deepEqual(logins.get(NAME), { username: 'u', password: 'p', hosts: ['10.0.0.9'] });
    assert.equal(logins.known().size, 1, 'also for the next process');
  }
  answer = () => secret('10.0.0.8');
  await look(10_000);
  assert.deepEqual((logins.get(NAME) as { hosts?: unknown }).hosts, ['10.0.0.8']);
});

test('without a Secret that was ever read there is no login', async () => {
  const { logins, look } = setting(() => {
    throw new ApiServerError(404, 'NotFound', 'no');
  });
  await look(0);
  assert.equal((logins.get(NAME) as { reason?: string }).reason, 'SecretNotFound');
});

test('a login is forgotten when the operator says that it is none and took the right to it away, and not before', async () => {
  let answer = (): KubernetesObject => secret('10.0.0.9');
  const { logins, look } = setting(() => answer());
  await look(0);
  answer = forbidden;
  await look(600_000);
  assert.ok(isLogin(logins.get(NAME)), 'a Role that somebody has deleted stops no camera');
  await look(10_000, SECRETS);
  assert.deepEqual(
    { reason: 'SecretForbidden', known: 0 },
    { reason: (logins.get(NAME) as { reason?: string }).reason, known: logins.known().size },
  );
  answer = () => secret('10.0.0.8');
  await look(5_000, SECRETS);
  assert.deepEqual((logins.get(NAME) as { hosts?: unknown }).hosts, ['10.0.0.8'], 'it names hosts again');
});
