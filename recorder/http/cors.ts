// Pages of other origins may use the recorder with a token of their own (Fetch Standard §3.2): a copied player needs that.

import type { FastifyInstance, FastifyRequest } from 'fastify';

export interface CorsOptions {
  /** The routes that are asked for by preflights. */
  readonly path: string;
  readonly methods: string;
  /** Headers of requests and answers beside those that need no mention. */
  readonly requestHeaders: string;
  readonly exposedHeaders?: string;
  /**
   * `anyone`: browsers leave out cookies and stored logins, so a page gets no further than the token it was given.
   * `same-host`: for a recorder without tokens, through which any page a user opens could look at cameras that only
   * their network keeps from the world; only the pages of another port of the host may.
   */
  readonly pages: 'anyone' | 'same-host';
}

export function installCors(app: FastifyInstance, options: CorsOptions): void {
  const { path, methods, requestHeaders, exposedHeaders, pages } = options;
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers;
    if (origin === undefined) return;
    if (pages === 'same-host') {
      reply.header('vary', 'origin');
      if (!isSameHost(origin, request)) return;
    }
    reply.header('access-control-allow-origin', pages === 'anyone' ? '*' : origin);
    if (exposedHeaders !== undefined) reply.header('access-control-expose-headers', exposedHeaders);
  });
  app.options(path, { schema: { hide: true } }, async (_request, reply) =>
    reply
      .code(204)
      .header('access-control-allow-methods', methods)
      .header('access-control-allow-headers', requestHeaders)
      .header('access-control-max-age', '600')
      .send(),
  );
}

function isSameHost(origin: string, request: FastifyRequest): boolean {
  return URL.canParse(origin) && new URL(origin).hostname === request.hostname;
}
