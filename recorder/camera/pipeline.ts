// Turns the packets of one connection into samples: combines the receivers, depacketizers and timeline of one session. Another
// session has another pipeline.

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Reason } from '../../base/reason.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { SlabPool } from '../codec/slab.ts';
import { parseRtcp, senderWallMs, type ReceptionReport } from '../rtp/rtcp.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import { CameraError } from './error.ts';
import { describeInstead, onlyKeyFrameIsMissing, type Brought } from './instead.ts';
import type { Rejected, CameraCounters } from '../contract/camera-status.ts';
import { MediaStream, type MediaStreamDeps, type MediaStreamOwner } from './media-stream.ts';
import type { PacketPlace } from '../contract/packet-place.ts';
import { droppedAt } from './receive-buffer.ts';
import type { Playing } from './session-options.ts';
import type { EndReason, SampleSink } from '../contract/sink.ts';
import type { TimelineMemory, TimelineOwner } from './run.ts';
import type { Pictures } from './watchdog.ts';
import { Timeline } from './timeline.ts';
import type { Sample } from '../mp4/sample.ts';
import { countFault } from '../codec/faults.ts';

/**
 * Each window of this length is checked for audio frames without a place in time; fewer than MIN_SOUND_FRAMES show
 * nothing.
 */
const SOUND_WINDOW_MS = 10_000;
const MIN_SOUND_FRAMES = 50;
/** RTP's header. */
const MIN_PACKET_BYTES = 12;
const MAX_SOUND_DISCARDED_PERCENT = 5;
/** What the timestamps of sound may count at: its frames and their arrival agree to the first share, and the rate to the second. */
const SOUND_RATES = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 90_000];
const SAME_TIME = 0.05;
const SAME_RATE = 0.02;
const isNear = (a: number, b: number, share: number): boolean => Math.abs(a - b) <= share * b;

const NOTHING: Brought = {
  packets: 0,
  foreign: 0,
  malformed: 0,
  otherPayloadTypes: new Map(),
  beforeKeyFrame: 0,
  faults: new Map(),
};

/** `none` for an empty map: most cameras send nothing odd, and this is done several times a second. */
const copyOf = <K, V>(map: ReadonlyMap<K, V>, none: ReadonlyMap<K, V>): ReadonlyMap<K, V> =>
  map.size === 0 ? none : new Map(map);

/** The clock rate that a camera states for its sound, and the one at which the timestamps count. */
interface SoundRate {
  readonly stated: number;
  readonly counted: number;
}

export interface PipelineOptions {
  readonly clock: Clock;
  readonly pool: SlabPool;
  readonly sink: SampleSink;
  readonly counters: CameraCounters;
  /** `way`: how many attempts brought no picture that could be decoded; `soundRate`: what `#judgeSound` has found. */
  readonly memory: TimelineMemory & { way?: number; soundRate?: SoundRate };
  /**
   * Notified of timestamps that cannot be right: by how much they are wrong, and whether pictures are dated by arrival from now
   * on.
   */
  readonly clockWrong: (errorMs: number, isUseless: boolean) => void;
}

export class Pipeline implements Pictures, MediaStreamOwner, TimelineOwner {
  readonly #options: PipelineOptions;
  /** Indices of the sections of the presentation that are recorded: the video first. */
  readonly chosen: readonly number[];
  #streams: readonly MediaStream[];
  /** The leading stream of the run: video, or the audio of a camera that offers nothing else. */
  readonly #lead: MediaStream;
  readonly #video: MediaStream | undefined;
  #audio: MediaStream | undefined;
  #timeline: Timeline;
  #arrivalMs = 0;
  #audioDropped: Reason | undefined;
  /** Audio frames in the window, those without a place in time, how long they all last, and the media time at its begin. */
  #sound = { sinceMs: 0, frames: 0, discarded: 0, framesMs: 0, fromMs: 0 };
  #soundClock: Reason | undefined;
  #beforeKeyFrame = 0;
  /** What the video had delivered when its last picture was written. */
  #brought: Brought | undefined;
  #broughtAtMs: number | undefined;
  #firstPictureMs: number | undefined;
  #lastPictureMs: number | undefined;
  #byeMs: number | undefined;
  /** Of this connection, and what had been lost when they were last counted. */
  #dropped = 0;
  #lost: number;
  /** Packets of the leading stream on earlier connections. */
  readonly #packetsBefore: number;

