// Searches the networks of this machine for ONVIF devices: multicasts Probes from every chosen interface and collects answers for
// some time. The number of datagrams and devices is limited.

import { randomUUID } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/error.ts';
import { Answers, type FoundDevice } from './answers.ts';
import { DEVICE_TYPES, DISCOVERY_GROUP, DISCOVERY_PORT, formatProbe } from './ws-discovery.ts';

export interface ProbeOptions {
  /** IPv4 addresses of this machine to send from. */
  readonly from: readonly string[];
  readonly timeoutMs: number;
  /** For tests; default: the well-known port of WS-Discovery. */
  readonly port?: number;
}

interface ProbeResult {
  /** Sorted by address. */
  readonly devices: readonly FoundDevice[];
  /** Interfaces from which sending failed, and limits that were reached. */
  readonly problems: readonly string[];
}

/** All devices answer at once; the system may grant less. */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** SOAP-over-UDP 1.1 §3.4: a multicast is sent twice, because datagrams get lost. */
const REPEAT_AFTER_MS = 200;

/** The IPv4 addresses of the given interfaces (names or addresses); without `names`, those of all but the loopback interface. */
export function addressesOf(
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>,
  names: readonly string[],
): { readonly addresses: readonly string[]; readonly unknown: readonly string[] } {
  const all = Object.entries(interfaces).flatMap(([name, infos = []]) =>
    infos.filter(({ family }) => family === 'IPv4').map(({ address, internal }) => ({ name, address, internal })),
  );
  if (names.length === 0) {
    return { addresses: all.filter(({ internal }) => !internal).map(({ address }) => address), unknown: [] };
  }
  const chosen = all.filter(({ name, address }) => names.includes(name) || names.includes(address));
  const unknown = names.filter((wanted) => !all.some(({ name, address }) => name === wanted || address === wanted));
  return { addresses: [...new Set(chosen.map(({ address }) => address))], unknown };
}

export async function probe(options: ProbeOptions, { clock }: { clock: Clock }): Promise<ProbeResult> {
  const { from, timeoutMs, port = DISCOVERY_PORT } = options;
  const problems: string[] = [];
  const messages = DEVICE_TYPES.map((type) => {
    const id = `urn:uuid:${randomUUID()}`;
    return { id, text: formatProbe(type, id) };
  });
  const answers = new Answers(messages.map(({ id }) => id));
  const sockets: Socket[] = [];
  try {
    for (const address of from) {
      const socket = createSocket({ type: 'udp4', recvBufferSize: RECEIVE_BUFFER_BYTES });
      sockets.push(socket);
      // Without a listener, a network error would end the process.
      socket.on('error', (err) => problems.push(`${address}: ${err.message}`));
      socket.on('message', (datagram, sender) => answers.take(datagram, sender.address));
      try {
        await bind(socket, address);
      } catch (err) {
        problems.push(`${address}: ${messageOf(err)}`);
      }
    }
    const send = () =>
      sockets.map(async (socket, index) => {
        for (const { text } of messages) {
          await sendTo(socket, text, port).catch((err: unknown) => {
            problems.push(`${from[index]}: ${messageOf(err)}`);
          });
        }
      });
    await Promise.all(send());
    await clock.sleep(Math.min(REPEAT_AFTER_MS, timeoutMs));
    await Promise.all(send());
    await clock.sleep(Math.max(0, timeoutMs - REPEAT_AFTER_MS));
  } finally {
    for (const socket of sockets) socket.close();
  }
  return { devices: answers.devices(), problems: [...new Set([...problems, ...answers.problems])] };
}

async function bind(socket: Socket, address: string): Promise<void> {
  const listening = once(socket, 'listening');
  socket.bind(0, address);
  await listening;
  socket.setMulticastInterface(address);
  // WS-Discovery §3.1.1: the message stays in the network, because routers do not forward it.
  socket.setMulticastTTL(1);
}

function sendTo(socket: Socket, text: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(text, port, DISCOVERY_GROUP, (err) => (err ? reject(err) : resolve()));
  });
}
