// The routes in, their OpenAPI document out: what each route says of itself, and what the listener answers for all of
// them. One place, so that no route has to repeat it and none forgets.

import type { SwaggerOptions } from '@fastify/swagger';
import type { FastifyContextConfig } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { problemResponse } from '../http/problem.ts';
import { ANSWERS, PARAMETERS, REQUESTS } from './examples.ts';

const DESCRIPTION = `What a recorder node does and knows.

Times are ISO 8601 with an offset, or seconds since 1970 where a field says so. Errors are problems as of RFC 9457, with a
stable \`code\` for programs; docs/api.md lists the codes. Every answer has an \`X-Request-Id\`: that of the request if it
has one, else a new one; the log of the recorder has it too.

Beside what each operation lists, any request may be answered by 400 \`malformed-request\` (no HTTP), 405
\`method-not-allowed\`, 408 \`request-timeout\`, 417 \`expectation-failed\` and 431 \`headers-too-large\`.`;

const TAGS = [
  { name: 'health', description: 'For load balancers and orchestrators.' },
  { name: 'node', description: 'The machine and the process.' },
  { name: 'cameras', description: 'What the cameras do, and how they look.' },
  { name: 'live', description: 'Live streams.' },
  { name: 'archive', description: 'What is recorded, what is missing, and what is kept.' },
  { name: 'jobs', description: 'Movies made of the archive.' },
  { name: 'ptz', description: 'Cameras that turn and zoom.' },
  { name: 'cluster', description: 'The nodes that record together.' },
];

interface Schema {
  readonly params?: z.ZodType;
  readonly querystring?: z.ZodType;
  readonly body?: z.ZodType;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly hide?: boolean;
}

type Content = Record<string, { example?: unknown }>;

interface Operation {
  readonly parameters?: { readonly name: string; example?: unknown }[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, { readonly content?: Content }>>;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

interface Document {
  readonly paths?: Paths;
  readonly components?: { readonly schemas?: Record<string, unknown> };
}

/** Options of @fastify/swagger. */
export function openApiOptions(version: string): SwaggerOptions {
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Recorder',
        version,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      } as { title: string; version: string },
      servers: [{ url: '/', description: 'The node that serves this document.' }],
      tags: TAGS,
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'The token.' },
          basic: { type: 'http', scheme: 'basic', description: 'Any user, with the token as password.' },
          query: {
            type: 'apiKey',
            in: 'query',
            name: 'access_token',
            description: 'The token, for media elements and WebSockets of browsers, which cannot send headers.',
          },
        },
      },
    },
    transform: (input) => {
      const { schema, url, route } = input as unknown as {
        readonly schema: Schema | undefined;
        readonly url: string;
        readonly route: { readonly method: string | string[]; readonly config?: FastifyContextConfig };
      };
      if (!schema || schema.hide) return jsonSchemaTransform(input);
      const complete = completed(schema, url, [route.method].flat()[0] as string, route.config ?? {});
      return jsonSchemaTransform({ ...input, schema: complete });
    },
    transformObject: (input) => {
      const document = jsonSchemaTransformObject(input) as Document;
      addExamples(document.paths ?? {});
      // Nobody sends one.
      delete document.components?.schemas?.['ProblemInput'];
      return document;
    },
  };
}

/** A route's schema with what every route like it says and answers. */
function completed(schema: Schema, url: string, method: string, config: FastifyContextConfig) {
  const { querystring } = schema;
  const token = querystring instanceof z.ZodObject && 'access_token' in querystring.shape;
  return {
    operationId: operationId(method, url),
    security: securityOf(config),
    ...schema,
    // It is a way to send the token: a security scheme.
    ...(token ? { querystring: withoutToken(querystring) } : {}),
    response: { ...commonAnswers(schema, method, config), ...schema.response },
  };
}

function withoutToken(querystring: z.ZodObject): z.ZodObject | undefined {
  const rest = querystring.omit({ access_token: true });
  return Object.keys(rest.shape).length === 0 ? undefined : rest;
}

function securityOf({ role, credentials }: FastifyContextConfig): Record<string, string[]>[] {
  if (role === undefined) return [];
  return [{ bearer: [] }, { basic: [] }, ...(credentials === 'header-or-query' ? [{ query: [] }] : [])];
}

function commonAnswers(schema: Schema, method: string, { role, cameras, follows }: FastifyContextConfig) {
  const answers: Record<number, ReturnType<typeof problemResponse> | z.ZodNull> = {};
  if (follows) answers[307] = z.null().describe('In a cluster: to the node that records the camera.');
  const changes = method !== 'GET';
  if (schema.params || schema.querystring || schema.body) {
    answers[400] = problemResponse('A parameter is missing or wrong; the detail names it.');
  }
  if (schema.params) answers[414] = problemResponse('A part of the address is longer than 1024 characters.');
  if (schema.body) {
    answers[413] = problemResponse('The body is larger than 64 KiB.');
    answers[415] = problemResponse('The body is no JSON: send Content-Type: application/json.');
  }
  if (role !== undefined) {
    answers[401] = problemResponse('No token, or a wrong one.');
    answers[429] = problemResponse('Too many wrong tokens from this address; Retry-After says for how long to wait.');
  }
  if (changes || (role !== undefined && (role !== 'viewer' || cameras === undefined))) {
    answers[403] = problemResponse('The token has too little a role, or is for other cameras than this concerns.');
  }
  if (typeof cameras === 'object') answers[404] = problemResponse('The node does not know this camera.');
  return answers;
}

/** `getApiCamerasById` of `GET /api/cameras/:id`. */
function operationId(method: string, url: string): string {
  const words = url.split(/[/_.-]/).filter((part) => part !== '' && part !== 'api');
  const name = words.map((word) => (word.startsWith(':') ? `By-${word.slice(1)}` : word)).join('-');
  return `${method.toLowerCase()}-${name}`.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Puts the examples beside the schemas that they are of. */
function addExamples(paths: Paths): void {
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { parameters = [], requestBody, responses = {} }] of Object.entries(operations)) {
      const key = `${method.toUpperCase()} ${path}`;
      for (const parameter of parameters) {
        const example = PARAMETERS[`${path} ${parameter.name}`] ?? PARAMETERS[parameter.name];
        if (example !== undefined) parameter.example = example;
      }
      addExample(requestBody?.content, REQUESTS[key]);
      for (const [status, { content }] of Object.entries(responses)) addExample(content, ANSWERS[`${key} ${status}`]);
    }
  }
}

function addExample(content: Content | undefined, example: unknown): void {
  const json = content?.['application/json'];
  if (json && example !== undefined) json.example = example;
}
