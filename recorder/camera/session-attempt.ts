// One attempt of a session over one transport: performs the actions of the RTSP dialogue, checks that video arrives, and closes
// all sockets however it ends.

import { assertNever } from '../../base/assert.ts';
import type { Timer } from '../../base/clock.ts';
import { RtspClient } from '../rtsp/client.ts';
import type { ClientAction } from '../rtsp/client.ts';
import type { EstablishedStream, StartedStream } from '../rtsp/stream-setups.ts';
import { RtspError } from '../rtsp/error.ts';
import { RtspFraming } from '../rtsp/framing.ts';
import { Login } from '../rtsp/login.ts';
import { formatMessage } from '../rtsp/message.ts';
import type { Presentation } from '../rtsp/sdp.ts';
import type { RtspUrl } from '../rtsp/url.ts';
import { openConnection } from './connection.ts';
import { CameraError, NoConnection } from './error.ts';
import { InterleavedStreams } from './interleaved-streams.ts';
import { Lessons } from './lessons.ts';
import { MulticastStreams } from './multicast-transport.ts';
import type { Carrier } from './packet-place.ts';
import type { SessionMemory, SessionOptions, TransportKind } from './session-options.ts';
import type { MediaHandler, MediaStreams } from './streams.ts';
import type { CameraConnection } from './tcp-transport.ts';
import { UdpStreams } from './udp-transport.ts';
import { Watchdog } from './watchdog.ts';

const TICK_MS = 500;
/** `auto`: without any packet over UDP for this long, none will arrive (NAT, firewall). */
const UDP_SILENCE_MS = 3_000;
const TEARDOWN_WAIT_MS = 500;

/** The camera requires the other transport. */
export class TransportUnfit extends Error {
  /** The camera agreed, but nothing arrived. */
  readonly silent: boolean;

  constructor(message: string, silent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TransportUnfit';
    this.silent = silent;
  }
}

interface AttemptOptions extends SessionOptions {
  readonly url: RtspUrl;
  readonly transport: TransportKind;
  readonly memory: SessionMemory;
  /** The other transport is tried if this one does not work. */
  readonly fallback: boolean;
  readonly receiveBuffer: Buffer;
}

interface Connected {
  readonly connection: CameraConnection;
  readonly framing: RtspFraming;
}

/** The dialogue has not come to the choice of streams. */
interface Asking extends Connected {
  readonly kind: 'asking';
  readonly streams?: undefined;
}

/** Media may come: some cameras send it ahead of their answer to PLAY. */
interface SettingUp extends Connected {
  readonly kind: 'settingUp';
  readonly streams: MediaStreams;
}

interface Watched extends Connected {
  readonly kind: 'playing';
  readonly streams: MediaStreams;
  readonly sinceMs: number;
  readonly watchdog: Watchdog;
}

/** The connection of an attempt, and how far the dialogue on it has come. */
type Link = { readonly kind: 'opening'; readonly streams?: undefined } | Asking | SettingUp | Watched;

