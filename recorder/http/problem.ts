// Errors as answers: problem details of RFC 9457, with a stable `code` for programs and a `detail` for people.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { CodedError, isExpected } from '../../base/error.ts';
import { issueWords } from '../../base/issue-words.ts';
import type { Log } from '../../base/log.ts';
import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

const ErrorCodes = z.enum(ERROR_CODES).meta({
  id: 'ErrorCode',
  description: 'Stable code for programs. Later versions may add more. docs/api.md explains each.',
});

const Problem = z
  .object({
    title: z.string().describe('Short text for the status.'),
    status: z.number().int(),
    detail: z.string().describe('What happened, and for 4xx what to change.'),
    code: ErrorCodes,
    errors: z
      .array(z.object({ field: z.string(), detail: z.string() }))
      .optional()
      .describe('For settings of a camera: each wrong one, by its path, such as record.retention.maxAge.'),
    request_id: z
      .string()
      .optional()
      .describe('The id of the request, as in the header X-Request-Id and in the log of the recorder.'),
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

type ProblemBody = z.output<typeof Problem>;

/** How a route declares that it may answer with a problem. */
export const problemResponse = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: Problem } },
});

/** An error that is sent as an answer. Routes throw it. */
export class ApiError extends CodedError<ErrorCode> {
  override readonly name = 'ApiError';
  readonly status: number;
  /** Sent with the problem, such as `retry-after`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The cause is logged elsewhere, once instead of for each request. */
  readonly isExpected: boolean;
  readonly errors: ProblemBody['errors'];

  constructor(
    status: number,
    code: ErrorCode,
    detail: string,
    options: ErrorOptions & {
      readonly headers?: Readonly<Record<string, string>>;
      readonly isExpected?: boolean;
      readonly errors?: ProblemBody['errors'];
    } = {},
  ) {
    super(code, detail, options);
    this.status = status;
    this.headers = options.headers ?? {};
    this.isExpected = options.isExpected ?? false;
    this.errors = options.errors;
  }
}

/**
 * For a camera that the node does not know, and for one outside the scope of the token: a caller must not be able to tell
 * them apart.
 */
export const unknownCamera = (): ApiError =>
  new ApiError(404, 'unknown-camera', 'this node does not know such a camera');

function problem(status: number, code: ErrorCode, detail: string): ProblemBody {
  return { title: STATUS_CODES[status] ?? 'Error', status, detail, code };
}

/** Codes for refusals by fastify itself, by status. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid-request',
  404: 'not-found',
  405: 'method-not-allowed',
  408: 'request-timeout',
  413: 'body-too-large',
  414: 'url-too-long',
  415: 'unsupported-media-type',
  431: 'headers-too-large',
};

type ValidationIssue = NonNullable<FastifyError['validation']>[number];

/** Names the wrong parameter as the request has it. */
export function issueDetail({ instancePath, keyword: code, message = '', params }: ValidationIssue): string {
  const path = instancePath.split('/').slice(1).filter(Boolean);
  const words = issueWords({ ...params, code, message, path } as z.core.$ZodIssue);
  return path.length > 0 ? `${path.join('.')}: ${words}` : words;
}

function validationDetail(error: FastifyError): string {
  const issue = error.validation?.[0];
  if (!issue) return error.message;
  const detail = issueDetail(issue);
  const isBodyAtAll = error.validationContext === 'body' && issue.instancePath === '' && detail !== issue.message;
  return isBodyAtAll ? 'expected a JSON object as the body' : detail;
}

function problemOf(error: FastifyError | ApiError): ProblemBody {
  if (error instanceof ApiError) {
    return { ...problem(error.status, error.code, error.message), ...(error.errors && { errors: error.errors }) };
  }
  if (hasZodFastifySchemaValidationErrors(error)) return problem(400, 'invalid-parameter', validationDetail(error));
  const status = error.statusCode ?? 500;
  if (status < 400 || status >= 500) {
    return problem(500, 'internal', 'the recorder failed to answer; its log has the reason');
  }
  return problem(status, CODES[status] ?? 'invalid-request', BODY_WORDS[error.code] ?? error.message);
}

/** What is wrong with a body, in place of the framework's words. */
const BODY_WORDS: Readonly<Record<string, string>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'Content-Type: expected application/json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'expected JSON as the body, and it is empty',
  FST_ERR_CTP_INVALID_JSON_BODY: 'the body is not valid JSON',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'Content-Length: is not the length of the body',
};