  /** Chooses the streams. Throws CameraError if none of them can lead a recording. */
  constructor(presentation: Presentation, options: PipelineOptions) {
    this.#options = options;
    this.#lost = options.counters.packetsLost;
    const deps: MediaStreamDeps = {
      pool: options.pool,
      counters: options.counters,
      clock: options.clock,
      owner: this,
    };
    const video = MediaStream.choose(presentation, 'video', deps, options.memory.way);
    const offersVideo = presentation.media.some(({ kind, backchannel }) => kind === 'video' && !backchannel);
    const audio = MediaStream.choose(presentation, 'audio', deps);
    const lead = video.stream ?? (offersVideo ? undefined : audio.stream);
    if (!lead) {
      const reason = video.stream ? undefined : video.reason;
      const code = reason?.code === 'encrypted' ? 'encrypted' : 'no-video';
      throw new CameraError(code, reason?.message ?? 'the camera offers no video');
    }
    const recorded = [video, audio].filter((choice) => choice.stream !== undefined);
    this.chosen = recorded.map(({ index }) => index);
    this.#streams = recorded.map(({ stream }) => stream);
    this.#lead = lead;
    this.#video = video.stream;
    this.#audio = audio.stream;
    this.#audioDropped = audio.stream ? undefined : audio.reason;
    this.#timeline = this.#newTimeline();
    this.#brought = this.#bringing(lead);
    this.#packetsBefore = this.#brought.packets;
  }

  /** Why the camera's audio is not recorded although it offers some. */
  get audioDropped(): Reason | undefined {
    return this.#audioDropped ?? this.#audio?.depacketizer.problem ?? this.#soundClock;
  }

  /** When the last picture of this connection was passed on, by the time in which this process ran; undefined before the first. */
  get lastPictureMs(): number | undefined {
    return this.#lastPictureMs;
  }

  /** From the first picture of this connection to the last. */
  get recordedMs(): number {
    return (this.#lastPictureMs ?? 0) - (this.#firstPictureMs ?? 0);
  }

  /** When the video's source sent a BYE (RTCP), by the same time; undefined again once another packet of it arrives. */
  get byeMs(): number | undefined {
    return this.#byeMs;
  }

  /**
   * Why there have been no pictures for `silentMs`: `stream-silent`; `not-decodable` with what arrived instead; or `no-key-frame`
   * if most of what arrived are pictures and only a key frame is missing.
   */
  explainSilence(silentMs: number): CameraError {
    const seconds = Math.round(silentMs / 1000);
    const lead = this.#lead;
    const before = this.#brought ?? NOTHING;
    const now = this.#bringing(lead);
    const instead = describeInstead(before, now, lead.payloadTypes, lead.carrier);
    if (instead === '') {
      return new CameraError('stream-silent', `the camera is connected but sent no ${this.awaited} for ${seconds} s`);
    }
    if (this.awaited === 'sound') {
      const message = `packets of the sound come, but no frame could be made of them for ${seconds} s: ${instead}`;
      return new CameraError('not-decodable', message);
    }
    if (onlyKeyFrameIsMissing(before, now)) {
      const message = `video comes, but for ${seconds} s no key frame to start from: ${instead}`;
      return new CameraError('no-key-frame', message);
    }
    const message = `video packets come, but no picture could be made of them for ${seconds} s: ${instead}`;
    return new CameraError('not-decodable', message);
  }

  /** Whether the camera has sent all of its pictures although there was none for `silentMs`: it makes few. */
  isQuiet(silentMs: number): boolean {
    return this.#timeline.judge.isQuiet(silentMs);
  }

  /** The last RTP packet of the leading stream on this connection; undefined before the first. */
  get lastPacket(): PacketPlace | undefined {
    return this.#lead.lastPacket;
  }

  /** What the kernel granted for datagrams of the leading stream; undefined over TCP. */
  get receiveBufferBytes(): number | undefined {
    const { carrier } = this.#lead;
    return carrier && 'udpPort' in carrier ? carrier.receiveBufferBytes : undefined;
  }

  get awaited(): 'video' | 'sound' {
    return this.#lead.kind === 'audio' ? 'sound' : 'video';
  }

  /** The largest difference between a picture's wall time and its arrival in the current run, in milliseconds. */
  get clockErrorMs(): number | undefined {
    return this.#timeline.judge.clockErrorMs;
  }

  /** The camera's clock minus ours in milliseconds, by the sender reports of this connection. */
  get clockAheadMs(): number | undefined {
    return this.#timeline.judge.aheadMs;
  }

  /** What the camera says about time and is not believed. */
  get rejected(): readonly Rejected[] {
    return this.#timeline.judge.rejected;
  }

  get video(): VideoParameters | undefined {
    return this.#video?.depacketizer.parameters as VideoParameters | undefined;
  }

  get videoRemark(): Reason | undefined {
    return this.#video?.depacketizer.remark;
  }

  get audio(): AudioParameters | undefined {
    return this.#audio?.depacketizer.parameters as AudioParameters | undefined;
  }

  #newTimeline(): Timeline {
    const { clock, sink, memory } = this.#options;
    return new Timeline({
      clock,
      sink,
      memory,
      owner: this,
      newRunId: () => randomBytes(8).toString('hex'),
      videoClockRate: this.#lead.clockRate,
      audioClockRate: this.#soundRate,
    });
  }

