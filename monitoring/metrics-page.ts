// Generates docs/metrics.md from the metrics that recorder and operator register.

import { metricsOf, type MetricFacts, type Program } from './metrics.ts';

/** Metrics of the process from prom-client, the same in every Node program. */
const OF_PROCESS = /^(process|nodejs)_/;

export function metricsPage(): string {
  return `# Metrics

Made by \`build/generate-metrics-docs.ts\` from the code; do not edit. How to scrape, dashboards and alerts:
[monitoring](monitoring.md).

## Recorder

\`GET /metrics\` on \`metrics.listen\`, by default port 9998 of this machine alone. Each camera that this node records has some 60 series; one
that is gone from the node disappears. \`camera\` is the id of the camera, its name is a label of \`kube_nvr_camera_info\`
alone.

${tableOf('recorder')}

## Operator

\`GET /metrics\` on \`--listen\`, by default port 8080. Of pools only the replica that leads tells something.

${tableOf('operator')}

## Both

\`process_*\` and \`nodejs_*\` are of the process, as of every program of Node with [prom-client](https://github.com/siimon/prom-client): processor time,
memory, file descriptors, the lag of the event loop, garbage collection.
`;
}

function tableOf(program: Program): string {
  const rows = metricsOf(program)
    .filter(({ name }) => !OF_PROCESS.test(name))
    .map(rowOf);
  return `| metric | type | labels | |\n| --- | --- | --- | --- |\n${rows.join('\n')}`;
}

const rowOf = ({ name, type, labels, help }: MetricFacts): string =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help.replaceAll('|', '\\|')} |`;
