// Receives RTP and RTCP that a camera sends to a multicast group (RFC 2326 §12.39, `multicast`): joins the group in the response
// to SETUP and accepts packets from the camera only. Nothing is sent, because a receiver report would go to the whole group.

import { createSocket, type Socket } from 'node:dgram';
import { BlockList, isIP } from 'node:net';
import type { EstablishedStream } from '../rtsp/stream-setups.ts';
import { CameraError } from './error.ts';
import { enlargeReceiveBuffer, receiveBufferOf } from './receive-buffer.ts';
import type { MediaHandler, MediaStreams } from './streams.ts';
import { plainAddress, type ConnectionEnds } from './udp-transport.ts';

/** RFC 5771, RFC 4291 §2.7. */
const GROUPS = new BlockList();
GROUPS.addSubnet('224.0.0.0', 4, 'ipv4');
GROUPS.addSubnet('ff00::', 8, 'ipv6');

const isGroup = (address: string): boolean =>
  isIP(address) !== 0 && GROUPS.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

export class MulticastStreams implements MediaStreams {
  receiveBufferBytes: number | undefined;
  readonly #ends: ConnectionEnds;
  readonly #handler: MediaHandler;
  readonly #failed: (error: CameraError) => void;
  readonly #sockets: Socket[] = [];

  /** Calls `failed` when a group cannot be joined. */
  constructor(ends: ConnectionEnds, handler: MediaHandler, failed: (error: CameraError) => void) {
    this.#ends = ends;
    this.#handler = handler;
    this.#failed = failed;
  }

  setup(): Record<string, never> {
    return {};
  }

  /**
   * Throws `CameraError` if the response to SETUP names no multicast group: a camera must not choose other addresses for this
   * machine to listen to.
   */
  establish({ streamIndex, group, source }: EstablishedStream): void {
    if (!group || !isGroup(group.address)) {
      throw new CameraError('transport-refused', 'the camera agreed to multicast but names no group to join');
    }
    const handler = this.#handler;
    const senders = new Set([this.#ends.remoteAddress, source ?? ''].map(plainAddress));
    this.#join(group.address, group.ports[0], senders, (packet) => handler.rtp(streamIndex, packet, 0, packet.length));
    this.#join(group.address, group.ports[1], senders, (packet) => handler.rtcp(streamIndex, packet, 0, packet.length));
  }

  start(): void {}

  tick(): void {}

  close(): void {
    for (const socket of this.#sockets.splice(0)) socket.close();
  }

  #join(address: string, port: number, senders: ReadonlySet<string>, take: (packet: Buffer) => void): void {
    // Other recorders, and groups of other cameras, may use the same port of this machine.
    const socket = createSocket({ type: isIP(address) === 6 ? 'udp6' : 'udp4', reuseAddr: true });
    this.#sockets.push(socket);
    socket.on('error', (error: NodeJS.ErrnoException) => this.#cannot(address, error));
    socket.on('message', (packet, sender) => {
      if (senders.has(plainAddress(sender.address))) take(packet);
    });
    // A socket bound to the group does not receive what arrives at this port for others.
    socket.bind({ address, port, exclusive: true }, () => {
      enlargeReceiveBuffer(socket);
      this.receiveBufferBytes = receiveBufferOf(socket);
      try {
        const local = plainAddress(this.#ends.localAddress);
        if (isIP(address) === 4 && isIP(local) === 4) socket.addMembership(address, local);
        else socket.addMembership(address);
      } catch (error) {
        this.#cannot(address, error as NodeJS.ErrnoException);
      }
    });
  }

  #cannot(address: string, error: NodeJS.ErrnoException): void {
    const detail = error.code ?? error.message;
    this.#failed(new CameraError('transport-refused', `cannot join the group ${address}: ${detail}`, { cause: error }));
  }
}
