// One connection that replays recorded footage over TCP: turns packets into dated access units. Units wait for the consumer in a
// bounded queue. While the queue is full or the camera is too fast, the socket is not read, so that the camera has to wait.

import type { Clock, Timer } from '../../base/clock.ts';
import { MediaStream } from '../camera/media-stream.ts';
import { RtspConnection } from '../camera/rtsp-connection.ts';
import type { ConnectionOwner, PacketHandler, PlayAnswer } from '../camera/rtsp-connection.ts';
import { newCounters } from '../contract/camera-status.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { SlabPool } from '../codec/slab.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import { RtpPacket } from '../rtp/packet.ts';
import { parseRtcp, type ReceptionReport } from '../rtp/rtcp.ts';
import type { ReplayFields } from '../rtsp/client.ts';
import type { RtspMessage } from '../rtsp/message.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { Credentials, RtspUrl } from '../rtsp/url.ts';
import { Dating } from './dating.ts';
import { edgeErrorOf } from './errors.ts';
import { EdgeError, type CameraWindow, type EdgeUnit, type ReplayEnd, type ReplayRequest } from './memory.ts';
import { MAX_LEAD_MS, Progress } from './progress.ts';
import { clockRange, startOfRange } from './times.ts';
import { Throttle } from './throttle.ts';

const RECEIVE_BUFFER_BYTES = 64 * 1024;
/** The most bytes that wait for the consumer; the pictures of one more read may exceed it. */
const MAX_QUEUED_BYTES = 2 * 1024 * 1024;
/** The most units of sound that wait for the first picture; the oldest are dropped. */
const MAX_EARLY = 64;
const TICK_MS = 250;
/** After this long without data the camera is asked whether it is there; a disk may have to start up before the first picture. */
const QUIET_MS = 4_000;
const QUIET_AT_START_MS = 20_000;
/** After the last unit of the footage. */
const QUIET_AT_END_MS = 1_000;
const KNOCK_ANSWER_MS = 10_000;
/** A little more than the window is requested: a picture after its end shows at once that it is complete. */
const ASKED_BEHIND_MS = 2_000;
/** Requests of a camera that say that a replay has ended (RFC 7826 §13.5, and ANNOUNCE of older servers). */
const END_NOTICES = ['PLAY_NOTIFY', 'ANNOUNCE'];

/** Where a camera replays a window. */
export interface ReplayPlace {
  readonly url: RtspUrl;
  readonly credentials: Credentials | undefined;
  readonly tls: CameraTls;
  readonly allowPlaintextLogin: boolean;
  /** The moment at which the replay is asked to start, by the camera's clock; not after the window's begin. */
  readonly startMs: number;
  /**
   * What the PLAY request contains. `clock`: the times of the window, and that the camera should send as fast as we
   * read (ONVIF Streaming Specification §6.5); `fast`: the same without times, which are in the URL; `none`: the same
   * as for a live stream.
   */
  readonly fields: 'clock' | 'fast' | 'none';
}

export interface ReplayDeps {
  readonly clock: Clock;
  readonly reach: Reach;
  readonly pool: SlabPool;
}

interface Recorded {
  readonly stream: MediaStream;
  dating: Dating;
}

/** How it ended: well, or with an error. */
type Outcome = { readonly end: ReplayEnd } | { readonly error: unknown };

export class ReplaySession implements ConnectionOwner, PacketHandler {
  readonly #place: ReplayPlace;
  readonly #request: ReplayRequest;
  readonly #deps: ReplayDeps;
  readonly #connection: RtspConnection;
  readonly #throttle: Throttle;
  readonly #packet = new RtpPacket();
  #rest: Timer | undefined;
  #recorded: readonly Recorded[] = [];
  #progress: Progress | undefined;
  #queue: EdgeUnit[] = [];
  #queuedBytes = 0;
  #early: EdgeUnit[] = [];
  #outcome: Outcome | undefined;
  #wake: (() => void) | undefined;
  #paused = false;
  /** When media last arrived, or was not read on purpose (by the time in which this process ran). */
  #lastMediaMs = 0;
  #knockedMs: number | undefined;

