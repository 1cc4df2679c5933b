// One try of a session over one transport: carries out what the RTSP dialogue asks for, watches that video arrives,
// and leaves no socket open however it ends.

import { assertNever } from '../../base/assert.ts';
import type { Timer } from '../../base/clock.ts';
import { RtspClient } from '../rtsp/client.ts';
import type { ClientAction, EstablishedStream, SetupRequest, StartedStream } from '../rtsp/client.ts';
import { RtspError } from '../rtsp/error.ts';
import { RtspFraming } from '../rtsp/framing.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { RtspUrl } from '../rtsp/url.ts';
import { CameraError } from './error.ts';
import type { SessionMemory, SessionOptions, TransportKind } from './session.ts';
import { openTcp } from './tcp-transport.ts';
import type { TcpConnection } from './tcp-transport.ts';
import { UdpStreams } from './udp-transport.ts';

const TICK_MS = 500;
/** No video for so long: the camera is gone, whatever it answers. */
const SILENCE_MS = 10_000;
/** `auto`: not one packet over UDP for so long, and it will not come (NAT, firewall). */
const UDP_SILENCE_MS = 3_000;
const TEARDOWN_WAIT_MS = 500;
/** A connection that ends so soon after a keepalive ended because of it. */
const KEEPALIVE_BLAME_MS = 2_000;

const NO_STREAM = -1;

/** The camera would have to be asked over the other transport. */
export class TransportUnfit extends Error {
  /** It agreed, but nothing arrived. */
  readonly silent: boolean;

  constructor(message: string, silent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TransportUnfit';
    this.silent = silent;
  }
}

export interface AttemptOptions extends SessionOptions {
  readonly url: RtspUrl;
  readonly transport: TransportKind;
  readonly memory: SessionMemory;
  /** The other transport follows when this one does not fit. */
  readonly fallback: boolean;
  readonly receiveBuffer: Buffer;
}

