// What can happen in one run. A seed chooses everything; each scenario knows what must then hold beyond the invariants
// that always hold.

import { leaseSecondsOf } from '../../../crds/renewal.ts';
import { RELUCTANT_MS } from '../../../operator/plan/memory.ts';
import { Cluster } from './cluster.ts';
import type { Rules } from './mutation.ts';
import { Random } from './world.ts';

/** By then every camera of a new cluster is recorded. */
const WARM_MS = 10_000;
/** After the last fault everything is in order within this time: a node's silence, moves one after the other, a retry. */
const SETTLE_MS = 40_000;

export type Scenario = {
  readonly name: string;
  readonly weight: number;
  run(seed: number, rules: Rules): Promise<Cluster>;
};

async function start(seed: number, rules: Rules, over: Partial<Parameters<typeof make>[0]> = {}): Promise<Cluster> {
  const random = new Random(seed ^ 0x5eed);
  const nodes = over.nodes ?? random.pick([3, 3, 4, 5]);
  const cameras = over.cameras ?? Math.ceil(random.between(1, 9));
  const cluster = make({
    seed,
    nodes,
    cameras,
    newsMs: 1_500,
    rules,
    ...over,
    pool: { maxConcurrentMoves: random.pick([1, 8]), ...over.pool },
  });
  await cluster.run(WARM_MS);
  cluster.monitor.settled(cluster.api.all('RecorderNode'), cluster.pool.maxCamerasPerNode);
  cluster.monitor.healthySinceMs = cluster.nowMs;
  return cluster;
}

const make = (options: ConstructorParameters<typeof Cluster>[0]): Cluster => new Cluster(options);

async function finish(cluster: Cluster, settleMs = SETTLE_MS): Promise<Cluster> {
  cluster.monitor.healthySinceMs ??= cluster.nowMs;
  await cluster.run(cluster.nowMs + settleMs);
  cluster.monitor.settled(cluster.api.all('RecorderNode'), cluster.pool.maxCamerasPerNode);
  return cluster;
}

/** A node is lost: from its last sign of life to the first frame of each of its cameras elsewhere, 15 to 20 s. */
async function lose(seed: number, rules: Rules, over: Parameters<typeof start>[2] = {}): Promise<Cluster> {
  const cluster = await start(seed, rules, over);
  const { random, monitor, recorders } = cluster;
  await cluster.run(cluster.nowMs + random.between(0, 4_000));
  const node = random.pick(recorders);
  const lost = cluster.camerasOf(node.name);
  const way = random.pick(['kill', 'freeze', 'cut'] as const);
  const backMs = random.between(21_000, 40_000);
  cluster[way](node, backMs);
  const leader = cluster.leader();
  if (leader && random.chance(0.4)) cluster.kill(leader, random.pick([5_000, Infinity]));
  await cluster.run(cluster.nowMs + 5_000);
  const lastSignMs = monitor.signs.get(node.name) ?? -Infinity;
  await cluster.run(lastSignMs + cluster.limits.unavailableAfterMs + 5_000);
  for (const camera of lost) {
    const move = monitor.moves.find((move) => move.camera === camera);
    const firstMs = monitor.firstWritten.get(`${camera}>${move?.to ?? ''}`) ?? Infinity;
    const tookMs = firstMs - lastSignMs;
    if (tookMs > 20_000) monitor.fail(`${camera} of ${node.name} was not written elsewhere within 20 s (${tookMs} ms)`);
    if (tookMs < 14_900) monitor.fail(`${camera} of ${node.name} moved too early: ${tookMs} ms`);
  }
  knowOwners(cluster);
  const others = monitor.moves.filter(({ camera }) => !lost.includes(camera));
  if (others.length > 0) monitor.fail(`moved without need: ${JSON.stringify(others)}`);
  const count = monitor.moves.length;
  await finish(cluster, 30_000);
  if (monitor.moves.length > count) monitor.fail('something moved when the node came back');
  return cluster;
}

