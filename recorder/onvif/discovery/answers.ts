// Collects devices from the datagrams received after a Probe. The number of datagrams and devices is limited.

import { parseProbeMatches, type ProbeMatch } from './ws-discovery.ts';

/** A device that answered, and where to query it: always the address from which the answer came. */
export interface FoundDevice {
  readonly address: string;
  /** URL of its device service. */
  readonly url: string;
  readonly name: string | undefined;
  readonly hardware: string | undefined;
}

export const MAX_DEVICES = 1024;
/** Several devices may share one address, on ports of a router; a device that pretends to be many would delay the search. */
export const MAX_DEVICES_AT_ADDRESS = 16;
/** A device of two kinds on two interfaces, probed twice, answers eight times. */
export const MAX_DATAGRAMS = 8 * MAX_DEVICES;
/** Real answers have 1 to 3 kB; this much takes about a second to process. */
const MAX_BYTES = 32 * 1024 * 1024;
const DEVICE_SERVICE_PATH = '/onvif/device_service';

export class Answers {
  readonly #probes: ReadonlySet<string>;
  readonly #found = new Map<string, FoundDevice>();
  readonly #atAddress = new Map<string, number>();
  #datagrams = 0;
  #bytes = 0;
  #isFull = false;

  /** `probes`: the ids of the Probes that were sent; answers to others are ignored. */
  constructor(probes: readonly string[]) {
    this.#probes = new Set(probes);
  }

  /** `sender`: an IPv4 address. */
  take(datagram: Uint8Array, sender: string): void {
    this.#datagrams++;
    this.#bytes += datagram.byteLength;
    if (this.#isTooMuch()) return;
    const answer = parseProbeMatches(datagram);
    if (!answer || !this.#probes.has(answer.relatesTo)) return;
    for (const match of answer.matches) {
      const device = toDevice(match, sender);
      if (this.#found.has(device.url)) continue;
      const neighbours = this.#atAddress.get(sender) ?? 0;
      this.#isFull = this.#found.size >= MAX_DEVICES;
      if (this.#isFull || neighbours >= MAX_DEVICES_AT_ADDRESS) return;
      this.#found.set(device.url, device);
      this.#atAddress.set(sender, neighbours + 1);
    }
  }

  /** Sorted by address. */
  devices(): readonly FoundDevice[] {
    return [...this.#found.values()].sort(byAddress);
  }

  /** Limits that were reached. */
  get problems(): readonly string[] {
    return [
      ...(this.#isTooMuch() ? ['too many answers came, the rest is left out'] : []),
      ...Array.from(this.#atAddress)
        .filter(([, count]) => count >= MAX_DEVICES_AT_ADDRESS)
        .map(([address]) => `${address} answered as ${MAX_DEVICES_AT_ADDRESS} devices, more of it are left out`),
      ...(this.#isFull ? [`more than ${MAX_DEVICES} devices answered, the rest is left out`] : []),
    ];
  }

  #isTooMuch(): boolean {
    return this.#datagrams > MAX_DATAGRAMS || this.#bytes > MAX_BYTES;
  }
}

/**
 * Chooses, of the addresses that a device states, the one with the host from which it answered; otherwise the first, but with
 * that host, so that no answer can direct us to another machine.
 */
function toDevice({ addresses, name, hardware }: ProbeMatch, sender: string): FoundDevice {
  const urls = addresses.map((text) => new URL(text));
  const chosen = urls.find(({ hostname }) => hostname === sender) ?? urls[0] ?? new URL(`http://${sender}/`);
  const path = chosen.pathname === '/' ? DEVICE_SERVICE_PATH : chosen.pathname + chosen.search;
  const port = chosen.port === '' ? '' : `:${chosen.port}`;
  return { address: sender, url: `${chosen.protocol}//${sender}${port}${path}`, name, hardware };
}

const numbers = (address: string): number[] => address.split('.').map(Number);

function byAddress(a: FoundDevice, b: FoundDevice): number {
  const [left, right] = [numbers(a.address), numbers(b.address)];
  const index = left.findIndex((value, i) => value !== right[i]);
  return index < 0 ? a.url.localeCompare(b.url) : (left[index] as number) - (right[index] ?? 0);
}
