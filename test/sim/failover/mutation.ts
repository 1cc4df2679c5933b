// Rules of the protocol that can be broken, one at a time, to see that the check notices: the code of operator and recorder is
// loaded once more with some words of it replaced.

import { registerHooks } from 'node:module';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Assigner } from '../../../operator/controllers/assigner.ts';
import { Cluster } from '../../../recorder/cluster/cluster.ts';

interface Change {
  /** Below the root of the repository. */
  readonly file: string;
  readonly code: string;
  readonly broken: string;
}

interface CodeMutation extends Change {
  readonly meaning: string;
  /** What would hide it. */
  readonly also?: Change;
}

const ASSIGNER = 'operator/controllers/assigner.ts';
const CLUSTER = 'recorder/cluster/cluster.ts';
const MIRROR = 'recorder/cluster/assignment-mirror.ts';
const NODE_LEASE = 'recorder/cluster/node-lease.ts';

/** What judges a node by the times in its Lease. */
const BY_WALL_CLOCK = `const looked = this.#memory.look(seen, this.#nowMs());
    const majority = this.#memory.detector.majoritySinceMs(this.#nowMs()) !== undefined;
    const snapshot = !majority ? looked : { ...looked, nodes: looked.nodes.map((node) => {
      const spec = (lease(nodeLeaseName(node.name))?.['spec'] ?? {}) as { renewedWallMs?: number };
      const silentMs = clock.wallMs() - (spec.renewedWallMs ?? 0);
      const state = silentMs < seen.pool.unavailableAfterMs ? 'Live' as const : 'Unavailable' as const;
      return { ...node, liveness: { ...node.liveness, state, heard: silentMs < 3 * seen.pool.renewMs } };
    }) };`;

