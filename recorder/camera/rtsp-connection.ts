// One RTSP connection with a camera, for a live session or a replay: opens it, performs the actions of the dialogue, follows
// redirects, and ends with TEARDOWN. Its owner chooses the streams and decides when it ends.

import { assertNever } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { CameraTls } from '../reach/connect.ts';
import type { Reach } from '../reach/reach.ts';
import type { ReceptionReport } from '../rtp/rtcp.ts';
import { RtspClient, type ClientAction, type ClientOptions } from '../rtsp/client.ts';
import { Login } from '../rtsp/login.ts';
import { formatMessage, type RtspMessage } from '../rtsp/message.ts';
import type { Media, Presentation } from '../rtsp/sdp.ts';
import type { EstablishedStream } from '../rtsp/stream-setups.ts';
import type { Credentials, RtspUrl } from '../rtsp/url.ts';
import { openConnection } from './connection.ts';
import { CameraError, NoConnection, Unanswered } from './error.ts';
import { InterleavedStreams } from './interleaved-streams.ts';
import { MulticastStreams } from './multicast-transport.ts';
import type { DialogueMessage } from './observer.ts';
import type { Carrier } from '../contract/packet-place.ts';
import type { MediaHandler, MediaStreams } from './streams.ts';
import type { CameraConnection } from './tcp-transport.ts';
import { UdpStreams } from './udp-transport.ts';

const TEARDOWN_WAIT_MS = 500;

/** One stream that plays. The camera's statements in SETUP and RTP-Info are only hints: many state `seq=0` or worse. */
interface PlayingStream {
  /** Index into what `select` returned; the `streamIndex` of `rtp` and `rtcp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** Undefined if the camera did not name a channel or port. */
  readonly carrier: Carrier | undefined;
  /** From the Transport header or RTP-Info, if stated. */
  readonly ssrc: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface PlayAnswer {
  /** The streams that the camera agreed to send; one that it refused in SETUP (never the video) is missing. */
  readonly streams: readonly PlayingStream[];
  /** Why the audio chosen by `select` is missing, as a sentence. */
  readonly soundRefused?: string | undefined;
  /** The Range header, as written. */
  readonly range: string | undefined;
}

/** Gets what a connection delivers. All calls are synchronous, in the socket's read callback, and must return at once. */
export interface PacketHandler {
  /** The camera accepted the connection; no message was sent yet. */
  connected?(): void;
  /** An RTSP message was sent or received. */
  said?(message: DialogueMessage): void;
  /**
   * One RTP packet, `buffer[start, end)`; valid only during the call, because the buffer is reused. `arrivalMs` (monotonic): when
   * it was read.
   */
  rtp(streamIndex: number, buffer: Buffer, start: number, end: number, arrivalMs: number): void;
  /** One RTCP packet (usually compound), under the same rule. */
  rtcp(streamIndex: number, buffer: Buffer, start: number, end: number): void;
  /** Bytes of the connection that were neither an RTSP message nor a packet. */
  skipped?(bytes: number): void;
  /** The contents of the receiver reports, which are sent every 5 s; without it they only show that we are alive. */
  receptionReport?(streamIndex: number, nowMs: number): ReceptionReport | undefined;
}

/** Decides about a connection. An error that a call throws ends the connection. */
export interface ConnectionOwner {
  /** Chooses the streams: indices into `presentation.media`, in the order of `streamIndex` and of the SETUPs. */
  select(presentation: Presentation): readonly number[];
  /** Packets may have arrived before, because some cameras send them ahead of their response. */
  playing(answer: PlayAnswer): void;
  /** A message of the camera, after the dialogue has processed it. */
  message?(message: RtspMessage): void;
  /** The camera closed the connection. Default: an error. */
  closed?(): void;
  /** Called every `tickMs` with the time in which this process ran. `seen`: the streams of which packets arrived since the last call, as bits. */
  tick(nowMs: number, seen: number): void;
  /** Called once, with the error of the camera or the network, or without one after `end`. Nothing is delivered any more. */
  ended(error: unknown): void;
}

interface RtspConnectionOptions extends Pick<ClientOptions, 'url' | 'transport' | 'keepalive' | 'answerMs' | 'replay'> {
  readonly credentials: Credentials | undefined;
  readonly allowPlaintextLogin: boolean | undefined;
  readonly tls: CameraTls;
  readonly tickMs: number;
  readonly deps: {
    readonly clock: Clock;
    readonly reach: Reach;
    readonly receiveBuffer: Buffer;
    readonly log?: Log;
    readonly pacer?: { noteRead(): void; noteDatagram(): void } | undefined;
    /** Notified after each read, with the times (monotonic) between which it was processed. */
    readonly meter?: { note(bytes: number, startMs: number, endMs: number): void } | undefined;
  };
  readonly owner: ConnectionOwner;
  readonly packets: PacketHandler;
}

interface Link {
  readonly connection: CameraConnection;
  readonly interleaved: InterleavedStreams;
  /** Undefined until the streams are chosen. */
  media: MediaStreams | undefined;
}

export class RtspConnection {
  readonly client: RtspClient;
  readonly #options: RtspConnectionOptions;
  readonly #closing = new AbortController();
  readonly #torn = Promise.withResolvers<void>();
  /** Undefined while a connection is opened. */
  #link: Link | undefined;
  #timer: Timer | undefined;
  #ended = false;
  /** Set by each packet and read by each tick, which is cheaper than reading the clock for each packet. */
  #seen = 0;
  #sawBytes = false;
  /** The camera has sent something on one of the connections. */
  #isAnswered = false;
  /** When the bytes that are being processed were read (monotonic). All packets of one read have the same arrival time. */
  #readMs = 0;
  /** For how long this process had stood still at the last tick. */
  #stoodMs = 0;

