// State shared by everything that connects to cameras.

import { systemClock } from '../../base/clock.ts';
import { CameraLogins } from './logins.ts';
import { CameraNetworks } from './networks.ts';

export interface Reach {
  readonly networks: CameraNetworks;
  readonly logins: CameraLogins;
}

/** Without restrictions and without known logins. */
export const anywhere = (): Reach => ({
  networks: new CameraNetworks(),
  logins: new CameraLogins({ clock: systemClock }),
});
