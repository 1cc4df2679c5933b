// A scripted RTSP camera: serves media as told, well or badly, and remembers everything that clients did.

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { systemClock } from '../../base/clock.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { selfSignedCertificate } from './certificate.ts';
import { CameraConnection } from './connection.ts';
import { challengeHeaders, verify } from './credentials.ts';
import type { Challenge } from './credentials.ts';
import { answer } from './dialogue.ts';
import type { CameraState } from './dialogue.ts';
import { videoMedia } from './media.ts';
import { CameraMemory } from './memory.ts';
import { isReplayAddress, MemoryReplay } from './memory-replay.ts';
import { formatReply, header, reply } from './message.ts';
import type { RtspReply, RtspRequest } from './message.ts';
import type { Action, CameraOptions, Outgoing } from './options.ts';
import { Playout } from './playout.ts';
import type { CameraSession } from './session.ts';
import { videoTrack } from './tracks.ts';
import type { CameraFrame, Track } from './tracks.ts';

/** How long tests wait for a client that does not come, on a busy machine as well; real time. */
const PATIENCE_MS = 60_000;
/** A camera's clock for session timeouts and real-time sending moves in these steps. */
const TICK_MS = 5;

export async function startCamera(options: CameraOptions = {}): Promise<Camera> {
  const tracks = options.tracks ?? [videoTrack(await videoMedia('h264'))];
  const server = options.tls ? createTlsServer(selfSignedCertificate('camera')) : createServer();
  const camera = new Camera(server, tracks, options);
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  await once(server, 'listening');
  camera.start();
  return camera;
}

export class Camera {
  readonly connections: CameraConnection[] = [];
  /** All requests of all connections, in order. */
  readonly requests: RtspRequest[] = [];
  /** Why logins were refused. */
  readonly refusals: string[] = [];
  /** Challenges that were answered well. */
  readonly logins: Challenge[] = [];
  /** Sessions now; those that ended are in `pastSessions`. */
  readonly sessions = new Map<string, CameraSession>();
  readonly pastSessions: CameraSession[] = [];
  readonly tracks: readonly Track[];
  readonly memory: CameraMemory | undefined;
  /** The replays of the memory, by connection. */
  readonly replays = new Map<CameraConnection, MemoryReplay>();
  /** The options; hooks in it may be exchanged at any time. */
  readonly options: { -readonly [K in keyof CameraOptions]: CameraOptions[K] };
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #playout: Playout;
  #paced: Timer | undefined;
  #watch: Timer | undefined;
  /** The clock's time at which media time 0 was or would have been handed out. */
  #mediaStartMs: number | undefined;
  #sessionCount = 0;
  #playCount = 0;
  #silent = false;
  #isCut = false;
  #failure: Error | undefined;
  #waiters: (() => void)[] = [];

