// Requests of one viewer that are as expensive as can be: those that once took the square of their length, and the most expensive ones
// that a viewer may make.

import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';

/** As long as the head of a request may be, with some space for the rest. */
const LENGTH = 15_000;
/** Ten browsers. */
const CONNECTIONS = 60;
/** What is kept of an answer. */
const MAX_PROBLEM = 4_096;
const DAY_SECONDS = 86_400;

interface Flood {
  /** `http://HOST:PORT` of the API. */
  readonly url: string;
  readonly token: string;
  readonly cameraId: string;
  /** How many requests of each kind. */
  readonly times: number;
}

/** Of each status, how many answers had it; refusals with their code, as in `429 too-much-work`. */
type Answers = Readonly<Record<string, number>>;

/** Sends them all as fast as they are answered; resolves when the last answer has arrived. */
export async function floodOfViewer({ url, token, cameraId, times }: Flood): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const answers: Record<string, number> = {};
  const ask = async ({ path, headers, body }: Asked): Promise<void> => {
    const sent = request(url + path, {
      agent,
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }), ...headers },
    });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    answer.setEncoding('latin1').on('data', (part: string) => (text = (text + part).slice(0, MAX_PROBLEM)));
    await once(answer, 'close');
    const { statusCode = 0 } = answer;
    const key = statusCode < 400 ? `${statusCode}` : `${statusCode} ${/"code":"([^"]+)"/.exec(text)?.[1]}`;
    answers[key] = (answers[key] ?? 0) + 1;
  };
  try {
    for (const kind of [...crafted(cameraId), ...legal(cameraId)]) {
      await Promise.all(Array.from({ length: times }, () => ask(kind)));
    }
  } finally {
    agent.destroy();
  }
  return answers;
}

interface Asked {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Each of them took a parser with a loop in a loop 80 ms. */
const crafted = (cameraId: string): readonly Asked[] => [
  ...['[', '[]', '][', '%5B', 'a'].map((text) => ({
    path: `/api/archive/${cameraId}/gaps?from=1&to=2&${text.repeat(LENGTH / text.length)}=1`,
  })),
  { path: '/node/another/api/cameras', headers: { connection: `a${' '.repeat(LENGTH)}b` } },
  {
    path: '/api/links',
    body: JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, 1]))),
  },
];

function legal(cameraId: string): readonly Asked[] {
  const now = Math.floor(Date.now() / 1000);
  const [day, month] = [1, 31].map((days) => `from=${now - days * DAY_SECONDS}&to=${now}`);
  const minute = `from=${now - 60}&to=${now}`;
  return [
    `/api/archive/${cameraId}/gaps?${day}&footage=1`,
    `/api/archive/${cameraId}/segments?${day}`,
    `/api/archive/timeline?${month}&preview=1${`&camera=${cameraId}`.repeat(64)}`,
    `/api/archive/${cameraId}/days?month=${new Date().toISOString().slice(0, 7)}&tz=Europe/Berlin`,
    '/api/cameras',
    `/api/cameras/${cameraId}/thumbnail`,
    `/api/archive/${cameraId}/still?at=${now - 5}`,
    `/playback/hls/${cameraId}/index.m3u8?${minute}`,
    `/playback/window/${cameraId}.mp4?${minute}`,
    '/openapi.json',
  ].map((path) => ({ path }));
}