export class SessionAttempt {
  readonly #options: AttemptOptions;
  readonly #client: RtspClient;
  readonly #outcome = Promise.withResolvers<void>();
  /** Aborts what is under way when the attempt ends. */
  readonly #ending = new AbortController();
  #connection: TcpConnection | undefined;
  #framing: RtspFraming;
  #udp: UdpStreams | undefined;
  #timer: Timer | undefined;
  #ended = false;
  #torn = Promise.withResolvers<void>();
  /** By channel: stream × 2, + 1 for RTCP. */
  readonly #routes = new Int16Array(256).fill(NO_STREAM);
  #unknownChannelLogged = false;
  #videoStream = NO_STREAM;
  /** Set by each packet, looked at by each tick: cheaper than asking the clock for each packet. */
  #sawVideo = false;
  #sawPacket = false;
  #lastVideoMs = 0;
  #playingSinceMs: number | undefined;
  #getParameterMs = Number.NEGATIVE_INFINITY;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#client = new RtspClient({
      url: options.url,
      credentials: options.credentials,
      transport: options.transport,
      keepaliveByOptions: options.memory.keepaliveByOptions ?? false,
    });
    this.#framing = this.#newFraming();
  }

  /** Rejects with `CameraError`, `RtspError` or `TransportUnfit`; resolves when `signal` aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#end(undefined);
    signal.addEventListener('abort', stop, { once: true });
    try {
      this.#scheduleTick();
      void this.#open(this.#options.url);
      await this.#outcome.promise;
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#leave();
    }
  }

  get #nowMs(): number {
    return this.#options.deps.clock.monotonicMs();
  }

  /** Ends the attempt, with what the camera did wrong or without. Only the first call counts. */
  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    if (error === undefined) this.#outcome.resolve();
    else this.#outcome.reject(error);
  }

  /** TEARDOWN where there is something to tear down, then everything is closed. */
  async #leave(): Promise<void> {
    const { clock } = this.#options.deps;
    try {
      if (this.#connection && !this.#connection.destroyed && this.#client.hasSession) {
        this.#perform(this.#client.tearDown(this.#nowMs));
        const waited = new AbortController();
        await Promise.race([this.#torn.promise, clock.sleep(TEARDOWN_WAIT_MS, waited.signal)]);
        waited.abort();
      }
    } catch {
      // What went wrong before is what counts.
    } finally {
      this.#timer?.cancel();
      this.#ending.abort();
      this.#connection?.destroy();
      this.#udp?.close();
    }
  }

  /** Runs `step`; what it throws ends the attempt. Nothing may escape into a socket's callback. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The same for each read of the socket, without a closure for it. */
  #receive(framing: RtspFraming, buffer: Buffer, size: number): void {
    try {
      framing.push(buffer, 0, size);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    // What goes wrong while TEARDOWN waits for its answer ends the waiting.
    if (this.#ended) this.#torn.resolve();
    else this.#end(this.#explain(error));
  }

  #explain(error: unknown): unknown {
    if (error instanceof RtspError && error.code === 'transport-refused') {
      return new TransportUnfit(error.message, false, { cause: error });
    }
    return error;
  }

  #newFraming(): RtspFraming {
    return new RtspFraming({
      interleaved: (channel, buffer, start, end) => this.#interleaved(channel, buffer, start, end),
      message: (message) => this.#perform(this.#client.message(message, this.#nowMs)),
    });
  }

  async #open(url: RtspUrl): Promise<void> {
    const { deps, tls, receiveBuffer } = this.#options;
    this.#framing = this.#newFraming();
    this.#routes.fill(NO_STREAM);
    const framing = this.#framing;
    const target = { host: url.host, port: url.port, secure: url.secure, verify: tls?.verify ?? false };
    try {
      const connection = await openTcp(
        target,
        {
          data: (buffer, size) => {
            deps.pacer?.noteRead();
            this.#receive(framing, buffer, size);
          },
          closed: (error) => this.#guard(() => this.#closed(error)),
        },
        { clock: deps.clock, receiveBuffer },
        this.#ending.signal,
      );
      if (this.#ended) return connection.destroy();
      this.#connection = connection;
      this.#guard(() => this.#perform(this.#client.connected(this.#nowMs)));
    } catch (error) {
      this.#end(error);
    }
  }

  /** Drops the connection and opens another, as the dialogue asked for. */
  #reopen(url: RtspUrl): void {
    this.#connection?.destroy();
    this.#connection = undefined;
    this.#udp?.close();
    this.#udp = undefined;
    void this.#open(url);
  }

  #closed(error: Error | undefined): void {
    this.#connection = undefined;
    this.#torn.resolve();
    if (this.#ended) return;
    const actions = this.#client.disconnected();
    if (actions.length > 0) return this.#perform(actions);
    if (this.#client.playing && this.#nowMs - this.#getParameterMs < KEEPALIVE_BLAME_MS) {
      this.#options.memory.keepaliveByOptions = true;
    }
    const detail = error ? `: ${(error as { code?: string }).code ?? error.message}` : '';
    throw new CameraError('closed-by-camera', `the camera closed the connection${detail}`, { cause: error });
  }

  #perform(actions: readonly ClientAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case 'send':
          this.#connection?.send(action.text);
          break;
        case 'select':
          this.#select(action.presentation);
          break;
        case 'established':
          this.#established(action.stream);
          break;
        case 'playing':
          this.#playing(action.streams);
          break;
        case 'reconnect':
          this.#reopen(action.url);
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
    const chosen = this.#options.handler.select(presentation);
    this.#videoStream = chosen.findIndex((index) => presentation.media[index]?.kind === 'video');
    if (this.#videoStream < 0) throw new CameraError('no-video', 'the camera offers no video that can be recorded');
    if (this.#options.transport === 'udp') {
      void this.#setUpUdp(chosen);
      return;
    }
    this.#setUp(chosen.map((mediaIndex) => ({ mediaIndex })));
  }

  async #setUpUdp(chosen: readonly number[]): Promise<void> {
    const connection = this.#connection;
    if (!connection) return;
    try {
      const udp = await UdpStreams.open(chosen.length, connection, {
        rtp: (stream, buffer) => {
          this.#options.deps.pacer?.noteRead();
          this.#guard(() => this.#rtp(stream, buffer, 0, buffer.length));
        },
        rtcp: (stream, buffer) => this.#guard(() => this.#rtcp(stream, buffer, 0, buffer.length)),
        receptionReport: (stream) => this.#options.handler.receptionReport?.(stream, this.#nowMs),
      });
      // The attempt may have ended, or begun again on another connection, meanwhile.
      if (this.#ended || this.#connection !== connection) return udp.close();
      this.#udp = udp;
      const ports = udp.clientPorts;
      this.#guard(() =>
        this.#setUp(
          chosen.map((mediaIndex, stream) => {
            const clientPorts = ports[stream];
            return clientPorts ? { mediaIndex, clientPorts } : { mediaIndex };
          }),
        ),
      );
    } catch (error) {
      this.#end(error);
    }
  }

  #setUp(setups: readonly SetupRequest[]): void {
    this.#perform(this.#client.setUp(setups, this.#nowMs));
  }

  #established(stream: EstablishedStream): void {
    const { streamIndex, channels } = stream;
    if (channels) {
      this.#framing.expect(channels[0], channels[1], stream.media.payloadType);
      this.#routes[channels[0]] = streamIndex * 2;
      this.#routes[channels[1]] = streamIndex * 2 + 1;
    }
    this.#udp?.establish(streamIndex, stream.source, stream.serverPorts);
  }

  #playing(streams: readonly StartedStream[]): void {
    if (this.#ended) return;
    this.#playingSinceMs = this.#nowMs;
    this.#lastVideoMs = this.#nowMs;
    this.#udp?.start(this.#nowMs);
    this.#options.handler.playing({
      transport: this.#options.transport,
      streams: streams.map(({ stream, ssrc, sequenceNumber, rtpTime }) => ({
        streamIndex: stream.streamIndex,
        media: stream.media,
        ssrc,
        sequenceNumber,
        rtpTime,
      })),
    });
  }

  #interleaved(channel: number, buffer: Buffer, start: number, end: number): void {
    const route = this.#routes[channel] as number;
    if (route === NO_STREAM) {
      // Reolink and others send on channels that nobody set up.
      if (!this.#unknownChannelLogged)
        this.#options.deps.log.debug({ channel }, 'data on a channel that was not set up');
      this.#unknownChannelLogged = true;
    } else if ((route & 1) === 0) this.#rtp(route >> 1, buffer, start, end);
    else this.#rtcp(route >> 1, buffer, start, end);
  }

  #rtp(stream: number, buffer: Buffer, start: number, end: number): void {
    // After the end the wire is still read, for the reply to TEARDOWN, but nothing is delivered.
    if (this.#ended) return;
    this.#sawPacket = true;
    if (stream === this.#videoStream) this.#sawVideo = true;
    this.#options.handler.rtp(stream, buffer, start, end);
  }

  #rtcp(stream: number, buffer: Buffer, start: number, end: number): void {
    if (this.#ended) return;
    this.#options.handler.rtcp(stream, buffer, start, end);
  }

  #scheduleTick(): void {
    this.#timer = this.#options.deps.clock.after(TICK_MS, () => {
      if (this.#ended) return;
      this.#guard(() => this.#tick(this.#nowMs));
      this.#scheduleTick();
    });
  }

  #tick(nowMs: number): void {
    const actions = this.#client.tick(nowMs);
    if (actions.length > 0 && this.#client.keepaliveMethod === 'GET_PARAMETER') this.#getParameterMs = nowMs;
    this.#perform(actions);
    this.#udp?.tick(nowMs);
    this.#watch(nowMs);
  }

  /** Only video counts: audio, metadata and replies go on while an encoder hangs. */
  #watch(nowMs: number): void {
    const { transport, memory, fallback } = this.#options;
    if (this.#playingSinceMs === undefined) return;
    if (this.#sawVideo) {
      this.#sawVideo = false;
      this.#lastVideoMs = nowMs;
      memory.transport = transport;
    }
    if (transport === 'udp' && fallback && !this.#sawPacket && nowMs - this.#playingSinceMs >= UDP_SILENCE_MS) {
      throw new TransportUnfit('nothing arrived over UDP for 3 s', true);
    }
    if (nowMs - this.#lastVideoMs >= SILENCE_MS) {
      throw new CameraError('stream-silent', 'the camera is connected but sent no video for 10 s');
    }
  }
}
