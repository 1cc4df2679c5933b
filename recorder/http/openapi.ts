// Generates the OpenAPI document of a listener from its routes. Answers that all routes share are added here, so that no
// route has to repeat them.

import type { SwaggerOptions, SwaggerTransformObject } from '@fastify/swagger';
import type { FastifyContextConfig } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { referredTo, tidySchemas, type JsonSchema, type JsonSchemas } from './json-schema.ts';
import { problemResponse } from './problem.ts';
import { SESSION_COOKIE } from './sessions.ts';

/** Examples for the document: of the body of a request, and of answers by status. */
interface RouteExamples {
  readonly body?: unknown;
  readonly [status: number]: unknown;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    examples?: RouteExamples;
  }
}

/** The description of a listener. */
export interface About {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** Examples of parameters, by name or by path and name. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Part of the description of every listener. */
const COMMON = `Errors are problems as of RFC 9457, with a stable \`code\` for programs; docs/api.md lists the codes. Every answer
has an \`X-Request-Id\`: that of the request if it has one, else a new one; the log of the recorder has it too. HEAD is
answered wherever GET is.

Besides the answers that an operation lists, any request may be answered with 400 \`malformed-request\` (not HTTP), 405
\`method-not-allowed\`, 408 \`request-timeout\`, 417 \`expectation-failed\` and 431 \`headers-too-large\`.`;

interface Schema {
  readonly params?: z.ZodType;
  readonly querystring?: z.ZodType;
  readonly body?: z.ZodType;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly hide?: boolean;
}

/** A body that is a file. */
export const Bytes = z.any().meta({ type: 'string', format: 'binary' });

type Content = Record<string, { schema?: JsonSchema; example?: unknown }>;

interface Operation {
  readonly parameters?: { readonly name: string; example?: unknown }[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, OpenApiResponse>>;
}

interface OpenApiResponse {
  description?: string;
  readonly content?: Content;
}

type Paths = Readonly<Record<string, Record<string, Operation>>>;

export interface OpenApiDocument {
  readonly tags?: readonly unknown[];
  readonly paths?: Paths;
  readonly components?: { schemas?: JsonSchemas };
}

/** The ways in which a request states its caller. */
const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'The token.' },
  basic: { type: 'http', scheme: 'basic', description: 'Any user, with the token as password.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: SESSION_COOKIE,
    description:
      'The session of a browser, as POST /api/session begins it. Over TLS, the name has the prefix `__Host-`.',
  },
  query: {
    type: 'apiKey',
    in: 'query',
    name: 'access_token',
    description: 'The token, for media elements and WebSockets of browsers, which cannot send headers.',
  },
  link: {
    type: 'apiKey',
    in: 'query',
    name: 'access_link',
    description: 'A link to this very address, as POST /api/links makes it.',
  },
} as const;

export function openApiOptions({ title, version, description, tags, parameters }: About): SwaggerOptions {
  /** By method and path, as in the document. */
  const examples = new Map<string, RouteExamples>();
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version,
        description: `${description}\n\n${COMMON}`,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      } as { title: string; version: string },
      servers: [{ url: '/', description: 'The listener that serves this document.' }],
      tags: [...tags],
      components: {
        securitySchemes: SECURITY_SCHEMES,
      },
    },
    transform: (input) => {
      const { schema, url, route } = input as unknown as {
        readonly schema: Schema | undefined;
        readonly url: string;
        readonly route: { readonly method: string | string[]; readonly config?: FastifyContextConfig };
      };
      if (!schema || schema.hide) return jsonSchemaTransform(input);
      const named = withNamedRest(schema, url);
      const method = [route.method].flat()[0] as string;
      const { config = {} } = route;
      const complete = completed(named.schema, named.url, method, config);
      if (config.examples) examples.set(`${method} ${named.url.replaceAll(/:(\w+)/g, '{$1}')}`, config.examples);
      return jsonSchemaTransform({ ...input, url: named.url, schema: complete });
    },
    transformObject: (input) => {
      const document = jsonSchemaTransformObject(input) as OpenApiDocument;
      const { paths = {}, components } = document;
      for (const operations of Object.values(paths)) delete operations['head'];
      addExamples(paths, parameters, examples);
      if (components) {
        const schemas = referredTo(paths, components.schemas ?? {});
        for (const operations of Object.values(paths)) {
          for (const { responses = {} } of Object.values(operations)) describeAnswers(responses, schemas);
        }
        components.schemas = schemas;
      }
      tidySchemas(document);
      return document as ReturnType<SwaggerTransformObject>;
    },
  };
}

/**
 * The document of one listener with the paths of another, which is at `url`: clients are generated of both at once. Tags,
 * names of schemas and security schemes mean the same in both.
 */
