import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LivenessDetector } from './liveness.ts';
import type { LeaseView } from './snapshot.ts';

const leaseOf = (resourceVersion: string, renewMs?: number): LeaseView => ({ resourceVersion, renewMs });

const OPTIONS = { unavailableAfterMs: 15_000, renewMs: 2_000, membership: 'Manual' as const };

/** A pool whose nodes renew every two seconds unless a test stops them; the API server answers every read. */
class Pool {
  readonly detector = new LivenessDetector(OPTIONS);
  readonly names: readonly string[];
  readonly silent = new Set<string>();
  readonly versions = new Map<string, number>();
  /** Whether the API server answers. */
  answers = true;
  isFrozen = false;
  /** Whether watches deliver events. */
  watches = true;
  nowMs = 1_000_000;
  reads = 0;

  constructor(names: readonly string[], learners: readonly string[] = []) {
    this.names = [...names, ...learners];
    this.detector.track(
      this.names.map((name) => ({ name, role: learners.includes(name) ? ('Learner' as const) : ('Voter' as const) })),
      this.nowMs,
    );
    for (const name of this.names) this.detector.saw(name, leaseOf(this.version(name)), this.nowMs);
  }

  pass(seconds: number): this {
    for (const endMs = this.nowMs + seconds * 1_000; this.nowMs < endMs;) {
      this.nowMs += 500;
      for (const name of this.names) {
        if (this.silent.has(name) || this.nowMs % 2_000 !== 0) continue;
        if (!this.answers) continue;
        this.versions.set(name, (this.versions.get(name) ?? 1) + 1);
        if (this.watches && !this.isFrozen) this.detector.saw(name, leaseOf(this.version(name)), this.nowMs);
      }
      if (this.isFrozen) continue;
      for (const name of this.detector.reads(this.nowMs)) {
        this.reads += 1;
        if (this.answers) this.detector.read(name, this.#lease(name), this.nowMs, this.nowMs);
      }
    }
    return this;
  }

  /** Freezes this process for some time; it sees afterwards what the nodes did meanwhile. */
  freeze(seconds: number): this {
    this.isFrozen = true;
    this.pass(seconds);
    this.isFrozen = false;
    return this;
  }

  state(name: string): string {
    return this.detector.liveness(name, this.nowMs).state;
  }

  #lease(name: string): LeaseView | undefined {
    return this.names.includes(name) ? leaseOf(this.version(name)) : undefined;
  }

  version(name: string): string {
    return String(this.versions.get(name) ?? 1);
  }
}

test('the first sight of a Lease is no sign of life, a change of it is', () => {
  const pool = new Pool(['a', 'b', 'c']);
  assert.equal(pool.state('a'), 'Unknown');
  assert.equal(pool.detector.majoritySinceMs(pool.nowMs), undefined);
  pool.pass(2);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Live', 'Live', 'Live'],
  );
  assert.equal(pool.detector.majoritySinceMs(pool.nowMs), pool.nowMs);
});

test('a node is unavailable after 15 s of silence, and not before a read of its Lease says so', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.silent.add('c');
  assert.equal(pool.pass(14.5).state('c'), 'Live');
  const at15s = pool.nowMs + 500;
  assert.equal(pool.detector.liveness('c', at15s).state, 'Unknown', 'nobody has read it yet');
  assert.equal(pool.pass(0.5).state('c'), 'Unavailable');
  assert.deepEqual([pool.state('a'), pool.state('b')], ['Live', 'Live']);
});

test('a node that is left is unavailable when its recorder says that it ends; another one gets its time', () => {
  for (const drain of [true, false]) {
    const pool = new Pool(['a', 'b', 'c']).pass(20);
    const { detector, nowMs } = pool;
    detector.track(
      pool.names.map((name) => ({ name, role: 'Voter' as const, drain: drain && name === 'c' })),
      nowMs,
    );
    const before = detector.summary(nowMs);
    detector.saw('c', { resourceVersion: '1000', renewMs: 2_000, isReleased: true }, nowMs + 100);
    assert.equal(detector.liveness('c', nowMs + 100).state, drain ? 'Unavailable' : 'Live');
    assert.equal(detector.liveness('c', nowMs + 100).heard, !drain);
    assert.equal(detector.summary(nowMs + 100) !== before, drain, 'a plan is called for');
    detector.saw('c', leaseOf('1001'), nowMs + 1_000);
    assert.equal(detector.liveness('c', nowMs + 1_000).state, 'Live', 'it renews again');
  }
});

