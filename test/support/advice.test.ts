// What a program says names nothing that only another kind of cluster has: servers without Kubernetes have no pods and no kubectl, and
// on Kubernetes there is no systemctl and no etcd of the recorders. A single recorder has none of them.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_WARNINGS, RECORDING_REASONS, type ReasonTable } from '../../crds/reason-table.ts';

const ROOT = join(import.meta.dirname, '../..');

const WORDS = {
  kubernetes: /\b(?:kubectl|API server|pods?|DaemonSets?|kubelet|helm|network ?polic(?:y|ies))\b/i,
  servers: /\b(?:etcd|systemctl|systemd|recorder (?:cluster|apply|get|delete))\b/,
};
type Kind = keyof typeof WORDS;
const KINDS = Object.keys(WORDS) as Kind[];

/** The kind of cluster whose things a text names, unless it says so, or what each kind has. */
function kindOf(text: string): Kind | undefined {
  if (/\bKubernetes\b/.test(text)) return undefined;
  const named = KINDS.filter((kind) => WORDS[kind].test(text));
  return named.length === 1 ? named[0] : undefined;
}

/** Codes that only recorders of one kind of cluster give. */
const CODES: Readonly<Record<string, Kind>> = { 'etcd-member-down': 'servers', 'rows-restored': 'servers' };

/** Files and rooms that run in one kind of cluster only, or describe its resources. */
const PLACES: Readonly<Record<Kind, readonly string[]>> = {
  kubernetes: [
    'base/kubernetes/',
    'crds/pod-template.ts',
    'crds/recorder-node.ts',
    'crds/recorder-pool.ts',
    'crds/schema-parts.ts',
    'operator/controllers/guards.ts',
    'operator/controllers/pods-placed.ts',
    'operator/controllers/recorders.ts',
    'operator/controllers/refusals.ts',
    'operator/kube/kube-config.ts',
    'operator/main.ts',
    'operator/manifests/',
    'operator/plan/rollout.ts',
    'recorder/cluster/token-reviews.ts',
    'recorder/http/refusals.ts',
    'recorder/engine/owner.ts',
  ],
  servers: [
    'base/etcd/',
    'recorder/api/routes/objects.ts',
    'recorder/certificates/',
    'recorder/cluster/votes.ts',
    'recorder/run/servers.ts',
    'recorder/front/trust.ts',
    'recorder/run/vote-metrics.ts',
    'recorder/servers/',
    'store/',
  ],
};

/** Here the text of one kind is chosen by `cluster.mode` or by what the cluster has, or it says in which kind it holds. */
const CHOSEN: readonly string[] = [
  'operator/controllers/pool-status.ts',
  'operator/operator.ts',
  'recorder/api/routes/cluster-membership.ts',
  'recorder/api/routes/cluster.ts',
  'recorder/cluster/assignment-mirror.ts',
  'recorder/commands/',
  'recorder/config/schema.ts',
  'recorder/engine/join.ts',
  'recorder/engine/member.ts',
  'recorder/front/access.ts',
];

const TOKENS = /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;
/** Texts with a blank: names, addresses and modules have none. */
const textsOf = (source: string): string[] =>
  (source.match(TOKENS) ?? []).filter((token) => !token.startsWith('/') && token.includes(' '));

/** The texts of the shipped files that name things of one kind of cluster. */
const NAMING = globSync('{base,console,crds,operator,recorder,store}/**/*.{js,ts}', { cwd: ROOT })
  .filter((file) => !/\btest(?:-support)?\b/.test(file) && file !== 'crds/reason-table.ts')
  .flatMap((file) =>
    textsOf(readFileSync(join(ROOT, file), 'utf8')).flatMap((text) => {
      const kind = kindOf(text);
      return kind ? [{ file, text, kind }] : [];
    }),
  );

test('what to do for a reason or a warning names nothing that the cluster does not have', () => {
  const rows = Object.entries<ReasonTable[string]>({ ...RECORDING_REASONS, ...NODE_WARNINGS });
  const wrong = rows.filter(([code, { means, todo }]) => {
    const kind = kindOf(`${means}; ${todo}`);
    return kind !== undefined && kind !== CODES[code];
  });
  assert.deepEqual(
    wrong.map(([code, { todo }]) => `${code}: ${todo}`),
    [],
  );
});

test('a text of what runs in every cluster names nothing that only one kind has', () => {
  const isIn = (places: readonly string[], file: string): boolean => places.some((place) => file.startsWith(place));
  const wrong = NAMING.filter(({ file, kind }) => !isIn(PLACES[kind], file) && !isIn(CHOSEN, file));
  assert.deepEqual(
    wrong.map(({ file, text }) => `${file}: ${text}`),
    [],
  );
});

test('every place of one kind has such a text, and the words find the texts', () => {
  assert.ok(NAMING.length > 100, `${NAMING.length}`);
  for (const kind of KINDS) {
    const unused = PLACES[kind].filter(
      (place) => !NAMING.some((one) => one.kind === kind && one.file.startsWith(place)),
    );
    assert.deepEqual(unused, [], kind);
  }
  assert.deepEqual(
    CHOSEN.filter((place) => !NAMING.some(({ file }) => file.startsWith(place))),
    [],
  );
  assert.equal(kindOf('look at kubectl get pods'), 'kubernetes');
  assert.equal(kindOf('systemctl reload recorder'), 'servers');
  assert.equal(kindOf('the API server, or etcd'), undefined);
});
