// The client side of the RTSP dialogue (RFC 2326 appendix A.1): OPTIONS, DESCRIBE, SETUP for each stream, PLAY, keepalives,
// TEARDOWN. A state machine without I/O: it gets the camera's messages and the time, and returns actions.

import { assert, assertNever } from '../../base/assert.ts';
import { resolveBase, resolveControl, toggleTrailingSlash } from './control.ts';
import { RtspError, type RtspErrorCode } from './error.ts';
import { parsePublic, parseSession } from './headers.ts';
import { Keepalive, newKeepaliveMemory, type KeepaliveMemory } from './keepalive.ts';
import { Login } from './login.ts';
import { formatMessage, HeaderFields, sequenceOf } from './message.ts';
import type { RtspMessage, RtspRequest, RtspResponse } from './message.ts';
import { staysAtCamera } from './origin.ts';
import { Requests, type Outgoing, type Pending } from './requests.ts';
import { parseSdp, type Presentation } from './sdp.ts';
import { StreamSetups } from './stream-setups.ts';
import type { EstablishedStream, SetupRequest, StartedStream, TransportKind } from './stream-setups.ts';
import { parseRtspUrl, type RtspUrl } from './url.ts';

export type ClientAction =
  | { readonly kind: 'send'; readonly text: string }
  /** The caller chooses streams and calls `setUp`. */
  | { readonly kind: 'select'; readonly presentation: Presentation }
  | { readonly kind: 'established'; readonly stream: EstablishedStream }
  /** `soundRefused`: why an audio stream is missing, as a sentence. */
  | {
      readonly kind: 'playing';
      readonly streams: readonly StartedStream[];
      readonly soundRefused: string | undefined;
      /** The Range header of the response, as written. */
      readonly range: string | undefined;
    }
  /** The caller closes the connection, opens one to `url` and calls `connected`. */
  | { readonly kind: 'reconnect'; readonly url: RtspUrl }
  /** TEARDOWN was answered, or there is nothing to tear down. */
  | { readonly kind: 'closed' };

export interface ClientOptions {
  readonly url: RtspUrl;
  /** The login to use at a place. Default: that of the URL, without a memory. */
  readonly loginAt?: ((place: RtspUrl) => Login) | undefined;
  readonly transport: TransportKind;
  readonly userAgent?: string;
  /** What was learnt from earlier sessions with this camera. */
  readonly keepalive?: KeepaliveMemory;
  /** How long to wait for a response; default 30 s. */
  readonly answerMs?: number;
  /** Recorded footage instead of the live stream. */
  readonly replay?: ReplayFields | undefined;
}

/** Further header fields of the requests for recorded footage (ONVIF Streaming Specification §6.3 to §6.6). */
export interface ReplayFields {
  /** Of SETUP and PLAY. */
  readonly setup: Outgoing['fields'];
  /** Of PLAY, instead of the Range of a live stream. PLAY is not repeated without them. */
  readonly play: Outgoing['fields'];
}

/** What the response to DESCRIBE contained. */
interface Description {
  readonly presentation: Presentation;
  /** The base of relative control URLs. */
  readonly base: string;
  /** The URL that stands for all streams. */
  readonly aggregateUrl: string;
}

/** OPTIONS or DESCRIBE waits for its response. */
interface Describing {
  readonly kind: 'describing';
}

/** SETUP of a stream waits for its response. */
interface SettingUp {
  readonly kind: 'settingUp';
  readonly setups: StreamSetups;
  readonly aggregateUrl: string;
}

/** PLAY waits for its response. */
interface Starting {
  readonly kind: 'starting';
  readonly setups: StreamSetups;
  readonly aggregateUrl: string;
  /** PLAY was repeated with a trailing slash of the URL added or removed. */
  readonly slashToggled: boolean;
}

/** A dialogue request waits for its response. */
type AwaitingResponse = Describing | SettingUp | Starting;

type State =
  | { readonly kind: 'disconnected' }
  | AwaitingResponse
  /** The caller is choosing streams. */
  | { readonly kind: 'choosing'; readonly description: Description }
  | { readonly kind: 'playing'; readonly aggregateUrl: string }
  /** TEARDOWN waits for its response. */
  | { readonly kind: 'leaving' }
  | { readonly kind: 'closed' };

