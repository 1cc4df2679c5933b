// The audit of a node: connects the listeners with the files of the audit.

import type { Registry } from 'prom-client';
import type { Clock, Timer } from '../../base/clock.ts';
import type { PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { Audit } from '../api/deps.ts';
import { cameraChanges } from '../audit/camera-changes.ts';
import type { Delivery } from '../audit/delivery.ts';
import { registerDeliveryMetrics } from '../audit/delivery-metrics.ts';
import { readAudit } from '../audit/read.ts';
import { AuditTrail } from '../audit/trail.ts';
import { Visits } from '../audit/visits.ts';
import type { CameraConfig, Config } from '../config/schema.ts';

/** A collector that has no line of so long gets none: it has three of them to miss. */
const HEARTBEAT_MS = 5 * MINUTE_MS;
const SILENT_MS = 3 * HEARTBEAT_MS;

interface NodeAuditDeps {
  readonly version: string;
  readonly pod?: PodPlace | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Also receives each line. */
  readonly copy: Pick<Log, 'info'> | undefined;
  readonly registry: Registry;
}

export interface NodeAudit extends Audit {
  readonly visits: Visits;
  warnings(): readonly Warning[];
  /** Begins to send lines to the collectors of the configuration. */
  start(): Promise<void>;
  /** Sets the wanted cameras and records the changes. The first call only sets the initial list. */
  camerasAre(cameras: readonly CameraConfig[]): void;
  /** Ends all visits, and writes lines as far as the disk accepts them in time. */
  close(): Promise<void>;
}

export function openAudit(config: Config, deps: NodeAuditDeps): NodeAudit {
  const { audit, nodeName } = config;
  const { version, pod, clock, log, registry } = deps;
  const sink = new AuditTrail({ ...audit, ...deps, node: nodeName });
  const visits = new Visits({ audit: sink, views: audit.views, clock });
  let wanted: readonly CameraConfig[] | undefined;
  let deliveries: readonly Delivery[] = [];
  let heartbeat: Timer | undefined;
  registerDeliveryMetrics(registry, () => deliveries);
  const beat = (): void => {
    sink.write({ what: 'heartbeat', caller: null });
    heartbeat = clock.after(HEARTBEAT_MS, beat);
  };
  return {
    sink,
    visits,
    reader: {
      read: (query) => readAudit(audit.directory, query),
      get end() {
        return sink.end;
      },
    },
    warnings() {
      const { problem } = sink;
      return [
        ...(problem === undefined ? [] : [warning('audit-not-written', `the audit is not written: ${problem}`)]),
        ...deliveries.filter((delivery) => delivery.behindMs() > SILENT_MS).map(silence),
      ];
    },
    async start() {
      if (!audit.syslog && !audit.otlp) return;
      const { openDeliveries } = await import('./audit-deliveries.ts');
      deliveries = await openDeliveries(config, { version, pod, end: () => sink.end, clock, log });
      for (const delivery of deliveries) delivery.start();
      beat();
    },
    camerasAre(cameras) {
      const changes = wanted && cameraChanges(wanted, cameras);
      if (changes) sink.write(changes);
      wanted = cameras;
    },
    async close() {
      heartbeat?.cancel();
      visits.close();
      await Promise.all([sink.close(), ...deliveries.map((delivery) => delivery.close())]);
    },
  };
}

const warning = (code: string, message: string): Warning => ({ code, message, cameraId: undefined });

/** Without a problem of the collector, there are no lines, or older ones are on their way. */
const silence = ({ to, problem = 'it has older lines only' }: Delivery): Warning =>
  warning('audit-not-sent', `the audit is not sent by ${to}: ${problem}`);