  constructor(options: RtspConnectionOptions) {
    this.#options = options;
    this.client = new RtspClient({ ...options, loginAt: (place) => this.#loginAt('rtsp', place) });
  }

  start(): void {
    this.#stoodMs = this.#nowMs - this.#ranMs;
    this.#scheduleTick();
    void this.#open(this.#options.url);
  }

  /** Only the first call counts. */
  end(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.owner.ended(error);
  }

  /** Stops reading, so that the camera has to wait, until `resume`. */
  pause(): void {
    this.#link?.connection.pause();
  }

  resume(): void {
    this.#link?.connection.resume();
  }

  /** A keepalive before it is due: its answer shows that a camera that sends nothing is there. */
  knock(nowMs: number): void {
    this.#perform(this.client.knock(nowMs));
  }

  /** Sends TEARDOWN if there is a session, and closes everything half a second later at most. */
  async close(): Promise<void> {
    this.#ended = true;
    try {
      if (this.#link && !this.#link.connection.destroyed && this.client.hasSession) {
        this.#perform(this.client.tearDown(this.#ranMs));
        // Its response comes after media that was not read.
        this.resume();
        const waited = new AbortController();
        await Promise.race([this.#torn.promise, this.#options.deps.clock.sleep(TEARDOWN_WAIT_MS, waited.signal)]);
        waited.abort();
      }
    } catch {
      // The earlier error is the one that counts.
    } finally {
      this.#timer?.cancel();
      this.#closing.abort();
      this.#dropLink();
    }
  }

  #loginAt(kind: 'rtsp' | 'tunnel', { host, port, secure, request: path }: RtspUrl): Login {
    const { credentials, allowPlaintextLogin, deps } = this.#options;
    const basic = allowPlaintextLogin ? 'always' : undefined;
    return new Login({ credentials, secure, basic }, deps.reach.logins.at({ kind, host, port, path }, credentials));
  }

  get #nowMs(): number {
    return this.#options.deps.clock.monotonicMs();
  }

  /** The dialogue and its owner are timed by this: a camera is not silent while this process stands still. */
  get #ranMs(): number {
    return this.#options.deps.clock.ranMs();
  }

  #dropLink(): void {
    this.#link?.connection.destroy();
    this.#link?.media?.close();
    this.#link = undefined;
  }

