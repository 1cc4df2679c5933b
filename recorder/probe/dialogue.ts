// Evaluates the messages of a connection: how the camera authenticates, what it supports, how long it took to respond.

import type { DialogueMessage } from '../camera/observer.ts';

export interface DialogueFigures {
  /** The camera's name for itself, from the `Server` header. */
  readonly server: string | undefined;
  /** Authentication schemes that the camera offered, such as `Digest MD5`, in order; empty without a login. */
  readonly challenges: readonly string[];
  /** A challenge without `qop`, as in RFC 2069. */
  readonly challengeWithoutQop: boolean;
  /** Methods that the camera claims to support. */
  readonly methods: readonly string[];
  /** The last response to each method: its status, and the milliseconds since the request. */
  readonly answers: ReadonlyMap<string, { readonly status: number; readonly ms: number }>;
  /** Requests without a response. */
  readonly unanswered: readonly string[];
  /** As written by the camera; undefined if not stated. */
  readonly sessionTimeout: string | undefined;
  /** The number of session ids: more than one if the camera changed it. */
  readonly sessions: number;
  readonly transports: readonly string[];
  readonly redirects: number;
  /** Requests that the camera sent. */
  readonly requests: number;
  /** Responses without a `CSeq`. */
  readonly withoutCSeq: number;
  readonly rtpInfo: boolean;
  readonly sdp: string;
}

interface Head {
  readonly start: string;
  readonly body: string;
  readonly all: (name: string) => string[];
}

function headOf(text: string): Head {
  const [head = '', ...body] = text.split('\r\n\r\n');
  const [start = '', ...lines] = head.split('\r\n');
  return {
    start,
    body: body.join('\r\n\r\n'),
    all: (name) =>
      lines
        .filter((line) => line.slice(0, line.indexOf(':')).trim().toLowerCase() === name)
        .map((line) => line.slice(line.indexOf(':') + 1).trim()),
  };
}

export function readDialogue(messages: readonly DialogueMessage[]): DialogueFigures {
  const reading = new Reading();
  for (const message of messages) reading.take(message);
  return reading.figures();
}

/** What the messages so far have shown. */
class Reading {
  readonly #answers = new Map<string, { status: number; ms: number }>();
  /** Requests of the recorder without an answer, by sequence number. */
  readonly #open = new Map<string, { method: string; atMs: number }>();
  readonly #challenges: string[] = [];
  readonly #sessions = new Set<string>();
  readonly #transports: string[] = [];
  #server: string | undefined;
  #methods: string[] = [];
  #sessionTimeout: string | undefined;
  #redirects = 0;
  #requests = 0;
  #withoutCSeq = 0;
  #challengeWithoutQop = false;
  #rtpInfo = false;
  #sdp = '';

  take({ from, text, atMs }: DialogueMessage): void {
    const head = headOf(text);
    const { start } = head;
    const [sequence] = head.all('cseq');
    if (from === 'recorder') {
      if (!start.startsWith('RTSP/'))
        this.#open.set(sequence ?? '', { method: start.split(' ', 1)[0] as string, atMs });
      return;
    }
    const status = Number(/^RTSP\/\d\.\d (\d{3})/.exec(start)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) this.#requests++;
    else this.#takeAnswer(head, status, this.#methodAnswered(sequence, status, atMs));
  }

  figures(): DialogueFigures {
    return {
      server: this.#server,
      challenges: this.#challenges,
      challengeWithoutQop: this.#challengeWithoutQop,
      methods: this.#methods,
      answers: this.#answers,
      unanswered: [...this.#open.values()].map((request) => request.method),
      sessionTimeout: this.#sessionTimeout,
      sessions: this.#sessions.size,
      transports: this.#transports,
      redirects: this.#redirects,
      requests: this.#requests,
      withoutCSeq: this.#withoutCSeq,
      rtpInfo: this.#rtpInfo,
      sdp: this.#sdp,
    };
  }

  /** The method of the request that is answered; undefined if there is none. */
  #methodAnswered(sequence: string | undefined, status: number, atMs: number): string | undefined {
    if (sequence === undefined) this.#withoutCSeq++;
    // Without a number it answers the latest request.
    const key = sequence !== undefined && this.#open.has(sequence) ? sequence : ([...this.#open.keys()].at(-1) ?? '');
    const request = this.#open.get(key);
    this.#open.delete(key);
    if (request) this.#answers.set(request.method, { status, ms: atMs - request.atMs });
    return request?.method;
  }

  #takeAnswer({ body, all }: Head, status: number, method: string | undefined): void {
    this.#server ??= all('server')[0];
    if (status >= 300 && status < 400) this.#redirects++;
    for (const challenge of all('www-authenticate')) this.#takeChallenge(challenge);
    const offered = all('public')[0];
    if (offered !== undefined) this.#methods = offered.split(',').map((name) => name.trim().toUpperCase());
    const session = all('session')[0];
    if (session !== undefined) {
      this.#sessions.add(session.split(';', 1)[0] as string);
      this.#sessionTimeout ??= /timeout\s*=\s*([^;]*)/i.exec(session)?.[1]?.trim();
    }
    if (method === 'SETUP' && status === 200) this.#transports.push(all('transport')[0] ?? '');
    if (method === 'DESCRIBE' && status === 200) this.#sdp = body;
    if (all('rtp-info').length > 0) this.#rtpInfo = true;
  }

  #takeChallenge(challenge: string): void {
    const scheme = /^\s*(\w+)/.exec(challenge)?.[1] ?? '';
    const algorithm = /algorithm="?([\w-]+)/i.exec(challenge)?.[1];
    const isDigest = /^digest$/i.test(scheme);
    const name = isDigest ? `Digest ${algorithm ?? 'MD5'}` : scheme;
    if (!this.#challenges.includes(name)) this.#challenges.push(name);
    if (isDigest && !/qop=/i.test(challenge)) this.#challengeWithoutQop = true;
  }
}