/** Whoever asks a node for a camera of another one is sent to the node that records it. */
function knowOwners({ api, recorders, monitor }: Cluster): void {
  for (const { name, assignment } of api.all('Camera').values()) {
    for (const recorder of recorders) {
      if (!recorder.isUp || recorder.isFrozen || recorder.isCut || recorder.name === assignment?.node) continue;
      const owner = recorder.ownerOf(name);
      if (owner !== assignment?.node) monitor.fail(`${recorder.name} takes ${owner} for the node of ${name}`);
    }
  }
}

/** Each node renews three times in the time after which it is lost, as those of large pools do: no outage of the API server moves anything. */
async function fewRenewals(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, { pool: { renewMs: 5_000, unavailableAfterMs: 15_000 } });
  const { random, monitor } = cluster;
  for (let i = 0; i < 3; i++) {
    await cluster.run(cluster.nowMs + random.between(15_000, 20_000));
    const forMs = random.between(100, 20_000);
    random.pick([(): void => cluster.apiDown(forMs), (): void => cluster.apiPaused(forMs)])();
    await cluster.run(cluster.nowMs + forMs);
  }
  await finish(cluster, 20_000);
  if (monitor.moves.length > 0) monitor.fail(`moved without need: ${JSON.stringify(monitor.moves)}`);
  return cluster;
}

/** The API server takes up to two seconds to answer: Leases are renewed as often as ever, and nothing moves. */
async function slowServer(seed: number, rules: Rules): Promise<Cluster> {
  if (new Random(seed).chance(0.5)) return fewRenewals(seed, rules);
  const cluster = await start(seed, rules, { newsMs: 5_000 });
  const { api, monitor, recorders } = cluster;
  api.weather = { ...api.weather, slowMs: 950 };
  const before = new Map(monitor.renewals);
  const forMs = 60_000;
  await cluster.run(cluster.nowMs + forMs);
  for (const { name } of recorders) {
    const renewals = (monitor.renewals.get(name) ?? 0) - (before.get(name) ?? 0);
    const wanted = forMs / cluster.pool.renewMs;
    if (renewals < 0.9 * wanted) monitor.fail(`${name} renewed its Lease ${renewals} times instead of ${wanted}`);
  }
  api.weather = { ...api.weather, slowMs: 0 };
  if (monitor.moves.length > 0) monitor.fail(`moved without need: ${JSON.stringify(monitor.moves)}`);
  return finish(cluster, 20_000);
}

/** `renewSeconds` and `unavailableAfterSeconds` change: failover goes on all the time, at the pace of each node. */
async function changeValues(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, { pool: { maxConcurrentMoves: 8 } });
  const { random, monitor, recorders, api } = cluster;
  monitor.mustHaveMajority = true;
  if (random.chance(0.5)) api.weather = { ...api.weather, lostReplies: 0.1, lostRequests: 0.1 };
  for (let i = 0; i < 4; i++) {
    // After the first change, some recorders are of an older version that does not follow.
    if (i === 1) for (const recorder of recorders) if (random.chance(0.4)) recorder.ignorePool();
    const renewMs = i === 0 ? random.pick([10_000, 20_000]) : random.pick([2_000, 5_000, 10_000, 20_000]);
    cluster.changePool({ renewMs, unavailableAfterMs: Math.max(3 * renewMs, random.pick([15_000, 30_000, 60_000])) });
    await cluster.run(cluster.nowMs + random.pick([1_000, 5_000, 25_000, 50_000]) * random.between(0.5, 1));
  }
  api.weather = { ...api.weather, lostReplies: 0, lostRequests: 0 };
  await cluster.run(cluster.nowMs + 60_000);
  const { renewMs } = cluster.pool;
  for (const { name, followsPool } of recorders) {
    if (!followsPool) continue;
    const { leaseDurationSeconds } = api.all('Lease').get(name) ?? {};
    if (leaseDurationSeconds !== leaseSecondsOf(renewMs)) monitor.fail(`${name} does not follow the pool`);
  }
  const needless = monitor.moves.filter(({ camera }) => !monitor.lostByNetwork.has(camera));
  if (needless.length > 0) monitor.fail(`moved without need: ${JSON.stringify(needless)}`);
  monitor.mustHaveMajority = false;
  const node = random.pick(recorders);
  const lost = cluster.camerasOf(node.name);
  cluster.kill(node, Infinity);
  // A renewal that is on its way arrives.
  await cluster.run(cluster.nowMs + 1_000);
  await cluster.run((monitor.signs.get(node.name) ?? 0) + monitor.limitMs(node.name) + 5_000);
  for (const camera of lost) {
    const { node: owner, lostNodes = [] } = api.all('Camera').get(camera)?.assignment ?? {};
    // One that the network took from another node before is suspect: a person has to look after it.
    if (lostNodes.length >= 2) await lookAfter(cluster, camera);
    else if (owner === node.name) monitor.fail(`${camera} stays on ${node.name}`);
  }
  return finish(cluster);
}

