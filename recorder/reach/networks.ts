// Which addresses cameras may have. A name is judged by the addresses it resolves to, and the connection goes to exactly the
// address that was judged, so changing the DNS record in between has no effect.

import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { BlockList, isIP, isIPv6, type LookupFunction } from 'node:net';

export interface NetworkRules {
  /** Networks such as `10.0.0.0/8`, or addresses. If there are any, cameras may only be there. */
  readonly only?: readonly string[];
  /** No camera may be there. */
  readonly refused?: readonly string[];
}

type Lookup = (
  host: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void;

interface Rule {
  readonly network: BlockList;
  /** Length of the prefix, of 128 bits. */
  readonly bits: number;
  readonly allows: boolean;
}

/** The camera has an address that cameras may not have. */
export class AddressRefused extends Error {
  constructor(address: string, host: string) {
    const name = isIP(withoutZone(host)) === 0 ? `, which ${host} stands for` : '';
    super(`cameraNetworks does not allow ${address}${name}`);
    this.name = 'AddressRefused';
  }
}

export class CameraNetworks {
  /** Smallest network first. */
  #rules: readonly Rule[] = [];
  #allowsOthers = true;
  readonly #lookup: Lookup;

  /** If an address is in two networks, the smaller one decides, as in routing; for a network in both lists, `only` does. */
  constructor(rules: NetworkRules = {}, deps: { readonly lookup: Lookup } = { lookup }) {
    this.#lookup = deps.lookup;
    this.configure(rules);
  }

  /** Open connections are not affected. */
  configure({ only = [], refused = [] }: NetworkRules): void {
    this.#allowsOthers = only.length === 0;
    this.#rules = [...only.map((text) => ruleOf(text, true)), ...refused.map((text) => ruleOf(text, false))].sort(
      (a, b) => b.bits - a.bits,
    );
  }

  /** `address`: IPv4 or IPv6 in any notation, with or without a zone. */
  allows(address: string): boolean {
    const plain = withoutZone(address);
    const allows = this.#ruleFor(plain)?.allows ?? this.#allowsOthers;
    // The IPv4 address to which a NAT64 gateway translates it must be allowed too.
    const within = embeddedIpv4(plain);
    return allows && (within === undefined || this.#ruleFor(within)?.allows !== false);
  }

  /** Throws `AddressRefused` for an address that cameras may not have. Names are judged when they are resolved. */
  check(host: string): void {
    if (isIP(withoutZone(host)) !== 0 && !this.allows(host)) throw new AddressRefused(host, host);
  }

  /**
   * The `lookup` function for `net.connect`: returns only addresses that cameras may have, or `AddressRefused` if there are none.
   */
  readonly lookup: LookupFunction = (host, options, callback) => {
    this.#lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, []);
      const [first, ...more] = found.filter(({ address }) => this.allows(address));
      if (!first) return callback(new AddressRefused((found[0] as LookupAddress).address, host), []);
      if (options.all) callback(null, [first, ...more]);
      else callback(null, first.address, first.family);
    });
  };

  #ruleFor(address: string): Rule | undefined {
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    return this.#rules.find(({ network }) => network.check(address, family));
  }
}

const withoutZone = (address: string): string => address.replace(/%.*$/s, '');

function ruleOf(text: string, allows: boolean): Rule {
  const [address = '', bits] = text.split('/');
  const [family, most] = isIPv6(address) ? (['ipv6', 128] as const) : (['ipv4', 32] as const);
  const network = new BlockList();
  const given = bits === undefined ? most : Number(bits);
  network.addSubnet(address, given, family);
  return { network, bits: 128 - most + given, allows };
}

/** The IPv4 address in an IPv6 address, if any: RFC 4291 §2.5.5, RFC 6052 §2.1. */
function embeddedIpv4(address: string): string | undefined {
  if (!isIPv6(address)) return undefined;
  const { hostname } = new URL(`http://[${address}]`);
  const match = /^\[(?:::ffff|:|64:ff9b:):([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(hostname);
  const [, high = '', low = ''] = match ?? [];
  const bytes = [high, low].flatMap((word) => [Number.parseInt(word, 16) >> 8, Number.parseInt(word, 16) & 0xff]);
  return match ? bytes.join('.') : undefined;
}
