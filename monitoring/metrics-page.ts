// Generates docs/metrics.md from the metrics that recorder and operator register.

import { metricsOf, type MetricFacts, type Program } from './metrics.ts';

/** Metrics of the process from prom-client, the same in every Node program. */
const OF_PROCESS = /^(process|nodejs)_/;

export function metricsPage(): string {
  return `# Metrics

Made by \`build/generate-metrics-docs.ts\` from the code; do not edit. How to scrape, dashboards and alerts:
[monitoring](monitoring.md).

## Recorder

\`GET /metrics\` on \`metrics.listen\`, by default port 9998, which only this machine can reach. A recorder with n cameras has about
150 + 56 x n series, of which half of the first 150 describe the process. A camera has a few more after failures: one for each reason of
a lost connection and each cause of dropped pictures. A camera that is removed from the node loses its series. The label \`camera\` is the
id of the camera; its name is only a label of \`kube_nvr_camera_info\`.

${tableOf('recorder')}

## Operator

\`GET /metrics\` on \`--listen\`, by default port 8080. Only the replica that leads has metrics of pools.

${tableOf('operator')}

## Both

\`process_*\` and \`nodejs_*\` describe the process, as in every Node program with
[prom-client](https://github.com/siimon/prom-client): processor time, memory, file descriptors, event loop lag, garbage collection.
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