/** Each fault is shorter than its bound, and there is one at a time: nothing moves, and nothing stops recording. */
async function shortFaults(seed: number, rules: Rules, over: Parameters<typeof start>[2] = {}): Promise<Cluster> {
  const cluster = await start(seed, rules, over);
  const { random, monitor, recorders, operators } = cluster;
  for (let i = 0; i < 2; i++) {
    const recorder = random.pick(recorders);
    const operator = random.chance(0.7) ? (cluster.leader() ?? random.pick(operators)) : random.pick(operators);
    const forMs = random.pick([
      (): number => during(8_000, (ms) => cluster.freeze(recorder, ms)),
      (): number => during(8_000, (ms) => cluster.cut(recorder, ms)),
      (): number => during(3_000, (ms) => cluster.kill(recorder, ms)),
      (): number => during(3_000, (ms) => cluster.end(recorder, ms)),
      (): number => during(8_000, (ms) => cluster.apiPaused(ms)),
      (): number => during(30_000, (ms) => cluster.apiDown(ms)),
      (): number =>
        during(
          40_000,
          (ms) => cluster.apiDown(ms),
          () => cluster.at(cluster.nowMs + 1_000, () => cluster.kill(recorder, 2_000)),
        ),
      (): number => during(30_000, (ms) => cluster.freeze(operator, ms)),
      (): number => during(30_000, (ms) => cluster.cut(operator, ms)),
      (): number => during(20_000, (ms) => cluster.kill(operator, ms)),
    ])();
    await cluster.run(cluster.nowMs + forMs + random.between(7_000, 12_000));
  }
  function during(maxMs: number, begin: (forMs: number) => void, also?: () => void): number {
    const forMs = random.between(100, maxMs);
    begin(forMs);
    also?.();
    return forMs;
  }
  await finish(cluster, 20_000);
  if (monitor.moves.length > 0) monitor.fail(`moved without need: ${JSON.stringify(monitor.moves)}`);
  return cluster;
}

/** More than half of the voters are lost: nothing moves until enough of them are back, and then what must. */
async function loseMajority(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules);
  const { random, monitor, recorders } = cluster;
  const shuffled = recorders.map((recorder) => ({ recorder, at: random.next() })).sort((a, b) => a.at - b.at);
  const lost = shuffled.slice(0, Math.ceil(recorders.length / 2)).map(({ recorder }) => recorder);
  // All within five seconds, or those that are left would still be a majority when the first is missed.
  const spreadMs = random.pick([0, 5_000]);
  for (const recorder of lost) {
    const way = random.pick(['kill', 'freeze', 'cut'] as const);
    const backMs = recorder === lost[0] && random.chance(0.5) ? 45_000 : random.between(25_000, 35_000);
    cluster.at(cluster.nowMs + random.between(0, spreadMs), () => cluster[way](recorder, backMs));
  }
  await cluster.run(cluster.nowMs + 25_000);
  if (monitor.moves.length > 0) monitor.fail(`moved without a majority: ${JSON.stringify(monitor.moves)}`);
  cluster.monitor.healthySinceMs = undefined;
  await cluster.run(cluster.nowMs + 30_000);
  return finish(cluster);
}