  /** Runs `step`; an error that it throws ends the connection instead of escaping into a socket's callback. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    // An error while TEARDOWN waits for its response ends the wait.
    if (this.#ended) this.#torn.resolve();
    else this.end(error);
  }

  async #open(url: RtspUrl): Promise<void> {
    const { deps, tls, packets } = this.#options;
    const interleaved = new InterleavedStreams({
      ...this.#mediaHandler((stream, buffer, start, end) => this.#rtp(stream, buffer, start, end)),
      message: (message) => this.#message(message),
      skipped: (bytes) => packets.skipped?.(bytes),
      // Reolink and others send on channels that nobody set up.
      stray: (channel) => deps.log?.debug({ channel }, 'data on a channel that was not set up'),
      send: (data) => this.#link?.connection.send(data),
    });
    try {
      const connection = await openConnection(
        url,
        { tls, login: () => this.#loginAt('tunnel', url) },
        {
          data: (buffer, size) => this.#receive(interleaved, buffer, size),
          closed: (error) => this.#guard(() => this.#closed(error)),
        },
        deps,
        this.#closing.signal,
      );
      if (this.#ended) return connection.destroy();
      this.#link = { connection, interleaved, media: undefined };
      this.#guard(() => {
        packets.connected?.();
        this.#perform(this.client.connected(this.#ranMs));
      });
    } catch (error) {
      // After a redirect, a host without a listener does not mean that the camera itself is away.
      const isAnswered = url !== this.#options.url && error instanceof NoConnection;
      this.end(isAnswered ? new CameraError('unreachable', error.message, { cause: error }) : error);
    }
  }

  #closed(error: Error | undefined): void {
    this.#torn.resolve();
    if (this.#ended) return;
    const actions = this.client.disconnected();
    if (actions.length > 0) return this.#perform(actions);
    const { owner } = this.#options;
    if (owner.closed) return owner.closed();
    const detail = error ? `: ${(error as { code?: string }).code ?? error.message}` : '';
    const message = `the camera closed the connection${detail}`;
    if (!this.#isAnswered) throw new Unanswered(message, { cause: error });
    throw new CameraError('closed-by-camera', message, { cause: error });
  }

  #message(message: RtspMessage): void {
    const { packets, owner } = this.#options;
    packets.said?.({ atMs: this.#nowMs, from: 'camera', text: formatMessage(message) });
    this.#perform(this.client.message(message, this.#ranMs));
    owner.message?.(message);
  }

  #perform(actions: readonly ClientAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case 'send':
          this.#options.packets.said?.({ atMs: this.#nowMs, from: 'recorder', text: action.text });
          this.#link?.connection.send(action.text);
          break;
        case 'select':
          this.#select(action.presentation);
          break;
        case 'established':
          this.#link?.media?.establish(action.stream);
          break;
        case 'playing':
          this.#playing(action);
          break;
        case 'reconnect':
          this.#dropLink();
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

  #select(presentation: Presentation): void {
    if (this.#ended) return;
    const chosen = this.#options.owner.select(presentation);
    if (this.#link) void this.#setUp(this.#link, chosen);
  }

  async #setUp(link: Link, chosen: readonly number[]): Promise<void> {
    try {
      const media = await this.#openStreams(link, chosen.length);
      // The owner may have ended it, or the dialogue continued on another connection, meanwhile.
      if (this.#ended || this.#link !== link) return media.close();
      link.media = media;
      const setups = chosen.map((mediaIndex, stream) => ({ mediaIndex, ...media.setup(stream) }));
      this.#guard(() => this.#perform(this.client.setUp(setups, this.#ranMs)));
    } catch (error) {
      this.end(error);
    }
  }

  async #openStreams({ connection, interleaved }: Link, count: number): Promise<MediaStreams> {
    const { transport } = this.#options;
    if (transport === 'tcp') return interleaved;
    const media = this.#mediaHandler((stream, buffer, start, end) => this.#datagram(stream, buffer, start, end));
    return transport === 'udp'
      ? await UdpStreams.open(count, connection, media)
      : new MulticastStreams(connection, media, (error) => this.#failed(error));
  }

  #mediaHandler(rtp: MediaHandler['rtp']): MediaHandler {
    return {
      rtp,
      rtcp: (stream, buffer, start, end) => {
        if (!this.#ended) this.#guard(() => this.#options.packets.rtcp(stream, buffer, start, end));
      },
      receptionReport: (stream) => this.#options.packets.receptionReport?.(stream, this.#nowMs),
    };
  }

  #playing({ streams, soundRefused, range }: Extract<ClientAction, { readonly kind: 'playing' }>): void {
    const media = this.#link?.media;
    if (this.#ended || !this.#link || !media) return;
    this.#link.interleaved.framing.playing = true;
    media.start(this.#ranMs);
    this.#options.owner.playing({
      soundRefused,
      range,
      streams: streams.map(({ stream, ssrc, rtpTime }) => ({
        streamIndex: stream.streamIndex,
        media: stream.media,
        carrier: carrierOf(stream, media),
        ssrc,
        rtpTime,
      })),
    });
  }

  #receive({ framing }: InterleavedStreams, buffer: Buffer, size: number): void {
    this.#sawBytes = true;
    this.#isAnswered = true;
    this.#options.deps.pacer?.noteRead();
    this.#readMs = this.#nowMs;
    try {
      framing.push(buffer, 0, size);
    } catch (error) {
      this.#failed(error);
    }
    this.#endRead(size);
  }

  #datagram(stream: number, buffer: Buffer, start: number, end: number): void {
    this.#options.deps.pacer?.noteDatagram();
    this.#readMs = this.#nowMs;
    this.#rtp(stream, buffer, start, end);
    this.#endRead(end - start);
  }

  #endRead(bytes: number): void {
    try {
      this.#options.deps.meter?.note(bytes, this.#readMs, this.#nowMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  #rtp(stream: number, buffer: Buffer, start: number, end: number): void {
    // After the end the connection is still read for the response to TEARDOWN, but nothing is delivered.
    if (this.#ended) return;
    this.#seen |= 1 << stream;
    try {
      this.#options.packets.rtp(stream, buffer, start, end, this.#readMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  #scheduleTick(): void {
    this.#timer = this.#options.deps.clock.after(this.#options.tickMs, () => {
      if (this.#ended) return;
      this.#guard(() => this.#tick(this.#ranMs));
      this.#scheduleTick();
    });
  }

  #tick(nowMs: number): void {
    const { tickMs } = this.#options;
    const stoodMs = this.#nowMs - nowMs;
    if (stoodMs - this.#stoodMs > tickMs) this.#perform(this.client.stoodStill(nowMs));
    this.#stoodMs = stoodMs;
    if (!this.#sawBytes) this.#link?.interleaved.framing.settle();
    this.#sawBytes = false;
    this.#perform(this.client.tick(nowMs));
    this.#link?.media?.tick(nowMs);
    const seen = this.#seen;
    this.#seen = 0;
    this.#options.owner.tick(nowMs, seen);
  }
}

function carrierOf({ streamIndex, channels, group }: EstablishedStream, streams: MediaStreams): Carrier | undefined {
  if (channels) return { rtspChannel: channels[0] };
  const ports = group?.ports ?? streams.setup(streamIndex).clientPorts;
  return ports && { udpPort: ports[0], receiveBufferBytes: streams.receiveBufferBytes };
}