test('a read says how the Lease was when it was sent, however late its response comes', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.silent.add('c');
  const { detector } = pool.pass(14.5);
  const sentMs = pool.nowMs;
  const lateMs = sentMs + 1_000;
  for (const name of ['a', 'b']) detector.saw(name, leaseOf('1000'), lateMs);
  detector.read('c', leaseOf(pool.version('c')), sentMs, lateMs);
  assert.equal(detector.liveness('c', lateMs).state, 'Unknown', 'it may have been renewed since');
  detector.read('c', leaseOf(pool.version('c')), lateMs, lateMs);
  assert.equal(detector.liveness('c', lateMs).state, 'Unavailable');
});

test('a read that finds the Lease changed keeps the node alive when its watch is dead', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.watches = false;
  pool.pass(60);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Live', 'Live', 'Live'],
  );
});

test('while the API server is away no node is considered lost, and afterwards each has the whole time again', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.answers = false;
  pool.pass(60);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Unknown', 'Unknown', 'Unknown'],
  );
  pool.answers = true;
  pool.silent.add('c');
  pool.pass(4);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Live', 'Live', 'Unknown'],
  );
  assert.equal(pool.pass(12.5).state('c'), 'Unknown');
  assert.equal(pool.pass(4).state('c'), 'Unavailable');
});

test('when the API server accepts no writes no node is considered lost, although every read is answered', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  for (const name of pool.names) pool.silent.add(name);
  pool.pass(60);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Unknown', 'Unknown', 'Unknown'],
  );
  pool.silent.delete('a');
  pool.silent.delete('b');
  pool.pass(3);
  assert.equal(pool.state('c'), 'Unknown', 'the others speak again, and it may be about to');
});

test('what changed before an outage and is seen after it is no sign of life', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  const before = pool.nowMs;
  pool.answers = false;
  pool.pass(20);
  for (const name of pool.names) pool.detector.saw(name, leaseOf('1000'), pool.nowMs);
  assert.equal(pool.detector.majoritySinceMs(pool.nowMs), undefined);
  for (const name of pool.names) pool.detector.saw(name, leaseOf('1001'), pool.nowMs + 2_000);
  assert.equal(pool.detector.majoritySinceMs(pool.nowMs + 2_000), before + 22_000);
});

test('a process that was frozen starts over', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20).freeze(30);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Unknown', 'Unknown', 'Unknown'],
  );
  pool.pass(2);
  assert.deepEqual(
    pool.names.map((name) => pool.state(name)),
    ['Live', 'Live', 'Live'],
  );
});

test('without a majority of voters no silence counts, however many learners speak', () => {
  const pool = new Pool(['a', 'b', 'c'], ['d', 'e', 'f']).pass(20);
  pool.silent.add('a').add('b');
  pool.pass(60);
  assert.deepEqual(
    [pool.state('a'), pool.state('b'), pool.state('c'), pool.state('d')],
    ['Unknown', 'Unknown', 'Live', 'Live'],
  );
  assert.equal(pool.detector.majoritySinceMs(pool.nowMs), undefined);
  pool.silent.delete('b');
  assert.equal(pool.pass(10).state('a'), 'Unknown');
  assert.equal(pool.pass(10).state('a'), 'Unavailable');
});

test('a node that speaks again is live at once, and its time begins again', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.silent.add('c');
  pool.pass(30).silent.delete('c');
  pool.pass(4);
  const { state, heard, liveForMs } = pool.detector.liveness('c', pool.nowMs);
  assert.deepEqual({ state, heard }, { state: 'Live', heard: true });
  assert.ok(liveForMs <= 4_000);
});

test('a late event of a watch is no sign of life', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.silent.add('c');
  pool.pass(10);
  pool.detector.saw('c', leaseOf('1'), pool.nowMs);
  assert.equal(pool.detector.liveness('c', pool.nowMs).silentMs, 10_000);
  pool.detector.read('c', leaseOf('1'), pool.nowMs, pool.nowMs);
  assert.equal(pool.detector.liveness('c', pool.nowMs).silentMs, 0, 'a read is true: the API server was set back');
});

test('a node without a Lease is unavailable after the same time', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.detector.track(
    [...['a', 'b', 'c'].map((name) => ({ name, role: 'Voter' as const })), { name: 'd', role: 'Learner' }],
    pool.nowMs,
  );
  const d = pool.nowMs;
  assert.ok(!pool.detector.reads(d + 1_000).includes('d'));
  pool.pass(14.5);
  assert.equal(pool.state('d'), 'Unknown');
  pool.pass(0.5);
  pool.detector.read('d', undefined, pool.nowMs, pool.nowMs);
  assert.equal(pool.state('d'), 'Unavailable');
});

