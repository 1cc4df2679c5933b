// The tests' scripted camera as a command: an RTSP server that runs until Ctrl-C. Run it as `hack/camera`.

import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { CaptureError, parseCapture } from '../../recorder/probe/capture.ts';
import { startCamera } from './camera.ts';
import type { Camera } from './camera.ts';
import type { Challenge } from './credentials.ts';
import { EdgeCamera } from './edge-camera.ts';
import { AUDIO_NAMES, VIDEO_NAMES, audioMedia, videoMedia } from './media.ts';
import type { AudioName, VideoName } from './media.ts';
import type { RtspRequest } from './message.ts';
import type { CameraOptions, Outgoing, PacketInfo } from './options.ts';
import { startReplay } from './replay.ts';
import { audioTrack, videoTrack } from './tracks.ts';
import type { CameraFrame, Track } from './tracks.ts';

const HELP = `usage: hack/camera [OPTION]...

What it shows
  --video NAME       default h264; one of
                     ${VIDEO_NAMES.join('\n                     ')}
  --audio NAME       ${AUDIO_NAMES.join(', ')}, none (default aac)
Where
  --host ADDRESS     default 127.0.0.1
  --port N           default 8554
  --path PATH        default /stream
  --tls              rtsps
  --transport KIND   tcp or udp: refuses the other with 461
  --login USER:PASS  wants a login
  --challenge KIND   md5, sha256 or basic; may be given more than once (default md5)
RTSP
  --sessions N       serves so many at once, then answers 453
  --stale            sessions outlive their connections
  --timeout S        ends sessions that send no keepalive for so long
  --no-rtp-info      leaves RTP-Info out
  --no-sets          leaves the parameter sets out of the SDP
Time
  --speed N          sends so many times faster than real time
  --fps N            delivers so many pictures a second, stamped as if all were in time
  --jump N           stamps every Nth picture hours away
  --back S           after S seconds timestamps go back by a second, for good
  --no-reports       sends no sender reports
  --report-offset S  the camera's own clock is off by so much
Packets
  --mtu N            greatest packet, default 1400
  --drop N           loses N packets of a hundred
  --double N         sends every Nth packet twice
  --swap N           swaps every Nth packet with the next
  --garbage N        puts stray bytes before every Nth packet (TCP)
  --marker KIND      none or all: marker bits of the video
Memory
  --memory           has a memory behind the ONVIF services of Profile G, and prints their address as well: for edge recovery
  --away S           with --memory: cannot be reached for S seconds, from the tenth second after the first client on
The end
  --silent-after S   sends nothing more, but answers
  --hang-after S     does not even answer, with its connections open
  --close-after S    closes all connections, every so many seconds
  --verbose          prints the requests as they come
  --help
Instead of all that
  --replay FILE      plays the camera of a capture (recorder probe --capture FILE); with --host, --port and --speed
`;

const AWAY_AFTER_MS = 10_000;

const OPTIONS = {
  video: { type: 'string', default: 'h264' },
  audio: { type: 'string', default: 'aac' },
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '8554' },
  path: { type: 'string', default: '/stream' },
  tls: { type: 'boolean', default: false },
  transport: { type: 'string' },
  login: { type: 'string' },
  challenge: { type: 'string', multiple: true },
  sessions: { type: 'string' },
  stale: { type: 'boolean', default: false },
  timeout: { type: 'string' },
  'no-rtp-info': { type: 'boolean', default: false },
  'no-sets': { type: 'boolean', default: false },
  speed: { type: 'string', default: '1' },
  fps: { type: 'string' },
  jump: { type: 'string' },
  back: { type: 'string' },
  'no-reports': { type: 'boolean', default: false },
  'report-offset': { type: 'string', default: '0' },
  mtu: { type: 'string', default: '1400' },
  drop: { type: 'string' },
  double: { type: 'string' },
  swap: { type: 'string' },
  garbage: { type: 'string' },
  marker: { type: 'string' },
  memory: { type: 'boolean', default: false },
  away: { type: 'string' },
  'silent-after': { type: 'string' },
  'hang-after': { type: 'string' },
  'close-after': { type: 'string' },
  verbose: { type: 'boolean', default: false },
  replay: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

/** A mistake of the user: reported in one line without a stack trace. */
class UsageError extends Error {}