  constructor(server: Server, tracks: readonly Track[], options: CameraOptions) {
    this.#server = server;
    this.tracks = tracks;
    this.options = { ...options };
    this.#clock = options.clock ?? systemClock;
    this.#playout = new Playout(tracks);
    this.memory = options.memory && new CameraMemory(tracks, options.memory);
    const onSocket = (socket: Socket): void => {
      if (this.#isCut) return void socket.on('error', () => {}).destroy();
      const connection = new CameraConnection(this.connections.length, socket, this.#clock, {
        request: (request, from) => void this.#request(request, from),
        closed: (from) => this.#closed(from),
        mistaken: options.onMistake,
      });
      this.connections.push(connection);
      this.#notify();
    };
    // node:tls hands the decrypted socket out under another name.
    server.on(options.tls ? 'secureConnection' : 'connection', onSocket);
    server.on('tlsClientError', () => {});
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Without user and password. */
  get url(): string {
    const { host = '127.0.0.1', path = '/stream', tls = false } = this.options;
    return `${tls ? 'rtsps' : 'rtsp'}://${host.includes(':') ? `[${host}]` : host}:${this.port}${path}`;
  }

  /** With user and password, percent-encoded. */
  get urlWithLogin(): string {
    const { credentials } = this.options;
    if (!credentials) return this.url;
    const login = [credentials.username, credentials.password].map(encodeURIComponent).join(':');
    return this.url.replace('://', `://${login}@`);
  }

  start(): void {
    const { pace = 'manual', sessionTimeoutSeconds, udp } = this.options;
    if (pace !== 'manual') this.#pace(pace === 'realtime' ? 1 : pace);
    if (sessionTimeoutSeconds !== undefined || udp?.requireReportsSeconds !== undefined) this.#watchSessions();
  }

  /** Methods of the requests so far, in order. */
  get methods(): string[] {
    return this.requests.map((request) => request.method);
  }

  get playing(): CameraSession[] {
    return [...this.sessions.values()].filter((session) => session.playing);
  }

  /** Frames that leave from now on go nowhere; RTSP is answered as before. */
  set silent(silent: boolean) {
    this.#silent = silent;
  }

  /** Sends the next `count` pictures and what sound comes between them, to everybody who plays. */
  send(count = 1): CameraFrame[] {
    const sent: CameraFrame[] = [];
    for (let pictures = 0; pictures < count;) {
      const frame = this.#playout.take();
      if (!frame) throw new Error('a camera without media cannot send');
      sent.push(frame);
      this.#emit(frame);
      if (this.tracks[frame.track]?.kind === 'video') pictures++;
    }
    return sent;
  }

  /** Milliseconds of media time until the next picture after `send` would leave. */
  get nextFrameAtMs(): number {
    return this.#playout.peek()?.sendAtMs ?? Number.POSITIVE_INFINITY;
  }

  /** Sends everything that is handed out before `ms` of media time. */
  sendUntil(ms: number): CameraFrame[] {
    const sent: CameraFrame[] = [];
    while (this.nextFrameAtMs < ms) {
      const frame = this.#playout.take();
      if (!frame) break;
      sent.push(frame);
      this.#emit(frame);
    }
    return sent;
  }

  /** Goes on with the frames of this media time. */
  seek(ms: number): void {
    this.#playout.seek(ms);
  }

  /** Sends one frame made by the test. */
  sendFrame(frame: CameraFrame): void {
    this.#emit(frame);
  }

  /** Sends something on the place of a track, to everybody who plays. */
  transmit(trackIndex: number, outgoing: Outgoing): void {
    for (const session of this.playing) session.transmit(trackIndex, outgoing);
  }

  /**
   * Resolves when clients in this process have read all that was sent: the loopback interface delivers within the
   * sending call, so a few turns of the event loop after the last byte has left are enough.
   */
  async settled(): Promise<void> {
    do {
      await Promise.all([...this.sessions.values()].map((session) => session.sent()));
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    } while (this.connections.some((connection) => !connection.closed && connection.waitingBytes > 0));
    if (this.#failure) throw this.#failure;
  }

  /** Waits for the PLAY with this number, counted from 1 over all sessions. */
  async untilPlaying(count = 1): Promise<void> {
    await this.until(() => this.#playCount >= count, `PLAY number ${count}`);
  }

  /** Waits, in real time, until something that a client does makes `condition` true. */
  async until(condition: () => boolean, what: string): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!condition()) {
      if (this.#failure) throw this.#failure;
      const restMs = deadline - performance.now();
      if (restMs <= 0) throw new Error(`waited ${PATIENCE_MS} ms for ${what}; seen so far: ${this.methods.join(' ')}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(restMs, 20));
        this.#waiters.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Ends all connections; the camera listens on. */
  disconnect(how: 'fin' | 'reset' = 'fin'): void {
    for (const connection of this.connections.filter(({ closed }) => !closed)) {
      // At once, not when the socket has closed: who waits for the next session must not see this one.
      for (const session of connection.sessions) session.playing = false;
      connection.close(how);
    }
  }

  /** The link is cut: connections break and new ones find nobody. The camera goes on encoding into its memory. */
  cut(): void {
    this.#isCut = true;
    this.disconnect('reset');
  }

  mend(): void {
    this.#isCut = false;
  }

  async close(): Promise<void> {
    this.#paced?.cancel();
    this.#watch?.cancel();
    for (const session of this.sessions.values()) session.end();
    for (const connection of this.connections) connection.destroy();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #notify(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  #emit(original: CameraFrame): void {
    this.memory?.store(original, this.#clock.wallMs());
    if (this.#silent) return;
    const hooked = this.options.onFrame ? this.options.onFrame(original) : original;
    const frames = hooked === undefined ? [] : Array.isArray(hooked) ? (hooked as CameraFrame[]) : [hooked];
    for (const frame of frames as CameraFrame[]) {
      for (const session of this.playing) session.send(frame, this.#clock.wallMs());
    }
  }

  #pace(speed: number): void {
    const tick = (): void => {
      if (this.#mediaStartMs !== undefined) {
        this.sendUntil((this.#clock.monotonicMs() - this.#mediaStartMs) * speed);
      }
      this.#paced = this.#clock.after(TICK_MS, tick);
    };
    tick();
  }

  /** Media starts with the first client that plays. */
  #startMedia(): void {
    this.#mediaStartMs ??= this.#clock.monotonicMs();
  }

  #watchSessions(): void {
    const { sessionTimeoutSeconds = Number.POSITIVE_INFINITY, udp } = this.options;
    const reportsSeconds = udp?.requireReportsSeconds ?? Number.POSITIVE_INFINITY;
    const tick = (): void => {
      const nowMs = this.#clock.monotonicMs();
      for (const session of this.sessions.values()) {
        const reportMs = session.clientReportsAtMs.at(-1) ?? session.lastRequestMs;
        if (nowMs - session.lastRequestMs > sessionTimeoutSeconds * 1000 || nowMs - reportMs > reportsSeconds * 1000) {
          this.#endSession(session);
          session.connection.close();
        }
      }
      this.#watch = this.#clock.after(100, tick);
    };
    tick();
  }

  #endSession(session: CameraSession): void {
    session.end();
    if (this.sessions.delete(session.id)) this.pastSessions.push(session);
  }

  #closed(connection: CameraConnection): void {
    for (const session of connection.sessions) {
      if (this.options.sessionsOutliveConnections) session.playing = false;
      else this.#endSession(session);
    }
    this.#notify();
  }

  async #request(request: RtspRequest, connection: CameraConnection): Promise<void> {
    try {
      this.requests.push(request);
      const action = this.options.onRequest?.(request, connection) ?? this.#refusal(request);
      const replay = action === undefined ? this.#replayOf(request, connection) : undefined;
      if (replay) {
        const { reply: usual, after } = replay.answer(request);
        this.#reply(usual, request, connection);
        after?.();
      } else if (action === undefined) {
        const { reply: usual, after } = await answer(request, connection, this.#state);
        this.#reply(usual, request, connection);
        after?.();
      } else {
        this.#act(action, request, connection);
      }
      this.#notify();
    } catch (error) {
      this.#failure = error as Error;
      connection.destroy();
    }
  }

  /** What replays on this connection; undefined for one that is live, or a camera without memory. */
  #replayOf(request: RtspRequest, connection: CameraConnection): MemoryReplay | undefined {
    const { memory } = this;
    const known = this.replays.get(connection);
    if (known || !memory || !isReplayAddress(request.uri)) return known;
    const replay = new MemoryReplay({
      memory,
      connection,
      running: () => [...this.replays].filter(([at, one]) => one.playing && !at.closed).length,
      nowMs: () => performance.now(),
      later: (ms, callback) => void setTimeout(callback, ms),
    });
    this.replays.set(connection, replay);
    return replay;
  }

  #act(action: Action, request: RtspRequest, connection: CameraConnection): void {
    if (action === 'ignore') return;
    if (action === 'close') return connection.close();
    if (Buffer.isBuffer(action)) return connection.write(action);
    this.#reply(action, request, connection);
  }

  #refusal(request: RtspRequest): RtspReply | undefined {
    const { credentials } = this.options;
    if (!credentials || request.method === 'OPTIONS') return undefined;
    const verdict = verify(header(request, 'Authorization'), request.method, request.uri, credentials);
    if (!verdict.ok) {
      this.refusals.push(verdict.why);
      return reply(401, challengeHeaders(credentials));
    }
    this.logins.push(verdict.challenge);
    return undefined;
  }

  #reply(usual: RtspReply, request: RtspRequest, connection: CameraConnection): void {
    const withSequence: RtspReply = {
      ...usual,
      headers: [['CSeq', header(request, 'CSeq') ?? ''], ['Server', 'Scripted/1.0'], ...usual.headers],
    };
    const { onReply } = this.options;
    const changed = onReply ? onReply(withSequence, request, connection) : withSequence;
    connection.write(Buffer.isBuffer(changed) ? changed : formatReply(changed));
  }

  get #state(): CameraState {
    const { options, tracks, sessions, url } = this;
    return {
      options,
      tracks,
      sessions,
      url,
      nowMs: () => this.#clock.monotonicMs(),
      newSessionId: () => `${10_000_001 + 7 * this.#sessionCount++}`,
      played: (session) => {
        session.playing = true;
        this.#playCount++;
        this.#startMedia();
      },
      endSession: (session) => this.#endSession(session),
    };
  }
}
