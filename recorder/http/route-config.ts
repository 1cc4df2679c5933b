// The settings of a request's route. Fastify makes an object of all options of the route whenever it is asked for them, and the hooks
// of a request ask ten times.

import type { FastifyRequest } from 'fastify';

type RouteConfig = FastifyRequest['routeOptions']['config'];

declare module 'fastify' {
  interface FastifyRequest {
    /** See `routeConfigOf`. */
    routeConfig?: FastifyRequest['routeOptions']['config'] | undefined;
  }
}

export const routeConfigOf = (request: FastifyRequest): RouteConfig =>
  (request.routeConfig ??= request.routeOptions.config);
