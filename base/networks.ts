// Networks as text, `10.0.0.0/8`, or single addresses: which of them no camera is in, and which lie within others.

import { BlockList, isIPv6 } from 'node:net';

/** No camera has these addresses, and the author of a Camera must not make a pod connect to them. */
export const NO_CAMERA_THERE: readonly string[] = [
  // This machine.
  '127.0.0.0/8',
  '::1/128',
  // Unspecified: most systems take it for this machine (RFC 6890 §2.2.2).
  '0.0.0.0/8',
  '::/128',
  // Link-local, and with it what clouds tell their machines, secrets included...
  '169.254.0.0/16',
  'fe80::/10',
  // ...and where some of them tell it else: Alibaba, Azure, AWS, Google.
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
  // Multicast, reserved and broadcast: nothing that can be connected to.
  '224.0.0.0/4',
  '240.0.0.0/4',
  'ff00::/8',
];

/** `10.0.0.7` as `10.0.0.7/32`; networks as they are. */
export const withPrefixLength = (text: string): string =>
  text.includes('/') ? text : `${text}/${isIPv6(text) ? 128 : 32}`;

/** Whether the network `inner` is a part of `outer`, and not all of it. */
export function isWithin(inner: string, outer: string): boolean {
  const [[address, length], [outerAddress, outerLength]] = [split(inner), split(outer)];
  const family = familyOf(outerAddress);
  // A BlockList finds IPv4 in ::/0.
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
