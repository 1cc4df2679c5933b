// What sends the audit of a node to its collectors. Loaded when there is one.

import { podNamespace, type PodPlace } from '../../base/kubernetes/pod-place.ts';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { formatListen } from '../config/values.ts';
import type { Config } from '../config/schema.ts';
import { Delivery, type Send } from '../audit/delivery.ts';
import type { ChainEnd } from '../audit/files.ts';
import type { Stream } from '../audit/sent-line.ts';
import { sendSyslog } from '../audit/syslog.ts';

interface DeliveriesDeps {
  readonly version: string;
  readonly pod: PodPlace | undefined;
  readonly end: () => ChainEnd;
  readonly clock: Clock;
  readonly log: Log;
}

/** One for each collector in `config`. */
export async function openDeliveries(config: Config, { version, pod, ...deps }: DeliveriesDeps): Promise<Delivery[]> {
  const { directory, syslog, otlp } = config.audit;
  const { mode, pool } = config.cluster;
  const stream: Stream = {
    node: config.nodeName,
    site: config.console.site || undefined,
    namespace: pod && (await podNamespace(pod)),
    pool: mode === 'none' ? undefined : pool,
    version,
  };
  const deliveries: Delivery[] = [];
  if (syslog) {
    const send: Send = (lines, signal) => sendSyslog(syslog, stream, lines, deps.clock, signal);
    deliveries.push(new Delivery({ directory, to: 'syslog', address: formatListen(syslog.address), send, ...deps }));
  }
  if (otlp) {
    const { sendOtlp } = await import('../audit/otlp.ts');
    const send: Send = (lines, signal) => sendOtlp(otlp, stream, lines, signal);
    deliveries.push(new Delivery({ directory, to: 'otlp', address: new URL(otlp.url).host, send, ...deps }));
  }
  return deliveries;
}