function oneOf<T extends string>(value: string, choices: readonly T[], option: string): T {
  const choice = choices.find((name) => name === value);
  if (choice === undefined) throw new UsageError(`--${option} must be one of: ${choices.join(', ')}`);
  return choice;
}

function numberOf(value: string | undefined, option: string): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) throw new UsageError(`--${option} must be a number`);
  return number;
}

async function tracksOf(values: Values): Promise<Track[]> {
  const mtu = numberOf(values.mtu, 'mtu') ?? 1400;
  const video = await videoMedia(oneOf<VideoName>(values.video, VIDEO_NAMES, 'video'));
  const tracks = [videoTrack(video, { mtu, ...(values['no-sets'] ? { fmtp: null } : {}) })];
  if (values.audio !== 'none') {
    tracks.push(audioTrack(await audioMedia(oneOf<AudioName>(values.audio, AUDIO_NAMES, 'audio')), { mtu }));
  }
  return tracks;
}

const CHALLENGES: Readonly<Record<'md5' | 'sha256' | 'basic', Challenge>> = {
  md5: { scheme: 'digest' },
  sha256: { scheme: 'digest', algorithm: 'SHA-256' },
  basic: { scheme: 'basic' },
};

function credentialsOf(values: Values): Pick<CameraOptions, 'credentials'> {
  if (values.login === undefined) return {};
  const colon = values.login.indexOf(':');
  if (colon < 1) throw new UsageError('--login must be USER:PASSWORD');
  const kinds = (values.challenge ?? ['md5']).map((kind) =>
    oneOf(kind, ['md5', 'sha256', 'basic'] as const, 'challenge'),
  );
  return {
    credentials: {
      username: values.login.slice(0, colon),
      password: values.login.slice(colon + 1),
      challenges: kinds.map((kind) => CHALLENGES[kind]),
    },
  };
}

/** Sends frames at wrong times. A slower delivery is a slower pace with the timestamps of the faster one. */
function frameHook(values: Values): Pick<CameraOptions, 'onFrame'> {
  const jump = numberOf(values.jump, 'jump');
  const back = numberOf(values.back, 'back');
  return {
    onFrame: (frame: CameraFrame) => {
      let { timestamp } = frame;
      if (jump !== undefined && frame.number >= 0 && frame.index % jump === jump - 1) timestamp -= 882_000_000;
      if (back !== undefined && frame.number >= 0 && frame.sendAtMs >= back * 1000) timestamp -= 90_000;
      return { ...frame, timestamp };
    },
  };
}

function packetHook(values: Values): Pick<CameraOptions, 'onPacket'> {
  const drop = numberOf(values.drop, 'drop') ?? 0;
  const double = numberOf(values.double, 'double');
  const swap = numberOf(values.swap, 'swap');
  const garbage = numberOf(values.garbage, 'garbage');
  const marker = values.marker === undefined ? undefined : oneOf(values.marker, ['none', 'all'] as const, 'marker');
  /** By session and track: a packet belongs to the channel of its track. */
  const held = new Map<string, Buffer>();
  const every = (n: number | undefined, index: number): boolean => n !== undefined && index % n === n - 1;
  return {
    onPacket: (packet: Buffer, info: PacketInfo): Outgoing[] => {
      const index = info.packetIndex;
      // Spread evenly, so that every run loses the same packets.
      if (Math.floor(((index + 1) * drop) / 100) > Math.floor((index * drop) / 100)) return [];
      if (marker && info.frame.number >= 0) {
        packet[1] = ((packet[1] as number) & 0x7f) | (marker === 'all' ? 0x80 : 0);
      }
      const place = `${info.session.id} ${info.trackIndex}`;
      const before = held.get(place);
      held.delete(place);
      if (every(swap, index) && !before) {
        held.set(place, packet);
        return [];
      }
      const out: Outgoing[] = every(garbage, index) ? [{ raw: Buffer.from('\r\n\x9f$1') }] : [];
      out.push(packet);
      if (every(double, index)) out.push(packet);
      if (before) out.push(before);
      return out;
    },
  };
}

