// Prometheus for the demo of an installation: scrapes operator and recorders through their Services and evaluates the chart's
// alerts. (Debian's Prometheus cannot discover pods.)

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '../test/cluster/program.ts';
import { prometheusMissing, RULES } from '../test/monitoring/rule-files.ts';
import { freePorts } from '../test/support/recorder-process.ts';
import { until } from '../test/support/until.ts';

const START_TIMEOUT_MS = 60_000;

/** Addresses (`host:port`) of metrics. */
interface DemoTargets {
  readonly 'kube-nvr-recorder': string;
  readonly 'kube-nvr-operator': string;
}

interface DemoPrometheus extends AsyncDisposable {
  readonly url: string;
}

/** `token`: for the recorders' metrics. Undefined if Prometheus is not installed. */
export async function startDemoPrometheus(
  targets: DemoTargets,
  { node, token }: { readonly node: string; readonly token: string },
): Promise<DemoPrometheus | undefined> {
  if (prometheusMissing()) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-prometheus-'));
  mkdirSync(join(directory, 'data'));
  const file = join(directory, 'prometheus.yaml');
  // Every JSON document is also YAML.
  writeFileSync(file, JSON.stringify(configuration(targets, node)));
  writeFileSync(join(directory, 'token'), token, { mode: 0o600 });
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const program = new Program('prometheus', {
    command: 'prometheus',
    args: [`--config.file=${file}`, `--storage.tsdb.path=${directory}/data`, `--web.listen-address=127.0.0.1:${port}`],
    logFile: join(directory, 'prometheus.log'),
  });
  program.start();
  const close = async (): Promise<void> => {
    await program.kill();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const ready = async (): Promise<boolean> => !program.running || (await fetch(`${url}/-/ready`)).ok;
    await until('Prometheus is ready', ready, START_TIMEOUT_MS);
    if (!program.running) throw new Error('Prometheus ended');
  } catch (error) {
    const { logTail } = program;
    await close();
    throw new Error(logTail, { cause: error });
  }
  return { url, [Symbol.asyncDispose]: close };
}

function configuration(targets: DemoTargets, node: string) {
  return {
    global: { scrape_interval: '5s', evaluation_interval: '5s' },
    rule_files: [join(RULES, '*.yaml')],
    scrape_configs: Object.entries(targets).map(([job, address]) => ({
      job_name: job,
      honor_labels: true,
      ...(job === 'kube-nvr-recorder' && { authorization: { credentials_file: 'token' } }),
      static_configs: [{ targets: [address], labels: job === 'kube-nvr-recorder' ? { node } : {} }],
    })),
  };
}
