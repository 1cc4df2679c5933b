// The client's side of the dialogue (RFC 2326 appendix A.1): OPTIONS, DESCRIBE, SETUP for each stream, PLAY, keepalives,
// TEARDOWN. A pure state machine: what the camera says and what time it is go in, what to do comes out.

import { assert, assertNever } from '../../base/assert.ts';
import { resolveBase, resolveControl, toggleTrailingSlash } from './control.ts';
import { RtspError } from './error.ts';
import { formatTransport, parsePublic, parseRtpInfo, parseSession, parseTransport } from './headers.ts';
import type { Pair, TransportHeader } from './headers.ts';
import { matchRtpInfo } from './hints.ts';
import { Keepalive } from './keepalive.ts';
import { formatMessage, HeaderFields, sequenceOf } from './message.ts';
import type { RtspMessage, RtspRequest, RtspResponse } from './message.ts';
import { Requests } from './requests.ts';
import type { Outgoing, Pending } from './requests.ts';
import { parseSdp } from './sdp.ts';
import type { Media, Presentation } from './sdp.ts';
import { parseRtspUrl } from './url.ts';
import type { Credentials, RtspUrl } from './url.ts';

/** A stream that the camera agreed to send, and where it will come in. */
export interface EstablishedStream {
  /** Position in what was given to `setUp`. */
  readonly streamIndex: number;
  readonly media: Media;
  /** TCP: the channels of RTP and RTCP. */
  readonly channels: Pair | undefined;
  /** UDP: the camera's ports, when it names them. */
  readonly serverPorts: Pair | undefined;
  /** UDP: the address or name that packets come from, when it is not the camera's own. */
  readonly source: string | undefined;
  readonly ssrc: number | undefined;
}

/** An established stream that plays, with what RTP-Info says about its first packet. */
export interface StartedStream {
  readonly stream: EstablishedStream;
  readonly ssrc: number | undefined;
  readonly sequenceNumber: number | undefined;
  readonly rtpTime: number | undefined;
}

export interface SetupRequest {
  readonly mediaIndex: number;
  /** UDP: the local ports for RTP and RTCP. */
  readonly clientPorts?: Pair;
}

export type ClientAction =
  | { readonly kind: 'send'; readonly text: string }
  /** The caller chooses streams and calls `setUp`. */
  | { readonly kind: 'select'; readonly presentation: Presentation }
  | { readonly kind: 'established'; readonly stream: EstablishedStream }
  | { readonly kind: 'playing'; readonly streams: readonly StartedStream[] }
  /** The caller closes the connection, opens one to `url` and calls `connected`. */
  | { readonly kind: 'reconnect'; readonly url: RtspUrl }
  /** TEARDOWN was answered, or there is nothing to tear down. */
  | { readonly kind: 'closed' };

export interface ClientOptions {
  readonly url: RtspUrl;
  /** Instead of the URL's own. */
  readonly credentials?: Credentials | undefined;
  readonly transport: 'tcp' | 'udp';
  readonly userAgent?: string;
  /** The camera ends its connection on GET_PARAMETER: keep alive by OPTIONS only. */
  readonly keepaliveByOptions?: boolean;
}

type State =
  | { readonly kind: 'disconnected' }
  /** A request of the dialogue is on its way; which one, the reply tells. */
  | { readonly kind: 'asking' }
  | { readonly kind: 'choosing' }
  | { readonly kind: 'playing' }
  | { readonly kind: 'leaving' }
  | { readonly kind: 'closed' };

const ANSWER_TIMEOUT_MS = 10_000;
const MAX_REDIRECTS = 5;

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
const isRedirect = (status: number): boolean => status >= 301 && status <= 308 && status !== 304;

export class RtspClient {
  readonly #transport: 'tcp' | 'udp';
  readonly #requests: Requests;
  readonly #keepalive: Keepalive;
  #url: RtspUrl;
  #state: State = { kind: 'disconnected' };
  #base = '';
  #aggregateUrl = '';
  #presentation: Presentation = { control: undefined, media: [] };
  #setups: readonly SetupRequest[] = [];
  #nextSetup = 0;
  #established: { readonly stream: EstablishedStream; readonly url: string }[] = [];
  #redirects = 0;
  #freshConnections = 0;
  #slashToggled = false;