export const OPERATOR_MUTATIONS: Readonly<Record<string, CodeMutation>> = {
  'no compare-and-swap': {
    meaning: 'assignments are written over whatever is there',
    file: ASSIGNER,
    code: 'metadata: { resourceVersion, uid },',
    broken: 'metadata: { uid },',
  },
  'a refused write is forgotten': {
    meaning: 'nobody asks what became of a write that failed',
    file: ASSIGNER,
    code: 'return this.#ascertain(write);',
    broken: 'return;',
  },
  'asks once': {
    meaning: 'what became of a write is asked once, and not again when that has no answer',
    file: ASSIGNER,
    code: 'this.#options.clock.after(RETRY_MS, () => void this.#ascertain(write));',
    broken: '',
  },
  'nobody tells the plan': {
    meaning: 'a node is judged otherwise, and no plan is made because of that',
    file: ASSIGNER,
    code: 'if (summary === this.#summary) return;',
    broken: 'if (this.#nowMs() > 0) return;',
  },
  'suspended in name only': {
    meaning: 'the node of a camera that is to have none is left in its assignment',
    file: ASSIGNER,
    code: 'node: assignment.node ?? null,',
    broken: 'node: assignment.node,',
  },
  'epoch is not written': {
    meaning: 'the planned epoch stays in the plan',
    file: ASSIGNER,
    code: 'epoch: assignment.epoch,',
    broken: '',
  },
  'handover is not written': {
    meaning: 'the old node of a planned move is not told to go on',
    file: ASSIGNER,
    code: 'handover: assignment.handover ?? null,',
    broken: '',
  },
  'wall clocks': {
    meaning: 'the times in the Leases say who is live',
    file: ASSIGNER,
    code: 'const snapshot = this.#memory.look(seen, this.#nowMs());',
    broken: BY_WALL_CLOCK,
  },
  'no majority': {
    meaning: 'one voter is the majority',
    file: 'operator/plan/liveness.ts',
    code: 'const needed = majorityOf(voters.length, this.#options);',
    broken: 'const needed = 1;',
    also: { file: 'operator/plan/voters.ts', code: 'heard: isHeard(nodes, pool),', broken: 'heard: true,' },
  },
  'the pool says how nodes renew': {
    meaning: 'nodes are judged by the interval that the pool asks for',
    file: 'operator/plan/liveness.ts',
    code: 'node.renewMs = renewMs;',
    broken: '',
  },
  'clocks run through outages': {
    meaning: 'silence counts while nobody can be heard',
    file: 'operator/plan/liveness.ts',
    code: "const state = this.#isUnavailable(node) ? 'Unavailable' : 'Unknown';",
    broken: "const state = this.#majoritySinceMs !== undefined && silentMs !== undefined ? 'Unavailable' : 'Unknown';",
  },
  'short outages are silence': {
    meaning: 'the time in which the API server accepts no renewals counts against the node that renews last after it',
    file: 'operator/plan/liveness.ts',
    code: 'node.missingFromMs += unservedMs;',
    broken: 'node.missingFromMs += 0;',
  },
  'an end is not heard': {
    meaning: 'the cameras of a node that is left wait until its silence has lasted long enough',
    file: 'operator/plan/liveness.ts',
    code: 'if (this.#hasEnded(node)) return true;',
    broken: '',
  },
  'an end is a loss': {
    meaning: 'a recorder that ends and starts again loses its cameras',
    file: 'operator/plan/liveness.ts',
    code: 'return isReleased && isLeaving;',
    broken: 'return isReleased;',
  },
  'the first vote is the only one': {
    meaning: 'nobody decides when the node with the first vote of a new pool is lost',
    file: 'operator/plan/voters.ts',
    code: "const isFirst = voters.length === 1 && membership === 'Automatic';",
    broken: "const isFirst = voters.length > 99 && membership === 'Automatic';",
  },
  'epoch stays': {
    meaning: 'a camera is given to another node under the same epoch',
    file: 'operator/plan/plan.ts',
    code: 'const epoch = (assignment?.epoch ?? 0) + 1;',
    broken: 'const epoch = Math.max(assignment?.epoch ?? 0, 1);',
  },
  'early end of handovers': {
    meaning: 'the old node stops as soon as the new one is named',
    file: 'operator/plan/plan.ts',
    code: "handover: 'Pending', reason: need.reason",
    broken: "handover: 'Complete', reason: need.reason",
  },
  'handover ends when taken up': {
    meaning: 'the old node stops before the new one has written',
    file: 'operator/plan/needs.ts',
    code: "if (reportOf(camera, owner) === 'Recording') return complete;",
    broken: 'if (reportOf(camera, owner) !== undefined) return complete;',
  },
  'nobody is suspect': {
    meaning: 'a camera that two recorders did not survive is given a third one',
    file: 'operator/plan/suspects.ts',
    code: 'lostNodes.length >= SUSPECT_FROM;',
    broken: 'lostNodes.length > 99;',
  },
  'suspicion is not written': {
    meaning: 'the nodes that a camera was lost with stay in the plan',
    file: ASSIGNER,
    code: 'lostNodes: assignment.lostNodes?.length ? assignment.lostNodes : null,',
    broken: '',
  },
  'machines count against cameras': {
    meaning: 'a camera is held back because two machines were lost',
    file: 'operator/plan/suspects.ts',
    code: '.filter((name) => !isMachineLost(nodes.get(name)))',
    broken: '',
  },
  'any node takes over': {
    meaning: 'a lost camera does not go to its standby',
    file: 'operator/plan/standbys.ts',
    code: 'return wantsStandby(camera, snapshot) && nodeLoads.isOpen(node.name, camera) ? node.name : undefined;',
    broken: 'return undefined;',
  },
  'the standby is the owner': {
    meaning: 'a node holds its own cameras',
    file: 'operator/plan/node-loads.ts',
    code: 'if (node.name === owner || !this.canHold(node.name) || !matches(camera, node)) continue;',
    broken: 'if (!this.canHold(node.name) || !matches(camera, node)) continue;',
    also: {
      file: 'operator/plan/standbys.ts',
      code: 'return node.name !== assignment?.node && mayHold',
      broken: 'return mayHold',
    },
  },
  'standbys are not written': {
    meaning: 'the chosen standby stays in the plan',
    file: ASSIGNER,
    code: '...(standby && { standby: { ...standby, node: standby.node ?? null, process: standby.process ?? null } }),',
    broken: '',
  },
  'slots are not given back': {
    meaning: 'a move counts as under way for ever',
    file: 'operator/plan/plan.ts',
    code: 'const isNew = missingForMs !== undefined && missingForMs < TAKE_UP_MS && !wasTakenUp;',
    broken: 'const isNew = true;',
  },
};

