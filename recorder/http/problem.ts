// Errors as answers: problem details of RFC 9457, with a stable `code` for programs and a `detail` for people.

import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Log } from '../../base/log.ts';

export const Problem = z
  .object({
    title: z.string().describe('The meaning of the status.'),
    status: z.number().int(),
    detail: z.string().describe('What happened, and for 4xx what to change.'),
    code: z.string().describe('Stable, for programs.'),
  })
  .meta({ id: 'Problem', description: 'RFC 9457' });

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

  constructor(
    status: number,
    code: string,
    detail: string,
    options: ErrorOptions & { readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(detail, options);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.headers = options.headers ?? {};
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
    if (body.status >= 500) {
      log.error({ err: error, method: request.method, path: pathOf(request.url) }, 'request failed');
    }
    if (error instanceof ApiError) reply.headers(error.headers);
    return sendProblem(reply, body);
  });
  app.setNotFoundHandler(async (request, reply) => {
    const body = problem(404, 'not-found', `there is no ${request.method} ${pathOf(request.url)}`);
    return sendProblem(reply, body);
  });
}

const sendProblem = (reply: FastifyReply, body: ProblemBody): FastifyReply =>
  reply.code(body.status).type('application/problem+json').serializer(JSON.stringify).send(body);

/** fastify's `frameworkErrors`: what it refuses before it has chosen a route, as a path with a broken escape. */
export function answerFrameworkError(error: FastifyError, _request: FastifyRequest, reply: FastifyReply): void {
  sendProblem(reply, problemOf(error));
}

/** The path of a URL, for logs and answers: the query may hold an access token. */
export const pathOf = (url: string): string => url.split('?', 1)[0] as string;
