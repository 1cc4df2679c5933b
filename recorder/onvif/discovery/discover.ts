// Finds the devices of the network and describes them, several at a time.

import type { Clock } from '../../../base/clock.ts';
import { concurrently } from '../../../base/concurrently.ts';
import type { Reach } from '../../reach/reach.ts';
import type { Credentials } from '../target.ts';
import { describeDevice, type DeviceReport } from './describe.ts';
import { probe, type ProbeOptions } from './probe.ts';

interface DiscoverOptions extends ProbeOptions {
  readonly credentials: Credentials | undefined;
}

export interface Discovery {
  readonly reports: readonly DeviceReport[];
  /** Problems of the search itself. */
  readonly problems: readonly string[];
}

const AT_ONCE = 32;

export async function discover(
  options: DiscoverOptions,
  deps: { readonly clock: Clock; readonly reach: Reach },
): Promise<Discovery> {
  const { devices, problems } = await probe(options, deps);
  const reports = await concurrently(devices, AT_ONCE, (device) => describeDevice(device, options.credentials, deps));
  return { reports, problems };
}
