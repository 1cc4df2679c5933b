// Devices of the network in reports: they are found, then asked, some at a time.

import type { Clock } from '../../../base/clock.ts';
import type { Credentials } from '../target.ts';
import { describeDevice, type DeviceReport } from './describe.ts';
import { probe, type ProbeOptions } from './probe.ts';

export interface DiscoverOptions extends ProbeOptions {
  readonly credentials: Credentials | undefined;
}

export interface Discovery {
  readonly reports: readonly DeviceReport[];
  /** Of the search itself. */
  readonly problems: readonly string[];
}

const AT_ONCE = 32;

export async function discover(options: DiscoverOptions, deps: { readonly clock: Clock }): Promise<Discovery> {
  const { devices, problems } = await probe(options, deps);
  const reports: DeviceReport[] = [];
  const next = devices.entries();
  const worker = async (): Promise<void> => {
    // The workers share one iterator: each takes the next device that nobody has.
    for (const [index, device] of next) reports[index] = await describeDevice(device, options.credentials, deps);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { reports, problems };
}