export const RECORDER_MUTATIONS: Readonly<Record<string, CodeMutation>> = {
  'recorder stops without asking': {
    meaning: 'a camera that leaves a watch is stopped',
    file: 'recorder/cluster/assignments.ts',
    code: 'if (isLess) {',
    broken: 'if (last && last.epoch < 0) {',
  },
  'restarts are not noticed': {
    meaning: 'a standby does not write what a recorder has missed that was restarted',
    file: MIRROR,
    code: 'if (isOwnerRestarted(now, before))',
    broken: 'if (now.epoch < 0)',
  },
  'what is held is dropped on the way': {
    meaning: 'a recorder drops what it holds when the camera leaves one watch before it is in the other',
    file: 'recorder/cluster/assignments.ts',
    code: "last.state === 'standby' && !now",
    broken: 'false',
  },
  'recorder believes lower epochs': {
    meaning: 'the last event wins, not the highest epoch',
    file: MIRROR,
    code: 'return epochOf(camera) >= seen;',
    broken: 'return true;',
    also: {
      file: 'recorder/cluster/assignments.ts',
      code: 'if (last && epoch < last.epoch) return last;',
      broken: '',
    },
  },
  'recorder stops without an answer': {
    meaning: 'a camera that may belong to another node is stopped when the API server cannot be asked',
    file: MIRROR,
    code: `if (!(err instanceof ApiServerError)) throw err;
      this.#later(CONFIRM_RETRY_MS, () => this.#look());`,
    broken: `this.#assignments = new Map([...this.#assignments].filter(([other]) => other !== name));
      this.#apply();`,
  },
  'recorder forgets': {
    meaning: 'no copy of the assignments on disk',
    file: MIRROR,
    code: "if (loaded.kind === 'kept') {",
    broken: "if (loaded.kind === 'kept' && loaded.kept.assignments.size < 0) {",
  },
  'no list after a silence': {
    meaning: 'a recorder believes its watches after it was cut off',
    file: NODE_LEASE,
    code: 'if (wasAway) recovered();',
    broken: '',
  },
  'an unread Secret erases the login': {
    meaning: 'a login that was known is forgotten when its Secret cannot be read',
    file: 'recorder/cluster/logins.ts',
    code: 'if (err.status === 403 && entry.withdrawn) entry.login = undefined;',
    broken: 'entry.login = undefined;',
  },
  'the lower epoch owns': {
    meaning: 'of two nodes that report a camera, the one that lost it is named to viewers',
    file: 'recorder/cluster/peers.ts',
    code: 'if (epoch > (owners.get(name)?.epoch ?? 0))',
    broken: 'if (epoch < (owners.get(name)?.epoch ?? Infinity))',
  },
  'renewals wait for answers': {
    meaning: 'a Lease is renewed some time after each answer, not at a fixed rate',
    file: NODE_LEASE,
    code: 'this.#next(Math.max(0, nextMs - (clock.monotonicMs() - startMs)));',
    broken: 'this.#next(nextMs);',
  },
  'recorders end in silence': {
    meaning: 'a recorder that ends does not say so',
    file: NODE_LEASE,
    code: 'await this.#write(this.#announcedMs);',
    broken: '',
  },
  'a longer interval is not announced': {
    meaning: 'a recorder renews less often before its Lease says so',
    file: NODE_LEASE,
    code: 'this.#lease = await this.#write(renewMs);',
    broken: 'this.#lease = await this.#write(beforeMs);',
  },
};

/** By which rules a world goes. */
export interface Rules {
  readonly Assigner: typeof Assigner;
  readonly Cluster: typeof Cluster;
}

export const RULES: Rules = { Assigner, Cluster };

const ROOT = new URL('../../../', import.meta.url);

/** Loads the code of the operator or the recorder with this change in it; the usual one stays as it is. */
export async function broken({ also, ...change }: CodeMutation): Promise<Rules> {
  const folder = new URL(change.file.startsWith('operator/') ? 'operator/' : 'recorder/cluster/', ROOT).href;
  const mark = `?broken=${Buffer.from(change.code).toString('base64url')}`;
  const waiting = new Set<Change>([change, ...(also ? [also] : [])]);
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      // What a marked module imports of the same folder is marked as well, so that all of them use the broken one.
      const isOurs = context.parentURL?.endsWith(mark) && resolved.url.startsWith(folder);
      return isOurs ? { ...resolved, url: resolved.url + mark } : resolved;
    },
    load(url, context, next) {
      if (!url.endsWith(mark)) return next(url, context);
      const path = fileURLToPath(url.slice(0, -mark.length));
      let source = readFileSync(path, 'utf8');
      for (const one of waiting) {
        if (path !== fileURLToPath(new URL(one.file, ROOT))) continue;
        if (source.split(one.code).length !== 2) throw new Error(`${one.file} has not once: ${one.code}`);
        source = source.replace(one.code, () => one.broken);
        waiting.delete(one);
      }
      return { format: 'module-typescript', source, shortCircuit: true };
    },
  });
  try {
    const entry = change.file.startsWith('operator/') ? ASSIGNER : CLUSTER;
    const loaded = (await import(new URL(entry, ROOT).href + mark)) as Partial<Rules>;
    for (const { file } of waiting) throw new Error(`${file} is not part of ${entry}`);
    return { ...RULES, ...loaded };
  } finally {
    hooks.deregister();
  }
}
