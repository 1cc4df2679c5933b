// One connection's packets in, samples out: receivers, depacketizers and the timeline of one session joined.

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { AccessUnit, AudioParameters, Depacketizer, VideoParameters } from '../codec/access-unit.ts';
import { createDepacketizer } from '../codec/depacketizer.ts';
import type { SlabPool } from '../codec/slab.ts';
import { RtpReceiver } from '../rtp/receiver.ts';
import { parseRtcp, senderWallMs } from '../rtp/rtcp.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import { CameraError } from './error.ts';
import type { Playing, SessionHandler } from './session.ts';
import type { EndReason, SampleSink } from './sink.ts';
import type { CameraCounters, Reason } from './status.ts';
import { Timeline, type TimelineMemory } from './timeline.ts';

/** Video that brings no key frame for so long never will; the longest GOPs of smart codecs are about a minute. */
const NO_KEY_FRAME_MS = 130_000;

export interface PipelineOptions {
  readonly clock: Clock;
  readonly pool: SlabPool;
  readonly sink: SampleSink;
  readonly counters: CameraCounters;
  readonly memory: TimelineMemory;
  /** A camera whose video will not start again by itself; the owner ends the connection. */
  readonly fail: (error: CameraError) => void;
}

interface Stream {
  readonly kind: 'video' | 'audio';
  readonly payloadType: number;
  /** Ticks a second of the packets' timestamps. */
  readonly clockRate: number;
  readonly depacketizer: Depacketizer;
  receiver: RtpReceiver;
  readonly arrival: Arrival;
  /** Access units of the depacketizer that are counted already. */
  discarded: number;
}

/** Of the packet in work, and of the one before it. */
interface Arrival {
  timestamp: number;
  ms: number;
  previousMs: number;
}

export class Pipeline implements SessionHandler {
  readonly #o: PipelineOptions;
  #streams: Stream[] = [];
  #timeline: Timeline | undefined;
  #arrivalMs = 0;
  #waitingSinceMs: number | undefined;
  #audioDropped: Reason | undefined;
  /** Monotonic time of the last video access unit. */
  lastVideoMs: number | undefined;

  constructor(options: PipelineOptions) {
    this.#o = options;
  }

  /** Why the camera's audio is not recorded although it offers some. */
  get audioDropped(): Reason | undefined {
    return this.#audioDropped ?? this.#streams.find((stream) => stream.kind === 'audio')?.depacketizer.problem;
  }

  get video(): VideoParameters | undefined {
    return this.#parameters('video') as VideoParameters | undefined;
  }

  get audio(): AudioParameters | undefined {
    return this.#parameters('audio') as AudioParameters | undefined;
  }

  /** Faults of the camera's packets by name, of all streams. */
  faults(): Map<string, number> {
    const all = new Map<string, number>();
    for (const { depacketizer } of this.#streams) {
      for (const [name, count] of depacketizer.faults) all.set(name, (all.get(name) ?? 0) + count);
    }
    return all;
  }

