// The metrics of playback.

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import type { Sender } from './sender.ts';

/** Values are read at each scrape. */
export function observePlayback(registry: Registry, sender: Sender): void {
  const { counter, gauge } = scraped(registry);
  counter('playback_bytes_total', 'Bytes of footage sent to players.', [], () => sender.bytesSent);
  gauge('playback_responses', 'Files, parts and windows that are being sent.', [], () => sender.active);
}