/** The node with the first vote of a new pool is lost before there is another vote: its cameras move all the same. */
async function firstVoter(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, {
    nodes: new Random(seed).pick([2, 3, 4]),
    role: 'Learner',
    pool: { membership: 'Automatic', maxConcurrentMoves: 8 },
  });
  const { api, monitor, recorders } = cluster;
  const votes = recorders.filter(({ name }) => api.all('RecorderNode').get(name)?.role === 'Voter');
  const [first] = votes;
  if (!first || votes.length > 1) return monitor.fail(`${votes.length} votes in a new pool`);
  const lost = cluster.camerasOf(first.name);
  cluster.kill(first, Infinity);
  await cluster.run(cluster.nowMs + 1_000);
  await cluster.run((monitor.signs.get(first.name) ?? 0) + cluster.limits.unavailableAfterMs + 5_000);
  const moved = new Set(monitor.moves.map(({ camera }) => camera));
  const stay = lost.filter((camera) => !moved.has(camera));
  if (stay.length > 0) monitor.fail(`${stay.join()} stay on ${first.name}, the first voter`);
  return finish(cluster);
}

/**
 * Two nodes: one is lost and the other one takes its cameras, unless a person chose the voters; without both, nothing moves. Some are
 * new pools with one vote, where the other nodes count like the second one.
 */
async function twoNodes(seed: number, rules: Rules): Promise<Cluster> {
  const over = { nodes: 2, pool: { membership: 'Automatic', maxConcurrentMoves: 8 } } as const;
  const way = new Random(seed).pick(['one is lost', 'short faults', 'both are lost', 'Manual', 'first voter'] as const);
  if (way === 'first voter') return firstVoter(seed, rules);
  if (way === 'one is lost') return lose(seed, rules, over);
  if (way === 'short faults') return shortFaults(seed, rules, over);
  const cluster = await start(seed, rules, way === 'Manual' ? { nodes: 2, pool: { membership: 'Manual' } } : over);
  const { random, monitor, recorders } = cluster;
  const lost = way === 'Manual' ? [random.pick(recorders)] : recorders;
  for (const recorder of lost) {
    const how = random.pick(['kill', 'freeze', 'cut'] as const);
    const backMs = random.between(25_000, 40_000);
    cluster.at(cluster.nowMs + random.between(0, 5_000), () => cluster[how](recorder, backMs));
  }
  monitor.healthySinceMs = undefined;
  await cluster.run(cluster.nowMs + 25_000);
  if (monitor.moves.length > 0) monitor.fail(`moved without a majority: ${JSON.stringify(monitor.moves)}`);
  await cluster.run(cluster.nowMs + 30_000);
  return finish(cluster);
}

