// What a scripted camera can be told. Everything absent means: as a well-behaved camera does.

import type { Clock } from '../../base/clock.ts';
import type { CameraConnection } from './connection.ts';
import type { Credentials } from './credentials.ts';
import type { MemoryOptions } from './memory.ts';
import type { RtspReply, RtspRequest } from './message.ts';
import type { CameraSession } from './session.ts';
import type { CameraFrame, Track } from './tracks.ts';

/**
 * Where a packet goes: a plain buffer to its own place; `rtcp` to the RTCP channel or port; `channel` to that
 * interleaved channel; `raw` into the TCP connection as it is; `from` out of a UDP socket of another address.
 */
export type Outgoing =
  | Buffer
  | { readonly rtcp: Buffer }
  | { readonly channel: number; readonly data: Buffer }
  | { readonly raw: Buffer }
  | { readonly from: string; readonly data: Buffer };

export interface PacketInfo {
  readonly session: CameraSession;
  readonly trackIndex: number;
  readonly frame: CameraFrame;
  /** Position among the packets of its frame. */
  readonly indexInFrame: number;
  readonly lastInFrame: boolean;
  /** Packets of this track before it in this session. */
  readonly packetIndex: number;
}

/** What a sender report would say: RFC 3550 §6.4.1. */
export interface ReportInfo {
  readonly trackIndex: number;
  readonly ssrc: number;
  /** The camera's wall clock, milliseconds since 1970. */
  readonly ntpMs: number;
  /** The RTP timestamp of that moment. */
  readonly timestamp: number;
  readonly packets: number;
  readonly octets: number;
}

/** Instead of the usual reply: another reply (CSeq is added), bytes as they are, no answer, or the end. */
export type Action = RtspReply | Buffer | 'ignore' | 'close';

interface UdpBehaviour {
  /** The SETUP reply names `server_port`; true when absent. */
  readonly nameServerPort?: boolean;
  /** Address to send from; the one the camera listens on when absent. */
  readonly sendFrom?: string;
  /** `source=` in the SETUP reply. */
  readonly source?: string;
  /** The session ends when no RTCP came for this long. */
  readonly requireReportsSeconds?: number;
  /** Sends nothing, as behind a NAT. */
  readonly silent?: boolean;
}

export interface CameraOptions {
  /** A client sent what is no RTSP, and its connection is closed. Without this, the test fails. */
  readonly onMistake?: (err: unknown) => void;
  /** A card that stores what the camera encodes, and replays it at `/replay` and at addresses with times. */
  readonly memory?: MemoryOptions;
  /** H.264 alone when absent. */
  readonly tracks?: readonly Track[];
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  /** RTSPS with a certificate of its own. */
  readonly tls?: boolean;
  /** For real-time sending, session timeouts and sender reports. */
  readonly clock?: Clock;
  /** `manual`: frames leave by `send` only; a number: that many times faster than real time. */
  readonly pace?: 'manual' | 'realtime' | number;
  readonly credentials?: Credentials;
  readonly publicMethods?: readonly string[];
  /** What follows the id in the Session header, as `;timeout=120`. */
  readonly sessionSuffix?: string;
  /** The connection ends when no request with the right Session header came for this long. */
  readonly sessionTimeoutSeconds?: number;
  /** More SETUPs are answered with 453. */
  readonly maxSessions?: number;
  /** A session lives on when its connection ends without TEARDOWN. */
  readonly sessionsOutliveConnections?: boolean;
  /** Others are answered with 461. */
  readonly transports?: readonly ('tcp' | 'udp' | 'multicast')[];
  /** Where packets go, for a SETUP that asks for multicast: the group's address, and the port of track 0. */
  readonly multicast?: { readonly group: string; readonly port: number };
  /** The channels to use instead of those asked for. */
  readonly channels?: (trackIndex: number) => readonly [number, number];
  readonly udp?: UdpBehaviour;
  /** The value of Content-Base; null: no such header. */
  readonly contentBase?: string | null;
  /** The value of RTP-Info; null: no such header. */
  readonly rtpInfo?: string | null;
  readonly sdp?: (sdp: string) => string;
  /** First sequence number of every session. */
  readonly firstSequenceNumber?: number;
  /** First timestamp of every session: what a frame's `timestamp` 0 becomes. */
  readonly firstTimestamp?: number;
  /** Milliseconds added to the wall clock in sender reports; null: no reports. */
  readonly reportClockOffsetMs?: number | null;
  readonly reportIntervalMs?: number;
  readonly onReport?: (report: Buffer, info: ReportInfo) => Buffer | undefined;
  readonly onRequest?: (request: RtspRequest, connection: CameraConnection) => Action | undefined;
  readonly onReply?: (reply: RtspReply, request: RtspRequest, connection: CameraConnection) => RtspReply | Buffer;
  readonly onFrame?: (frame: CameraFrame) => CameraFrame | readonly CameraFrame[] | undefined;
  readonly onPacket?: (packet: Buffer, info: PacketInfo) => Outgoing | readonly Outgoing[] | undefined;
  /** Packets are dropped, as a camera does with a full buffer, while more than this many bytes wait for the socket. */
  readonly sendBufferBytes?: number;
}