const ANSWER_TIMEOUT_MS = 30_000;
/** After this time without a response to OPTIONS, DESCRIBE is sent all the same and decides. */
const OPTIONS_TIMEOUT_MS = 3_000;
/** After this time without a response to the SETUP of audio, the video continues without it. */
const SOUND_TIMEOUT_MS = 5_000;
const MAX_REDIRECTS = 5;
/** Some cameras send nothing after `npt=0-`, and some refuse PLAY without a Range. */
const RANGE: Outgoing['fields'] = [['Range', 'npt=0.000-']];

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
const isRedirect = (status: number): boolean => status >= 301 && status <= 308 && status !== 304;

const isAsking = (state: State): state is AwaitingResponse =>
  state.kind === 'describing' || state.kind === 'settingUp' || state.kind === 'starting';

/** The state, if it is the SETUP of audio beside a video. */
const soundOf = (state: State): SettingUp | undefined =>
  state.kind === 'settingUp' && state.setups.isForSound ? state : undefined;

/** The URL for TEARDOWN; undefined if there is no session to end. */
function sessionUrl(state: State): string | undefined {
  if (state.kind === 'settingUp') return state.setups.hasAny ? state.aggregateUrl : undefined;
  return state.kind === 'starting' || state.kind === 'playing' ? state.aggregateUrl : undefined;
}

export class RtspClient {
  readonly #transport: TransportKind;
  readonly #requests: Requests;
  readonly #keepalive: Keepalive;
  readonly #loginAt: (place: RtspUrl) => Login;
  #login: Login;
  #url: RtspUrl;
  #state: State = { kind: 'disconnected' };
  #redirects = 0;
  #freshConnections = 0;
  readonly #answerMs: number;
  readonly #replay: ReplayFields | undefined;
  #soundAsked = false;
  #soundHung = false;
  #slowestAnswerMs = 0;

  constructor(options: ClientOptions) {
    this.#url = options.url;
    this.#transport = options.transport;
    const { secure, credentials } = options.url;
    this.#loginAt = options.loginAt ?? (() => new Login({ credentials, secure }));
    this.#login = this.#loginAt(options.url);
    this.#requests = new Requests(options.userAgent ?? 'kube-nvr', this.#login);
    this.#keepalive = new Keepalive(options.keepalive ?? newKeepaliveMemory());
    this.#answerMs = options.answerMs ?? ANSWER_TIMEOUT_MS;
    this.#replay = options.replay;
  }

  /** The camera has a session that TEARDOWN would end. */
  get hasSession(): boolean {
    return this.#state.kind === 'leaving' || sessionUrl(this.#state) !== undefined;
  }

  get playing(): boolean {
    return this.#state.kind === 'playing';
  }

  /** A SETUP of audio was sent on this connection, whatever its result. */
  get soundAsked(): boolean {
    return this.#soundAsked;
  }

  /** The longest time that the camera took to respond. */
  get slowestAnswerMs(): number {
    return this.#slowestAnswerMs;
  }

  /** The SETUP of audio timed out. */
  get soundHung(): boolean {
    return this.#soundHung;
  }

  /** Call when the camera ended the session, with the time it was last heard: the next session may need another keepalive. */
  ended(atMs: number): void {
    this.#keepalive.ended(atMs);
  }

