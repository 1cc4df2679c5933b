// IP networks in CIDR notation: those in which no camera can be, and tests of containment.

import { BlockList, isIPv6 } from 'node:net';

/** No camera has these addresses, and a Camera's author must not be able to make a pod connect to them. */
export const NO_CAMERA_THERE: readonly string[] = [
  // This machine.
  '127.0.0.0/8',
  '::1/128',
  // Unspecified address: most systems treat it as this machine (RFC 6890 §2.2.2).
  '0.0.0.0/8',
  '::/128',
  // Link-local, which includes the metadata services of clouds, with their secrets...
  '169.254.0.0/16',
  'fe80::/10',
  // ...and the other addresses of metadata services: Alibaba, Azure, AWS, Google.
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
  // Multicast, reserved and broadcast: not reachable by a connection.
  '224.0.0.0/4',
  '240.0.0.0/4',
  'ff00::/8',
];

/** A single address gets its prefix length (`10.0.0.7/32`); a network is returned unchanged. */
export const withPrefixLength = (text: string): string =>
  text.includes('/') ? text : `${text}/${isIPv6(text) ? 128 : 32}`;

/** Whether the network `inner` is a proper part of `outer`. */
export function isWithin(inner: string, outer: string): boolean {
  const [[address, length], [outerAddress, outerLength]] = [split(inner), split(outer)];
  const family = familyOf(outerAddress);
  // The families are compared because a BlockList matches IPv4 addresses against ::/0.
  if (familyOf(address) !== family || length <= outerLength) return false;
  const network = new BlockList();
  network.addSubnet(outerAddress, outerLength, family);
  return network.check(address, family);
}

function split(network: string): readonly [address: string, length: number] {
  const [address = '', length] = withPrefixLength(network).split('/');
  return [address, Number(length)];
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');
