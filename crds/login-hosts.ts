// Which cameras a Secret's login is for: the Secret itself says so, in an annotation. Who writes a Camera says where it is,
// but may not be the one whose login it is.

import { CAMERA_HOSTS } from './names.ts';

/**
 * What stands in the annotation: addresses, networks as `10.20.0.0/16`, names, `*.cameras.example` for names below that one,
 * `*` for every host; with commas or blanks between. Undefined when it names nothing: the Secret is no camera's login.
 */
export function hostsNamedBy(
  annotations: Readonly<Record<string, unknown>> | undefined,
): readonly string[] | undefined {
  const text = annotations?.[CAMERA_HOSTS];
  const hosts =
    typeof text === 'string'
      ? text
          .toLowerCase()
          .split(/[\s,]+/)
          .filter((host) => host !== '')
      : [];
  return hosts.length > 0 ? hosts : undefined;
}

/** The host of a Camera's address, without brackets; undefined for one that could be read otherwise. */
export function hostIn(address: string): string | undefined {
  const match = /^[a-z+]+:\/\/(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?(?:[/?].*)?$/i.exec(address);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}