async function cameraOptions(values: Values): Promise<CameraOptions> {
  const fps = numberOf(values.fps, 'fps');
  const tracks = await tracksOf(values);
  const video = await videoMedia(oneOf<VideoName>(values.video, VIDEO_NAMES, 'video'));
  const speed = numberOf(values.speed, 'speed') ?? 1;
  const sessions = numberOf(values.sessions, 'sessions');
  const timeout = numberOf(values.timeout, 'timeout');
  const reportOffsetMs = (numberOf(values['report-offset'], 'report-offset') ?? 0) * 1000;
  return {
    tracks,
    host: values.host,
    port: numberOf(values.port, 'port') ?? 8554,
    path: values.path,
    tls: values.tls,
    pace: fps === undefined ? speed : (speed * fps) / video.framesPerSecond,
    sessionsOutliveConnections: values.stale,
    reportClockOffsetMs: values['no-reports'] ? null : reportOffsetMs,
    ...(values.transport === undefined
      ? {}
      : { transports: [oneOf(values.transport, ['tcp', 'udp'] as const, 'transport')] }),
    ...(sessions === undefined ? {} : { maxSessions: sessions }),
    ...(timeout === undefined ? {} : { sessionTimeoutSeconds: timeout, sessionSuffix: `;timeout=${timeout}` }),
    ...(values['no-rtp-info'] ? { rtpInfo: null } : {}),
    ...credentialsOf(values),
    ...frameHook(values),
    ...packetHook(values),
  };
}

/** From the tenth second after the first client on, the camera cannot be reached for a while. */
function leave(edge: EdgeCamera, seconds: number): void {
  const timer = setInterval(() => {
    if (!edge.camera.methods.includes('PLAY')) return;
    clearInterval(timer);
    setTimeout(() => {
      console.log(`away ${seconds}`);
      void edge.cut();
      setTimeout(() => void edge.mend().then(() => console.log('back')), seconds * 1000).unref();
    }, AWAY_AFTER_MS).unref();
  }, 200);
  timer.unref();
}

/** Actions that happen some time after the first client plays. */
function schedule(camera: Camera, values: Values): void {
  const after = (option: 'silent-after' | 'hang-after' | 'close-after', act: () => void): void => {
    const seconds = numberOf(values[option], option);
    if (seconds === undefined) return;
    const timer = setInterval(() => {
      if (camera.methods.includes('PLAY')) {
        console.log(`${option} ${seconds}`);
        if (option !== 'close-after') clearInterval(timer);
        act();
      }
    }, seconds * 1000);
    timer.unref();
  };
  after('silent-after', () => {
    camera.silent = true;
  });
  after('hang-after', () => {
    camera.silent = true;
    for (const connection of camera.connections) connection.deaf = true;
  });
  after('close-after', () => camera.disconnect());
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: OPTIONS });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  if (values.replay !== undefined) return replay(values.replay, values);
  const options = await cameraOptions(values);
  const awayS = numberOf(values.away, 'away');
  if (awayS !== undefined && !values.memory) throw new UsageError('--away needs --memory');
  const onMistake = (err: unknown): void => console.log(`a client sent what is no RTSP: ${String(err)}`);
  const told = { ...options, onMistake, ...(values.verbose ? { onRequest: print } : {}) };
  const edge = values.memory ? await EdgeCamera.start({ ...told, device: { host: values.host } }) : undefined;
  const camera = edge?.camera ?? (await startCamera(told));
  schedule(camera, values);
  console.log(camera.url);
  if (edge) console.log(edge.device.url);
  if (edge && awayS !== undefined) leave(edge, awayS);
  await untilInterrupted();
  await (edge ?? camera).close();
}

function print(request: RtspRequest): undefined {
  console.log(`${request.connectionIndex}: ${request.method} ${request.uri}`);
}

async function replay(file: string, values: Values): Promise<void> {
  const camera = await startReplay(parseCapture(await readFile(file)), {
    host: values.host,
    port: numberOf(values.port, 'port') ?? 8554,
    speed: numberOf(values.speed, 'speed') ?? 1,
  });
  console.log(camera.url);
  await untilInterrupted();
  await camera.close();
}

async function untilInterrupted(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
}

try {
  await main();
} catch (error) {
  const { code, message } = error as { code?: string; message: string };
  const expected = error instanceof UsageError || error instanceof CaptureError || code === 'ENOENT';
  if (!expected && !code?.startsWith('ERR_PARSE_ARGS') && code !== 'EADDRINUSE') throw error;
  console.error(`error: ${message}`);
  process.exitCode = 2;
}
