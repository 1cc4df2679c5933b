// Shared by everything that connects to cameras.

import { systemClock } from '../../base/clock.ts';
import { CameraLogins } from './logins.ts';
import { CameraNetworks } from './networks.ts';

export interface Reach {
  /** Where cameras may be. */
  readonly networks: CameraNetworks;
  /** How they answered logins. */
  readonly logins: CameraLogins;
}

/** Cameras may be anywhere, and no login is known. */
export const anywhere = (): Reach => ({
  networks: new CameraNetworks(),
  logins: new CameraLogins({ clock: systemClock }),
});