  constructor(options: ClientOptions) {
    this.#url = options.url;
    this.#transport = options.transport;
    this.#requests = new Requests(options.userAgent ?? 'kube-nvr', options.credentials ?? options.url.credentials);
    this.#keepalive = new Keepalive(options.keepaliveByOptions ?? false);
  }

  /** A session exists on the camera, and TEARDOWN would end it. */
  get hasSession(): boolean {
    return this.#established.length > 0 && this.#state.kind !== 'disconnected' && this.#state.kind !== 'closed';
  }

  get playing(): boolean {
    return this.#state.kind === 'playing';
  }

  /** The method of the last keepalive or the next. */
  get keepaliveMethod(): string {
    return this.#keepalive.method;
  }

  /** A connection to the URL is open. */
  connected(nowMs: number): ClientAction[] {
    this.#requests.reset();
    this.#keepalive.stop();
    this.#established = [];
    this.#slashToggled = false;
    this.#state = { kind: 'asking' };
    return [this.#ask('OPTIONS', this.#url.request, [], nowMs)];
  }

  /**
   * The camera closed the connection. A few close it after each 401: then the request is repeated on another one.
   * Empty when that does not explain it.
   */
  disconnected(): ClientAction[] {
    const dialogue = this.#requests.dialogue;
    const afterChallenge = this.#state.kind === 'asking' && (dialogue?.challengesAnswered ?? 0) > 0;
    return afterChallenge ? this.#reconnectOnce() : [];
  }

  /** Takes a message of the camera. Throws `RtspError` when the dialogue cannot go on. */
  message(message: RtspMessage, nowMs: number): ClientAction[] {
    if (message.kind === 'request') return [{ kind: 'send', text: answerRequest(message) }];
    if (this.#state.kind === 'disconnected' || this.#state.kind === 'closed') return [];
    const pending = this.#requests.take(message);
    if (!pending) return [];
    if (message.status === 401) return this.#unauthorized(pending, message, nowMs);
    switch (pending.role) {
      case 'dialogue':
        return this.#state.kind === 'asking' ? this.#dialogueAnswer(pending, message, nowMs) : [];
      case 'keepalive':
        if (!isSuccess(message.status)) this.#keepalive.refused();
        return [];
      case 'teardown':
        this.#state = { kind: 'closed' };
        return [{ kind: 'closed' }];
      default:
        return assertNever(pending.role);
    }
  }

  /** Asks for the streams that the caller chose, in this order; what is no video may be refused by the camera. */
  setUp(setups: readonly SetupRequest[], nowMs: number): ClientAction[] {
    assert(this.#state.kind === 'choosing', 'setUp without a presentation');
    assert(setups.length > 0, 'setUp of no stream');
    this.#setups = setups;
    this.#nextSetup = 0;
    this.#state = { kind: 'asking' };
    return [this.#askSetup(nowMs)];
  }

  /** To be called every half second or so. Throws `no-answer` when the camera lets a request wait. */
  tick(nowMs: number): ClientAction[] {
    const dialogue = this.#requests.dialogue;
    if (this.#state.kind === 'asking' && dialogue && nowMs - dialogue.sentMs >= ANSWER_TIMEOUT_MS) {
      throw new RtspError('no-answer', `the camera did not answer ${dialogue.method} within 10 s`);
    }
    if (this.#state.kind !== 'playing' || !this.#keepalive.takeDue(nowMs)) return [];
    const method = this.#keepalive.method;
    return [this.#send({ role: 'keepalive', method, url: this.#aggregateUrl, fields: [] }, nowMs)];
  }

  /** Ends the session; the connection may be closed after `closed`, or when the caller has waited long enough. */
  tearDown(nowMs: number): ClientAction[] {
    if (!this.hasSession) {
      this.#state = { kind: 'closed' };
      return [{ kind: 'closed' }];
    }
    if (this.#state.kind === 'leaving') return [];
    this.#state = { kind: 'leaving' };
    return [this.#send({ role: 'teardown', method: 'TEARDOWN', url: this.#aggregateUrl, fields: [] }, nowMs)];
  }

  #send(outgoing: Outgoing, nowMs: number, challengesAnswered = 0): ClientAction {
    return { kind: 'send', text: this.#requests.compose(outgoing, nowMs, challengesAnswered) };
  }

  #ask(method: string, url: string, fields: Outgoing['fields'], nowMs: number): ClientAction {
    return this.#send({ role: 'dialogue', method, url, fields }, nowMs);
  }

  #unauthorized(pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    if (pending.role === 'keepalive' && pending.challengesAnswered > 0) {
      // Some cameras know login only for what starts a stream. Nothing is lost while media flows.
      this.#keepalive.refused();
      return [];
    }
    const again = this.#requests.answerChallenge(pending, response);
    if (pending.role === 'dialogue' && response.headers.get('Connection')?.toLowerCase() === 'close') {
      const reconnect = this.#reconnectOnce();
      if (reconnect.length > 0) return reconnect;
    }
    return [this.#send(again, nowMs, again.challengesAnswered)];
  }

  #dialogueAnswer(pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    if (isRedirect(response.status)) {
      const location = response.headers.get('Location');
      if (location) return this.#redirect(location);
    }
    switch (pending.method) {
      case 'OPTIONS':
        // Whatever a camera says to OPTIONS, DESCRIBE decides.
        for (const line of response.headers.all('Public')) this.#keepalive.cameraOffers(parsePublic(line));
        return [this.#ask('DESCRIBE', this.#url.request, [['Accept', 'application/sdp']], nowMs)];
      case 'DESCRIBE':
        if (!isSuccess(response.status)) return this.#refused(pending, response);
        return this.#described(response);
      case 'SETUP':
        return this.#setUpAnswer(pending, response, nowMs);
      default:
        return this.#playAnswer(pending, response, nowMs);
    }
  }

  #described(response: RtspResponse): ClientAction[] {
    // No look at Content-Type: it is missing, or has parameters, on some cameras.
    this.#presentation = parseSdp(response.body);
    this.#base = resolveBase(this.#url.request, response.headers);
    this.#aggregateUrl = resolveControl(this.#base, this.#presentation.control);
    this.#state = { kind: 'choosing' };
    return [{ kind: 'select', presentation: this.#presentation }];
  }

  #askSetup(nowMs: number): ClientAction {
    const setup = this.#setups[this.#nextSetup];
    const media = setup && this.#presentation.media[setup.mediaIndex];
    assert(setup && media && !media.backchannel, 'setUp of a stream that is not there');
    let transport: TransportHeader;
    if (this.#transport === 'tcp') transport = { protocol: 'tcp', unicast: true, interleaved: this.#ownChannels() };
    else {
      assert(setup.clientPorts, 'setUp over UDP without ports');
      transport = { protocol: 'udp', unicast: true, clientPorts: setup.clientPorts };
    }
    const url = resolveControl(this.#base, media.control);
    return this.#ask('SETUP', url, [['Transport', formatTransport(transport)]], nowMs);
  }

  #ownChannels(): Pair {
    return [this.#nextSetup * 2, this.#nextSetup * 2 + 1];
  }

  #setUpAnswer(pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    const media = this.#presentation.media[this.#setups[this.#nextSetup]?.mediaIndex ?? -1];
    assert(media, 'SETUP answered that was not asked');
    if (!isSuccess(response.status)) {
      // A camera may refuse its audio; its video goes on. Where nothing is left, or it is the way that it refuses,
      // the dialogue ends.
      const canDoWithout = media.kind !== 'video' && ![453, 454, 461, 503].includes(response.status);
      if (!canDoWithout) return this.#refused(pending, response);
      return this.#afterSetUp(nowMs);
    }
    const stream = this.#agreed(media, response);
    this.#established.push({ stream, url: pending.url });
    return [{ kind: 'established', stream }, ...this.#afterSetUp(nowMs)];
  }

  #agreed(media: Media, response: RtspResponse): EstablishedStream {
    this.#rememberSession(response);
    const transportText = response.headers.get('Transport') ?? '';
    const transport = /^\s*RTP\//i.test(transportText) ? parseTransport(transportText) : undefined;
    if (transport && (transport.protocol !== this.#transport || !transport.unicast)) {
      const offered = transport.unicast ? transport.protocol.toUpperCase() : 'multicast';
      throw new RtspError(
        'transport-refused',
        `asked for ${this.#transport.toUpperCase()}, the camera set up ${offered}`,
      );
    }
    return {
      streamIndex: this.#nextSetup,
      media,
      channels: this.#transport === 'tcp' ? this.#channelsOf(transport) : undefined,
      serverPorts: transport?.serverPorts,
      source: transport?.source,
      ssrc: transport?.ssrc,
    };
  }

  /** The camera's choice counts, unless it gives one pair to two streams. */
  #channelsOf(transport: TransportHeader | undefined): Pair {
    const [rtp, rtcp] = transport?.interleaved ?? this.#ownChannels();
    const used = this.#established.flatMap(({ stream }) => stream.channels ?? []);
    if (used.includes(rtp) || used.includes(rtcp)) return this.#ownChannels();
    return [rtp, rtcp === rtp ? (rtp + 1) & 0xff : rtcp];
  }

  #rememberSession(response: RtspResponse): void {
    const text = response.headers.get('Session');
    if (!text?.replaceAll(';', '').trim()) return;
    const session = parseSession(text);
    // Some cameras change the id in a later SETUP; the first is the one they go by.
    this.#requests.sessionId ??= session.id;
    if (session.timeoutSeconds !== undefined) this.#keepalive.sessionTimeout(session.timeoutSeconds);
  }

  #afterSetUp(nowMs: number): ClientAction[] {
    this.#nextSetup++;
    if (this.#nextSetup < this.#setups.length) return [this.#askSetup(nowMs)];
    if (this.#established.length === 0) throw new RtspError('status', 'the camera refused to set up any stream');
    return [this.#askPlay(this.#aggregateUrl, nowMs)];
  }

  #askPlay(url: string, nowMs: number): ClientAction {
    // Some cameras send nothing after `npt=0-` and some refuse PLAY without a Range.
    return this.#ask('PLAY', url, [['Range', 'npt=0.000-']], nowMs);
  }

  #playAnswer(pending: Pending, response: RtspResponse, nowMs: number): ClientAction[] {
    if (!isSuccess(response.status)) {
      const mayBeTheSlash = [400, 404, 405, 451].includes(response.status);
      if (!mayBeTheSlash || this.#slashToggled) return this.#refused(pending, response);
      this.#slashToggled = true;
      return [this.#askPlay(toggleTrailingSlash(pending.url), nowMs)];
    }
    this.#aggregateUrl = pending.url;
    this.#rememberSession(response);
    this.#state = { kind: 'playing' };
    this.#keepalive.start(nowMs);
    const entries = parseRtpInfo(response.headers.get('RTP-Info') ?? '');
    const named = this.#established.map(({ stream, url }) => ({ url, control: stream.media.control }));
    const hints = matchRtpInfo(entries, named, this.#base);
    const streams = this.#established.map(({ stream }, index) => ({
      stream,
      ssrc: stream.ssrc ?? hints[index]?.ssrc,
      sequenceNumber: hints[index]?.sequenceNumber,
      rtpTime: hints[index]?.rtpTime,
    }));
    return [{ kind: 'playing', streams }];
  }

  #refused(pending: Pending, response: RtspResponse): ClientAction[] {
    const { status } = response;
    if (status === 454) {
      // The camera lost the session, or confuses it with another's: only a new connection helps.
      const again = this.#reconnectOnce();
      if (again.length > 0) return again;
    }
    const reason = response.reason.replace(/[^\x20-\x7e]/g, '').slice(0, 80);
    const answer = `the camera answered ${pending.method} with ${`${status} ${reason}`.trim()}`;
    switch (status) {
      case 403:
        throw new RtspError('refused-login', answer);
      case 404:
        throw new RtspError(pending.method === 'DESCRIBE' ? 'not-found' : 'status', answer);
      case 453:
      case 503:
        throw new RtspError('too-many-streams', answer);
      case 454:
        throw new RtspError('session-lost', answer);
      case 461:
        throw new RtspError('transport-refused', answer);
      default:
        throw new RtspError('status', answer);
    }
  }

  /** One more connection to the same URL; empty when that was tried. */
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
    // Who asked for TLS does not want the stream, or the password, to travel in the open.
    if (old.secure && !url.secure) {
      throw new RtspError('redirect-refused', 'the camera redirects from rtsps to rtsp');
    }
    if (url.credentials) this.#requests.changeServer(url.credentials);
    else if (url.host.toLowerCase() !== old.host.toLowerCase()) this.#requests.changeServer(undefined);
    this.#url = url;
    this.#state = { kind: 'disconnected' };
    return [{ kind: 'reconnect', url }];
  }
}

/** Some cameras send requests of their own: OPTIONS is answered, the rest is not implemented. */
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