  constructor(place: ReplayPlace, request: ReplayRequest, deps: ReplayDeps) {
    this.#place = place;
    this.#request = request;
    this.#deps = deps;
    this.#throttle = new Throttle(request.maxBitrate);
    this.#connection = new RtspConnection({
      ...place,
      transport: 'tcp',
      replay: replayFields(place, request.window),
      tickMs: TICK_MS,
      deps: {
        ...deps,
        receiveBuffer: Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES),
        meter: { note: (bytes, _startMs, nowMs) => this.#received(bytes, nowMs) },
      },
      owner: this,
      packets: this,
    });
  }

  start(): void {
    this.#lastMediaMs = this.#nowMs;
    this.#connection.start();
  }

  /** How the replay ended; undefined while it has not, or if it failed. */
  get end(): ReplayEnd | undefined {
    return this.#outcome && 'end' in this.#outcome ? this.#outcome.end : undefined;
  }

  /** The next unit; undefined at the end. What came before an error comes first. */
  async next(): Promise<EdgeUnit | undefined> {
    for (;;) {
      const unit = this.#queue.shift();
      if (unit) {
        this.#queuedBytes -= unit.unit.data.size;
        this.#readOn();
        return unit;
      }
      if (this.#outcome) {
        if ('error' in this.#outcome) throw this.#outcome.error;
        return undefined;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Ends the replay at once, and drops the units that wait. */
  abort(reason: unknown): void {
    this.#dropQueue();
    this.#settle({ error: reason });
  }

  /** Sends TEARDOWN if there is a session, and releases everything. */
  async close(): Promise<void> {
    this.#settle({ error: new EdgeError('cut', 'the replay was closed') });
    this.#dropQueue();
    this.#rest?.cancel();
    await this.#connection.close();
    for (const { stream } of this.#recorded) stream.close();
  }

  get #nowMs(): number {
    return this.#deps.clock.ranMs();
  }

  #settle(outcome: Outcome): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.#connection.end();
    this.#wake?.();
  }

  #dropQueue(): void {
    for (const { unit } of [...this.#queue, ...this.#early]) unit.data.slab.release();
    this.#queue = [];
    this.#early = [];
    this.#queuedBytes = 0;
  }

  #received(bytes: number, nowMs: number): void {
    const restMs = this.#outcome ? 0 : this.#throttle.take(bytes, nowMs);
    if (restMs > 0 && !this.#rest) {
      this.#rest = this.#deps.clock.after(restMs, () => {
        this.#rest = undefined;
        this.#readOn();
      });
    }
    if (!this.#mustWait) return;
    this.#paused = true;
    this.#connection.pause();
  }

  get #mustWait(): boolean {
    return !this.#outcome && (this.#rest !== undefined || this.#queuedBytes >= MAX_QUEUED_BYTES);
  }

  #readOn(): void {
    if (!this.#paused || this.#mustWait) return;
    this.#paused = false;
    this.#lastMediaMs = this.#nowMs;
    this.#connection.resume();
  }

  message(message: RtspMessage): void {
    if (message.kind === 'response' && this.#knockedMs !== undefined) return this.#finish('quiet');
    const isPlaying = this.#connection.client.playing;
    if (message.kind === 'request' && END_NOTICES.includes(message.method) && isPlaying) this.#finish('said');
  }

  closed(): void {
    if (this.#connection.client.playing) return this.#finish('closed');
    throw new EdgeError('unreachable', 'the camera closed the connection during the dialogue');
  }

  ended(error: unknown): void {
    if (error !== undefined) this.#settle({ error: edgeErrorOf(error) });
  }

  #finish(how: 'closed' | 'said' | 'quiet'): void {
    if (this.#outcome) return;
    for (const { stream } of this.#recorded) stream.flush();
    this.#settle({ end: this.#following.endedBy(how) });
  }

  /** Media may come before the response to PLAY. */
  get #following(): Progress {
    const { window } = this.#request;
    const leadMs = window.fromMs - this.#place.startMs;
    return (this.#progress ??= new Progress(window, { hasOther: this.#recorded.length > 1, leadMs }));
  }

  select(presentation: Presentation): readonly number[] {
    const owner = {
      unit: (unit: AccessUnit, stream: MediaStream) => this.#unit(unit, stream),
      clockRateChanged: () => {
        for (const one of this.#recorded) one.dating = new Dating(one.stream.clockRate);
      },
    };
    const deps = { pool: this.#deps.pool, clock: this.#deps.clock, counters: newCounters(), owner };
    for (const { stream } of this.#recorded) stream.close();
    const video = MediaStream.choose(presentation, 'video', deps);
    const audio = MediaStream.choose(presentation, 'audio', deps);
    const chosen = [video, audio].filter((choice) => choice.stream !== undefined);
    if (chosen.length === 0) {
      const why = video.stream ? undefined : video.reason?.message;
      throw new EdgeError(
        'bad-answer',
        `the camera offers no video in its replay${why === undefined ? '' : `: ${why}`}`,
      );
    }
    this.#recorded = chosen.map(({ stream }) => ({ stream, dating: new Dating(stream.clockRate) }));
    return chosen.map(({ index }) => index);
  }

  playing({ streams, range }: PlayAnswer): void {
    this.#lastMediaMs = this.#nowMs;
    if (streams.length < this.#recorded.length) this.#recorded = this.#recorded.slice(0, streams.length);
    const startMs = this.#startOf(range);
    for (const { streamIndex, ssrc, rtpTime } of streams) {
      const one = this.#recorded[streamIndex];
      one?.dating.startsAt(startMs, rtpTime);
      one?.stream.begin(false, ssrc, undefined);
    }
  }

  /** The start that the camera states, unless it is in another time zone. */
  #startOf(range: string | undefined): number {
    const statedMs = startOfRange(range);
    const { startMs } = this.#place;
    return statedMs !== undefined && Math.abs(statedMs - startMs) <= MAX_LEAD_MS ? statedMs : startMs;
  }

  rtp(index: number, buffer: Buffer, start: number, end: number, arrivalMs: number): void {
    const recorded = this.#recorded[index];
    if (!recorded) return;
    this.#lastMediaMs = this.#nowMs;
    this.#knockedMs = undefined;
    if (this.#packet.parse(buffer, start, end)) recorded.dating.note(this.#packet);
    recorded.stream.receive(buffer, start, end, arrivalMs);
  }

  rtcp(index: number, buffer: Buffer, start: number, end: number): void {
    const lead = this.#recorded[0]?.stream;
    if (index !== 0 || !lead || lead.receiver.ssrc === undefined) return;
    if (parseRtcp(buffer, start, end).byes.includes(lead.receiver.ssrc)) this.#finish('said');
  }

  receptionReport(index: number, nowMs: number): ReceptionReport | undefined {
    return this.#recorded[index]?.stream.receiver.report(nowMs);
  }

  #unit(unit: AccessUnit, stream: MediaStream): void {
    const recorded = this.#recorded.find((one) => one.stream === stream);
    const { parameters } = stream.depacketizer;
    if (!recorded || !parameters || this.#outcome) return;
    const progress = this.#following;
    const dated = recorded.dating.date(unit);
    if (!dated) {
      if (stream.kind === 'audio' && this.#recorded.length > 1) return;
      throw new EdgeError('undated', 'nothing in the replay says when its pictures were taken');
    }
    const { randomAccess, data } = unit;
    const { terminal, ...when } = dated;
    const passing = { ...when, randomAccess, terminal, bytes: data.size };
    const isLead = recorded === this.#recorded[0];
    const isFirst = isLead && !progress.started;
    const belongs = isLead ? progress.lead(passing) : progress.other(passing);
    if (isFirst && belongs) this.#checkAlike(parameters);
    if (belongs) {
      data.slab.retain();
      this.#deliver(edgeUnit(unit, stream.clockRate, parameters, when));
    }
    if (progress.done) this.#settle({ end: terminal ? progress.endedBy('said') : 'window' });
  }

  /** Sound waits for the first picture: many depacketizers emit that only with the packet that follows it. */
  #deliver(unit: EdgeUnit): void {
    if (this.#progress?.started) {
      for (const one of [unit, ...this.#early]) {
        this.#queuedBytes += one.unit.data.size;
        this.#queue.push(one);
      }
      this.#early = [];
      this.#wake?.();
    } else if (this.#early.push(unit) > MAX_EARLY) this.#early.shift()?.unit.data.slab.release();
  }

  #checkAlike(found: VideoParameters | AudioParameters): void {
    const { like } = this.#request;
    if (!like || found.kind === 'audio') return;
    if (like.codec === found.codec && like.width === found.width && like.height === found.height) return;
    const sizeOf = ({ codec, width, height }: VideoParameters): string => `${codec} of ${width}x${height}`;
    throw new EdgeError('other-profile', `the memory has ${sizeOf(found)}, the live stream ${sizeOf(like)}`);
  }

  tick(nowMs: number): void {
    if (!this.#connection.client.playing || this.#paused) return;
    const quietMs = nowMs - this.#lastMediaMs;
    const { started = false, sectionEnded = false } = this.#progress ?? {};
    if (sectionEnded && quietMs >= QUIET_AT_END_MS) return this.#finish('quiet');
    this.#knockWhenQuiet(quietMs, started ? QUIET_MS : QUIET_AT_START_MS, nowMs);
  }

  /** A camera that answers but sends nothing has no more footage; one that does not answer is gone. */
  #knockWhenQuiet(quietMs: number, limitMs: number, nowMs: number): void {
    if (this.#knockedMs !== undefined) {
      if (nowMs - this.#knockedMs < KNOCK_ANSWER_MS) return;
      throw new EdgeError('cut', 'the camera went silent in the middle of the replay');
    }
    if (quietMs < limitMs) return;
    this.#knockedMs = nowMs;
    this.#connection.knock(nowMs);
  }
}

function replayFields({ fields, startMs }: ReplayPlace, { untilMs }: CameraWindow): ReplayFields | undefined {
  if (fields === 'none') return undefined;
  const range = fields === 'fast' ? 'npt=0.000-' : clockRange(startMs, untilMs + ASKED_BEHIND_MS);
  return {
    setup: [['Require', 'onvif-replay']],
    play: [
      ['Range', range],
      ['Rate-Control', 'no'],
      ['Immediate', 'yes'],
    ],
  };
}

function edgeUnit(
  unit: AccessUnit,
  clockRate: number,
  parameters: VideoParameters | AudioParameters,
  when: Pick<EdgeUnit, 'cameraMs' | 'dated' | 'cleanPoint' | 'endsSection' | 'discontinuity'>,
): EdgeUnit {
  const replayed = { unit, clockRate, ...when };
  return parameters.kind === 'video'
    ? { ...replayed, kind: 'video', parameters }
    : { ...replayed, kind: 'audio', parameters };
}
