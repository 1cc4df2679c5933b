// One connection that replays recorded footage: performs the RTSP dialogue over TCP and turns packets into dated access units. Units
// wait for the consumer in a bounded queue. While the queue is full or the camera is too fast, the socket is not read, so that the
// camera has to wait.

import { assertNever } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { InterleavedStreams } from '../camera/interleaved-streams.ts';
import { MediaStream } from '../camera/media-stream.ts';
import { newCounters } from '../camera/status.ts';
import { openTcp } from '../camera/tcp-transport.ts';
import type { PausableConnection } from '../camera/tcp-transport.ts';
import type { AccessUnit, AudioParameters, VideoParameters } from '../codec/access-unit.ts';
import type { SlabPool } from '../codec/slab.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import { RtpPacket } from '../rtp/packet.ts';
import { parseRtcp } from '../rtp/rtcp.ts';
import { RtspClient } from '../rtsp/client.ts';
import type { ClientAction, ReplayFields } from '../rtsp/client.ts';
import { RtspFraming } from '../rtsp/framing.ts';
import { Login } from '../rtsp/login.ts';
import type { RtspMessage } from '../rtsp/message.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { StartedStream } from '../rtsp/stream-setups.ts';
import type { Credentials, RtspUrl } from '../rtsp/url.ts';
import { Dating } from './dating.ts';
import { edgeErrorOf } from './errors.ts';
import { EdgeError } from './memory.ts';
import type { CameraWindow, EdgeUnit, ReplayEnd, ReplayRequest } from './memory.ts';
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
const TEARDOWN_WAIT_MS = 500;
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

type Link =
  | { readonly kind: 'opening' }
  | {
      readonly kind: 'open';
      readonly connection: PausableConnection;
      readonly framing: RtspFraming;
      readonly transport: InterleavedStreams;
    };

/** How it ended: well, or with an error. */
type Outcome = { readonly end: ReplayEnd } | { readonly error: unknown };

export class ReplaySession {
  readonly #place: ReplayPlace;
  readonly #request: ReplayRequest;
  readonly #deps: ReplayDeps;
  readonly #client: RtspClient;
  readonly #throttle: Throttle;
  readonly #closing = new AbortController();
  readonly #receiveBuffer = Buffer.allocUnsafeSlow(RECEIVE_BUFFER_BYTES);
  readonly #packet = new RtpPacket();
  readonly #torn = Promise.withResolvers<void>();
  #link: Link = { kind: 'opening' };
  #tick: Timer | undefined;
  #rest: Timer | undefined;
  #recorded: readonly Recorded[] = [];
  #progress: Progress | undefined;
  #queue: EdgeUnit[] = [];
  #queuedBytes = 0;
  #early: EdgeUnit[] = [];
  #outcome: Outcome | undefined;
  #wake: (() => void) | undefined;
  #paused = false;
  /** When media last arrived, or was not read on purpose (monotonic). */
  #lastMediaMs = 0;
  #knockedMs: number | undefined;

