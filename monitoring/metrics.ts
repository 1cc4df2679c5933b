// Collects every metric of recorder and operator as their own code registers it: for docs/metrics.md, and for tests that check
// the names used in dashboards and rules.

import { Registry, type Metric } from 'prom-client';
import { systemClock } from '../base/clock.ts';
import { silentLog } from '../base/log.ts';
import { MemoryBudget } from '../base/memory-budget.ts';
import { OperatorMetrics } from '../operator/metrics.ts';
import { buildMetricsRegistry } from '../recorder/api/prometheus.ts';
import { registerGapMetrics } from '../recorder/archive/gaps/metrics.ts';
import { ArchiveMetrics } from '../recorder/archive/segments/metrics.ts';
import { RetentionMetrics, type RetentionFigures } from '../recorder/archive/retention/metrics.ts';
import { noAudit } from '../recorder/audit/entry.ts';
import { registerCopyMetrics } from '../recorder/copies/metrics.ts';
import { registerDeliveryMetrics } from '../recorder/audit/delivery-metrics.ts';
import { auditLostLines } from '../recorder/audit/trail.ts';
import { DatabaseMetrics } from '../recorder/database/metrics.ts';
import { AuthFailures } from '../recorder/http/auth-failures.ts';
import { LocalSignIns } from '../recorder/http/local-sign-ins.ts';
import { WorkBudget } from '../recorder/http/work-budget.ts';
import { registerCertificateMetrics } from '../recorder/http/certificate.ts';
import { EdgeMetrics } from '../recorder/edge/recovery/metrics.ts';
import { JobMetrics } from '../recorder/jobs/metrics.ts';
import { License } from '../recorder/license/license.ts';
import { Holds } from '../recorder/engine/holds.ts';
import { registerLogMetrics } from '../recorder/run/logs.ts';
import { registerMemoryMetrics } from '../recorder/run/memory.ts';
import { observePlayback } from '../recorder/playback/app.ts';
import { Sender } from '../recorder/playback/sender.ts';
import { ObjectiveWatch } from '../recorder/objectives/watch.ts';
import { RelayMetrics } from '../recorder/relay/metrics.ts';
import { registerVoteMetrics } from '../recorder/run/vote-metrics.ts';
import { registerWebhookMetrics } from '../recorder/front/webhook-metrics.ts';

export interface MetricFacts {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly help: string;
  readonly labels: readonly string[];
}

export type Program = 'recorder' | 'operator';

/** Labels that Prometheus adds, as configured in docs/monitoring.md. */
export const TARGET_LABELS: readonly string[] = ['cluster', 'job', 'instance', 'namespace', 'node', 'pool', 'pod'];

export function metricsOf(program: Program): readonly MetricFacts[] {
  const registry = program === 'recorder' ? recorderRegistry() : operatorRegistry();
  return registry
    .getMetricsAsArray()
    .map((metric) => factsOf(metric as unknown as Registered))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The series of a metric: a histogram has three. */
export function seriesOf({ name, type, labels }: MetricFacts): ReadonlyMap<string, readonly string[]> {
  if (type !== 'histogram' && type !== 'summary') return new Map([[name, labels]]);
  return new Map([
    [`${name}_bucket`, [...labels, 'le']],
    [`${name}_sum`, labels],
    [`${name}_count`, labels],
  ]);
}

/** A metric of prom-client, with properties that its types lack. */
type Registered = Metric & {
  readonly name: string;
  readonly help: string;
  readonly type?: MetricFacts['type'];
  readonly labelNames: readonly string[];
};

function factsOf({ name, help, type, labelNames }: Registered): MetricFacts {
  return { name, help, type: type ?? 'gauge', labels: labelNames };
}

/** Nothing runs: callbacks for a scrape are never called. */
function recorderRegistry(): Registry {
  const own = new Registry();
  const nobody = { list: () => [] };
  registerGapMetrics(own, () => []);
  void new ArchiveMetrics(own);
  void new EdgeMetrics(own);
  void new RetentionMetrics(own, (): RetentionFigures => {
    throw new Error('nothing is scraped here');
  });
  void new DatabaseMetrics(own, { reachable: () => true, waiting: () => 0, cameras: () => ({ used: 0, refused: 0 }) });
  void new AuthFailures({ clock: systemClock, log: silentLog, registry: own, audit: noAudit });
  void new LocalSignIns({ log: silentLog, registry: own });
  void new WorkBudget({ clock: systemClock, log: silentLog, registry: own, audit: noAudit });
  auditLostLines(own);
  registerDeliveryMetrics(own, () => []);
  registerCopyMetrics(own, () => []);
  registerCertificateMetrics(own, { listeners: () => undefined, nodes: () => undefined });
  registerMemoryMetrics(own, new MemoryBudget(0));
  registerLogMetrics(own, { bugs: 0 });
  void new JobMetrics(own, { isAvailable: () => true, counts: async () => [], progressAgeMs: () => 0 });
  void new License({
    file: '',
    publicKey: '',
    required: false,
    wanted: () => 0,
    changed() {},
    registry: own,
    clock: systemClock,
    log: silentLog,
  });
  void new Holds({ cameras: nobody, registry: own, clock: systemClock, log: silentLog });
  registerVoteMetrics(own, () => []);
  registerWebhookMetrics(own, () => []);
  observePlayback(own, new Sender({ clock: systemClock }));
  void new RelayMetrics(own);
  void new ObjectiveWatch({
    objectives: () => [],
    cameraIds: () => Promise.resolve([]),
    accounts: () => Promise.resolve([]),
    isMine: () => false,
    measured: () => undefined,
    registry: own,
    clock: systemClock,
    log: silentLog,
  });
  return Registry.merge([
    buildMetricsRegistry({ cameras: nobody, version: '', nodeName: '', site: '', clock: systemClock }),
    own,
  ]);
}

function operatorRegistry(): Registry {
  const metrics = new OperatorMetrics();
  metrics.follow({ isLeader: () => false, watches: () => [], queues: () => [] });
  metrics.followLog({ bugs: () => 0 });
  return metrics.registry;
}