test('nothing is read while everybody speaks', () => {
  const pool = new Pool(['a', 'b', 'c']).pass(20);
  pool.reads = 0;
  pool.pass(600);
  assert.equal(pool.reads, 0);
});

test('a node is lost only after three renewals of the others that it missed: an outage that silences all of them is no silence of the last to return', () => {
  const detector = new LivenessDetector({ unavailableAfterMs: 3_000, renewMs: 1_000, membership: 'Automatic' });
  const versions = new Map(['a', 'b', 'c'].map((name) => [name, 0]));
  detector.track(
    [...versions.keys()].map((name) => ({ name, role: 'Voter' as const })),
    0,
  );
  const leaseNow = (name: string): LeaseView => leaseOf(String(versions.get(name)));
  const renew = (names: readonly string[], nowMs: number): void => {
    for (const name of names) {
      versions.set(name, Math.max(...versions.values()) + 1);
      detector.saw(name, leaseNow(name), nowMs);
    }
  };
  const isLost = (nowMs: number): boolean => {
    for (const name of detector.reads(nowMs)) detector.read(name, leaseNow(name), nowMs, nowMs);
    return detector.liveness('a', nowMs).state === 'Unavailable';
  };
  for (let nowMs = 0; nowMs <= 10_000; nowMs += 1_000) renew(['a', 'b', 'c'], nowMs);
  // The API server is away before their next renewals have come. Then b and c are heard at once, and a when it tries again.
  renew(['b', 'c'], 12_900);
  for (let nowMs = 12_900; nowMs < 13_900; nowMs += 100) assert.equal(isLost(nowMs), false, `${nowMs}`);
  renew(['a', 'b', 'c'], 13_900);
  const lostMs = Array.from({ length: 40 }, (_, i) => 14_000 + 100 * i).find((nowMs) => {
    if (nowMs % 1_000 === 900) renew(['b', 'c'], nowMs);
    return isLost(nowMs);
  });
  assert.equal(lostMs, 16_900, 'without an outage it is lost after its three seconds');
});

test('a node that renews each second is lost on time although the renewals of the others are seen half a second late', () => {
  const detector = new LivenessDetector({ unavailableAfterMs: 3_000, renewMs: 1_000, membership: 'Manual' });
  const names = ['a', 'b', 'c'];
  detector.track(
    names.map((name) => ({ name, role: 'Voter' as const })),
    0,
  );
  const lostMs = Array.from({ length: 100 }, (_, i) => 100 * i).find((nowMs) => {
    for (const name of names) {
      // Their renewals of 0 s, 1 s, 2 s ... are seen after 0.5 s, 1 s, 2.5 s, 3 s ...
      const seen = Math.floor(nowMs / 2_000) * 2 + Number(nowMs % 2_000 >= 500) + Number(nowMs % 2_000 >= 1_000);
      const version = String(name === 'a' ? Math.min(seen, 2) : seen);
      detector.saw(name, leaseOf(version, 1_000), nowMs);
      if (detector.reads(nowMs).includes(name)) detector.read(name, leaseOf(version, 1_000), nowMs, nowMs);
    }
    return detector.liveness('a', nowMs).state === 'Unavailable';
  });
  assert.equal(lostMs, 1_000 + 3_000);
});

test('the first voter of a new pool is lost like any other node, if most of the nodes that were heard still are', () => {
  const detector = new LivenessDetector({ ...OPTIONS, membership: 'Automatic' });
  const roles = { a: 'Voter', b: 'Learner', c: 'Learner', d: 'Learner' } as const;
  detector.track(
    Object.entries(roles).map(([name, role]) => ({ name, role })),
    0,
  );
  const stateAt = (endMs: number, lastsMs: Readonly<Record<string, number>>): string => {
    for (let nowMs = 0; nowMs <= endMs; nowMs += 2_000) {
      for (const [name, lastMs] of Object.entries(lastsMs)) {
        const version = String(1 + Math.min(nowMs, lastMs) / 2_000);
        detector.saw(name, leaseOf(version), nowMs);
        if (detector.reads(nowMs).includes(name)) detector.read(name, leaseOf(version), nowMs, nowMs);
      }
    }
    return detector.liveness('a', endMs).state;
  };
  assert.equal(stateAt(18_000, { a: 2_000, b: 60_000, c: 60_000 }), 'Unavailable');
});
