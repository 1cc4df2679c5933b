import { test } from 'node:test';
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { ApiError, type KubeApi } from './api.ts';
import { LeaderElector } from './leader.ts';
import { LEASE } from './resources.ts';
import { MemoryApi, settle } from './test-support.ts';
import { writesOfLeader } from './writes-of-leader.ts';

const NAME = { namespace: 'system', name: 'kube-nvr-operator' };

/** A replica with its own clock, so that it can be frozen or have a wrong wall clock. */
class Replica {
  readonly clock: VirtualClock;
  readonly elector: LeaderElector;
  readonly terms: ('began' | 'ended')[] = [];
  /** The signal of the last term. */
  term: AbortSignal | undefined;
  readonly #stop = new AbortController();
  readonly #run: Promise<void>;
  /** The work ends by itself. */
  endWork: () => void = () => {};
  /** Work that must complete before a term ends. */
  finishWork: Promise<void> = Promise.resolve();

  constructor(api: KubeApi, identity: string, wallMs = Date.UTC(2026, 0, 1)) {
    this.clock = new VirtualClock(wallMs);
    this.elector = new LeaderElector({
      api,
      namespace: NAME.namespace,
      identity,
      clock: this.clock,
      log: silentLog,
      random: () => 0,
    });
    this.#run = this.elector.run(async (signal) => {
      this.terms.push('began');
      this.term = signal;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.endWork = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
      await promise;
      await this.finishWork;
      this.terms.push('ended');
    }, this.#stop.signal);
  }

  get leads(): boolean {
    return this.elector.isLeader;
  }

  stop(): Promise<void> {
    this.#stop.abort();
    return this.#run;
  }
}

/** Advances all clocks together, in steps, so that all replicas can react in between. */
async function pass(ms: number, ...replicas: Replica[]): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 500) {
    await settle();
    for (const { clock } of replicas) clock.advance(500);
  }
  await settle();
}

async function specOf(api: MemoryApi): Promise<Record<string, unknown>> {
  return (await api.get(LEASE, NAME))['spec'] as Record<string, unknown>;
}

test('the first replica leads, the second waits', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const b = new Replica(api, 'b');
  await pass(60_000, a, b);
  assert.deepEqual([a.leads, b.leads], [true, false]);
  assert.deepEqual([a.terms, b.terms], [['began'], []]);
  assert.equal(b.elector.holder, 'a');
  const spec = await specOf(api);
  assert.equal(spec['leaseTransitions'], 1);
  assert.match(String(spec['renewTime']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  await Promise.all([a.stop(), b.stop()]);
});

test('a term of many renewals has as many listeners as one of few', async () => {
  const a = new Replica(new MemoryApi(), 'a');
  await pass(10_000, a);
  const listeners = (): number => getEventListeners(a.term ?? assert.fail('no term'), 'abort').length;
  const few = listeners();
  await pass(200_000, a);
  assert.equal(listeners(), few);
  await a.stop();
});

test('a leader whose work ends by itself gives the Lease up, and stands for election again', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const b = new Replica(api, 'b');
  await pass(5_000, a, b);
  a.endWork();
  await settle();
  assert.equal((await specOf(api))['holderIdentity'], undefined);
  await pass(10_000, a, b);
  assert.equal([a, b].filter(({ leads }) => leads).length, 1);
  assert.deepEqual(a.terms.slice(0, 2), ['began', 'ended']);
  await Promise.all([a.stop(), b.stop()]);
});

test('two replicas that start at once: one creates the Lease', async () => {
  const api = new MemoryApi();
  const replicas = ['a', 'b', 'c'].map((identity) => new Replica(api, identity));
  await pass(30_000, ...replicas);
  assert.equal(replicas.filter((replica) => replica.leads).length, 1);
  await Promise.all(replicas.map((replica) => replica.stop()));
});

test('a leader that dies is replaced 10 s after its last renewal, and not before', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const b = new Replica(api, 'b');
  await pass(9_000, a, b);
  // From here on the clock of `a` does not move: its process is dead.
  const fromMs = b.clock.monotonicMs();
  while (!b.leads && b.clock.monotonicMs() - fromMs < 60_000) await pass(500, b);
  const tookMs = b.clock.monotonicMs() - fromMs;
  assert.ok(tookMs >= 8_000 && tookMs <= 14_000, `${tookMs} ms`);
  await b.stop();
});