/** People drain nodes, prefer others, suspend, delete and make cameras; the operator may die meanwhile. */
async function planned(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, { pool: { failbackAfterMs: 8_000, membership: 'Automatic' } });
  const { random, api, recorders, operators, monitor } = cluster;
  const names = [...api.all('Camera').keys()];
  if (random.chance(0.5)) api.weather = { ...api.weather, stalls: 0.05, slowMs: 50 };
  for (let i = 0; i < 5; i++) {
    const node = random.pick(recorders).name;
    const camera = random.pick(names);
    random.pick([
      (): void => {
        cluster.changeNode(node, { drain: true });
        cluster.at(cluster.nowMs + random.between(5_000, 15_000), () => cluster.changeNode(node, { drain: false }));
      },
      (): void => cluster.changeCamera(camera, { preferredNode: node }),
      (): void => {
        cluster.changeCamera(camera, { suspend: true });
        cluster.at(cluster.nowMs + random.between(100, 5_000), () => cluster.changeCamera(camera, { suspend: false }));
      },
      (): void => {
        api.remove('Camera', camera);
        cluster.at(cluster.nowMs + random.between(10, 3_000), () => cluster.addCamera(camera));
      },
      (): void => {
        const leader = cluster.leader() ?? random.pick(operators);
        random.pick([(): void => cluster.kill(leader, 5_000), (): void => cluster.freeze(leader, 12_000)])();
      },
    ])();
    await cluster.run(cluster.nowMs + random.between(500, 8_000));
  }
  await cluster.run(cluster.nowMs + 12_000);
  api.weather = { ...api.weather, stalls: 0, slowMs: 0 };
  await finish(cluster, 20_000);
  const unplanned = monitor.moves.filter(({ reason }) => reason === 'NodeUnavailable');
  if (unplanned.length > 0) monitor.fail(`nobody died: ${JSON.stringify(unplanned)}`);
  return cluster;
}

/** A recorder ends as it should on a node that is left: its cameras are recorded elsewhere at once. Where it is not left, it comes back. */
async function leave(seed: number, rules: Rules): Promise<Cluster> {
  // A drain moves one camera after the other; what is not recorded does not wait for that.
  const cluster = await start(seed, rules, { nodes: 5, cameras: 20, pool: { maxConcurrentMoves: 1 } });
  const { random, monitor, recorders } = cluster;
  await cluster.run(cluster.nowMs + random.between(0, 4_000));
  const node = random.pick(recorders);
  const lost = cluster.camerasOf(node.name);
  const isLeft = random.chance(0.7);
  // Before the end, with it, or when Kubernetes ends the pod at once, which the operator may learn in any order.
  const drainMs = cluster.nowMs + random.pick([0, random.between(0, 900)]);
  if (isLeft) {
    cluster.at(drainMs, () => cluster.changeNode(node.name, { drain: true, hasRecorder: false }));
  }
  const endMs = cluster.nowMs + random.pick([0, random.between(0, 900)]);
  cluster.at(endMs, () => cluster.end(node, isLeft ? Infinity : random.between(100, 3_000)));
  await cluster.run(Math.max(drainMs, endMs) + 3_500);
  for (const camera of isLeft ? lost : []) {
    const writers = monitor.activeWriters(camera).filter((name) => name !== node.name);
    if (writers.length === 0) monitor.fail(`nobody records ${camera} of ${node.name}, which has ended`);
  }
  await finish(cluster, 20_000);
  const others = monitor.moves.filter(({ camera }) => !isLeft || !lost.includes(camera));
  if (others.length > 0) monitor.fail(`moved without need: ${JSON.stringify(others)}`);
  return cluster;
}

/** A person stops a suspect camera and starts it again: what is held against it is forgotten. */
async function lookAfter(cluster: Cluster, camera: string): Promise<void> {
  cluster.changeCamera(camera, { suspend: true });
  await cluster.run(cluster.nowMs + 5_000);
  cluster.changeCamera(camera, { suspend: false });
}

/** A camera that no recorder survives takes two of them, and no third; a person who looks after it lets it go on. */
async function poisoned(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, { nodes: 5, pool: { maxConcurrentMoves: 8 } });
  const { random, api, monitor } = cluster;
  monitor.healthySinceMs = undefined;
  const poison = random.pick([...api.all('Camera').keys()]);
  const assigned = (camera: string) => api.all('Camera').get(camera)?.assignment;
  cluster.poison = poison;
  cluster.crash(cluster.recorder(assigned(poison)?.node ?? ''));
  for (let i = 0; i < 4; i++) {
    await cluster.run(cluster.nowMs + random.between(20_000, 50_000));
    const leader = cluster.leader();
    if (leader && random.chance(0.3)) cluster.kill(leader, 5_000);
  }
  const moves = monitor.moves.filter(({ camera }) => camera === poison);
  if (moves.length > 1) monitor.fail(`${poison} was given a third node: ${JSON.stringify(moves)}`);
  for (const name of api.all('Camera').keys()) {
    const { node = '', lostNodes = [] } = assigned(name) ?? {};
    // Those that came along with it are as suspect.
    if (lostNodes.length < 2 && !monitor.activeWriters(name).includes(node)) monitor.fail(`nobody records ${name}`);
  }
  cluster.poison = undefined;
  await lookAfter(cluster, poison);
  await cluster.run(cluster.nowMs + 40_000);
  return finish(cluster);
}

