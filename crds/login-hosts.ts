// The hosts to which a Secret's login may be sent. The Secret itself names them in an annotation: the author of a Camera chooses
// its address, but may not own the login.

import { CAMERA_HOSTS } from './names.ts';

/**
 * Reads the annotation: addresses, networks (`10.20.0.0/16`), names, `*.cameras.example` for all names below that one, or `*` for
 * every host; separated by commas or white space. Undefined if it names nothing: the Secret is then not a camera's login.
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

/**
 * The host of a Camera's address, without brackets. Undefined if the address is ambiguous and another parser could find another
 * host.
 */
export function hostIn(address: string): string | undefined {
  const match = /^[a-z+]+:\/\/(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?(?:[/?].*)?$/i.exec(address);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}
