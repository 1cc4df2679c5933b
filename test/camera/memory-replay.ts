// Replays of the scripted camera's memory over RTSP: as the ONVIF Streaming Specification §6 wants them, and by addresses with times
// as Hikvision's and Dahua's.

import type { CameraConnection } from './connection.ts';
import { header, reply } from './message.ts';
import type { RtspReply, RtspRequest } from './message.ts';
import type { CameraMemory, StoredFrame } from './memory.ts';

const PATHS = /^rtsps?:\/\/[^/]*\/(?:replay|Streaming\/tracks|cam\/playback)/i;
/** Seconds from 1900 to 1970. */
const NTP_EPOCH_SECONDS = 2_208_988_800;
const EXTENSION_BYTES = 16;
/** More than this waits for the client: it reads slowly. */
const MAX_WAITING_BYTES = 128 * 1024;
const STEP_MS = 5;

export const isReplayAddress = (uri: string): boolean => PATHS.test(uri);

interface Delivery {
  readonly channels: readonly [number, number];
  sequenceNumber: number;
}

interface ReplayDeps {
  readonly memory: CameraMemory;
  readonly connection: CameraConnection;
  /** How many replays run. */
  readonly running: () => number;
  readonly nowMs: () => number;
  /** Runs a callback after a while of real time. */
  readonly later: (ms: number, callback: () => void) => void;
}

/** One client's replay: a connection and what was set up on it. */
export class MemoryReplay {
  readonly #d: ReplayDeps;
  readonly #deliveries = new Map<number, Delivery>();
  /** Pictures that left. */
  picturesSent = 0;
  playing = false;
  #uri = '';
  #cseq = 0;

  constructor(deps: ReplayDeps) {
    this.#d = deps;
  }

  answer(request: RtspRequest): { readonly reply: RtspReply; readonly after?: () => void } {
    const { memory } = this.#d;
    if (memory.options.plain && header(request, 'Require') !== undefined) {
      return { reply: reply(551, [['Unsupported', 'onvif-replay']]) };
    }
    switch (request.method) {
      case 'OPTIONS':
        return { reply: reply(200, [['Public', 'OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN, GET_PARAMETER']]) };
      case 'DESCRIBE':
        if (memory.failed) return { reply: reply(500) };
        this.#uri = request.uri;
        return { reply: this.#describe() };
      case 'SETUP':
        return { reply: this.#setUp(request) };
      case 'PLAY':
        return this.#play(request);
      case 'TEARDOWN':
        this.playing = false;
        return { reply: reply(200) };
      default:
        return { reply: reply(200) };
    }
  }

  #describe(): RtspReply {
    const sections = this.#d.memory.tracks.flatMap((track, index) => [...track.sdp, `a=x-onvif-track:TRACK00${index}`]);
    const lines = ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', 's=Replay', 't=0 0', 'a=control:*', ...sections, ''];
    return reply(200, [['Content-Type', 'application/sdp']], lines.join('\r\n'));
  }

  #setUp(request: RtspRequest): RtspReply {
    const { memory, running } = this.#d;
    const trackIndex = memory.tracks.findIndex((track) => request.uri.endsWith(track.control));
    if (trackIndex < 0) return reply(404);
    if (this.#deliveries.size === 0 && running() >= (memory.options.maxReplays ?? Number.POSITIVE_INFINITY)) {
      return reply(453);
    }
    const channels = /interleaved=(\d+)-(\d+)/.exec(header(request, 'Transport') ?? '');
    if (!channels) return reply(461);
    const pair = [Number(channels[1]), Number(channels[2])] as const;
    this.#deliveries.set(trackIndex, { channels: pair, sequenceNumber: 60_000 + trackIndex });
    return reply(200, [
      ['Transport', `RTP/AVP/TCP;unicast;interleaved=${pair.join('-')}`],
      ['Session', 'replay-1;timeout=60'],
    ]);
  }

  #play(request: RtspRequest): { readonly reply: RtspReply; readonly after?: () => void } {
    const { memory } = this.#d;
    const range = header(request, 'Range');
    const window = windowOfUrl(this.#uri, memory.options.timeZone) ?? windowOfRange(range);
    if (!window) return { reply: reply(457) };
    this.#cseq = Number(header(request, 'CSeq') ?? 0);
    this.playing = true;
    const frames = memory.from(window.fromMs, window.untilMs);
    const headers: [string, string][] = [
      ['Session', 'replay-1;timeout=60'],
      ['Range', range ?? 'npt=0.000-'],
    ];
    const isPaced = header(request, 'Rate-Control') !== 'no' && memory.options.speed === undefined;
    return { reply: reply(200, headers), after: () => this.#send(frames, isPaced ? 1 : memory.options.speed) };
  }

  /** As fast as the client reads, or at a speed. */
  #send(frames: readonly StoredFrame[], speed: number | undefined): void {
    const { memory, connection, later, nowMs } = this.#d;
    const startMs = nowMs();
    const firstMs = frames[0]?.frame.sendAtMs ?? 0;
    const cutAfter = memory.cuts.shift() ?? Number.POSITIVE_INFINITY;
    const seen = new Set<number>();
    const ends = memory.sectionEnds;
    let next = 0;
    const step = (): void => {
      while (this.playing && !connection.closed) {
        const stored = frames[next];
        if (!stored) break;
        const isLate = speed !== undefined && (nowMs() - startMs) * speed < stored.frame.sendAtMs - firstMs;
        if (isLate || connection.waitingBytes > MAX_WAITING_BYTES) return later(STEP_MS, step);
        if (this.picturesSent >= cutAfter) return connection.close();
        this.#sendFrame(stored, !seen.has(stored.frame.track), ends.has(stored));
        seen.add(stored.frame.track);
        if (++next === frames.length && memory.options.neverEnds) next = 0;
      }
      if (this.playing && !connection.closed) this.#atEnd();
    };
    step();
  }

