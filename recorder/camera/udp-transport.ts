// Receives RTP and RTCP of one session over UDP: a pair of ports for each stream, packets only from the camera, and a first
// outgoing packet so that firewalls on the way let the answers in.

import { createSocket, type Socket } from 'node:dgram';
import { isIP } from 'node:net';
import type { EstablishedStream, SetupRequest } from '../rtsp/stream-setups.ts';
import type { Pair } from '../rtsp/headers.ts';
import { CameraError } from './error.ts';
import { enlargeReceiveBuffer, receiveBufferOf } from './receive-buffer.ts';
import { ReceiverReports, type MediaHandler, type MediaStreams } from './streams.ts';

/** The two ends of the RTSP connection: media uses the same addresses, unless the camera states another source. */
export interface ConnectionEnds {
  readonly remoteAddress: string;
  readonly localAddress: string;
}

const BIND_ATTEMPTS = 32;
/** An RTP header of version 2 without payload: it opens firewalls and is meaningless to the camera. */
const PUNCH_RTP = Buffer.from([0x80, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

interface UdpStream {
  readonly rtp: Socket;
  readonly rtcp: Socket;
  readonly ports: Pair;
  serverPorts: Pair | undefined;
  /** Another address from which packets may come. Nothing is sent there, because a camera may state any address. */
  source: string | undefined;
  established: boolean;
}

/** One form for an address, so that `::ffff:10.0.0.9` and `10.0.0.9` are equal. */
export function plainAddress(address: string): string {
  return address.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');
}

function bind(type: 'udp4' | 'udp6', address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type });
    socket.once('error', (error) => {
      socket.close();
      reject(error);
    });
    socket.bind({ address, port, exclusive: true }, () => {
      socket.removeAllListeners('error');
      // An ICMP "port unreachable" from the camera must not end the process; silence is detected by the watchdog.
      socket.on('error', () => {});
      enlargeReceiveBuffer(socket);
      resolve(socket);
    });
  });
}

/** Two sockets on an even port and the next odd one (RFC 3550 §11). */
async function bindPair(type: 'udp4' | 'udp6', address: string): Promise<{ rtp: Socket; rtcp: Socket; ports: Pair }> {
  for (let attempt = 0; attempt < BIND_ATTEMPTS; attempt++) {
    const first = await bind(type, address, 0);
    const { port } = first.address();
    const isEven = port % 2 === 0;
    try {
      const second = await bind(type, address, isEven ? port + 1 : port - 1);
      const [rtp, rtcp] = isEven ? [first, second] : [second, first];
      return { rtp, rtcp, ports: [rtp.address().port, rtcp.address().port] };
    } catch {
      // The next port is in use: try another pair.
      first.close();
    }
  }
  throw new CameraError('unreachable', 'no pair of free UDP ports on this machine');
}

export class UdpStreams implements MediaStreams {
  readonly receiveBufferBytes: number;
  readonly #streams: readonly UdpStream[];
  readonly #remoteAddress: string;
  readonly #handler: MediaHandler;
  readonly #reports = new ReceiverReports();
  #closed = false;

  private constructor(streams: readonly UdpStream[], remoteAddress: string, handler: MediaHandler) {
    this.#streams = streams;
    this.receiveBufferBytes = Math.min(...streams.map(({ rtp }) => receiveBufferOf(rtp)));
    this.#remoteAddress = remoteAddress;
    this.#handler = handler;
    for (const [index, stream] of streams.entries()) {
      stream.rtp.on('message', (packet, { address }) => {
        if (this.#accepts(stream, address)) handler.rtp(index, packet, 0, packet.length);
      });
      stream.rtcp.on('message', (packet, { address }) => {
        if (this.#accepts(stream, address)) handler.rtcp(index, packet, 0, packet.length);
      });
    }
  }

  /** Binds ports for `count` streams on the address of the RTSP connection. */
  static async open(count: number, ends: ConnectionEnds, handler: MediaHandler): Promise<UdpStreams> {
    const remoteAddress = plainAddress(ends.remoteAddress);
    const localAddress = plainAddress(ends.localAddress);
    const type = isIP(remoteAddress) === 6 ? 'udp6' : 'udp4';
    const streams: UdpStream[] = [];
    try {
      for (let index = 0; index < count; index++) {
        const pair = await bindPair(type, localAddress);
        streams.push({ ...pair, serverPorts: undefined, source: undefined, established: false });
      }
    } catch (error) {
      for (const { rtp, rtcp } of streams) {
        rtp.close();
        rtcp.close();
      }
      throw error;
    }
    return new UdpStreams(streams, remoteAddress, handler);
  }

  setup(streamIndex: number): Omit<SetupRequest, 'mediaIndex'> {
    const stream = this.#streams[streamIndex];
    return stream ? { clientPorts: stream.ports } : {};
  }

  /** Some cameras state the source and its ports in the response to SETUP. */
  establish({ streamIndex, source, serverPorts }: EstablishedStream): void {
    const stream = this.#streams[streamIndex];
    if (!stream) return;
    stream.serverPorts = serverPorts;
    stream.established = true;
    // A name is not resolved just because the camera states it: cameras that state one send from their own address.
    if (source && isIP(source) !== 0) stream.source = plainAddress(source);
    this.#punch(stream);
  }

  start(nowMs: number): void {
    for (const stream of this.#streams) this.#punch(stream);
    this.#reports.start(nowMs);
  }

  tick(nowMs: number): void {
    if (!this.#reports.takeDue(nowMs)) return;
    for (const [index, stream] of this.#streams.entries()) {
      if (!stream.established || !stream.serverPorts) continue;
      const packet = this.#reports.format(this.#handler.receptionReport(index));
      this.#send(stream.rtcp, packet, stream.serverPorts[1]);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { rtp, rtcp } of this.#streams) {
      rtp.removeAllListeners('message').close();
      rtcp.removeAllListeners('message').close();
    }
  }

  #accepts(stream: UdpStream, address: string): boolean {
    if (!stream.established) return false;
    const plain = plainAddress(address);
    return plain === stream.source || plain === this.#remoteAddress;
  }

  #punch(stream: UdpStream): void {
    if (!stream.serverPorts || !stream.established) return;
    this.#send(stream.rtp, PUNCH_RTP, stream.serverPorts[0]);
    this.#send(stream.rtcp, this.#reports.formatEmpty(), stream.serverPorts[1]);
  }

  #send(socket: Socket, packet: Buffer, port: number): void {
    if (this.#closed) return;
    // Errors are detected by the watchdog.
    socket.send(packet, port, this.#remoteAddress, () => {});
  }
}
