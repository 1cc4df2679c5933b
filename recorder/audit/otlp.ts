// Sends lines of the audit to a collector of OpenTelemetry: OTLP over HTTP, as protobuf.

import { readFile } from 'node:fs/promises';
import { ProtobufLogsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { Agent, request } from 'undici';
import { HTTP_1, readBody } from '../../base/http-answer.ts';
import { printable } from '../../base/printable.ts';
import type { Refusal } from './delivery.ts';
import type { SentLine, Stream } from './sent-line.ts';

export interface OtlpTarget {
  readonly url: string;
  /** A file with a header a line, such as `Authorization: Bearer …`, read for each delivery. */
  readonly headersFile?: string | undefined;
  /** Files, read for each delivery. */
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

type Records = Parameters<typeof ProtobufLogsSerializer.serializeRequest>[0];

const INFO = { severityNumber: 9, severityText: 'INFO' };
const WARN = { severityNumber: 13, severityText: 'WARN' };
const ANSWER_MS = 30_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const SCOPE = { name: 'kube-nvr.audit' };

/** Resolves when the collector has accepted the lines: undefined, or what it refused of them. */
export async function sendOtlp(
  { url, headersFile, ...files }: OtlpTarget,
  stream: Stream,
  lines: readonly SentLine[],
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const paths = [files.ca, files.certificate, files.key, headersFile];
  const [ca, cert, key, headers] = await Promise.all(
    paths.map(async (path) => (path === undefined ? undefined : readFile(path, 'utf8'))),
  );
  const agent = new Agent({
    ...HTTP_1,
    connect: { timeout: ANSWER_MS, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  });
  try {
    const answer = await request(url, {
      method: 'POST',
      headers: { ...headersIn(headers ?? ''), 'content-type': 'application/x-protobuf', 'user-agent': 'kube-nvr' },
      body: ProtobufLogsSerializer.serializeRequest(recordsOf(lines, stream)) ?? null,
      dispatcher: agent,
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    const body = await readBody(answer.body, MAX_ANSWER_BYTES, () => new Error('its answer is too long'));
    if (answer.statusCode < 200 || answer.statusCode >= 300) throw new Error(`it answered ${answer.statusCode}`);
    return refusedIn(body);
  } finally {
    await agent.destroy();
  }
}

/** ExportLogsServiceResponse. A rejected record must not be sent again (OTLP 1.7, Partial Success). */
function refusedIn(body: Buffer): Refusal | undefined {
  let partial;
  try {
    partial = ProtobufLogsSerializer.deserializeResponse(body).partialSuccess;
  } catch (err) {
    throw new Error('its answer is not one of OTLP', { cause: err });
  }
  const rejected = partial?.rejectedLogRecords ?? 0;
  return rejected > 0 ? { lines: rejected, message: printable(partial?.errorMessage ?? '') } : undefined;
}

/** Throws without the values, which are secrets. */
function headersIn(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const headers = lines.map((line) => {
    const [name = '', ...rest] = line.split(':');
    const value = rest.join(':').trim();
    if (!/^[!#$%&'*+.^`|~\w-]+$/.test(name) || !/^[\x20-\x7e]+$/.test(value))
      throw new Error('headersFile has a line that is not NAME: VALUE');
    return [name.toLowerCase(), value];
  });
  return Object.fromEntries(headers) as Record<string, string>;
}

export function recordsOf(lines: readonly SentLine[], { node, site, namespace, pool, version }: Stream): Records {
  const resource = resourceFromAttributes(
    present({
      'service.name': 'kube-nvr-recorder',
      'service.version': version,
      'service.instance.id': node,
      'k8s.namespace.name': namespace,
      'kube_nvr.site': site,
      'kube_nvr.pool': pool,
    }),
  );
  return lines.map(({ n, id, timeMs = 0, isRefusal, facts, text }) => {
    // 0: unknown.
    const time: [number, number] = [Math.floor(timeMs / 1000), (timeMs % 1000) * 1_000_000];
    const of = Object.entries(facts).map(([name, value]) => [`kube_nvr.audit.${name}`, value] as const);
    return {
      resource,
      instrumentationScope: SCOPE,
      hrTime: time,
      hrTimeObserved: time,
      ...(isRefusal ? WARN : INFO),
      eventName: 'kube_nvr.audit',
      body: text,
      attributes: { 'log.record.uid': id, 'kube_nvr.audit.n': n, ...Object.fromEntries(of) },
      droppedAttributesCount: 0,
    };
  });
}

const present = (values: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
