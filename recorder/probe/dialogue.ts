// Evaluates the messages of a connection: how the camera authenticates, what it supports, how long it took to respond.

import type { Said } from '../camera/observer.ts';

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

export function readDialogue(messages: readonly Said[]): DialogueFigures {
  const answers = new Map<string, { status: number; ms: number }>();
  const open = new Map<string, { method: string; atMs: number }>();
  const challenges: string[] = [];
  const sessions = new Set<string>();
  const transports: string[] = [];
  let server: string | undefined;
  let methods: string[] = [];
  let sessionTimeout: string | undefined;
  let redirects = 0;
  let requests = 0;
  let withoutCSeq = 0;
  let challengeWithoutQop = false;
  let rtpInfo = false;
  let sdp = '';
  for (const { from, text, atMs } of messages) {
    const { start, body, all } = headOf(text);
    const [sequence] = all('cseq');
    if (from === 'recorder') {
      if (!start.startsWith('RTSP/')) open.set(sequence ?? '', { method: start.split(' ', 1)[0] as string, atMs });
      continue;
    }
    const status = Number(/^RTSP\/\d\.\d (\d{3})/.exec(start)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) {
      requests++;
      continue;
    }
    if (sequence === undefined) withoutCSeq++;
    // Without a number it answers the latest request.
    const key = sequence !== undefined && open.has(sequence) ? sequence : ([...open.keys()].at(-1) ?? '');
    const request = open.get(key);
    open.delete(key);
    if (request) answers.set(request.method, { status, ms: atMs - request.atMs });
    server ??= all('server')[0];
    if (status >= 300 && status < 400) redirects++;
    for (const challenge of all('www-authenticate')) {
      const scheme = /^\s*(\w+)/.exec(challenge)?.[1] ?? '';
      const algorithm = /algorithm="?([\w-]+)/i.exec(challenge)?.[1];
      const name = /^digest$/i.test(scheme) ? `Digest ${algorithm ?? 'MD5'}` : scheme;
      if (!challenges.includes(name)) challenges.push(name);
      if (/^digest$/i.test(scheme) && !/qop=/i.test(challenge)) challengeWithoutQop = true;
    }
    const offered = all('public')[0];
    if (offered !== undefined) methods = offered.split(',').map((method) => method.trim().toUpperCase());
    const session = all('session')[0];
    if (session !== undefined) {
      sessions.add(session.split(';', 1)[0] as string);
      sessionTimeout ??= /timeout\s*=\s*([^;]*)/i.exec(session)?.[1]?.trim();
    }
    if (request?.method === 'SETUP' && status === 200) transports.push(all('transport')[0] ?? '');
    if (request?.method === 'DESCRIBE' && status === 200) sdp = body;
    if (all('rtp-info').length > 0) rtpInfo = true;
  }
  return {
    server,
    challenges,
    challengeWithoutQop,
    methods,
    answers,
    unanswered: [...open.values()].map((request) => request.method),
    sessionTimeout,
    sessions: sessions.size,
    transports,
    redirects,
    requests,
    withoutCSeq,
    rtpInfo,
    sdp,
  };
}
