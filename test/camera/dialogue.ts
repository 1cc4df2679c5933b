// A well-behaved camera's answers to OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN and keepalives (RFC 2326 §10).

import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import type { CameraConnection } from './connection.ts';
import { header, reply } from './message.ts';
import type { RtspReply, RtspRequest } from './message.ts';
import type { CameraOptions } from './options.ts';
import { CameraSession } from './session.ts';
import type { Transport } from './session.ts';
import type { Track } from './tracks.ts';

/** What the dialogue needs of the camera. */
export interface CameraState {
  readonly options: CameraOptions;
  readonly tracks: readonly Track[];
  readonly sessions: Map<string, CameraSession>;
  /** The stream's URL without user. */
  readonly url: string;
  nowMs(): number;
  newSessionId(): string;
  played(session: CameraSession): void;
  endSession(session: CameraSession): void;
}

const PUBLIC = ['OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY', 'PAUSE', 'TEARDOWN', 'GET_PARAMETER', 'SET_PARAMETER'];

export async function answer(
  request: RtspRequest,
  connection: CameraConnection,
  camera: CameraState,
): Promise<{ readonly reply: RtspReply; readonly after?: () => void }> {
  const publicMethods = camera.options.publicMethods ?? PUBLIC;
  switch (request.method) {
    case 'OPTIONS':
      return { reply: reply(200, [['Public', publicMethods.join(', ')]]) };
    case 'DESCRIBE':
      return { reply: describe(camera) };
    case 'SETUP':
      return { reply: await setUp(request, connection, camera) };
    case 'PLAY':
      return play(request, camera);
    case 'TEARDOWN':
      return { reply: tearDown(request, camera) };
    case 'GET_PARAMETER':
    case 'SET_PARAMETER':
      return {
        reply: header(request, 'Session') === undefined || sessionOf(request, camera) ? reply(200) : reply(454),
      };
    default:
      return { reply: reply(501) };
  }
}

function describe(camera: CameraState): RtspReply {
  const { options } = camera;
  const lines = [
    'v=0',
    'o=- 1621990950 1 IN IP4 0.0.0.0',
    's=Camera',
    'c=IN IP4 0.0.0.0',
    't=0 0',
    'a=control:*',
    'a=range:npt=now-',
    ...camera.tracks.flatMap((track) => track.sdp),
    '',
  ];
  const sdp = lines.join('\r\n');
  const headers: [string, string][] = [['Content-Type', 'application/sdp']];
  const contentBase = options.contentBase === undefined ? `${camera.url}/` : options.contentBase;
  if (contentBase !== null) headers.push(['Content-Base', contentBase]);
  return reply(200, headers, options.sdp ? options.sdp(sdp) : sdp);
}

function sessionOf(request: RtspRequest, camera: CameraState): CameraSession | undefined {
  const id = header(request, 'Session');
  return id === undefined ? undefined : camera.sessions.get(id.split(';')[0]?.trim() ?? '');
}

async function setUp(request: RtspRequest, connection: CameraConnection, camera: CameraState): Promise<RtspReply> {
  const trackIndex = camera.tracks.findIndex((track) => request.uri.endsWith(track.control));
  const track = camera.tracks[trackIndex];
  if (!track) return reply(404);
  const { options } = camera;
  const existing = sessionOf(request, camera);
  if (header(request, 'Session') !== undefined && !existing) return reply(454);
  if (!existing && camera.sessions.size >= (options.maxSessions ?? Number.POSITIVE_INFINITY)) return reply(453);
  const asked = header(request, 'Transport') ?? '';
  const kind = /multicast/i.test(asked) ? 'multicast' : /RTP\/AVP\/TCP|interleaved/i.test(asked) ? 'tcp' : 'udp';
  if (!(options.transports ?? ['tcp', 'udp']).includes(kind)) return reply(461);
  const session = existing ?? new CameraSession(camera.newSessionId(), connection, options, camera.nowMs());
  if (!existing) {
    camera.sessions.set(session.id, session);
    connection.sessions.push(session);
  }
  const transport =
    kind === 'tcp'
      ? tcpTransport(trackIndex, asked, options)
      : kind === 'udp'
        ? await udpTransport(asked, connection, options)
        : await multicastTransport(trackIndex, options);
  if (!transport) return reply(461);
  const ssrc = 0x5eed_0000 + camera.sessions.size * 0x100 + trackIndex;
  session.add(trackIndex, track, transport, ssrc);
  return reply(200, [
    ['Transport', transportHeader(transport, ssrc, options)],
    ['Session', `${session.id}${options.sessionSuffix ?? ''}`],
  ]);
}