export function joined(own: OpenApiDocument, other: OpenApiDocument, url: string): OpenApiDocument {
  const servers = [{ url, description: 'Another listener of the node.' }];
  const paths = Object.entries(other.paths ?? {}).map(([path, operations]) => [path, { servers, ...operations }]);
  return {
    ...own,
    tags: [...(own.tags ?? []), ...(other.tags ?? [])],
    paths: { ...own.paths, ...Object.fromEntries(paths) },
    components: { ...own.components, schemas: { ...other.components?.schemas, ...own.components?.schemas } },
  };
}

/** An answer says what it is by itself, or by what is answered. */
function describeAnswers(answers: Readonly<Record<string, OpenApiResponse>>, schemas: JsonSchemas): void {
  for (const answer of Object.values(answers)) {
    if (answer.description !== NOT_DESCRIBED) continue;
    const schema = answer.content?.['application/json']?.schema;
    const name = schema?.$ref?.split('/').at(-1) ?? '';
    answer.description = schemas[name]?.description ?? answer.description;
  }
}
/** The text of @fastify/swagger for an answer without a description. */
const NOT_DESCRIBED = 'Default Response';

/** The wildcard `*` has no name in OpenAPI. Here it is always the name of a file. */
function withNamedRest(schema: Schema, url: string): { readonly schema: Schema; readonly url: string } {
  const { params } = schema;
  if (!url.endsWith('*') || !(params instanceof z.ZodObject)) return { schema, url };
  const { '*': filename, ...others } = params.shape as Readonly<Record<string, z.ZodType>>;
  if (!filename) return { schema, url };
  return { schema: { ...schema, params: z.object({ ...others, filename }) }, url: `${url.slice(0, -1)}:filename` };
}

/** A route's schema with the parameters and answers that all such routes share. */
function completed(schema: Schema, url: string, method: string, config: FastifyContextConfig) {
  const { querystring } = schema;
  const token = querystring instanceof z.ZodObject && 'access_token' in querystring.shape;
  return {
    operationId: operationId(method, url),
    security: securityOf(config),
    ...schema,
    // access_token and access_link are security schemes, not parameters.
    ...(token ? { querystring: withoutToken(querystring) } : {}),
    response: { ...commonAnswers(schema, method, config), ...schema.response },
  };
}

function withoutToken(querystring: z.ZodObject): z.ZodObject | undefined {
  const rest = querystring.omit({
    access_token: true,
    ...('access_link' in querystring.shape && { access_link: true }),
  });
  return Object.keys(rest.shape).length === 0 ? undefined : rest;
}

function securityOf({ role, credentials }: FastifyContextConfig): Record<string, string[]>[] {
  if (role === undefined) return [];
  return [
    { bearer: [] },
    { basic: [] },
    { session: [] },
    ...(credentials === 'header-or-query' || credentials === 'anywhere' ? [{ query: [] }] : []),
    ...(credentials === 'anywhere' ? [{ link: [] }] : []),
  ];
}

function commonAnswers(schema: Schema, method: string, { role, cameras, follows }: FastifyContextConfig) {
  const answers: Record<number, ReturnType<typeof problemResponse> | z.ZodNull> = {};
  if (follows) answers[307] = z.null().describe('In a cluster: redirect to the node that records the camera.');
  const away = [
    ...(follows ? ['the node that records the camera'] : []),
    ...(role === undefined ? [] : ['what checks the token (the API server of Kubernetes)']),
  ];
  if (away.length > 0) answers[503] = problemResponse(`In a cluster: ${away.join(', or ')}, does not answer.`);
  const changes = method !== 'GET';
  if (schema.params || schema.querystring || schema.body) {
    answers[400] = problemResponse('A parameter is missing or wrong; the detail names it.');
  }
  if (schema.params) answers[414] = problemResponse('A part of the address is longer than 1024 characters.');
  if (schema.body) {
    answers[413] = problemResponse('The body is larger than 64 KiB.');
    answers[415] = problemResponse('The body is not JSON: send Content-Type: application/json.');
  }
  if (role !== undefined) answers[401] = problemResponse('No token, or a wrong one.');
  answers[429] = problemResponse(
    'Too many wrong tokens from this address, or too much work for this caller; Retry-After has the time to wait.',
  );
  if (changes || (role !== undefined && (role !== 'viewer' || cameras === undefined))) {
    answers[403] = problemResponse('The role of the token is too low, or the token does not cover this camera.');
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

function addExamples(paths: Paths, known: About['parameters'], examples: ReadonlyMap<string, RouteExamples>): void {
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, { parameters = [], requestBody, responses = {} }] of Object.entries(operations)) {
      for (const parameter of parameters) {
        const example = known[`${path} ${parameter.name}`] ?? known[parameter.name];
        if (example !== undefined) parameter.example = example;
      }
      const own = examples.get(`${method.toUpperCase()} ${path}`) ?? {};
      addExample(requestBody?.content, own.body);
      for (const [status, { content }] of Object.entries(responses)) addExample(content, own[Number(status)]);
    }
  }
}

function addExample(content: Content | undefined, example: unknown): void {
  const json = content?.['application/json'];
  if (json && example !== undefined) json.example = example;
}