  constructor(place: ReplayPlace, request: ReplayRequest, deps: ReplayDeps) {
    this.#place = place;
    this.#request = request;
    this.#deps = deps;
    this.#throttle = new Throttle(request.maxBitrate);
    this.#client = new RtspClient({
      url: place.url,
      loginAt: (at) => this.#loginAt(at),
      transport: 'tcp',
      replay: fieldsOf(place, request.window),
    });
  }

  /** Connects. */
  start(): void {
    this.#lastMediaMs = this.#nowMs;
    this.#scheduleTick();
    void this.#open(this.#place.url);
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
    this.#tick?.cancel();
    this.#rest?.cancel();
    try {
      if (this.#link.kind === 'open' && !this.#link.connection.destroyed && this.#client.hasSession) {
        // The wait for its response is short: unread media comes before it.
        this.#perform(this.#client.tearDown(this.#nowMs));
        this.#link.connection.resume();
        const waited = new AbortController();
        await Promise.race([this.#torn.promise, this.#deps.clock.sleep(TEARDOWN_WAIT_MS, waited.signal)]);
        waited.abort();
      }
    } catch {
      // The outcome is known.
    } finally {
      this.#closing.abort();
      this.#dropLink();
      for (const { stream } of this.#recorded) stream.close();
    }
  }

  get #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #loginAt({ host, port, secure }: RtspUrl): Login {
    const { credentials, allowPlaintextLogin } = this.#place;
    const memory = this.#deps.reach.logins.at({ kind: 'rtsp', host, port }, credentials);
    return new Login({ credentials, secure, basic: allowPlaintextLogin ? 'always' : undefined }, memory);
  }

  #settle(outcome: Outcome): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.#wake?.();
  }

  #dropQueue(): void {
    for (const { unit } of [...this.#queue, ...this.#early]) unit.data.slab.release();
    this.#queue = [];
    this.#early = [];
    this.#queuedBytes = 0;
  }

  #dropLink(): void {
    if (this.#link.kind !== 'open') return;
    this.#link.connection.destroy();
    this.#link.transport.close();
  }

  /** An error must not escape into a socket's callback. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#torn.resolve();
      this.#settle({ error: edgeErrorOf(error) });
    }
  }

  async #open(url: RtspUrl): Promise<void> {
    const { clock, reach } = this.#deps;
    const framing = new RtspFraming({
      interleaved: (channel, buffer, start, end) => {
        if (this.#link.kind === 'open') this.#link.transport.interleaved(channel, buffer, start, end);
      },
      message: (message) => this.#message(message),
    });
    const { host, port, secure } = url;
    const shownHost = url.hostIsDoubtful ? undefined : host;
    try {
      const connection = await openTcp(
        { host, shownHost, port, secure, tls: this.#place.tls },
        {
          data: (buffer, size) => this.#guard(() => this.#received(framing, buffer, size)),
          closed: () => this.#guard(() => this.#closed()),
        },
        { clock, receiveBuffer: this.#receiveBuffer, reach },
        this.#closing.signal,
      );
      if (this.#outcome) return connection.destroy();
      const transport = new InterleavedStreams(framing, connection, {
        rtp: (stream, buffer, start, end) => this.#rtp(stream, buffer, start, end),
        rtcp: (stream, buffer, start, end) => this.#rtcp(stream, buffer, start, end),
        receptionReport: (stream) => this.#recorded[stream]?.stream.receiver.report(this.#nowMs),
      });
      this.#link = { kind: 'open', connection, framing, transport };
      this.#guard(() => this.#perform(this.#client.connected(this.#nowMs)));
    } catch (error) {
      this.#settle({ error: edgeErrorOf(error) });
    }
  }

  #received(framing: RtspFraming, buffer: Buffer, size: number): void {
    framing.push(buffer, 0, size);
    const restMs = this.#outcome ? 0 : this.#throttle.take(size, this.#nowMs);
    if (restMs > 0 && !this.#rest) {
      this.#rest = this.#deps.clock.after(restMs, () => {
        this.#rest = undefined;
        this.#readOn();
      });
    }
    if (this.#mustWait && this.#link.kind === 'open') {
      this.#paused = true;
      this.#link.connection.pause();
    }
  }

  get #mustWait(): boolean {
    return !this.#outcome && (this.#rest !== undefined || this.#queuedBytes >= MAX_QUEUED_BYTES);
  }

  #readOn(): void {
    if (!this.#paused || this.#mustWait || this.#link.kind !== 'open') return;
    this.#paused = false;
    this.#lastMediaMs = this.#nowMs;
    this.#link.connection.resume();
  }

  #message(message: RtspMessage): void {
    this.#perform(this.#client.message(message, this.#nowMs));
    if (message.kind === 'response' && this.#knockedMs !== undefined) return this.#ended('quiet');
    if (message.kind === 'request' && END_NOTICES.includes(message.method) && this.#client.playing) this.#ended('said');
  }

  #closed(): void {
    this.#torn.resolve();
    if (this.#outcome) return;
    const actions = this.#client.disconnected();
    if (actions.length > 0) return this.#perform(actions);
    if (!this.#client.playing)
      throw new EdgeError('unreachable', 'the camera closed the connection during the dialogue');
    this.#ended('closed');
  }

  #ended(how: 'closed' | 'said' | 'quiet'): void {
    if (this.#outcome) return;
    for (const { stream } of this.#recorded) stream.flush();
    this.#settle({ end: this.#following.endedBy(how) });
  }

  #perform(actions: readonly ClientAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case 'send':
          if (this.#link.kind === 'open') this.#link.connection.send(action.text);
          break;
        case 'select':
          this.#select(action.presentation);
          break;
        case 'established':
          if (this.#link.kind === 'open') this.#link.transport.establish(action.stream);
          break;
        case 'playing':
          this.#playing(action.streams, action.range);
          break;
        case 'reconnect':
          this.#dropLink();
          this.#link = { kind: 'opening' };
          void this.#open(action.url);
          break;
        case 'closed':
          this.#torn.resolve();
          break;
        default:
          assertNever(action);
      }
    }
  }

  /** Media may come before the response to PLAY. */
  get #following(): Progress {
    const { window } = this.#request;
    const leadMs = window.fromMs - this.#place.startMs;
    return (this.#progress ??= new Progress(window, { hasOther: this.#recorded.length > 1, leadMs }));
  }

  #select(presentation: Presentation): void {
    if (this.#outcome) return;
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
    this.#perform(
      this.#client.setUp(
        chosen.map(({ index }) => ({ mediaIndex: index })),
        this.#nowMs,
      ),
    );
  }

  #playing(streams: readonly StartedStream[], range: string | undefined): void {
    if (this.#link.kind !== 'open') return;
    this.#lastMediaMs = this.#nowMs;
    this.#link.framing.playing = true;
    this.#link.transport.start(this.#nowMs);
    if (streams.length < this.#recorded.length) this.#recorded = this.#recorded.slice(0, streams.length);
    const startMs = this.#startOf(range);
    for (const { stream, ssrc, rtpTime } of streams) {
      const one = this.#recorded[stream.streamIndex];
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

  #rtp(index: number, buffer: Buffer, start: number, end: number): void {
    const recorded = this.#recorded[index];
    if (!recorded || this.#outcome) return;
    this.#lastMediaMs = this.#nowMs;
    this.#knockedMs = undefined;
    if (this.#packet.parse(buffer, start, end)) recorded.dating.note(this.#packet);
    recorded.stream.receive(buffer, start, end, this.#nowMs);
  }

  #rtcp(index: number, buffer: Buffer, start: number, end: number): void {
    const lead = this.#recorded[0]?.stream;
    if (index !== 0 || !lead || lead.receiver.ssrc === undefined) return;
    if (parseRtcp(buffer, start, end).byes.includes(lead.receiver.ssrc)) this.#ended('said');
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

  #scheduleTick(): void {
    this.#tick = this.#deps.clock.after(TICK_MS, () => {
      if (this.#outcome) return;
      this.#guard(() => this.#onTick(this.#nowMs));
      this.#scheduleTick();
    });
  }

  #onTick(nowMs: number): void {
    this.#perform(this.#client.tick(nowMs));
    if (this.#link.kind !== 'open') return;
    if (!this.#client.playing) return this.#link.framing.settle();
    this.#link.transport.tick(nowMs);
    if (this.#paused) return;
    const quietMs = nowMs - this.#lastMediaMs;
    const { started = false, sectionEnded = false } = this.#progress ?? {};
    if (sectionEnded && quietMs >= QUIET_AT_END_MS) return this.#ended('quiet');
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
    this.#perform(this.#client.knock(nowMs));
  }
}

function fieldsOf({ fields, startMs }: ReplayPlace, { untilMs }: CameraWindow): ReplayFields | undefined {
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
