// RTP and RTCP of one session over UDP: a pair of ports a stream, packets only from the camera, receiver reports every
// five seconds, and a first packet outwards so that firewalls on the way let the answer in.

import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { randomInt } from 'node:crypto';
import { isIP } from 'node:net';
import { formatReceiverReport } from '../rtp/rtcp.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import type { Pair } from '../rtsp/headers.ts';
import { CameraError } from './error.ts';

export interface UdpHandler {
  rtp(streamIndex: number, packet: Buffer): void;
  rtcp(streamIndex: number, packet: Buffer): void;
  receptionReport(streamIndex: number): ReceptionReport | undefined;
}

/** The RTSP connection's two ends: media comes from and goes to the same addresses, unless the camera says otherwise. */
export interface ConnectionEnds {
  readonly remoteAddress: string;
  readonly localAddress: string;
}

/** Some cameras stop when no RTCP comes for a little longer than this. */
const REPORT_INTERVAL_MS = 5_000;
/** A key frame is a burst of hundreds of packets; the system's limit may allow less. */
const RECEIVE_BUFFER_BYTES = 2 * 1024 * 1024;
const BIND_ATTEMPTS = 32;
/** An RTP header of version 2 without payload: opens the way through a firewall, and means nothing to the camera. */
const PUNCH_RTP = Buffer.from([0x80, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

interface UdpStream {
  readonly rtp: Socket;
  readonly rtcp: Socket;
  readonly ports: Pair;
  serverPorts: Pair | undefined;
  /** The address that packets must come from. */
  source: string;
  established: boolean;
}

/** One form for an address, so that `::ffff:10.0.0.9` and `10.0.0.9` are the same. */
function plainAddress(address: string): string {
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
      // An ICMP "port unreachable" of the camera must not end the process; silence is found by the watchdog.
      socket.on('error', () => {});
      try {
        socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
      } catch {
        // The system's default has to do.
      }
      resolve(socket);
    });
  });
}

/** Two sockets on an even port and the odd one above it (RFC 3550 §11). */
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
      // The neighbour is taken: another pair.
      first.close();
    }
  }
  throw new CameraError('unreachable', 'no pair of free UDP ports on this machine');
}

export class UdpStreams {
  readonly #streams: readonly UdpStream[];
  readonly #remoteAddress: string;
  readonly #handler: UdpHandler;
  readonly #ssrc = randomInt(2 ** 32);
  #reportDueMs = Number.POSITIVE_INFINITY;
  #closed = false;

  private constructor(streams: readonly UdpStream[], remoteAddress: string, handler: UdpHandler) {
    this.#streams = streams;
    this.#remoteAddress = remoteAddress;
    this.#handler = handler;
    for (const [index, stream] of streams.entries()) {
      stream.rtp.on('message', (packet, { address }) => {
        if (this.#accepts(stream, address)) handler.rtp(index, packet);
      });
      stream.rtcp.on('message', (packet, { address }) => {
        if (this.#accepts(stream, address)) handler.rtcp(index, packet);
      });
    }
  }

  /** Binds ports for `count` streams on the address that the RTSP connection uses. */
  static async open(count: number, ends: ConnectionEnds, handler: UdpHandler): Promise<UdpStreams> {
    const remoteAddress = plainAddress(ends.remoteAddress);
    const localAddress = plainAddress(ends.localAddress);
    const type = isIP(remoteAddress) === 6 ? 'udp6' : 'udp4';
    const streams: UdpStream[] = [];
    try {
      for (let index = 0; index < count; index++) {
        const pair = await bindPair(type, localAddress);
        streams.push({ ...pair, serverPorts: undefined, source: remoteAddress, established: false });
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

  get clientPorts(): readonly Pair[] {
    return this.#streams.map(({ ports }) => ports);
  }

  /** What the SETUP reply said: who sends, and from which ports, when it said so. */
  establish(streamIndex: number, source: string | undefined, serverPorts: Pair | undefined): void {
    const stream = this.#streams[streamIndex];
    if (!stream) return;
    stream.serverPorts = serverPorts;
    stream.established = true;
    if (source) void this.#resolveSource(stream, source);
    this.#punch(stream);
  }

  /** Media is expected from now on. */
  start(nowMs: number): void {
    for (const stream of this.#streams) this.#punch(stream);
    this.#reportDueMs = nowMs + REPORT_INTERVAL_MS;
  }

  /** Sends receiver reports when they are due. */
  tick(nowMs: number): void {
    if (nowMs < this.#reportDueMs) return;
    this.#reportDueMs = nowMs + REPORT_INTERVAL_MS;
    for (const [index, stream] of this.#streams.entries()) {
      if (!stream.established || !stream.serverPorts) continue;
      const report = this.#handler.receptionReport(index);
      const packet = formatReceiverReport({ ssrc: this.#ssrc, reports: report ? [report] : [], cname: 'kube-nvr' });
      this.#send(stream.rtcp, packet, stream.serverPorts[1], stream.source);
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

  /** `source=` may be a name. Media from the address of the connection is accepted all the same. */
  async #resolveSource(stream: UdpStream, source: string): Promise<void> {
    try {
      const address = isIP(source) ? source : (await lookup(source)).address;
      // 0.0.0.0 and the like mean nothing.
      if (!/^(0\.0\.0\.0|::)$/.test(address)) stream.source = plainAddress(address);
      this.#punch(stream);
    } catch {
      // A name that nobody knows: the connection's address stays.
    }
  }

  #punch(stream: UdpStream): void {
    if (!stream.serverPorts || !stream.established) return;
    const empty = formatReceiverReport({ ssrc: this.#ssrc, reports: [] });
    this.#send(stream.rtp, PUNCH_RTP, stream.serverPorts[0], stream.source);
    this.#send(stream.rtcp, empty, stream.serverPorts[1], stream.source);
  }

  #send(socket: Socket, packet: Buffer, port: number, address: string): void {
    if (this.#closed) return;
    // Errors are what the watchdog is for.
    socket.send(packet, port, address, () => {});
  }
}
