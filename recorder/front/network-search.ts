// Searches the networks of this machine for cameras, for the console.

import { networkInterfaces } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import type { Discoverer } from '../api/deps.ts';
import type { EngineCameras } from '../model/engine.ts';
import { discover } from '../onvif/discovery/discover.ts';
import { addressesOf } from '../onvif/discovery/probe.ts';
import type { Reach } from '../reach/reach.ts';
import { parseRtspUrl } from '../rtsp/url.ts';
import type { Snapshots } from '../still/snapshots.ts';

interface SearchDeps {
  readonly cameras: Pick<EngineCameras, 'list' | 'config'>;
  readonly snapshots: Pick<Snapshots, 'ofNew'>;
  readonly reach: Reach;
  readonly clock: Clock;
}

/** Found cameras are asked with the TLS settings of a new camera. */
const TLS = { verify: false } as const;

export const networkSearch = ({ cameras, snapshots, reach, clock }: SearchDeps): Discoverer => ({
  async search(timeoutMs, credentials) {
    const { addresses } = addressesOf(networkInterfaces(), []);
    if (addresses.length === 0) return { reports: [], problems: ['this node has no network with an IPv4 address'] };
    return discover({ from: addresses, timeoutMs, credentials }, { clock, reach });
  },
  isKnown: (source) =>
    cameras.list().some(({ status }) => {
      const known = cameras.config(status.id);
      return known !== undefined && requestOf(known.source) === requestOf(source);
    }),
  still: ({ source, snapshot }) => snapshots.ofNew({ source, snapshot, tls: TLS }),
});

/** Without the login; with the port that is usual, too. */
function requestOf(source: string): string {
  const { host, port, request } = parseRtspUrl(source);
  return `${host}:${port} ${request.replace(/^[^/]*\/\/[^/]*/, '')}`;
}
