import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { POOL_LABEL } from '../../crds/names.ts';
import { renewMsOf } from '../../crds/renewal.ts';
import { ApiServerError } from './api-server.ts';
import { NodeLease } from './node-lease.ts';

const RENEW_MS = 2_000;
const STEP_MS = 100;
/** After which a renewal without an answer is given up. */
const TIMEOUT_MS = 2_500;

/** A Lease on an API server that takes `answerMs` for each renewal, or fails it. */
function stage(t: TestContext) {
  const clock = new VirtualClock();
  const server = { pool: 'default', answerMs: 0, fails: false, losesAnswer: false, isAbsent: false, renewMs: RENEW_MS };
  const seen = {
    reads: 0,
    renewals: [] as number[],
    announced: [] as number[],
    recovered: 0,
    reconnects: 0,
    holders: [] as string[],
  };
  let version = 1;
  const object = () => ({ metadata: { name: 'node-a', resourceVersion: String(version) } });
  const lease = new NodeLease({
    api: {
      get: async () => {
        seen.reads++;
        if (server.isAbsent) throw new ApiServerError(404, 'NotFound', 'not found');
        return { metadata: { ...object().metadata, labels: { [POOL_LABEL]: server.pool } } };
      },
      call: async (_method, _path, body) => {
        const { metadata, spec } = body as {
          metadata: { resourceVersion: string };
          spec: { leaseDurationSeconds: number; holderIdentity: string };
        };
        seen.holders.push(spec.holderIdentity);
        if (metadata.resourceVersion !== String(version)) throw new ApiServerError(409, 'Conflict', 'changed before');
        seen.renewals.push(clock.monotonicMs());
        seen.announced.push(spec.leaseDurationSeconds);
        if (server.answerMs > 0) await new Promise<void>((resolve) => clock.after(server.answerMs, resolve));
        if (server.fails) throw new ApiServerError(0, 'UNREACHABLE', 'no answer');
        version++;
        if (server.losesAnswer) {
          await new Promise<void>((resolve) => clock.after(TIMEOUT_MS, resolve));
          throw new ApiServerError(0, 'UNREACHABLE', 'no answer');
        }
        return object();
      },
    },
    reconnect: () => seen.reconnects++,
    namespace: 'video',
    nodeId: 'a',
    pool: 'default',
    renewMs: () => server.renewMs,
    recovered: () => seen.recovered++,
    clock,
    log: silentLog,
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) {
      clock.advance(STEP_MS);
      await setImmediate();
    }
  };
  lease.start();
  t.after(async () => {
    const closed = lease.close();
    clock.advance(RENEW_MS);
    await closed;
  });
  return { clock, lease, pass, seen, server };
}

test('a Lease is renewed every two seconds, however long each answer takes', async (t) => {
  const { pass, seen, server } = stage(t);
  server.answerMs = 1_500;
  await pass(60);
  const gaps = seen.renewals.slice(1).map((ms, i) => ms - (seen.renewals[i] as number));
  assert.ok(gaps.length >= 28, `${gaps.length} renewals in a minute`);
  assert.ok(
    gaps.every((ms) => Math.abs(ms - RENEW_MS) <= STEP_MS),
    gaps.join(),
  );
});

test('the Lease of a new node, which the operator is about to make, is looked for soon, and ever less often', async (t) => {
  const { lease, pass, seen, server } = stage(t);
  server.isAbsent = true;
  await pass(1);
  assert.equal(seen.reads, 3);
  await pass(20);
  assert.ok(seen.reads <= 15, `${seen.reads} reads in 21 s`);
  server.isAbsent = false;
  await pass(3);
  assert.ok(lease.isHeld);
});

test('after renewals that failed, the first that succeeds says that the API server is back, and once', async (t) => {
  const { lease, pass, seen, server } = stage(t);
  await pass(10);
  assert.deepEqual([lease.isHeld, seen.recovered], [true, 0]);
  server.fails = true;
  await pass(10);
  assert.equal(lease.isHeld, false);
  assert.ok(seen.reconnects >= 2, 'a link that carries nothing is replaced again and again');
  server.fails = false;
  await pass(10);
  assert.deepEqual([lease.isHeld, seen.recovered], [true, 1]);
});