test('the times in a Lease are not believed: clocks that differ by an hour change nothing', async () => {
  const api = new MemoryApi();
  const now = Date.UTC(2026, 0, 1);
  const a = new Replica(api, 'a', now - 3_600_000);
  await settle();
  const b = new Replica(api, 'b', now + 3_600_000);
  await pass(60_000, a, b);
  assert.deepEqual([a.leads, b.leads], [true, false]);
  await Promise.all([a.stop(), b.stop()]);
});

test('a leader that was frozen knows when it wakes up, before anything else, that it leads no more', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const guarded = writesOfLeader(api, () => a.leads);
  const camera = { metadata: { namespace: 'home', name: 'gate' } };
  await guarded.create(LEASE, camera);
  // Thirty seconds during which no timer ran.
  const frozen = a.clock.monotonicMs();
  a.clock.monotonicMs = () => frozen + 30_000;
  assert.equal(a.leads, false);
  await assert.rejects(guarded.create(LEASE, camera), { reason: 'NOT_LEADER' });
  await assert.rejects(guarded.delete(LEASE, camera.metadata), { reason: 'NOT_LEADER' });
  assert.equal((await guarded.get(LEASE, camera.metadata)).metadata.name, 'gate');
  assert.equal(api.count('delete'), 0);
  await a.stop();
});

test('a leader that cannot renew ends its term before another can begin one', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  await pass(4_000, a);
  api.before = () => {
    throw new ApiError(0, 'UNREACHABLE', 'cut off');
  };
  await pass(7_500, a);
  assert.equal(a.leads, false);
  assert.deepEqual(a.terms, ['began', 'ended']);
  api.before = () => {};
  await pass(5_000, a);
  assert.equal(a.leads, true, 'it takes part again');
  await a.stop();
});

test('a call that hangs does not prolong a term', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  api.before = (verb) => (verb === 'replace' ? new Promise<void>(() => {}) : undefined);
  await pass(6_500, a);
  assert.deepEqual([a.leads, a.terms], [true, ['began']]);
  await pass(1_000, a);
  assert.deepEqual([a.leads, a.terms], [false, ['began', 'ended']]);
});

test('an answer that comes when the term is over makes no leader', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  await pass(1_000, a);
  const late = Promise.withResolvers<void>();
  api.after = (verb) => (verb === 'replace' ? late.promise : undefined);
  await pass(7_000, a);
  assert.deepEqual(a.terms, ['began', 'ended']);
  api.after = () => {};
  late.resolve();
  await settle();
  assert.equal(a.leads, false);
  await pass(5_000, a);
  assert.deepEqual([a.leads, a.terms], [true, ['began', 'ended', 'began']]);
  await a.stop();
});

test('a renewal whose answer was lost is found to be our own', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  let isLost = false;
  api.after = (verb) => {
    if (verb !== 'replace' || isLost) return;
    isLost = true;
    throw new ApiError(0, 'UNREACHABLE', 'the answer was lost');
  };
  await pass(20_000, a);
  assert.ok(isLost);
  assert.deepEqual(a.terms, ['began']);
  assert.equal(a.leads, true);
  await a.stop();
});

test('a Lease that was deleted is made again, without a new term', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  await api.delete(LEASE, NAME);
  await pass(10_000, a);
  assert.deepEqual(a.terms, ['began']);
  assert.equal((await specOf(api))['holderIdentity'], 'a');
  await a.stop();
});

test('a stop finishes the work under way, then lets go of the Lease, so that the next leads at once', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const b = new Replica(api, 'b');
  await pass(4_000, a, b);
  const work = Promise.withResolvers<void>();
  a.finishWork = work.promise;
  const stopped = a.stop();
  await settle();
  assert.equal((await specOf(api))['holderIdentity'], 'a', 'work is under way');
  work.resolve();
  await stopped;
  assert.equal((await specOf(api))['holderIdentity'], undefined);
  await pass(2_500, b);
  assert.equal(b.leads, true);
  await b.stop();
});

test('a stop in the middle of a renewal lets go of the Lease as well', async () => {
  const api = new MemoryApi();
  const a = new Replica(api, 'a');
  await settle();
  const late = Promise.withResolvers<void>();
  api.after = (verb) => (verb === 'replace' ? late.promise : undefined);
  await pass(2_500, a);
  api.after = () => {};
  await a.stop();
  late.resolve();
  await settle();
  assert.equal((await specOf(api))['holderIdentity'], undefined);
  assert.equal(a.leads, false);
});

test('a replica that comes back under its own identity leads at once', async () => {
  const api = new MemoryApi();
  const died = new Replica(api, 'pod-uid');
  await settle();
  assert.equal(died.leads, true);
  const again = new Replica(api, 'pod-uid');
  await settle();
  assert.equal(again.leads, true);
  await again.stop();
});
