// Errors as answers: problem details of RFC 9457, with a stable `code` for programs and a `detail` for people.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Log } from '../../base/log.ts';

export const Problem = z
  .object({
    title: z.string().describe('The meaning of the status.'),
    status: z.number().int(),
    detail: z.string().describe('What happened, and for 4xx what to change.'),
    code: z.string().describe('Stable, for programs.'),
    request_id: z.string().optional().describe('As in the header X-Request-Id, and in the log of the recorder.'),
  })
  .meta({
    id: 'Problem',
    description: 'RFC 9457',
    examples: [
      {
        title: 'Not Found',
        status: 404,
        detail: 'this node does not know such a camera',
        code: 'unknown-camera',
        request_id: '0b0b7c1e-6f0e-4f0c-9c1c-5f4d6f2b9a11',
      },
    ],
  });

export type ProblemBody = z.output<typeof Problem>;

/** How a route declares that it may answer with a problem. */
export const problemResponse = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: Problem } },
});

/** An answer that is an error, thrown by a route. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Beside the problem itself, as `retry-after`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The log says elsewhere what is wrong, once and not for each request. */
  readonly isExpected: boolean;

  constructor(
    status: number,
    code: string,
    detail: string,
    options: ErrorOptions & { readonly headers?: Readonly<Record<string, string>>; readonly isExpected?: boolean } = {},
  ) {
    super(detail, options);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.headers = options.headers ?? {};
    this.isExpected = options.isExpected ?? false;
  }
}

/**
 * For a camera that the node does not know, and for one that the caller's token is not for: nobody shall be able to tell
 * one from the other.
 */
export const unknownCamera = (): ApiError =>
  new ApiError(404, 'unknown-camera', 'this node does not know such a camera');

function problem(status: number, code: string, detail: string): ProblemBody {
  return { title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}

/** Codes of what fastify itself refuses, by status. */
const CODES: Readonly<Record<number, string>> = {
  400: 'invalid-request',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'request-timeout',
  413: 'body-too-large',
  414: 'url-too-long',
  415: 'unsupported-media-type',
  431: 'headers-too-large',
};

/** Names the parameter that is wrong, as it stands in the request. */
function validationDetail(error: FastifyError): string {
  const issue = error.validation?.[0];
  const parameter = issue?.instancePath.replace(/^\//, '').replaceAll('/', '.') ?? '';
  const message = issue?.message ?? error.message;
  return parameter === '' ? message : `${parameter}: ${message}`;
}

function problemOf(error: FastifyError | ApiError): ProblemBody {
  if (error instanceof ApiError) return problem(error.status, error.code, error.message);
  if (hasZodFastifySchemaValidationErrors(error)) return problem(400, 'invalid-parameter', validationDetail(error));
  const status = error.statusCode ?? 500;
  if (status < 400 || status >= 500) {
    return problem(500, 'internal', 'the recorder failed to answer; its log says why');
  }
  return problem(status, CODES[status] ?? 'invalid-request', error.message);
}

/** Every error of every route leaves as a problem; what is not the caller's fault is logged here, once. */
export function installProblems(app: FastifyInstance, log: Log): void {
  app.setErrorHandler(async (error: FastifyError | ApiError, request, reply) => {
    const body = problemOf(error);
    if (body.status >= 500 && !(error instanceof ApiError && error.isExpected)) {
      const { method, url, id } = request;
      log.error({ err: error, method, path: pathOf(url), requestId: id }, 'request failed');
    }
    if (error instanceof ApiError) reply.headers(error.headers);
    return sendProblem(request, reply, body);
  });
  // Before there is a look at the body: what is not there does not care for its type.
  app.addHook('preParsing', async (request, reply) => (request.is404 ? answerNotFound(request, reply) : undefined));
  app.setNotFoundHandler(answerNotFound);

  function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const path = pathOf(request.url);
    const methods = app.routeList.methodsOf(path);
    if (methods.length === 0) {
      return sendProblem(request, reply, problem(404, 'not-found', `there is no ${request.method} ${path}`));
    }
    reply.header('allow', methods.join(', '));
    const detail = `${request.method} means nothing here: use ${methods.join(' or ')}`;
    return sendProblem(request, reply, problem(405, 'method-not-allowed', detail));
  }
  // Without this, Node would answer with an empty body.
  app.server.on('checkExpectation', (_request, response) => {
    const body = JSON.stringify(problem(417, 'expectation-failed', 'Expect: leave this header out'));
    response.writeHead(417, { 'content-type': 'application/problem+json', connection: 'close' }).end(body);
  });
}

const sendProblem = (request: FastifyRequest, reply: FastifyReply, body: ProblemBody): FastifyReply =>
  reply
    .code(body.status)
    .type('application/problem+json')
    .serializer(JSON.stringify)
    .send({ ...body, request_id: request.id });

/** fastify's `frameworkErrors`: what it refuses before it has chosen a route, as a path with a broken escape. */
export function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  // No hook has seen it.
  reply.headers(commonHeaders(request));
  sendProblem(request, reply, problemOf(error));
}

/** Of every answer. */
export const commonHeaders = (request: FastifyRequest): Readonly<Record<string, string>> => ({
  'x-request-id': request.id,
  'x-content-type-options': 'nosniff',
  // Addresses of media carry the token: they stay here.
  'referrer-policy': 'no-referrer',
});

/** fastify's `clientErrorHandler`: bytes that do not become a request, or not in time. There is no request to answer to. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  if (error.code !== 'ECONNRESET' && socket.writable && !hasBegunToAnswer(socket)) {
    const refusal = clientProblem(error.code);
    const body = JSON.stringify(refusal);
    const head = [
      `HTTP/1.1 ${refusal.status} ${refusal.title}`,
      'Connection: close',
      'Content-Type: application/problem+json',
      `Content-Length: ${Buffer.byteLength(body)}`,
    ];
    // Sent first, and then closed: a caller that still sends would else read nothing but the end.
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
    return;
  }
  socket.destroy();
}

function clientProblem(code: string | undefined): ProblemBody {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return problem(408, 'request-timeout', 'the request did not come in time');
  if (code === 'HPE_HEADER_OVERFLOW') {
    return problem(431, 'headers-too-large', 'address and headers together may have 16 KiB');
  }
  return problem(400, 'malformed-request', 'this is no request of HTTP/1.1');
}

/** A second answer in the middle of the first would be taken for a part of it; Node asks the same (`_http_server.js`). */
function hasBegunToAnswer(socket: Socket): boolean {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: { headersSent?: boolean } };
  return response?.headersSent === true;
}

/** The path of a URL, for logs and answers: the query may hold an access token. */
export const pathOf = (url: string): string => url.split('?', 1)[0] as string;
