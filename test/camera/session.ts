// One RTSP session of the camera: what was set up, over which transport, and the packets that go there.

import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import type { CameraConnection } from './connection.ts';
import type { CameraOptions, Outgoing, PacketInfo, ReportInfo } from './options.ts';
import { senderReport, sourceDescription } from './reports.ts';
import type { CameraFrame, Track } from './tracks.ts';

export type Transport =
  | { readonly kind: 'tcp'; readonly channels: readonly [number, number] }
  | {
      readonly kind: 'udp';
      readonly multicast?: boolean;
      readonly clientAddress: string;
      readonly clientPorts: readonly [number, number];
      readonly sockets: readonly [Socket, Socket];
    };

/** One track on its way to one client. */
interface Delivery {
  readonly track: Track;
  readonly transport: Transport;
  readonly ssrc: number;
  sequenceNumber: number;
  packets: number;
  octets: number;
  nextReportMs: number;
}

export class CameraSession {
  readonly id: string;
  readonly connection: CameraConnection;
  readonly deliveries = new Map<number, Delivery>();
  /** RTCP of the client: when it came, by the camera's clock. */
  readonly clientReportsAtMs: number[] = [];
  /** Datagrams that came to the RTP port, as clients send to open a NAT. */
  punches = 0;
  playing = false;
  ended = false;
  lastRequestMs: number;
  packetsSent = 0;
  packetsDropped = 0;
  readonly #options: CameraOptions;
  readonly #sends = new Set<Promise<void>>();
  readonly #strangers: Socket[] = [];

  constructor(id: string, connection: CameraConnection, options: CameraOptions, nowMs: number) {
    this.id = id;
    this.connection = connection;
    this.#options = options;
    this.lastRequestMs = nowMs;
  }

  add(trackIndex: number, track: Track, transport: Transport, ssrc: number): void {
    this.deliveries.set(trackIndex, {
      track,
      transport,
      ssrc,
      sequenceNumber: this.#options.firstSequenceNumber ?? 1000 * (trackIndex + 1),
      packets: 0,
      octets: 0,
      nextReportMs: Number.NEGATIVE_INFINITY,
    });
    if (transport.kind === 'udp') {
      transport.sockets[0].on('message', () => void this.punches++);
      transport.sockets[1].on('message', () => void this.clientReportsAtMs.push(this.connection.nowMs()));
    }
  }

  get firstTimestamp(): number {
    return this.#options.firstTimestamp ?? 0x10_0000;
  }

  /** Sends one frame, and before it a sender report when one is due. */
  send(frame: CameraFrame, wallMs: number): void {
    const delivery = this.deliveries.get(frame.track);
    if (!delivery || !this.playing || this.ended) return;
    this.#reportWhenDue(delivery, frame, wallMs);
    const timestamp = (this.firstTimestamp + Math.round(frame.timestamp)) >>> 0;
    const packets = delivery.track.packetize(frame.units, {
      payloadType: delivery.track.payloadType,
      timestamp,
      sequenceNumber: delivery.sequenceNumber,
      ssrc: delivery.ssrc,
    });
    delivery.sequenceNumber = (delivery.sequenceNumber + packets.length) & 0xffff;
    for (const [indexInFrame, packet] of packets.entries()) {
      const info: PacketInfo = {
        session: this,
        trackIndex: frame.track,
        frame,
        indexInFrame,
        lastInFrame: indexInFrame === packets.length - 1,
        packetIndex: delivery.packets,
      };
      delivery.packets++;
      delivery.octets += packet.length - 12;
      for (const outgoing of asList(this.#options.onPacket ? this.#options.onPacket(packet, info) : packet)) {
        this.#transmit(delivery, outgoing);
      }
    }
  }

  /** Sends something of the given track now, outside any frame. */
  transmit(trackIndex: number, outgoing: Outgoing): void {
    const delivery = this.deliveries.get(trackIndex);
    if (delivery && !this.ended) this.#transmit(delivery, outgoing);
  }

  #reportWhenDue(delivery: Delivery, frame: CameraFrame, wallMs: number): void {
    const { reportClockOffsetMs = 0, reportIntervalMs = 5_000, onReport } = this.#options;
    if (reportClockOffsetMs === null || frame.sendAtMs < delivery.nextReportMs) return;
    delivery.nextReportMs = frame.sendAtMs + reportIntervalMs;
    const info: ReportInfo = {
      trackIndex: frame.track,
      ssrc: delivery.ssrc,
      ntpMs: wallMs + reportClockOffsetMs,
      timestamp: this.firstTimestamp + Math.round((frame.sendAtMs * delivery.track.clockRate) / 1000),
      packets: delivery.packets,
      octets: delivery.octets,
    };
    const compound = Buffer.concat([senderReport(info), sourceDescription(delivery.ssrc)]);
    const report = onReport ? onReport(compound, info) : compound;
    if (report) this.#transmit(delivery, { rtcp: report });
  }