function tcpTransport(trackIndex: number, asked: string, options: CameraOptions): Transport {
  const channels = /interleaved=(\d+)-(\d+)/.exec(asked);
  const first = Number(channels?.[1] ?? trackIndex * 2);
  return { kind: 'tcp', channels: options.channels?.(trackIndex) ?? [first, Number(channels?.[2] ?? first + 1)] };
}

async function udpTransport(
  asked: string,
  connection: CameraConnection,
  options: CameraOptions,
): Promise<Transport | undefined> {
  const ports = /client_port=(\d+)-(\d+)/.exec(asked);
  if (!ports) return undefined;
  return {
    kind: 'udp',
    clientAddress: connection.remoteAddress,
    clientPorts: [Number(ports[1]), Number(ports[2])],
    sockets: await portPair(options.udp?.sendFrom ?? connection.localAddress),
  };
}

async function multicastTransport(
  trackIndex: number,
  { multicast, udp }: CameraOptions,
): Promise<Transport | undefined> {
  if (!multicast) return undefined;
  const { group, port } = multicast;
  const sockets = await portPair(udp?.sendFrom ?? '127.0.0.1');
  for (const socket of sockets) {
    // What a test sends stays in this machine.
    socket.setMulticastInterface('127.0.0.1');
    socket.setMulticastTTL(0);
  }
  const ports = [port + trackIndex * 2, port + trackIndex * 2 + 1] as const;
  return { kind: 'udp', multicast: true, clientAddress: group, clientPorts: ports, sockets };
}

/** An even port and the odd one above it, as RFC 3550 §11 wants. */
async function portPair(address: string): Promise<[Socket, Socket]> {
  const bind = async (port: number): Promise<Socket | undefined> => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
    try {
      socket.bind(port, address);
      await once(socket, 'listening');
      return socket;
    } catch {
      socket.close();
      return undefined;
    }
  };
  for (;;) {
    const rtp = await bind(0);
    if (!rtp) throw new Error(`cannot bind a UDP port on ${address}`);
    const { port } = rtp.address();
    const rtcp = port % 2 === 0 ? await bind(port + 1) : undefined;
    if (rtcp) return [rtp, rtcp];
    rtp.close();
  }
}

function transportHeader(transport: Transport, ssrc: number, options: CameraOptions): string {
  const id = `ssrc=${ssrc.toString(16).toUpperCase().padStart(8, '0')}`;
  if (transport.kind === 'tcp') {
    return `RTP/AVP/TCP;unicast;interleaved=${transport.channels.join('-')};${id};mode="PLAY"`;
  }
  if (transport.multicast) {
    return `RTP/AVP;multicast;destination=${transport.clientAddress};port=${transport.clientPorts.join('-')};ttl=0;${id}`;
  }
  const parts = ['RTP/AVP', 'unicast', `client_port=${transport.clientPorts.join('-')}`];
  if (options.udp?.source) parts.push(`source=${options.udp.source}`);
  if (options.udp?.nameServerPort ?? true) {
    parts.push(`server_port=${transport.sockets.map((socket) => socket.address().port).join('-')}`);
  }
  return [...parts, id].join(';');
}

function play(request: RtspRequest, camera: CameraState): { reply: RtspReply; after?: () => void } {
  const session = sessionOf(request, camera);
  if (!session) return { reply: reply(454) };
  const headers: [string, string][] = [
    ['Session', `${session.id}${camera.options.sessionSuffix ?? ''}`],
    ['Range', 'npt=0.000-'],
  ];
  const rtpInfo = camera.options.rtpInfo === undefined ? rtpInfoOf(session, camera) : camera.options.rtpInfo;
  if (rtpInfo !== null) headers.push(['RTP-Info', rtpInfo]);
  return { reply: reply(200, headers), after: () => camera.played(session) };
}

function rtpInfoOf(session: CameraSession, camera: CameraState): string {
  return [...session.deliveries.values()]
    .map((d) => `url=${camera.url}/${d.track.control};seq=${d.sequenceNumber};rtptime=${session.firstTimestamp}`)
    .join(',');
}

function tearDown(request: RtspRequest, camera: CameraState): RtspReply {
  const session = sessionOf(request, camera);
  if (!session) return reply(454);
  camera.endSession(session);
  return reply(200);
}
