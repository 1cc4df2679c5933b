// One attempt of a session over one transport: chooses the streams, checks that video arrives, and remembers what the next attempt
// should do differently.

import type { Presentation } from '../rtsp/sdp.ts';
import { RtspError } from '../rtsp/error.ts';
import type { RtspUrl } from '../rtsp/url.ts';
import { CameraError } from './error.ts';
import { Lessons } from './lessons.ts';
import { RtspConnection, type ConnectionOwner, type PlayAnswer } from './rtsp-connection.ts';
import type { SessionMemory, SessionOptions } from './session-options.ts';
import type { TransportKind } from '../rtsp/stream-setups.ts';
import { Watchdog } from './watchdog.ts';

const TICK_MS = 500;
/** `auto`: without any packet over UDP for this long, none will arrive (NAT, firewall). */
const UDP_SILENCE_MS = 3_000;

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

export class SessionAttempt implements ConnectionOwner {
  readonly #options: AttemptOptions;
  readonly #connection: RtspConnection;
  readonly #outcome = Promise.withResolvers<void>();
  readonly #lessons: Lessons;
  readonly #withoutSound: boolean;
  /** Index of the stream whose packets count: the video, or the audio of a camera that offers nothing else. */
  #leadStream = 0;
  #sawPacket = false;
  #playing: { readonly sinceMs: number; readonly watchdog: Watchdog } | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    this.#lessons = options.memory.lessons ??= new Lessons();
    this.#withoutSound = this.#lessons.isWithoutSound(this.#nowMs);
    const { url, deps, receiveBuffer, allowPlaintextLogin } = options;
    this.#connection = new RtspConnection({
      url,
      credentials: options.credentials ?? url.credentials,
      allowPlaintextLogin,
      tls: options.tls ?? { verify: false },
      transport: options.transport,
      keepalive: this.#lessons.keepalive,
      answerMs: this.#lessons.answers.limitMs,
      tickMs: TICK_MS,
      deps: { ...deps, receiveBuffer },
      owner: this,
      packets: options.handler,
    });
  }

  /** Rejects with `CameraError`, `RtspError` or `TransportUnfit`; resolves when `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => this.#connection.end();
    signal.addEventListener('abort', stop, { once: true });
    try {
      this.#connection.start();
      await this.#outcome.promise;
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#connection.close();
    }
  }

  select(presentation: Presentation): readonly number[] {
    const selected = this.#options.handler.select(presentation);
    const offersVideo = selected.some((index) => presentation.media[index]?.kind === 'video');
    const isLead = (index: number): boolean => !offersVideo || presentation.media[index]?.kind === 'video';
    const chosen = this.#withoutSound ? selected.filter(isLead) : selected;
    this.#leadStream = chosen.findIndex(isLead);
    if (this.#leadStream < 0) throw new CameraError('no-video', 'the camera offers no video that can be recorded');
    return chosen;
  }

  playing({ streams, soundRefused }: PlayAnswer): void {
    const { handler, transport } = this.#options;
    const nowMs = this.#nowMs;
    if (this.#connection.client.soundHung) this.#lessons.soundHung(nowMs);
    const watchdog = new Watchdog({ nowMs, pictures: handler.pictures, start: this.#lessons.start });
    this.#playing = { sinceMs: nowMs, watchdog };
    const hung = 'the camera hung when it was asked for its sound';
    handler.playing({ transport, soundRefused: this.#withoutSound ? hung : soundRefused, streams });
  }

  /** Only video counts: audio, metadata and responses may continue although the encoder hangs. */
  tick(nowMs: number, seen: number): void {
    this.#sawPacket ||= seen !== 0;
    if (!this.#playing) return;
    const { sinceMs, watchdog } = this.#playing;
    const { transport, memory, fallback } = this.#options;
    const sawVideo = (seen & (1 << this.#leadStream)) !== 0;
    if (sawVideo) memory.transport = transport;
    if (transport === 'udp' && fallback && !this.#sawPacket && nowMs - sinceMs >= UDP_SILENCE_MS) {
      throw new TransportUnfit('nothing arrived over UDP for 3 s', true);
    }
    if (watchdog.check(nowMs, sawVideo) === 'joined') {
      this.#lessons.answers.met(this.#connection.client.slowestAnswerMs);
    }
  }

  ended(error: unknown): void {
    if (error === undefined) return this.#outcome.resolve();
    this.#learn(error);
    const isUnfit = error instanceof RtspError && error.code === 'transport-refused';
    this.#outcome.reject(isUnfit ? new TransportUnfit(error.message, false, { cause: error }) : error);
  }

  get #nowMs(): number {
    return this.#options.deps.clock.ranMs();
  }

  /** Records what the next attempt should do differently. */
  #learn(error: unknown): void {
    const { client } = this.#connection;
    if (error instanceof RtspError && error.code === 'no-answer') this.#lessons.answers.exceeded();
    if (!this.#playing) return this.#lessons.neverPlayed(client.soundAsked, this.#nowMs);
    if (!(error instanceof CameraError)) return;
    if (error.code === 'closed-by-camera') client.ended(this.#nowMs);
    if (error.code === 'stream-silent') client.ended(this.#playing.watchdog.lastPacketMs);
  }
}