/** Two machines are lost, one after the other: nothing is held against their cameras once Kubernetes says so. */
async function loseMachines(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, { nodes: 5, pool: { maxConcurrentMoves: 8 } });
  const { random, recorders, monitor } = cluster;
  const first = random.pick(recorders);
  const second = random.pick(recorders.filter((recorder) => recorder !== first));
  cluster.loseMachine(first, random.pick([Infinity, random.between(60_000, 120_000)]));
  await cluster.run(cluster.nowMs + random.between(1_000, 120_000));
  monitor.healthySinceMs = undefined;
  cluster.loseMachine(second, Infinity);
  await cluster.run(cluster.nowMs + 60_000);
  return finish(cluster);
}

/** By then every standby of a new cluster holds all that it is to hold. */
const HELD_MS = 40_000;

/** Every camera has a standby, and one thing fails: no second of any camera is missing. */
async function standby(seed: number, rules: Rules): Promise<Cluster> {
  const way = new Random(seed);
  const nodes = way.pick([2, 3, 3, 4, 5]);
  const pool = { standby: true, maxConcurrentMoves: 8, ...(nodes === 2 && { membership: 'Automatic' as const }) };
  const cluster = await start(seed, rules, { nodes, pool });
  const { random, monitor, recorders, operators, api } = cluster;
  await cluster.run(cluster.nowMs + HELD_MS + random.between(0, 4_000));
  const lacking = [...api.all('Camera').values()].filter(({ standby, assignment }) => {
    return standby?.node === undefined || standby.node === assignment?.node;
  });
  if (lacking.length > 0) monitor.fail(`no standby: ${lacking.map(({ name }) => name).join()}`);
  const sinceMs = cluster.nowMs - HELD_MS / 2;
  const node = random.pick(recorders);
  const backMs = random.pick([random.between(21_000, 40_000), Infinity]);
  random.pick([
    (): void => cluster.kill(node, backMs),
    (): void => cluster.loseMachine(node, backMs),
    (): void => cluster.freeze(node, random.between(21_000, 40_000)),
    (): void => cluster.cut(node, random.between(21_000, 40_000)),
    (): void => cluster.freeze(node, random.between(100, 8_000)),
    (): void => cluster.kill(node, random.between(100, 3_000)),
    (): void => cluster.changeNode(node.name, { drain: true }),
    (): void => cluster.apiDown(random.between(100, 40_000)),
    (): void => cluster.kill(cluster.leader() ?? random.pick(operators), random.pick([5_000, Infinity])),
  ])();
  await cluster.run(cluster.nowMs + 25_000);
  monitor.complete(sinceMs);
  await cluster.run(cluster.nowMs + 25_000);
  monitor.complete(sinceMs);
  return finish(cluster, 20_000);
}