  /** Call when a connection to the URL is open. */
  connected(nowMs: number): ClientAction[] {
    this.#requests.reset();
    this.#keepalive.stop();
    this.#soundAsked = false;
    this.#state = { kind: 'describing' };
    return [this.#ask('OPTIONS', this.#url.request, [], nowMs)];
  }

  /**
   * Call when the camera closed the connection. A few close it after each 401: then the request is repeated on a new connection.
   * Returns no action if this is not the reason.
   */
  disconnected(): ClientAction[] {
    const dialogue = this.#requests.dialogue;
    const afterChallenge = isAsking(this.#state) && (dialogue?.challengesAnswered ?? 0) > 0;
    return afterChallenge ? this.#reconnectOnce() : [];
  }

  /** Processes a message of the camera. Throws `RtspError` when the dialogue cannot continue. */
  message(message: RtspMessage, nowMs: number): ClientAction[] {
    if (message.kind === 'request') return [{ kind: 'send', text: answerRequest(message) }];
    if (this.#state.kind === 'disconnected' || this.#state.kind === 'closed') return [];
    const pending = this.#requests.take(message);
    if (!pending) return [];
    this.#slowestAnswerMs = Math.max(this.#slowestAnswerMs, nowMs - pending.sentMs);
    // Some cameras answer OPTIONS without checking the login, so its success proves nothing.
    if (isSuccess(message.status) && pending.method !== 'OPTIONS') this.#requests.answered();
    if (pending.role === 'dialogue') {
      // TEARDOWN may have ended the dialogue meanwhile.
      return isAsking(this.#state) ? this.#dialogueAnswer(this.#state, pending, message, nowMs) : [];
    }
    if (message.status === 401) return this.#unauthorized(pending, message, nowMs);
    if (pending.role === 'teardown') {
      this.#state = { kind: 'closed' };
      return [{ kind: 'closed' }];
    }
    if (!isSuccess(message.status)) this.#keepalive.refused();
    return [];
  }

  /** Sets up the streams that the caller chose, in this order; the camera may refuse audio. */
  setUp(setups: readonly SetupRequest[], nowMs: number): ClientAction[] {
    assert(this.#state.kind === 'choosing', 'setUp without a presentation');
    assert(setups.length > 0, 'setUp of no stream');
    const { description } = this.#state;
    const { aggregateUrl } = description;
    const wanted = new StreamSetups(this.#transport, description, setups);
    return this.#goOn({ kind: 'settingUp', setups: wanted, aggregateUrl }, nowMs);
  }

  /** A keepalive before it is due: its answer shows that a camera that sends nothing is there. No action unless media plays. */
  knock(nowMs: number): ClientAction[] {
    if (this.#state.kind !== 'playing') return [];
    const { aggregateUrl } = this.#state;
    return [this.#send({ role: 'keepalive', method: this.#keepalive.method, url: aggregateUrl, fields: [] }, nowMs)];
  }

  /** Call when this process stood still: the camera has counted on, and its timeout may come before a keepalive is due. */
  stoodStill(nowMs: number): ClientAction[] {
    this.#keepalive.stoodStill();
    return this.knock(nowMs);
  }

  /** Call about twice a second. Throws `no-answer` when the camera does not respond in time. */
  tick(nowMs: number): ClientAction[] {
    const state = this.#state;
    const dialogue = this.#requests.dialogue;
    if (isAsking(state) && dialogue) return this.#wait(dialogue, nowMs);
    if (state.kind !== 'playing' || !this.#keepalive.takeDue(nowMs)) return [];
    return this.knock(nowMs);
  }

  /** Ends the session; close the connection after `closed`, or when it has taken too long. */
  tearDown(nowMs: number): ClientAction[] {
    if (this.#state.kind === 'leaving') return [];
    const url = sessionUrl(this.#state);
    if (url === undefined) {
      this.#state = { kind: 'closed' };
      return [{ kind: 'closed' }];
    }
    this.#state = { kind: 'leaving' };
    return [this.#send({ role: 'teardown', method: 'TEARDOWN', url, fields: [] }, nowMs)];
  }

  #wait(dialogue: Pending, nowMs: number): ClientAction[] {
    const waitedMs = nowMs - dialogue.sentMs;
    if (dialogue.method === 'OPTIONS' && waitedMs >= OPTIONS_TIMEOUT_MS) {
      this.#requests.abandon(dialogue);
      return [this.#askDescribe(nowMs)];
    }
    const sound = soundOf(this.#state);
    if (sound && waitedMs >= SOUND_TIMEOUT_MS) {
      this.#requests.abandon(dialogue);
      this.#soundHung = true;
      return this.#withoutSound(sound, 'the camera did not answer SETUP of the sound within 5 s', nowMs);
    }
    if (waitedMs < this.#answerMs) return [];
    throw new RtspError(
      'no-answer',
      `the camera did not answer ${dialogue.method} within ${Math.round(this.#answerMs / 1000)} s`,
    );
  }

  #send(outgoing: Outgoing, nowMs: number, challengesAnswered = 0): ClientAction {
    return { kind: 'send', text: this.#requests.compose(outgoing, nowMs, challengesAnswered) };
  }

  #ask(method: string, url: string, fields: Outgoing['fields'], nowMs: number): ClientAction {
    return this.#send({ role: 'dialogue', method, url, fields }, nowMs);
  }

  #unauthorized(pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    let again: Pending;
    try {
      again = this.#requests.answerChallenge(pending, response);
    } catch (error) {
      // Some cameras check the login only in requests that start a stream. Nothing is lost while media flows.
      if (pending.role === 'keepalive') {
        this.#keepalive.refused();
        return [];
      }
      const sound = soundOf(this.#state);
      if (sound) return this.#withoutSound(sound, refusalOf(pending, response), nowMs);
      throw error;
    }
    if (pending.role === 'dialogue' && response.headers.get('Connection')?.toLowerCase() === 'close') {
      const reconnect = this.#reconnectOnce();
      if (reconnect.length > 0) return reconnect;
    }
    return [this.#send(again, nowMs, again.challengesAnswered)];
  }

  #dialogueAnswer(state: AwaitingResponse, pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    if (response.status === 401) return this.#unauthorized(pending, response, nowMs);
    if (isRedirect(response.status) && !soundOf(state)) {
      const location = response.headers.get('Location');
      if (location) return this.#redirect(location);
    }
    switch (state.kind) {
      case 'describing':
        return pending.method === 'OPTIONS' ? this.#offered(response, nowMs) : this.#described(pending, response);
      case 'settingUp':
        return this.#setUpAnswer(state, pending, response, nowMs);
      case 'starting':
        return this.#playAnswer(state, pending, response, nowMs);
      default:
        return assertNever(state);
    }
  }

  /** Whatever the response to OPTIONS is, DESCRIBE decides. */
  #offered(response: RtspResponse, nowMs: number): ClientAction[] {
    for (const line of response.headers.all('Public')) this.#keepalive.cameraOffers(parsePublic(line));
    return [this.#askDescribe(nowMs)];
  }

  #askDescribe(nowMs: number): ClientAction {
    return this.#ask('DESCRIBE', this.#url.request, [['Accept', 'application/sdp']], nowMs);
  }

  #described(pending: Pending, response: RtspResponse): ClientAction[] {
    if (!isSuccess(response.status)) return this.#refused(pending, response);
    // Content-Type is not checked: on some cameras it is missing or has parameters.
    const presentation = parseSdp(response.body);
    const base = resolveBase(this.#url.request, response.headers);
    const aggregateUrl = resolveControl(base, presentation.control);
    this.#state = { kind: 'choosing', description: { presentation, base, aggregateUrl } };
    return [{ kind: 'select', presentation }];
  }

  #setUpAnswer(state: SettingUp, pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    const sound = soundOf(state);
    if (!isSuccess(response.status)) {
      return sound ? this.#withoutSound(sound, refusalOf(pending, response), nowMs) : this.#refused(pending, response);
    }
    let stream: EstablishedStream;
    try {
      this.#rememberSession(response);
      stream = state.setups.agreed(pending.url, response.headers.get('Transport') ?? '');
    } catch (error) {
      if (!sound || !(error instanceof RtspError)) throw error;
      return this.#withoutSound(sound, `SETUP of the sound: ${error.message}`, nowMs);
    }
    return [{ kind: 'established', stream }, ...this.#goOn(state, nowMs)];
  }

  /** Continues with the video alone. */
  #withoutSound(state: SettingUp, why: string, nowMs: number): ClientAction[] {
    state.setups.refused(why);
    return this.#goOn(state, nowMs);
  }

  /** Sends the next SETUP, or PLAY. */
  #goOn(state: SettingUp, nowMs: number): ClientAction[] {
    const { setups, aggregateUrl } = state;
    const { request } = setups;
    if (!request) {
      this.#state = { kind: 'starting', setups, aggregateUrl, slashToggled: false };
      const fields = this.#replay ? [...this.#replay.setup, ...this.#replay.play] : RANGE;
      return [this.#askPlay(aggregateUrl, fields, nowMs)];
    }
    this.#state = state;
    this.#soundAsked ||= setups.isForSound;
    const fields: Outgoing['fields'] = [['Transport', request.transport], ...(this.#replay?.setup ?? [])];
    return [this.#ask('SETUP', request.url, fields, nowMs)];
  }

  #rememberSession(response: RtspResponse): void {
    const text = response.headers.get('Session');
    if (!text?.replaceAll(';', '').trim()) return;
    const session = parseSession(text);
    // Some cameras change the id in a later SETUP, but use the first one.
    this.#requests.sessionId ??= session.id;
    if (session.timeoutSeconds !== undefined) this.#keepalive.sessionTimeout(session.timeoutSeconds);
  }

  #askPlay(url: string, fields: Outgoing['fields'], nowMs: number): ClientAction {
    return this.#ask('PLAY', url, fields, nowMs);
  }

  #playAnswer(state: Starting, pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    if (!isSuccess(response.status)) {
      const { status } = response;
      if ([400, 404, 405, 451].includes(status) && !state.slashToggled) {
        this.#state = { ...state, slashToggled: true };
        return [this.#askPlay(toggleTrailingSlash(pending.url), pending.fields, nowMs)];
      }
      // Unless the session was lost, the Range may be what the camera objects to.
      if (status >= 400 && status < 500 && status !== 454 && pending.fields.length > 0 && !this.#replay) {
        return [this.#askPlay(state.aggregateUrl, [], nowMs)];
      }
      return this.#refused(pending, response);
    }
    this.#rememberSession(response);
    this.#state = { kind: 'playing', aggregateUrl: pending.url };
    this.#keepalive.start(nowMs);
    const { setups } = state;
    const streams = setups.started(response.headers.get('RTP-Info') ?? '');
    const range = response.headers.get('Range');
    return [{ kind: 'playing', streams, soundRefused: setups.soundRefused, range }];
  }

  #refused(pending: Pending, response: RtspResponse): ClientAction[] {
    const { status } = response;
    if (status === 454) {
      // The camera lost the session or confuses it with another one: only a new connection helps.
      const again = this.#reconnectOnce();
      if (again.length > 0) return again;
    }
    throw new RtspError(refusalCode(status, pending.method), refusalOf(pending, response), { status });
  }

  /** Reconnects to the same URL once; no action if that was tried already. */
  #reconnectOnce(): ClientAction[] {
    if (this.#freshConnections >= 1) return [];
    this.#freshConnections++;
    this.#state = { kind: 'disconnected' };
    return [{ kind: 'reconnect', url: this.#url }];
  }

  #redirect(location: string): ClientAction[] {
    if (++this.#redirects > MAX_REDIRECTS) {
      throw new RtspError('redirect-refused', `the camera redirects more than ${MAX_REDIRECTS} times`);
    }
    const old = this.#url;
    const url = parseRtspUrl(location.startsWith('/') ? resolveControl(old.request, location) : location);
    // A camera must not decide which other servers this machine connects to, nor who gets the password.
    if (url.tunnel) throw new RtspError('redirect-refused', 'the camera redirects into a tunnel');
    if (!staysAtCamera(old, old.tunnel ? { ...url, port: old.port, secure: old.secure } : url)) {
      throw new RtspError('redirect-refused', 'the camera redirects to another host or port, or from rtsps to rtsp');
    }
    if (url.secure && !old.secure) {
      this.#login.ledToTls();
      this.#login = this.#loginAt(url);
      this.#requests.changeServer(this.#login);
    }
    // The tunnel leads to the camera, whatever its address inside the tunnel is.
    this.#url = old.tunnel ? { ...old, request: url.request } : url;
    this.#state = { kind: 'disconnected' };
    return [{ kind: 'reconnect', url: this.#url }];
  }
}

function refusalCode(status: number, method: string): RtspErrorCode {
  switch (status) {
    case 403:
      return 'refused-login';
    case 404:
      return method === 'DESCRIBE' ? 'not-found' : 'status';
    case 453:
    case 503:
      return 'too-many-streams';
    case 454:
      return 'session-lost';
    case 461:
      return 'transport-refused';
    default:
      return 'status';
  }
}

/** Describes a refusal in a sentence, with the camera's reason phrase in ASCII. */
function refusalOf(pending: Pending, { status, reason }: RtspResponse): string {
  const words = reason.replace(/[^\x20-\x7e]/g, '').slice(0, 80);
  return `the camera answered ${pending.method} with ${`${status} ${words}`.trim()}`;
}

/** Some cameras send requests themselves: OPTIONS is answered, all others are not implemented. */
function answerRequest(request: RtspRequest): string {
  const headers = new HeaderFields();
  const sequence = sequenceOf(request.headers);
  if (sequence !== undefined) headers.add('CSeq', String(sequence));
  const known = request.method === 'OPTIONS';
  if (known) headers.add('Public', 'OPTIONS');
  return formatMessage({
    kind: 'response',
    status: known ? 200 : 501,
    reason: known ? 'OK' : 'Not Implemented',
    headers,
    body: '',
  });
}