test('the Lease of another pool on the same node is left alone, until this pool has it', async (t) => {
  const { lease, pass, seen, server } = stage(t);
  server.pool = 'second';
  await pass(20);
  assert.deepEqual([seen.renewals, lease.isOurs, lease.isHeld], [[], false, false]);
  server.pool = 'default';
  await pass(4);
  assert.ok(seen.renewals.length > 0 && lease.isOurs && lease.isHeld);
});

test('the renewal that is under way at the end is waited for, and none follows', async (t) => {
  const { clock, lease, pass, seen, server } = stage(t);
  await pass(10);
  server.answerMs = 1_000;
  await pass(2);
  const before = seen.renewals.length;
  const closed = lease.close();
  clock.advance(1_000);
  await closed;
  await pass(10);
  assert.equal(seen.renewals.length, before);
});

test('a change of the pool’s interval is announced at once, and a longer one begins when it is announced', async (t) => {
  const { clock, lease, pass, seen, server } = stage(t);
  await pass(10);
  server.renewMs = 20_000;
  server.fails = true;
  lease.renewalChanged();
  const before = seen.renewals.length;
  await pass(10);
  assert.ok(seen.renewals.length - before >= 5, 'observers expect the short interval until they are told');
  server.fails = false;
  await pass(2);
  assert.equal(seen.announced.at(-1), 140);
  const since = seen.renewals.length;
  await pass(60);
  assert.equal(seen.renewals.length - since, 3);
  server.renewMs = RENEW_MS;
  const atMs = clock.monotonicMs();
  lease.renewalChanged();
  await pass(1);
  assert.ok((seen.renewals.at(-1) ?? 0) - atMs <= STEP_MS, 'not only after the long interval');
  assert.equal(seen.announced.at(-1), 14);
});

test('events of an unchanged pool renew nothing', async (t) => {
  const { lease, pass, seen } = stage(t);
  await pass(10);
  const before = seen.renewals.length;
  for (let i = 0; i < 10; i++) {
    lease.renewalChanged();
    await pass(0.1);
  }
  assert.ok(seen.renewals.length - before <= 1);
});

test('with a long interval, a renewal that failed is tried again within seconds', async (t) => {
  const { pass, seen, server } = stage(t);
  server.renewMs = 20_000;
  await pass(65);
  server.fails = true;
  await pass(20);
  const before = seen.renewals.length;
  server.fails = false;
  await pass(2.5);
  assert.ok(seen.renewals.length > before);
});

test('a longer interval that is wanted while a renewal is under way does not begin before the next renewal', async (t) => {
  const { lease, pass, seen, server } = stage(t);
  await pass(10);
  server.answerMs = 1_000;
  await pass(2.5);
  const before = seen.renewals.length;
  server.renewMs = 20_000;
  lease.renewalChanged();
  await pass(2);
  assert.equal(seen.renewals.length, before + 1);
  assert.equal(seen.announced.at(-1), 140);
});

test('a renewal whose answer was lost is followed by the next one as soon as it is given up', async (t) => {
  const { pass, seen, server } = stage(t);
  await pass(9);
  server.losesAnswer = true;
  const before = seen.renewals.length;
  await pass(2);
  assert.equal(seen.renewals.length, before + 1);
  server.losesAnswer = false;
  await pass(3);
  const [lost = 0, next = Infinity] = seen.renewals.slice(before);
  assert.ok(next - lost <= TIMEOUT_MS + STEP_MS, `${next - lost} ms`);
});

test('a recorder that ends says so once, with the name of its node and no process, and renews no more', async (t) => {
  const { lease, pass, seen } = stage(t);
  await pass(3);
  const { length } = seen.holders;
  lease.release();
  await lease.close();
  await pass(10);
  assert.match(seen.holders[0] ?? '', /^a\/./);
  assert.deepEqual(seen.holders.slice(length), ['a/']);
  assert.equal(renewMsOf(seen.announced.at(-1)), RENEW_MS, 'the node is judged by the same interval as before');
});

test('a recorder that never renewed its Lease has nothing to release', async (t) => {
  const { lease, pass, seen, server } = stage(t);
  server.isAbsent = true;
  await pass(3);
  lease.release();
  await pass(10);
  assert.deepEqual(seen.holders, []);
});
