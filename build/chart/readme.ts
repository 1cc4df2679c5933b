// Generates the chart's README from values.yaml: one row per value, described by the comment above it.

import { isMap, isScalar, parseDocument, type Node, type Pair, type YAMLMap } from 'yaml';

interface Row {
  readonly key: string;
  readonly text: string;
  readonly default: string;
}

/** Throws if a value has no comment. */
export function chartReadme(valuesYaml: string): string {
  const document = parseDocument(valuesYaml);
  const contents = document.contents as YAMLMap;
  const rows = rowsOf(contents, '', document.commentBefore ?? '');
  return `# kube-nvr

Made by \`build/generate-chart.ts\` from \`values.yaml\`; do not edit.

Records cameras on the nodes of a cluster. [How to install it](../../docs/install.md), step by step;
[all fields](../../docs/resources.md) of Camera and RecorderPool.

\`\`\`
helm install kube-nvr-crds charts/kube-nvr-crds --namespace kube-nvr --create-namespace --wait
kubectl label node NODE kube-nvr.dev/recorder=true
helm install kube-nvr charts/kube-nvr --namespace kube-nvr \\
  --set pool.enabled=true --set pool.spec.archive.hostPath=/mnt/archive
\`\`\`

Needs Kubernetes 1.32 or newer and Helm 3.14 or newer. A value that the chart does not know is refused.

| value | default | |
| --- | --- | --- |
${rows.map(({ key, text, default: value }) => `| \`${key}\` | ${value} | ${text} |`).join('\n')}
`;
}

function rowsOf(map: YAMLMap, prefix: string, first: string): readonly Row[] {
  return (map.items as Pair<Node, Node | null>[]).flatMap((pair, index) => {
    const name = String((pair.key as { value?: unknown }).value);
    const key = `${prefix}${name}`;
    // The comment above a first key belongs to the map that contains it.
    const comment = pair.key.commentBefore ?? (index === 0 ? first : '');
    const text = textOf(comment);
    const isGroup = isMap(pair.value) && pair.value.items.length > 0 && !LEAVES.has(key);
    if (!isGroup && text === '') throw new Error(`values.yaml: ${key} has no comment`);
    const row = text === '' ? [] : [{ key, text, default: isGroup ? '' : defaultOf(pair.value) }];
    return isGroup ? [...row, ...rowsOf(pair.value as YAMLMap, `${key}.`, pair.value?.commentBefore ?? '')] : row;
  });
}

/** Maps that count as one value. */
const LEAVES: ReadonlySet<string> = new Set(['operator.resources', 'dashboards.labels']);
/** Longer defaults would make the table unreadable. */
const MAX_DEFAULT = 40;

const textOf = (comment: string): string =>
  comment
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
    .replaceAll('|', '\\|');

function defaultOf(value: Node | null): string {
  if (isScalar(value) && value.value === '') return '';
  const text = JSON.stringify(value?.toJSON()).replace(/^"(.*)"$/, '$1');
  return text.length > MAX_DEFAULT ? 'see values.yaml' : `\`${text}\``;
}
