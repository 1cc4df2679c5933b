import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../base/clock.ts';
import { ApiError } from '../../base/kubernetes/api-error.ts';
import { silentLog } from '../../base/log.ts';
import { until } from '../../test/support/until.ts';
import { Expulsion, ExpulsionError } from './expulsion.ts';
import { NoKeyError } from './issuer.ts';
import { RotationError } from './key-rotation.ts';
import { nodesPath, type StoreApi } from './secrets.ts';

const NODE = `${nodesPath('default')}/rack-3`;

/** A cluster in which rack-1 expels rack-3. `rotate` is what becomes of the key of Secrets; `hasKey`: rack-1 has that of the CA. */
function stage({ rotate = async (): Promise<void> => {}, hasKey = true } = {}) {
  const clock = new VirtualClock();
  const done: string[] = [];
  const nodes = new Set([NODE, `${nodesPath('default')}/rack-1`]);
  const note = (what: string) => async (): Promise<void> => void done.push(what);
  const api = {
    get: async (path: string) => {
      if (!nodes.has(path)) throw new ApiError(404, 'NotFound', 'it is not there');
      return {};
    },
    call: async (method: string, path: string, body?: { spec: { role: string } }) => {
      done.push(`${method} ${path === NODE ? 'rack-3' : path} ${body?.spec.role ?? ''}`.trim());
      if (method === 'DELETE') nodes.delete(path);
    },
  } as unknown as StoreApi;
  const expulsion = new Expulsion({
    api,
    namespace: 'default',
    nodeId: 'rack-1',
    etcd: { expel: async (nodeId) => void done.push(`etcd ${nodeId}`) },
    tokens: { removeAll: note('tokens') },
    logins: { forget: async (nodeId) => void done.push(`logins ${nodeId}`) },
    keys: {
      rotate: async ({ force }) => {
        await rotate();
        done.push(`keys${force ? ' by force' : ''}`);
        return { key: 'k2', secrets: 1, away: [] };
      },
    },
    authorities: {
      requireKey: async () => {
        if (!hasKey) throw new NoKeyError('do this on one of rack-2');
      },
      replace: async ({ began }) => {
        for (const step of ['trust', 'certificate', 'drop'] as const) began(step);
        done.push('authorities');
        return ['rack-4'];
      },
    },
    secrets: async () => ['gate-login'],
    clock,
    log: silentLog,
  });
  return { expulsion, done, clock };
}

test('a server is removed before anything is replaced, and its node goes last', async () => {
  const { expulsion, done } = stage();
  const begun = await expulsion.begin('rack-3', { force: true });
  assert.deepEqual([begun.nodeId, begun.step], ['rack-3', 'remove']);
  await until('it is done', () => expulsion.state?.step === 'done');
  assert.deepEqual(done, [
    'PATCH rack-3 Removed',
    'etcd rack-3',
    'tokens',
    'logins rack-3',
    'keys by force',
    'authorities',
    'DELETE rack-3',
  ]);
  const { problem, away, secrets } = expulsion.state ?? {};
  assert.deepEqual([problem, away, secrets], [undefined, ['rack-4'], ['gate-login']]);
  await assert.rejects(
    expulsion.begin('rack-3', { force: false }),
    (err) => err instanceof ExpulsionError && err.code === 'unknown-node',
  );
});

test('what cannot be replaced is told, and the server can be expelled again', async () => {
  let isRefused = true;
  const { expulsion, done } = stage({
    rotate: async () => {
      if (isRefused) throw new RotationError('rack-2 is away');
    },
  });
  await expulsion.begin('rack-3', { force: false });
  await until('it has failed', () => expulsion.state?.problem !== undefined);
  assert.deepEqual([expulsion.state?.step, expulsion.state?.problem], ['keys', 'rack-2 is away']);
  assert.ok(!done.includes('authorities'));
  isRefused = false;
  await expulsion.begin('rack-3', { force: false });
  await until('it is done', () => expulsion.state?.step === 'done');
});

test('while etcd does not answer it is asked again', async () => {
  let failures = 3;
  const { expulsion, clock } = stage({
    rotate: async () => {
      if (failures-- > 0) throw new ApiError(0, 'UNREACHABLE', 'etcd does not answer');
    },
  });
  await expulsion.begin('rack-3', { force: false });
  await until('it is done', () => {
    clock.advance(500);
    return expulsion.state?.step === 'done';
  });
});

test('a server without the key of the CA expels nobody, and says which one has it', async () => {
  const { expulsion, done } = stage({ hasKey: false });
  await assert.rejects(
    expulsion.begin('rack-3', { force: true }),
    (err) => err instanceof ExpulsionError && err.code === 'refused' && /one of rack-2/.test(err.message),
  );
  assert.deepEqual([done, expulsion.state], [[], undefined]);
});

test('a server does not expel itself, and expels one at a time', async () => {
  const { expulsion } = stage({ rotate: () => new Promise(() => {}) });
  const refused = (words: RegExp) => (err: unknown) => err instanceof ExpulsionError && words.test(err.message);
  await assert.rejects(expulsion.begin('rack-1', { force: false }), refused(/rack-1 is this server/));
  await expulsion.begin('rack-3', { force: false });
  await assert.rejects(expulsion.begin('rack-4', { force: false }), refused(/rack-3 is being expelled/));
  assert.equal((await expulsion.begin('rack-3', { force: false })).nodeId, 'rack-3', 'it goes on');
});
