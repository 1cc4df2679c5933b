// A node of the bench of exports over nodes, started by its parent process: sends the files of an archive as between members of a
// pool, over TLS with certificates. With a round trip of more than 0 ms, every byte is delayed on its way.

import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { AddressInfo } from 'node:net';
import { Archive } from '../../recorder/archive/archive.ts';
import { openFootage } from '../../recorder/footage/open.ts';
import { Authenticator } from '../../recorder/http/auth.ts';
import type { JobKeeper } from '../../recorder/api/deps.ts';
import { buildPeersServer } from '../../recorder/api/peers-server.ts';
import type { MutualTls } from '../../recorder/peers/identity.ts';
import { buildPlayback } from '../../recorder/playback/app.ts';
import { SlowLink } from '../support/slow-link.ts';

/** What the parent sends; it gets the ports: that of the node, and that of the slow link to it. */
export interface HolderOrder {
  readonly recordPath: string;
  readonly pair: MutualTls;
  readonly roundTripMs: number;
}

const BITS_PER_SECOND = 10e9;

process.once('message', (order: HolderOrder) => void serve(order));
process.once('disconnect', () => process.exit());

async function serve({ recordPath, pair, roundTripMs }: HolderOrder): Promise<void> {
  const around = { clock: systemClock, log: silentLog };
  const archive = new Archive({ root: recordPath, syncIntervalMs: 5_000, ...around });
  await archive.recover();
  const playback = await buildPlayback({
    version: '',
    footage: openFootage({ recordPath, archive, ...around }),
    auth: new Authenticator({ mode: 'none', tokens: [] }, around),
    ...around,
  });
  await playback.ready();
  const app = await buildPeersServer({
    nodeId: 'holder',
    pair,
    authorities: pair.ca,
    jobs: {} as JobKeeper,
    listeners: { api: playback, playback },
    ...around,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const link = await SlowLink.to({ port, bitsPerSecond: BITS_PER_SECOND, roundTripMs });
  process.send?.({ port, slowPort: link.port });
}
