// The metrics of playback.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Sender } from './sender.ts';

/** Values are read at each scrape. */
export function observePlayback(registry: Registry, sender: Sender): void {
  const registers = [registry];
  let reported = 0;
  const bytes: Counter = new Counter({
    name: 'kube_nvr_playback_bytes_total',
    help: 'Bytes of footage sent to players.',
    registers,
    collect() {
      bytes.inc(sender.bytesSent - reported);
      reported = sender.bytesSent;
    },
  });
  const responses: Gauge = new Gauge({
    name: 'kube_nvr_playback_responses',
    help: 'Files, parts and windows that are being sent.',
    registers,
    collect() {
      responses.set(sender.active);
    },
  });
}