/** Turns every error of a route into a problem. Errors that are not the caller's fault are logged here, once. */
export function installProblems(app: FastifyInstance, log: Log): void {
  app.setErrorHandler(async (error: FastifyError | ApiError, request, reply) => {
    const body = problemOf(error);
    if (body.status >= 500 && !(error instanceof ApiError && error.isExpected)) {
      const { method, url, id } = request;
      const about = { method, path: pathOf(url), requestId: id };
      // A failure of another machine, such as a camera, is not an error of the recorder.
      if (body.status === 502 || body.status === 504) log.warn({ ...about, code: body.code }, body.detail);
      else if (isExpected(error, ApiError)) log.error({ ...about, err: error }, 'a request failed');
      else log.bug({ ...about, err: error }, 'a request failed');
    }
    if (error instanceof ApiError) reply.headers(error.headers);
    return sendProblem(request, reply, body);
  });
  app.addHook('preParsing', (request, reply, _body, done) => {
    const { 'content-encoding': encoding = 'identity' } = request.headers;
    if (encoding !== 'identity') {
      throw new ApiError(415, 'unsupported-media-type', `Content-Encoding ${encoding}: send the body as it is`);
    }
    // Before the body is checked: if the route does not exist, the type of the body does not matter.
    if (request.is404) answerNotFound(request, reply);
    else done();
  });
  app.setNotFoundHandler(answerNotFound);

  function answerNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const path = pathOf(request.url);
    const methods = app.routeList.methodsOf(path);
    if (methods.length === 0) {
      return sendProblem(request, reply, problem(404, 'not-found', `there is no ${request.method} ${path}`));
    }
    reply.header('allow', methods.join(', '));
    const detail = `${request.method} is not supported here: use ${methods.join(' or ')}`;
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

/**
 * fastify's `frameworkErrors`: what it refuses before it has chosen a route, such as a path with a broken escape. Its own
 * message contains the address with its query, which may contain a token.
 */
export function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  // No hook has run, so the headers are set here.
  reply.headers(commonHeaders(request));
  // Nothing else closes the connection of an upgrade.
  if ((request.raw as { readonly upgrade?: boolean }).upgrade)
    reply.raw.once('finish', () => request.raw.socket.destroy());
  sendProblem(request, reply, routingProblem(error, request));
}

function routingProblem(error: FastifyError, { url }: FastifyRequest): ProblemBody {
  switch (error.code) {
    case 'FST_ERR_BAD_URL':
      return problem(
        400,
        'invalid-request',
        `${pathOf(url)}: a % in an address begins two hexadecimal digits, and together they are UTF-8`,
      );
    case 'FST_ERR_MAX_PARAM_LENGTH':
      // Its own message repeats the whole path, and a token that was joined incorrectly is a part of that.
      return problem(
        414,
        'url-too-long',
        `an id or a name in an address may have at most ${MAX_PARAMETER_LENGTH} characters`,
      );
    default:
      return problemOf(error);
  }
}

/** Of an id or a name in the path of an address, in characters. */
export const MAX_PARAMETER_LENGTH = 1024;

/** Headers of every answer. */
export const commonHeaders = (request: FastifyRequest): Readonly<Record<string, string>> => ({
  'x-request-id': request.id,
  'x-content-type-options': 'nosniff',
  // Addresses of media contain the token: they must not be sent as a referrer.
  'referrer-policy': 'no-referrer',
  // Caches must not store footage and states. Routes of files and images override this.
  'cache-control': 'no-store',
  // Once over TLS, always over TLS (RFC 6797).
  ...(request.protocol === 'https' ? { 'strict-transport-security': 'max-age=31536000' } : {}),
});

/** How long a client may take to read the refusal. */
const LAST_WORDS_MS = 1_000;

/** fastify's `clientErrorHandler`: for data that are not a request, or do not arrive in time. There is no request object. */
export function answerClientError(error: Error & { readonly code?: string }, socket: Socket): void {
  // Before the TLS handshake is done, nothing can be sent: the write would never finish.
  const isDeaf = error.code === 'ECONNRESET' || /^ERR_(?:TLS|SSL)_/.test(error.code ?? '');
  if (isDeaf || !socket.writable || hasBegunToAnswer(socket)) socket.destroy();
  else refuseOn(socket, clientProblem(error.code));
}

/** For an upgrade to a WebSocket that is none, such as one of another version: the library has not answered. */
export function answerFailedUpgrade({ message }: Error, socket: Duplex): void {
  if (socket.writable) refuseOn(socket, problem(400, 'malformed-request', message), ['Sec-WebSocket-Version: 13']);
  else socket.destroy();
}

/** Answers without a response object, and ends the connection. */
function refuseOn(socket: Duplex, refusal: ProblemBody, headers: readonly string[] = []): void {
  const body = JSON.stringify(refusal);
  const head = [
    `HTTP/1.1 ${refusal.status} ${refusal.title}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  // Closed after the answer was sent: otherwise a caller that is still sending would only see a reset connection.
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
  // A caller that does not read would keep the connection open for ever.
  setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
}

function clientProblem(code: string | undefined): ProblemBody {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return problem(408, 'request-timeout', 'the request did not arrive in time');
  if (code === 'HPE_HEADER_OVERFLOW') {
    return problem(431, 'headers-too-large', 'address and headers together may have at most 16 KiB');
  }
  return problem(400, 'malformed-request', 'this is not an HTTP/1.1 request');
}

/** A second answer within the first would be read as part of it. Node checks the same property (`_http_server.js`). */
export function hasBegunToAnswer(socket: Socket): boolean {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: { headersSent?: boolean } };
  return response?.headersSent === true;
}

/** The path of a URL, for logs and answers. The query may contain a token or a link, even if it is joined incorrectly. */
export const pathOf = (url: string): string => url.split(QUERY, 1)[0] as string;
const QUERY = /\?|%3f|[&;]?access_(?:token|link)/i;
