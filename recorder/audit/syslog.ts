// Sends lines of the audit to a syslog server: RFC 5424 messages over TLS with octet counting (RFC 5425).
//
// No library does this: those in the npm registry separate messages by line breaks (RFC 6587 §3.4.2), and none tells what the
// server has read.

import { readFile } from 'node:fs/promises';
import { connect } from 'node:tls';
import type { Clock } from '../../base/clock.ts';
import type { SentLine, Stream } from './sent-line.ts';

interface SyslogTarget {
  readonly address: { readonly host: string; readonly port: number };
  /** Files, read for each connection. */
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** Facility 13: log audit (RFC 5424 §6.2.1). */
const FACILITY = 13;
const WARNING = 4;
const INFORMATIONAL = 6;
/** 32473 is the number of examples (RFC 5612): this project has no enterprise number of its own. */
const SD_ID = 'kube-nvr@32473';
const NIL = '-';
/** A server that did not take all lines within this time has taken none. */
const ANSWER_MS = 30_000;
/**
 * Between the last line and the end of the connection. What has arrived at a server that ends and does not read it makes its system
 * reset the connection; without this pause, the server could have ended before the lines arrived, which looks like its answer.
 */
const ARRIVED_MS = 250;

/**
 * Resolves when the server has read all lines. Syslog has no acknowledgement; but a server that answers the end of a connection
 * with its own (RFC 5425 §4.4) has read everything before it. So each delivery has a connection of its own.
 */
export async function sendSyslog(
  target: SyslogTarget,
  stream: Stream,
  lines: readonly SentLine[],
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { address } = target;
  const [ca, cert, key] = await Promise.all([target.ca, target.certificate, target.key].map((path) => contentOf(path)));
  const frames = Buffer.concat(lines.map((line) => frameOf(line, stream)));
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let hasEnded = false;
  const socket = connect({ ...address, ca, cert, key });
  const end = async (): Promise<void> => {
    await clock.sleep(ARRIVED_MS, signal);
    hasEnded = !socket.readableEnded && !socket.destroyed;
    socket.end();
  };
  const stop = (): void => void socket.destroy(new Error('the recorder ends'));
  const late = clock.after(ANSWER_MS, () =>
    socket.destroy(new Error(`it did not take the lines within ${ANSWER_MS / 1000} s`)),
  );
  signal.addEventListener('abort', stop, { once: true });
  socket
    .on('error', reject)
    // A server has nothing to say.
    .resume()
    .once('secureConnect', () => socket.write(frames, () => void end()))
    .once('end', () => (hasEnded ? resolve() : reject(new Error('it ended the connection before it had all lines'))))
    .once('close', () => reject(new Error('the connection broke')));
  try {
    await promise;
  } finally {
    late.cancel();
    signal.removeEventListener('abort', stop);
    socket.destroy();
  }
}

const contentOf = async (path: string | undefined): Promise<Buffer | undefined> =>
  path === undefined ? undefined : readFile(path);

/** MSG-LEN SP SYSLOG-MSG (RFC 5425 §4.3). */
function frameOf(line: SentLine, stream: Stream): Buffer {
  const message = Buffer.from(messageOf(line, stream));
  return Buffer.concat([Buffer.from(`${message.length} `), message]);
}

/** RFC 5424 §6. The message is in ASCII, because one in UTF-8 would begin with a BOM, which is no JSON. */
export function messageOf(line: SentLine, { node, site, namespace, pool, version }: Stream): string {
  const { n, id, timeMs, isRefusal, facts, text } = line;
  const priority = FACILITY * 8 + (isRefusal ? WARNING : INFORMATIONAL);
  const time = timeMs === undefined ? NIL : new Date(timeMs).toISOString();
  const header = [`<${priority}>1`, time, nameOf(node, 255), 'kube-nvr-recorder', NIL, nameOf(facts['what'], 32)];
  const of = { n: String(n), id, node, site, namespace, pool, ...facts };
  const origin = elementOf('origin', { software: 'kube-nvr', swVersion: version });
  return `${header.join(' ')} ${elementOf(SD_ID, of)}${origin} ${inAscii(text)}`;
}

/** PRINTUSASCII without spaces, at most `max` characters. */
const nameOf = (text: string | undefined, max: number): string =>
  text?.replace(/[^\x21-\x7e]/g, '?').slice(0, max) || NIL;

/** SD-ELEMENT (RFC 5424 §6.3), without control characters: a server may write one message a line. */
function elementOf(name: string, values: Readonly<Record<string, string | undefined>>): string {
  const params = Object.entries(values).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [
          ` ${key}="${value
            .toWellFormed()
            .replace(/\p{Cc}/gu, ' ')
            .replace(/["\\\]]/g, String.raw`\$&`)}"`,
        ],
  );
  return `[${name}${params.join('')}]`;
}

/** JSON with the characters outside of ASCII escaped, as RFC 8259 §7 allows. */
const inAscii = (json: string): string =>
  json.replace(/[^\x20-\x7e]/g, (unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
