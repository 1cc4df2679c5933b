// Rules of the protocol that can be broken, one at a time, to see that the check notices: those of recorders in the
// simulated recorder, those of the operator in its own code, which is loaded once more with some words of it replaced.

import { registerHooks } from 'node:module';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Assigner } from '../../../operator/controllers/assigner.ts';

export const RECORDER_MUTATIONS = {
  'recorder stops without asking': 'a camera that leaves one watch is stopped',
  'recorder believes lower epochs': 'the last event wins, not the highest epoch',
  'recorder stops without an answer': 'a recorder that cannot reach the API server stops',
  'recorder forgets': 'no copy of the assignments on disk',
  'no list after a silence': 'a recorder believes its watches after it was cut off',
} as const;

export type RecorderMutation = keyof typeof RECORDER_MUTATIONS;

interface Change {
  /** Below `operator/`. */
  readonly file: string;
  readonly code: string;
  readonly broken: string;
}

interface CodeMutation extends Change {
  readonly meaning: string;
  /** What would hide it. */
  readonly also?: Change;
}

const ASSIGNER = 'controllers/assigner.ts';

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
    code: 'this.#o.clock.after(RETRY_MS, () => void this.#ascertain(write));',
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
    file: 'plan/liveness.ts',
    code: 'const needed = Math.floor(ends.length / 2) + 1;',
    broken: 'const needed = 1;',
    also: { file: 'plan/voters.ts', code: 'heard: hasMajority(voters),', broken: 'heard: true,' },
  },
  'clocks run through outages': {
    meaning: 'silence counts while nobody can be heard',
    file: 'plan/liveness.ts',
    code: "const state = this.#isUnavailable(node) ? 'Unavailable' : 'Unknown';",
    broken: "const state = this.#majoritySinceMs !== undefined && silentMs !== undefined ? 'Unavailable' : 'Unknown';",
  },
  'epoch stays': {
    meaning: 'a camera is given to another node under the same epoch',
    file: 'plan/plan.ts',
    code: 'const epoch = (assignment?.epoch ?? 0) + 1;',
    broken: 'const epoch = Math.max(assignment?.epoch ?? 0, 1);',
  },
  'early end of handovers': {
    meaning: 'the old node stops as soon as the new one is named',
    file: 'plan/plan.ts',
    code: "handover: 'Pending', reason: need.reason",
    broken: "handover: 'Complete', reason: need.reason",
  },
  'handover ends when taken up': {
    meaning: 'the old node stops before the new one has written',
    file: 'plan/needs.ts',
    code: "if (reportOf(camera, owner) === 'Recording') return complete;",
    broken: 'if (reportOf(camera, owner) !== undefined) return complete;',
  },
  'nobody is suspect': {
    meaning: 'a camera that two recorders did not survive is given a third one',
    file: 'plan/suspects.ts',
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
    file: 'plan/suspects.ts',
    code: '.filter((name) => !isMachineLost(nodes.get(name)))',
    broken: '',
  },
  'slots are not given back': {
    meaning: 'a move counts as under way for ever',
    file: 'plan/plan.ts',
    code: 'const isNew = missingForMs !== undefined && missingForMs < TAKE_UP_MS && !wasTakenUp;',
    broken: 'const isNew = true;',
  },
};

/** By which rules a world goes. */
export interface Rules {
  readonly mutation: RecorderMutation | undefined;
  readonly Assigner: typeof Assigner;
}

export const RULES: Rules = { mutation: undefined, Assigner };

export const brokenRecorder = (mutation: RecorderMutation): Rules => ({ ...RULES, mutation });

const OPERATOR = new URL('../../../operator/', import.meta.url);

/** Loads the operator's code with this change in it; the usual one stays as it is. */
export async function brokenOperator({ also, ...change }: CodeMutation): Promise<Rules> {
  const mark = `?broken=${Buffer.from(change.code).toString('base64url')}`;
  const waiting = new Set<Change>([change, ...(also ? [also] : [])]);
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      // What a marked module imports of the operator is marked as well, so that all of them use the broken one.
      const isOurs = context.parentURL?.endsWith(mark) && resolved.url.startsWith(OPERATOR.href);
      return isOurs ? { ...resolved, url: resolved.url + mark } : resolved;
    },
    load(url, context, next) {
      if (!url.endsWith(mark)) return next(url, context);
      const path = fileURLToPath(url.slice(0, -mark.length));
      let source = readFileSync(path, 'utf8');
      for (const one of waiting) {
        if (path !== fileURLToPath(new URL(one.file, OPERATOR))) continue;
        if (source.split(one.code).length !== 2) throw new Error(`${one.file} has not once: ${one.code}`);
        source = source.replace(one.code, () => one.broken);
        waiting.delete(one);
      }
      return { format: 'module-typescript', source, shortCircuit: true };
    },
  });
  try {
    const { Assigner } = (await import(new URL(ASSIGNER, OPERATOR).href + mark)) as {
      Assigner: Rules['Assigner'];
    };
    for (const { file } of waiting) throw new Error(`${file} is not part of the assigner`);
    return { mutation: undefined, Assigner };
  } finally {
    hooks.deregister();
  }
}
