// A real Prometheus of a test's own, that scrapes and judges every second, with the alerts as they are shipped but for
// their times.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Child } from '../support/child.ts';
import { freePorts } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { RULE_FILES, rulesText } from './rule-files.ts';

interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: string;
}

/** Addresses, `host:port`, by the label `node` they are scraped with. */
type Targets = Readonly<Record<string, string>>;

type Job = 'kube-nvr-recorder' | 'kube-nvr-operator';

const JOBS: readonly Job[] = ['kube-nvr-recorder', 'kube-nvr-operator'];
const ALERT_TIMEOUT_MS = 90_000;

/** What takes minutes takes seconds here; all else is as it is shipped. */
const hurried = (rules: string): string =>
  rules
    .replaceAll(/^( +for:) \w+$/gm, '$1 1s')
    .replaceAll(/\[(10m|15m)\]/g, '[10s]')
    // Three days are to a day what 45 s are to 15 s: a trend is not carried further than it is seen.
    .replaceAll('[1d], 3 * 86400)', '[15s], 45)')
    .replaceAll('[10s]) > 60', '[10s]) > 3')
    .replaceAll('[10s])) > 10', '[10s])) > 3')
    .replaceAll('_age_seconds > 600', '_age_seconds > 3')
    .replaceAll('unfinished_work_seconds > 120', 'unfinished_work_seconds > 3')
    // A watch in which nothing happens ends after 40 s.
    .replaceAll('watch_age_seconds > 300', 'watch_age_seconds > 50');

export class Prometheus {
  readonly #child: Child;
  readonly #directory: string;
  readonly url: string;
  readonly startedMs = Date.now();

  private constructor(child: Child, directory: string, port: number) {
    this.#child = child;
    this.#directory = directory;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async start(): Promise<Prometheus> {
    const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-prometheus-'));
    mkdirSync(join(directory, 'data'));
    for (const name of RULE_FILES) writeFileSync(join(directory, `${name}.rules.yaml`), hurried(rulesText(name)));
    // JSON is YAML.
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['*.rules.yaml'],
      scrape_configs: JOBS.map((job) => ({
        job_name: job,
        honor_labels: true,
        // Read again for each scrape; recorders that ask for no token do not look at it.
        ...(job === 'kube-nvr-recorder' && { authorization: { credentials_file: 'token' } }),
        file_sd_configs: [{ files: [`${job}.targets.json`], refresh_interval: '1s' }],
      })),
    };
    writeFileSync(join(directory, 'token'), 'none');
    writeFileSync(join(directory, 'prometheus.yaml'), JSON.stringify(config));
    const [port = 0] = await freePorts(1);
    const child = new Child('prometheus', [
      `--config.file=${join(directory, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const prometheus = new Prometheus(child, directory, port);
    try {
      await until(
        'Prometheus is ready',
        async () => child.ended || (await fetch(`${prometheus.url}/-/ready`)).ok,
        60_000,
      );
      if (child.ended) throw new Error(child.output);
    } catch (error) {
      await prometheus[Symbol.asyncDispose]();
      throw error;
    }
    return prometheus;
  }

  /** From now on these are scraped, each with its label `node`. */
  scrape(job: Job, targets: Targets): void {
    const groups = Object.entries(targets).map(([node, address]) => ({
      targets: [address],
      labels: job === 'kube-nvr-recorder' ? { node } : {},
    }));
    writeFileSync(join(this.#directory, `${job}.targets.json`), JSON.stringify(groups));
  }

  /** Recorders are scraped with this token from now on. */
  authorize(token: string): void {
    writeFileSync(join(this.#directory, 'token'), token);
  }

  async alerts(): Promise<readonly FiringAlert[]> {
    const { alerts } = (await this.#get('alerts')) as { alerts: readonly FiringAlert[] };
    return alerts.filter(({ state }) => state === 'firing');
  }

  /** Waits until the alert fires with these labels among its own. */
  fires(name: string, labels: Readonly<Record<string, string>> = {}): Promise<FiringAlert> {
    return until(
      `${name} fires with ${JSON.stringify(labels)}`,
      async () => (await this.alerts()).find((alert) => isAbout(alert, name, labels)),
      ALERT_TIMEOUT_MS,
    );
  }

  async clears(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await until(
      `${name} clears with ${JSON.stringify(labels)}`,
      async () => !(await this.alerts()).some((alert) => isAbout(alert, name, labels)),
      ALERT_TIMEOUT_MS,
    );
  }

  /** How many numbers an expression had at any time since this Prometheus began. */
  async numbersOf(expr: string): Promise<number> {
    const query = new URLSearchParams({
      query: expr,
      start: `${this.startedMs / 1000}`,
      end: `${Date.now() / 1000}`,
      step: '1',
    });
    const { result } = (await this.#get(`query_range?${query.toString()}`)) as {
      result: readonly { readonly values: readonly (readonly [number, string])[] }[];
    };
    return result.flatMap(({ values }) => values).filter(([, value]) => Number.isFinite(Number(value))).length;
  }

  /** Names of series, by job. */
  async names(job: Job): Promise<readonly string[]> {
    const query = new URLSearchParams({ 'match[]': `{job="${job}"}` });
    return (await this.#get(`label/__name__/values?${query.toString()}`)) as readonly string[];
  }

  async #get(path: string): Promise<unknown> {
    const answer = await fetch(`${this.url}/api/v1/${path}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${text}`);
    return (JSON.parse(text) as { data: unknown }).data;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

const isAbout = (alert: FiringAlert, name: string, labels: Readonly<Record<string, string>>): boolean =>
  alert.labels['alertname'] === name && Object.entries(labels).every(([label, value]) => alert.labels[label] === value);