  #transmit(delivery: Delivery, outgoing: Outgoing): void {
    const { transport } = delivery;
    if ('raw' in outgoing) return this.connection.write(outgoing.raw);
    if (transport.kind === 'udp') return this.#transmitUdp(transport, outgoing);
    const { sendBufferBytes = Number.POSITIVE_INFINITY } = this.#options;
    if (this.connection.waitingBytes > sendBufferBytes) {
      this.packetsDropped++;
      return;
    }
    this.packetsSent++;
    if ('channel' in outgoing) return this.connection.writeFrame(outgoing.channel, outgoing.data);
    if ('rtcp' in outgoing) return this.connection.writeFrame(transport.channels[1], outgoing.rtcp);
    this.connection.writeFrame(transport.channels[0], 'from' in outgoing ? outgoing.data : outgoing);
  }

  #transmitUdp(transport: Extract<Transport, { kind: 'udp' }>, outgoing: Exclude<Outgoing, { raw: Buffer }>): void {
    if (this.#options.udp?.silent) return;
    this.packetsSent++;
    const [rtp, rtcp] = transport.sockets;
    if ('rtcp' in outgoing) return this.#sendDatagram(rtcp, outgoing.rtcp, transport, 1);
    if ('from' in outgoing) return this.#sendFromStranger(outgoing, transport);
    this.#sendDatagram(rtp, 'channel' in outgoing ? outgoing.data : outgoing, transport, 0);
  }

  #sendDatagram(socket: Socket, data: Buffer, to: Extract<Transport, { kind: 'udp' }>, portIndex: 0 | 1): void {
    const sent = new Promise<void>((resolve) => {
      socket.send(data, to.clientPorts[portIndex], to.clientAddress, () => resolve());
    });
    this.#track(sent);
  }

  #sendFromStranger(packet: { from: string; data: Buffer }, to: Extract<Transport, { kind: 'udp' }>): void {
    const socket = createSocket(packet.from.includes(':') ? 'udp6' : 'udp4');
    this.#strangers.push(socket);
    const sent = new Promise<void>((resolve) => {
      socket.bind(0, packet.from, () => {
        socket.send(packet.data, to.clientPorts[0], to.clientAddress, () => resolve());
      });
    });
    this.#track(sent);
  }

  #track(sent: Promise<void>): void {
    this.#sends.add(sent);
    void sent.then(() => this.#sends.delete(sent));
  }

  /** Resolves when the kernel has all datagrams. */
  async sent(): Promise<void> {
    await Promise.all(this.#sends);
  }

  end(): void {
    if (this.ended) return;
    this.ended = true;
    this.playing = false;
    for (const { transport } of this.deliveries.values()) {
      if (transport.kind === 'udp') for (const socket of transport.sockets) socket.close();
    }
    for (const socket of this.#strangers) socket.close();
  }
}

function asList(outgoing: Outgoing | readonly Outgoing[] | undefined): readonly Outgoing[] {
  if (outgoing === undefined) return [];
  return Array.isArray(outgoing) ? (outgoing as readonly Outgoing[]) : [outgoing as Outgoing];
}