export class SessionAttempt {
  readonly #options: AttemptOptions;
  readonly #client: RtspClient;
  readonly #outcome = Promise.withResolvers<void>();
  /** Aborts all operations when the attempt ends. */
  readonly #ending = new AbortController();
  #link: Link = { kind: 'opening' };
  #timer: Timer | undefined;
  #ended = false;
  #torn = Promise.withResolvers<void>();
  #unknownChannelLogged = false;
  /** Set by each packet and read by each tick, which is cheaper than reading the clock for each packet. */
  #sawVideo = false;
  #sawPacket = false;
  #sawBytes = false;
  /** When the bytes that are being processed were read (monotonic). */
  #readMs = 0;
  readonly #lessons: Lessons;
  readonly #withoutSound: boolean;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#lessons = options.memory.lessons ??= new Lessons();
    this.#withoutSound = this.#lessons.isWithoutSound(this.#nowMs);
    this.#client = new RtspClient({
      url: options.url,
      loginAt: (place) => this.#loginAt('rtsp', place),
      transport: options.transport,
      keepalive: this.#lessons.keepalive,
      answerMs: this.#lessons.answers.limitMs,
    });
  }

  /** Rejects with `CameraError`, `RtspError` or `TransportUnfit`; resolves when `signal` aborts. */
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

  #loginAt(kind: 'rtsp' | 'tunnel', { host, port, secure }: RtspUrl): Login {
    const { url, allowPlaintextLogin, deps } = this.#options;
    const credentials = this.#options.credentials ?? url.credentials;
    const basic = allowPlaintextLogin ? 'always' : undefined;
    return new Login({ credentials, secure, basic }, deps.reach.logins.at({ kind, host, port }, credentials));
  }

  get #nowMs(): number {
    return this.#options.deps.clock.monotonicMs();
  }

  /** Ends the attempt, with an error of the camera or without. Only the first call counts. */
  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    if (error !== undefined) this.#learn(error);
    if (error === undefined) this.#outcome.resolve();
    else this.#outcome.reject(error);
  }

  /** Records what the next attempt should do differently. */
  #learn(error: unknown): void {
    const client = this.#client;
    if (error instanceof RtspError && error.code === 'no-answer') this.#lessons.answers.exceeded();
    const link = this.#link;
    if (link.kind !== 'playing') return this.#lessons.neverPlayed(client.soundAsked, this.#nowMs);
    if (!(error instanceof CameraError)) return;
    if (error.code === 'closed-by-camera') client.ended(this.#nowMs);
    if (error.code === 'stream-silent') client.ended(link.watchdog.lastPacketMs);
  }

  /** Sends TEARDOWN if there is a session, then closes everything. */
  async #leave(): Promise<void> {
    const { clock } = this.#options.deps;
    try {
      if (this.#link.kind !== 'opening' && !this.#link.connection.destroyed && this.#client.hasSession) {
        this.#perform(this.#client.tearDown(this.#nowMs));
        const waited = new AbortController();
        await Promise.race([this.#torn.promise, clock.sleep(TEARDOWN_WAIT_MS, waited.signal)]);
        waited.abort();
      }
    } catch {
      // The earlier error is the one that counts.
    } finally {
      this.#timer?.cancel();
      this.#ending.abort();
      this.#dropLink();
    }
  }

  #dropLink(): void {
    if (this.#link.kind !== 'opening') this.#link.connection.destroy();
    this.#link.streams?.close();
  }

  /** Runs `step`; an error that it throws ends the attempt instead of escaping into a socket's callback. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#failed(error);
    }
  }

  /** The same for each read of the connection, without a closure for it. */
  #receive(framing: RtspFraming, buffer: Buffer, size: number): void {
    this.#sawBytes = true;
    this.#beginRead();
    try {
      framing.push(buffer, 0, size);
    } catch (error) {
      this.#failed(error);
    }
    this.#endRead(size);
  }

  /** All packets of one read have the same arrival time, so the clock is not read for each. */
  #beginRead(): void {
    this.#options.deps.pacer?.noteRead();
    this.#readMs = this.#nowMs;
  }

  #endRead(bytes: number): void {
    try {
      this.#options.deps.meter?.note(bytes, this.#readMs, this.#nowMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    // An error while TEARDOWN waits for its response ends the wait.
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
      message: (message) => {
        this.#options.handler.said?.({ atMs: this.#nowMs, from: 'camera', text: formatMessage(message) });
        this.#perform(this.#client.message(message, this.#nowMs));
      },
      skipped: (bytes) => this.#options.handler.skipped?.(bytes),
    });
  }

  async #open(url: RtspUrl): Promise<void> {
    const { deps, tls, receiveBuffer } = this.#options;
    const framing = this.#newFraming();
    try {
      const connection = await openConnection(
        url,
        { tls: tls ?? { verify: false }, login: () => this.#loginAt('tunnel', url) },
        {
          data: (buffer, size) => this.#receive(framing, buffer, size),
          closed: (error) => this.#guard(() => this.#closed(error)),
        },
        { clock: deps.clock, receiveBuffer, reach: deps.reach },
        this.#ending.signal,
      );
      if (this.#ended) return connection.destroy();
      this.#link = { kind: 'asking', connection, framing };
      this.#options.handler.connected?.();
      this.#guard(() => this.#perform(this.#client.connected(this.#nowMs)));
    } catch (error) {
      // After a redirect, a host without a listener does not mean that the camera itself is away.
      const isAnswered = url !== this.#options.url && error instanceof NoConnection;
      this.#end(isAnswered ? new CameraError('unreachable', error.message, { cause: error }) : error);
    }
  }

  /** Closes the connection and opens another one, as the dialogue requires. */
  #reopen(url: RtspUrl): void {
    this.#dropLink();
    this.#link = { kind: 'opening' };
    void this.#open(url);
  }

  #closed(error: Error | undefined): void {
    this.#torn.resolve();
    if (this.#ended) return;
    const actions = this.#client.disconnected();
    if (actions.length > 0) return this.#perform(actions);
    const detail = error ? `: ${(error as { code?: string }).code ?? error.message}` : '';
    throw new CameraError('closed-by-camera', `the camera closed the connection${detail}`, { cause: error });
  }

  #perform(actions: readonly ClientAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case 'send':
          this.#options.handler.said?.({ atMs: this.#nowMs, from: 'recorder', text: action.text });
          if (this.#link.kind !== 'opening') this.#link.connection.send(action.text);
          break;
        case 'select':
          this.#select(action.presentation);
          break;
        case 'established':
          this.#link.streams?.establish(action.stream);
          break;
        case 'playing':
          this.#playing(action.streams, action.soundRefused);
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
    const selected = this.#options.handler.select(presentation);
    const offersVideo = selected.some((index) => presentation.media[index]?.kind === 'video');
    const isLead = (index: number): boolean => !offersVideo || presentation.media[index]?.kind === 'video';
    const chosen = this.#withoutSound ? selected.filter(isLead) : selected;
    // For a camera that offers only audio, that stream is watched.
    const leadStream = chosen.findIndex(isLead);
    if (leadStream < 0) throw new CameraError('no-video', 'the camera offers no video that can be recorded');
    if (this.#link.kind === 'asking') void this.#setUp(this.#link, chosen, leadStream);
  }

  async #setUp(link: Asking, chosen: readonly number[], leadStream: number): Promise<void> {
    try {
      const streams = await this.#openStreams(link, chosen.length, this.#mediaHandler(leadStream));
      // The attempt may have ended, or continued on another connection, meanwhile.
      if (this.#ended || this.#link !== link) return streams.close();
      this.#link = { ...link, kind: 'settingUp', streams };
      const setups = chosen.map((mediaIndex, stream) => ({ mediaIndex, ...streams.setup(stream) }));
      this.#guard(() => this.#perform(this.#client.setUp(setups, this.#nowMs)));
    } catch (error) {
      this.#end(error);
    }
  }

  async #openStreams({ connection, framing }: Asking, count: number, media: MediaHandler): Promise<MediaStreams> {
    switch (this.#options.transport) {
      case 'tcp':
        return new InterleavedStreams(framing, connection, media);
      case 'udp':
        return await UdpStreams.open(count, connection, media);
      case 'multicast':
        return new MulticastStreams(connection, media, (error) => this.#failed(error));
      default:
        return assertNever(this.#options.transport);
    }
  }

  /** Gets the packets of every transport. */
  #mediaHandler(leadStream: number): MediaHandler {
    return {
      rtp:
        this.#options.transport === 'tcp'
          ? (stream, buffer, start, end) => this.#rtp(stream, stream === leadStream, buffer, start, end)
          : (stream, buffer, start, end) => this.#datagram(stream, stream === leadStream, buffer, start, end),
      rtcp: (stream, buffer, start, end) => this.#rtcp(stream, buffer, start, end),
      receptionReport: (stream) => this.#options.handler.receptionReport?.(stream, this.#nowMs),
    };
  }

  #playing(streams: readonly StartedStream[], soundRefused: string | undefined): void {
    const link = this.#link;
    if (this.#ended || link.kind !== 'settingUp') return;
    const { handler, transport } = this.#options;
    const nowMs = this.#nowMs;
    if (this.#client.soundHung) this.#lessons.soundHung(nowMs);
    const watchdog = new Watchdog({ nowMs, pictures: handler.pictures, start: this.#lessons.start });
    this.#link = { ...link, kind: 'playing', sinceMs: nowMs, watchdog };
    link.framing.playing = true;
    link.streams.start(nowMs);
    handler.playing({
      transport,
      soundRefused: this.#withoutSound ? 'the camera hung when it was asked for its sound' : soundRefused,
      streams: streams.map(({ stream, ssrc, rtpTime }) => ({
        streamIndex: stream.streamIndex,
        media: stream.media,
        carrier: carrierOf(stream, link.streams),
        ssrc,
        rtpTime,
      })),
    });
  }

  #interleaved(channel: number, buffer: Buffer, start: number, end: number): void {
    if (this.#link.streams?.interleaved?.(channel, buffer, start, end)) return;
    // Reolink and others send on channels that nobody set up.
    if (!this.#unknownChannelLogged) this.#options.deps.log.debug({ channel }, 'data on a channel that was not set up');
    this.#unknownChannelLogged = true;
  }

  #datagram(stream: number, leads: boolean, buffer: Buffer, start: number, end: number): void {
    this.#beginRead();
    this.#rtp(stream, leads, buffer, start, end);
    this.#endRead(end - start);
  }

  #rtp(stream: number, leads: boolean, buffer: Buffer, start: number, end: number): void {
    // After the end the connection is still read for the response to TEARDOWN, but nothing is delivered.
    if (this.#ended) return;
    this.#sawPacket = true;
    if (leads) this.#sawVideo = true;
    try {
      this.#options.handler.rtp(stream, buffer, start, end, this.#readMs);
    } catch (error) {
      this.#failed(error);
    }
  }

  #rtcp(stream: number, buffer: Buffer, start: number, end: number): void {
    if (this.#ended) return;
    this.#guard(() => this.#options.handler.rtcp(stream, buffer, start, end));
  }

  #scheduleTick(): void {
    this.#timer = this.#options.deps.clock.after(TICK_MS, () => {
      if (this.#ended) return;
      this.#guard(() => this.#tick(this.#nowMs));
      this.#scheduleTick();
    });
  }

  #tick(nowMs: number): void {
    if (!this.#sawBytes && this.#link.kind !== 'opening') this.#link.framing.settle();
    this.#sawBytes = false;
    this.#perform(this.#client.tick(nowMs));
    this.#link.streams?.tick(nowMs);
    if (this.#link.kind === 'playing') this.#watch(this.#link.watchdog, this.#link.sinceMs, nowMs);
  }

  /** Only video counts: audio, metadata and responses may continue although the encoder hangs. */
  #watch(watchdog: Watchdog, sinceMs: number, nowMs: number): void {
    const { transport, memory, fallback } = this.#options;
    const sawVideo = this.#sawVideo;
    this.#sawVideo = false;
    if (sawVideo) memory.transport = transport;
    if (transport === 'udp' && fallback && !this.#sawPacket && nowMs - sinceMs >= UDP_SILENCE_MS) {
      throw new TransportUnfit('nothing arrived over UDP for 3 s', true);
    }
    if (watchdog.check(nowMs, sawVideo) === 'joined') this.#lessons.answers.met(this.#client.slowestAnswerMs);
  }
}

function carrierOf({ streamIndex, channels, group }: EstablishedStream, streams: MediaStreams): Carrier | undefined {
  if (channels) return { rtspChannel: channels[0] };
  const ports = group?.ports ?? streams.setup(streamIndex).clientPorts;
  return ports && { udpPort: ports[0] };
}