  select(presentation: Presentation): readonly number[] {
    this.close('camera-lost');
    const chosen: number[] = [];
    const video = this.#choose(presentation, 'video');
    if (video.stream === undefined) {
      throw new CameraError('no-video', video.reason?.message ?? 'the camera offers no video');
    }
    chosen.push(video.index);
    this.#streams.push(video.stream);
    const audio = this.#choose(presentation, 'audio');
    this.#audioDropped = audio.stream ? undefined : audio.reason;
    if (audio.stream) {
      chosen.push(audio.index);
      this.#streams.push(audio.stream);
    }
    const { clock, sink, memory, counters } = this.#o;
    this.#timeline = new Timeline({
      clock,
      sink,
      memory,
      newRunId: () => randomBytes(8).toString('hex'),
      videoClockRate: video.stream.clockRate,
      audioClockRate: audio.stream?.clockRate ?? 0,
      discarded: (kind, frames) => {
        if (kind === 'video') counters.framesDiscarded += frames;
      },
    });
    return chosen;
  }

  playing(playing: Playing): void {
    this.#waitingSinceMs = this.#o.clock.monotonicMs();
    for (const { streamIndex, ssrc } of playing.streams) {
      const stream = this.#streams[streamIndex];
      // Packets that came before the reply to PLAY have taught the receiver more than the reply can.
      if (!stream || stream.receiver.ssrc !== undefined) continue;
      stream.receiver = this.#receiver(stream, playing.transport === 'udp', ssrc);
    }
  }

  rtp(streamIndex: number, buffer: Buffer, start: number, end: number): void {
    const stream = this.#streams[streamIndex];
    if (!stream) return;
    const nowMs = this.#o.clock.monotonicMs();
    this.#arrivalMs = nowMs;
    this.#o.counters.bytesReceived += end - start;
    stream.receiver.receive(buffer, start, end, nowMs);
    if (stream.depacketizer.discarded !== stream.discarded) this.#noteDiscarded(stream);
  }

  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void {
    const stream = this.#streams[streamIndex];
    if (!stream) return;
    const nowMs = this.#o.clock.monotonicMs();
    for (const report of parseRtcp(buffer, start, end).senderReports) {
      stream.receiver.noteSenderReport(report, nowMs);
      const wallMs = senderWallMs(report);
      if (wallMs !== undefined) this.#timeline?.senderReport(stream.kind, wallMs, report.rtpTimestamp, nowMs);
    }
  }

  receptionReport(streamIndex: number, nowMs: number): ReceptionReport | undefined {
    return this.#streams[streamIndex]?.receiver.report(nowMs);
  }

  /** The owner calls this a few times a second: what waits for time to pass is looked at. */
  tick(nowMs: number): void {
    for (const { receiver } of this.#streams) receiver.poll(nowMs);
    this.#timeline?.tick(nowMs);
    if (this.#waitingSinceMs !== undefined && nowMs - this.#waitingSinceMs > NO_KEY_FRAME_MS) {
      this.#waitingSinceMs = undefined;
      this.#o.fail(new CameraError('no-key-frame', 'the camera sends video but no key frame to start from'));
    }
  }

  /** Ends the run and lets go of memory. The pipeline can be used again through `select`. */
  close(reason: EndReason): void {
    for (const { receiver, depacketizer } of this.#streams) {
      receiver.flush();
      depacketizer.flush();
    }
    this.#timeline?.end(reason);
    for (const { depacketizer } of this.#streams) depacketizer.close();
    this.#streams = [];
    this.#timeline = undefined;
    this.#waitingSinceMs = undefined;
  }

  #parameters(kind: 'video' | 'audio'): VideoParameters | AudioParameters | undefined {
    return this.#streams.find((stream) => stream.kind === kind)?.depacketizer.parameters;
  }

  /** The first stream of a kind that can be recorded, or why there is none. */
  #choose(
    presentation: Presentation,
    kind: 'video' | 'audio',
  ): { index: number; stream: Stream | undefined; reason: Reason | undefined } {
    let reason: Reason | undefined;
    for (const [index, media] of presentation.media.entries()) {
      if (media.kind !== kind || media.backchannel) continue;
      const arrival: Arrival = { timestamp: 0, ms: 0, previousMs: 0 };
      const choice = createDepacketizer(
        {
          kind,
          payloadType: media.payloadType,
          encodingName: media.encodingName || undefined,
          clockRate: media.clockRate || undefined,
          channels: media.channels,
          formatParameters: media.formatParameters,
        },
        {
          pool: this.#o.pool,
          emit: kind === 'video' ? (unit) => this.#videoUnit(unit, arrival) : (unit) => this.#audioUnit(unit),
        },
      );
      if ('unsupported' in choice) {
        reason ??= choice.unsupported;
        continue;
      }
      const common = { kind, payloadType: media.payloadType, arrival, discarded: 0, ...choice };
      return { index, stream: { ...common, receiver: this.#receiver(common, false, undefined) }, reason: undefined };
    }
    return { index: -1, stream: undefined, reason };
  }

  #receiver(stream: Omit<Stream, 'receiver'>, reorder: boolean, ssrc: number | undefined): RtpReceiver {
    const { counters } = this.#o;
    const { payloadType, clockRate, depacketizer, arrival } = stream;
    return new RtpReceiver({
      payloadType,
      clockRate,
      reorder,
      ssrc,
      onPacket: (packet) => {
        counters.packetsReceived++;
        counters.packetsLost += packet.lost;
        arrival.previousMs = arrival.ms;
        arrival.ms = this.#arrivalMs;
        arrival.timestamp = packet.timestamp;
        depacketizer.push(packet);
      },
    });
  }

  #noteDiscarded(stream: Stream): void {
    const { discarded } = stream.depacketizer;
    if (stream.kind === 'video') this.#o.counters.framesDiscarded += discarded - stream.discarded;
    stream.discarded = discarded;
  }

  #videoUnit(unit: AccessUnit, arrival: Arrival): void {
    const parameters = this.video;
    this.lastVideoMs = this.#arrivalMs;
    if (unit.randomAccess) this.#waitingSinceMs = undefined;
    // Without markers, or with one on each slice, a picture is let go by the next one's first packet: it came before.
    const arrivalMs = unit.timestamp === arrival.timestamp ? arrival.ms : arrival.previousMs;
    if (parameters) this.#timeline?.video(unit, parameters, arrivalMs);
    unit.data.slab.release();
  }

  #audioUnit(unit: AccessUnit): void {
    const parameters = this.audio;
    if (parameters) this.#timeline?.audio(unit, parameters, this.#arrivalMs);
    unit.data.slab.release();
  }
}