  get #soundRate(): number {
    const stated = this.#audio?.clockRate ?? 0;
    const { soundRate } = this.#options.memory;
    return soundRate?.stated === stated ? soundRate.counted : stated;
  }

  unit(unit: AccessUnit, stream: MediaStream): void {
    if (stream.kind === 'video') this.#videoUnit(unit, stream);
    else this.#audioUnit(unit, stream);
  }

  clockRateChanged(): void {
    this.#timeline.end('parameters');
    this.#timeline = this.#newTimeline();
    this.#sound.fromMs = NaN;
  }

  leadPassed(): void {
    this.#lastPictureMs = this.#options.clock.ranMs();
    this.#firstPictureMs ??= this.#lastPictureMs;
  }

  repeated(pictures: number): void {
    const { faults } = this.#options.counters.streams[this.#lead.kind];
    for (let i = 0; i < pictures; i++) countFault(faults, 'picture-twice');
  }

  discarded(kind: 'video' | 'audio', frames: number): void {
    if (kind === 'audio') {
      this.#sound.discarded += frames;
      return;
    }
    this.#options.counters.framesDiscarded += frames;
    this.#beforeKeyFrame += frames;
  }

  clockWrong(errorMs: number, isUseless: boolean): void {
    this.#options.clockWrong(errorMs, isUseless);
  }

  playing(playing: Playing): void {
    if (playing.soundRefused !== undefined && this.#streams.length > 1) {
      this.#audioDropped = { code: 'refused', message: playing.soundRefused };
      this.#streams = [this.#lead];
      this.#audio = undefined;
    }
    const nowMs = this.#options.clock.monotonicMs();
    for (const { streamIndex, ssrc, rtpTime, carrier } of playing.streams) {
      const stream = this.#streams[streamIndex];
      if (stream && rtpTime !== undefined) this.#timeline.judge.startsAt(this.#placeOf(stream), rtpTime, nowMs);
      stream?.begin(playing.transport === 'udp', ssrc, carrier);
    }
  }

  rtp(streamIndex: number, buffer: Buffer, start: number, end: number, arrivalMs: number): void {
    const channel = this.#streams[streamIndex];
    if (!channel) return;
    const isUsual = ((buffer[start + 1] as number) & 0x7f) === channel.receiver.payloadType;
    const stream = isUsual ? channel : this.#ownerOf(channel, buffer, start, end);
    this.#arrivalMs = arrivalMs;
    this.#options.counters.bytesReceived += end - start;
    if (this.#byeMs !== undefined && stream === this.#lead) this.#byeMs = undefined;
    stream.receive(buffer, start, end, arrivalMs);
  }

  /** Some cameras send the sound on the channel of the picture: payload type and source tell. */
  #ownerOf(stream: MediaStream, buffer: Buffer, start: number, end: number): MediaStream {
    if (!stream.hasNamed || end - start < MIN_PACKET_BYTES) return stream;
    const payloadType = (buffer[start + 1] as number) & 0x7f;
    if (stream.payloadTypes.includes(payloadType) || buffer.readUInt32BE(start + 8) === stream.receiver.ssrc)
      return stream;
    return this.#streams.find(({ payloadTypes }) => payloadTypes.includes(payloadType)) ?? stream;
  }

  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void {
    const stream = this.#streams[streamIndex];
    if (!stream) return;
    const nowMs = this.#options.clock.monotonicMs();
    const { senderReports, byes } = parseRtcp(buffer, start, end);
    if (byes.length > 0 && stream === this.#lead) this.#byeMs = this.#options.clock.ranMs();
    for (const ssrc of byes) stream.receiver.noteBye(ssrc);
    for (const report of senderReports) {
      stream.receiver.noteSenderReport(report, nowMs);
      const arrived = this.#options.counters.streams[stream.kind].rtp.packets - this.#packetsBefore;
      if (stream === this.#lead) this.#timeline.judge.counted(report.packetCount, arrived);
      const wallMs = senderWallMs(report);
      if (wallMs === undefined) continue;
      this.#timeline.judge.report(this.#placeOf(stream), wallMs, report.rtpTimestamp, nowMs);
    }
  }

  receptionReport(streamIndex: number, nowMs: number): ReceptionReport | undefined {
    return this.#streams[streamIndex]?.receiver.report(nowMs);
  }

  /** Call a few times a second; handles what depends on time. */
  tick(nowMs: number): void {
    for (const { receiver } of this.#streams) receiver.poll(this.#options.clock.ranMs());
    if (this.#broughtAtMs !== this.#lastPictureMs) {
      this.#broughtAtMs = this.#lastPictureMs;
      this.#brought = this.#bringing(this.#lead);
    }
    this.#timeline.tick(nowMs);
    if (this.#lost !== this.#options.counters.packetsLost) void this.#countDropped();
    if (nowMs - this.#sound.sinceMs >= SOUND_WINDOW_MS) this.#judgeSound(nowMs);
  }

  /** Counts which of the lost packets did arrive, and were dropped here. */
  async #countDropped(): Promise<void> {
    const { counters } = this.#options;
    this.#lost = counters.packetsLost;
    const ports = this.#streams.flatMap(({ carrier }) => (carrier && 'udpPort' in carrier ? [carrier.udpPort] : []));
    if (ports.length === 0) return;
    const more = (await droppedAt(ports)) - this.#dropped;
    if (more <= 0) return;
    this.#dropped += more;
    counters.packetsDropped += more;
  }

  /**
   * Reports when much of the audio has no place in time. If its frames last as long as they take to arrive, and the timestamps count at
   * another rate than the stated one, that rate is used.
   */
  #judgeSound(nowMs: number): void {
    const { sinceMs, frames, discarded, framesMs, fromMs } = this.#sound;
    const { mediaMs } = this.#timeline.judge.clocks.audio;
    this.#sound = { sinceMs: nowMs, frames: 0, discarded: 0, framesMs: 0, fromMs: mediaMs };
    const rate = (this.#soundRate * (mediaMs - fromMs)) / framesMs;
    const counted = SOUND_RATES.find((known) => isNear(rate, known, SAME_RATE));
    const isInTime = frames >= MIN_SOUND_FRAMES && isNear(framesMs, nowMs - sinceMs, SAME_TIME);
    if (this.#audio && counted && isInTime && !isNear(this.#soundRate, counted, SAME_TIME)) {
      this.#options.memory.soundRate = { stated: this.#audio.clockRate, counted };
      this.#timeline.countSoundAt(counted);
      this.#sound.fromMs = 0;
    }
    const percent = Math.round((discarded * 100) / Math.max(1, frames));
    this.#soundClock = undefined;
    if (frames < MIN_SOUND_FRAMES || percent <= MAX_SOUND_DISCARDED_PERCENT) return;
    const message = `${percent} % of the sound is left out: its time stamps do not fit what the camera sends`;
    this.#soundClock = { code: 'audio-clock', message };
  }

  /** Ends the run and releases memory. The pipeline takes nothing afterwards. */
  close(reason: EndReason): void {
    for (const stream of this.#streams) stream.flush();
    this.#timeline.end(reason);
    for (const stream of this.#streams) stream.close();
  }

  #bringing({ kind }: MediaStream): Brought {
    const { rtp: statistics, faults } = this.#options.counters.streams[kind];
    return {
      packets: statistics.packets,
      foreign: statistics.foreign,
      malformed: statistics.malformed,
      otherPayloadTypes: copyOf(statistics.otherPayloadTypes, NOTHING.otherPayloadTypes),
      beforeKeyFrame: this.#beforeKeyFrame,
      faults: copyOf(faults.counts, NOTHING.faults),
    };
  }

  #placeOf(stream: MediaStream): Sample['kind'] {
    return stream === this.#lead ? 'video' : 'audio';
  }

  #videoUnit(unit: AccessUnit, stream: MediaStream): void {
    const parameters = stream.depacketizer.parameters as VideoParameters | undefined;
    if (parameters) this.#timeline.lead(unit, parameters, stream.arrivalOf(unit));
  }

  #audioUnit(unit: AccessUnit, stream: MediaStream): void {
    const parameters = stream.depacketizer.parameters as AudioParameters | undefined;
    this.#sound.frames++;
    if (!parameters) return;
    // A frame can be sent only when its last sample has been captured.
    const frameMs = (unit.durationTicks * 1000) / parameters.sampleRate;
    this.#sound.framesMs += frameMs;
    if (stream === this.#lead) this.#timeline.lead(unit, parameters, this.#arrivalMs - frameMs);
    else this.#timeline.audio(unit, parameters, this.#arrivalMs);
  }
}
