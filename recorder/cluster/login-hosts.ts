// Whether a camera's host is one of those that its Secret names (`hostsNamedBy`). Pure.

import { BlockList, isIP, isIPv6 } from 'node:net';

/** `host`: a name, or an address without brackets. Invalid entries in `hosts` have no effect. */
export function isAmong(hosts: readonly string[], host: string): boolean {
  const address = host.replace(/%.*$/s, '');
  const name = host.toLowerCase().replace(/\.$/, '');
  return hosts.some((one) => {
    if (one === '*') return true;
    if (isIP(address) !== 0) return isWithin(one, address);
    return one.startsWith('*.') ? name.endsWith(one.slice(1)) : name === one;
  });
}

/** `network`: a network, or a single address. */
function isWithin(network: string, address: string): boolean {
  const [, base = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(network) ?? [];
  const family = isIPv6(base) ? 'ipv6' : 'ipv4';
  const most = family === 'ipv6' ? 128 : 32;
  const given = bits === undefined ? most : Number(bits);
  if (isIP(base) === 0 || given > most) return false;
  const list = new BlockList();
  list.addSubnet(base, given, family);
  return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