  #atEnd(): void {
    const { memory, connection } = this.#d;
    switch (memory.options.atEnd) {
      case 'bye':
        for (const [index, { channels }] of this.#deliveries) {
          const bye = Buffer.alloc(8);
          bye.writeUInt32BE(0x81cb0001, 0); // version 2, one source, type 203
          bye.writeUInt32BE(ssrcOf(index), 4);
          connection.writeFrame(channels[1], bye);
        }
        return;
      case 'announce':
        return connection.write('ANNOUNCE * RTSP/1.0\r\nCSeq: 1\r\nx-notice: 2104 End-of-Stream Reached\r\n\r\n');
      case 'close':
        return connection.close();
      default:
    }
  }

  #sendFrame({ frame, cameraMs }: StoredFrame, isFirst: boolean, endsSection: boolean): void {
    const { memory, connection } = this.#d;
    const delivery = this.#deliveries.get(frame.track);
    const track = memory.tracks[frame.track];
    if (!delivery || !track) return;
    if (track.kind === 'video') this.picturesSent++;
    const packets = track.packetize(frame.units, {
      payloadType: track.payloadType,
      timestamp: (0xfff0_0000 + Math.round(frame.timestamp)) >>> 0,
      sequenceNumber: delivery.sequenceNumber,
      ssrc: ssrcOf(frame.track),
    });
    delivery.sequenceNumber = (delivery.sequenceNumber + packets.length) & 0xffff;
    const { extension = 'every' } = memory.options;
    const isStamped = extension === 'every' || (extension === 'key-frames' && track.kind === 'video' && frame.key);
    for (const [index, packet] of packets.entries()) {
      const bits = (frame.key && track.kind === 'video' ? 0x80 : 0) | (endsSection ? 0x40 : 0) | (isFirst ? 0x20 : 0);
      const stamped =
        isStamped && index === 0 ? withReplayExtension(packet, { cameraMs, bits, cseq: this.#cseq }) : packet;
      connection.writeFrame(delivery.channels[0], stamped);
    }
  }
}

const ssrcOf = (track: number): number => 0xab_ac00 + track;

/** Adds the header extension to an RTP packet that has none. `bits`: C, E, D and T from the highest on. */
export function withReplayExtension(
  packet: Buffer,
  { cameraMs, bits, cseq = 0 }: { readonly cameraMs: number; readonly bits: number; readonly cseq?: number },
): Buffer {
  const extension = Buffer.alloc(EXTENSION_BYTES);
  extension.writeUInt16BE(0xabac, 0);
  extension.writeUInt16BE(3, 2); // words
  const seconds = cameraMs / 1000 + NTP_EPOCH_SECONDS;
  extension.writeUInt32BE(Math.floor(seconds) >>> 0, 4);
  extension.writeUInt32BE(Math.floor((seconds % 1) * 2 ** 32) >>> 0, 8);
  extension[12] = bits;
  extension[13] = cseq & 0xff;
  const stamped = Buffer.concat([packet.subarray(0, 12), extension, packet.subarray(12)]);
  stamped[0] = (stamped[0] as number) | 0x10;
  return stamped;
}

interface Window {
  readonly fromMs: number;
  readonly untilMs: number;
}

function windowOfRange(range: string | undefined): Window | undefined {
  const [, from, until] = /^clock=([^-]+)-(.*)$/.exec(range ?? '') ?? [];
  if (from === undefined) return undefined;
  return { fromMs: utc(from), untilMs: until ? utc(until) : Number.POSITIVE_INFINITY };
}

/** `starttime` and `endtime`: `20260101T000000Z` or `2026_01_01_00_00_00`, both by the camera's wall clock. */
function windowOfUrl(uri: string, timeZone: string | undefined): Window | undefined {
  const from = /starttime=([\dTZ_]+)/i.exec(uri)?.[1];
  const until = /endtime=([\dTZ_]+)/i.exec(uri)?.[1];
  if (from === undefined || until === undefined) return undefined;
  return { fromMs: fromLocal(utc(from), timeZone), untilMs: fromLocal(utc(until), timeZone) };
}

function utc(text: string): number {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] =
    /(\d{4})_?(\d\d)_?(\d\d)[T_](\d\d)_?(\d\d)_?(\d\d)/.exec(text)?.slice(1).map(Number) ?? [];
  return Date.UTC(year, month - 1, day, hour, minute, second) + Number(/\.\d+/.exec(text)?.[0] ?? 0) * 1000;
}

/** The first moment at which the zone's clock shows this time. */
function fromLocal(localMs: number, timeZone: string | undefined): number {
  if (timeZone === undefined) return localMs;
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  const shown = (ms: number): number => Date.parse(`${format.format(ms).replace(' ', 'T')}Z`);
  for (let hours = 14; hours >= -12; hours -= 0.25) {
    const ms = localMs - hours * 3_600_000;
    if (shown(ms) === Math.floor(localMs / 1000) * 1000) return ms;
  }
  return localMs;
}
