// Pages of other origins may use the API with a token of their own (Fetch Standard §3.2): a copied player needs that.

import type { FastifyInstance } from 'fastify';

/**
 * Answers preflights and marks answers as readable from anywhere. Browsers then leave out cookies and stored logins, so
 * a page gets no further than the token it was given. Not for a recorder without tokens: any page a user opens could
 * look through cameras that only their network keeps from the world.
 */
export function installCors(app: FastifyInstance): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.headers.origin !== undefined) reply.header('access-control-allow-origin', '*');
  });
  app.options('/api/*', { schema: { hide: true } }, async (_request, reply) =>
    reply
      .code(204)
      .header('access-control-allow-methods', 'GET, POST, DELETE')
      .header('access-control-allow-headers', 'authorization, content-type')
      .header('access-control-max-age', '600')
      .send(),
  );
}