/** Everything at once. Afterwards it must settle. */
async function chaos(seed: number, rules: Rules): Promise<Cluster> {
  const cluster = await start(seed, rules, {
    newsMs: 15_000,
    pool: { membership: new Random(seed).pick(['Automatic', 'Manual']), standby: new Random(seed + 1).chance(0.5) },
  });
  const { random, api, recorders, operators, monitor } = cluster;
  const names = [...api.all('Camera').keys()];
  monitor.healthySinceMs = undefined;
  api.weather = {
    lostReplies: random.pick([0, 0.05, 0.2]),
    lostRequests: random.pick([0, 0.05, 0.2]),
    slowMs: random.pick([0, 100, 600]),
    staleLists: random.pick([0, 0.8]),
    stalls: random.pick([0, 0.05]),
  };
  const endMs = cluster.nowMs + 35_000;
  while (cluster.nowMs < endMs - 1_000) {
    const leftMs = endMs - cluster.nowMs;
    const forMs = Math.min(leftMs, random.pick([500, 3_000, 8_000, 17_000, 25_000]) * random.between(0.5, 1));
    const process = random.chance(0.7) ? random.pick(recorders) : random.pick(operators);
    random.pick([
      (): void => cluster.kill(process, forMs),
      (): void => cluster.end(random.pick(recorders), forMs),
      (): void => cluster.freeze(process, forMs),
      (): void => cluster.cut(process, forMs),
      (): void => cluster.apiDown(Math.min(forMs, 9_000)),
      (): void => cluster.apiPaused(Math.min(forMs, 9_000)),
      (): void => {
        cluster.changeNode(process.name, { drain: true });
        cluster.at(cluster.nowMs + forMs, () => cluster.changeNode(process.name, { drain: false }));
      },
      (): void => cluster.changeCamera(random.pick(names), { suspend: random.chance(0.3) }),
      (): void => random.pick(recorders).refuseLogin(random.pick(names)),
    ])();
    await cluster.run(Math.min(endMs, cluster.nowMs + random.between(500, 9_000)));
  }
  await cluster.run(endMs + 1);
  api.comeUp();
  api.weather = { lostReplies: 0, lostRequests: 0, slowMs: 0, staleLists: 0, stalls: 0 };
  monitor.healthySinceMs = cluster.nowMs + 5_000;
  // Cameras return to a node that did not take one of them up when it has been avoided for so long.
  return finish(cluster, SETTLE_MS + RELUCTANT_MS);
}

export const EVERYTHING_AT_ONCE: Scenario = { name: 'everything at once', weight: 4, run: chaos };

export const LOST_NODE: Scenario = { name: 'a node is lost', weight: 3, run: lose };
export const SLOW_SERVER: Scenario = { name: 'a slow API server', weight: 1, run: slowServer };
export const VALUES_CHANGE: Scenario = { name: 'the values of the pool change', weight: 1, run: changeValues };

export const FEW_NODES: Scenario = { name: 'two nodes, and new pools', weight: 1, run: twoNodes };

export const LEFT_NODE: Scenario = { name: 'a node is left', weight: 1, run: leave };

export const STANDBY: Scenario = { name: 'a node is lost, and cameras have standbys', weight: 3, run: standby };

export const SCENARIOS: readonly Scenario[] = [
  LOST_NODE,
  SLOW_SERVER,
  VALUES_CHANGE,
  { name: 'short faults', weight: 2, run: shortFaults },
  { name: 'the majority is lost', weight: 1, run: loseMajority },
  FEW_NODES,
  { name: 'planned moves', weight: 2, run: planned },
  LEFT_NODE,
  { name: 'a camera that no recorder survives', weight: 1, run: poisoned },
  { name: 'machines are lost', weight: 1, run: loseMachines },
  STANDBY,
  EVERYTHING_AT_ONCE,
];

/** Ninety cameras on three nodes: thirty move at once. */
export const loseThirty = (seed: number, rules: Rules): Promise<Cluster> =>
  lose(seed, rules, { cameras: 90, nodes: 3, pool: { maxConcurrentMoves: 8 } });

/** The scenario that belongs to a seed. */
export function scenarioOf(seed: number): Scenario {
  const all = SCENARIOS.flatMap((scenario) => Array.from({ length: scenario.weight }, () => scenario));
  return all[seed % all.length] ?? SCENARIOS[0]!;
}
