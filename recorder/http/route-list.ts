// Knows the methods of every path, for the answer 405 to other methods (RFC 9110 §15.5.6), and which paths links may open.

import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyInstance {
    routeList: RouteList;
  }
}

export class RouteList {
  readonly #methods = new Map<string, Set<string>>();
  readonly #linkable = new Set<string>();

  /** Collects the routes that are added from now on. */
  constructor(app: FastifyInstance) {
    app.addHook('onRoute', ({ url, method, config }) => {
      if (config?.credentials === 'anywhere') this.#linkable.add(url);
      const known = this.#methods.get(url) ?? new Set();
      for (const name of [method].flat()) known.add(name);
      this.#methods.set(url, known);
    });
  }

  /** Such as `GET /api/cameras/:id`. */
  get names(): string[] {
    return Array.from(this.#methods, ([url, methods]) => Array.from(methods, (method) => `${method} ${url}`)).flat();
  }

  /** Whether every route that matches `path` accepts a link. */
  mayBeLinked(path: string): boolean {
    const routes = [...this.#methods.keys()].filter((url) => url !== '/*' && isAt(url, path));
    return routes.length > 0 && routes.every((url) => this.#linkable.has(url));
  }

  /** Empty when no route matches `path`. A route for preflights alone does not count. */
  methodsOf(path: string): string[] {
    const methods = new Set<string>();
    for (const [url, names] of this.#methods) {
      if (isAt(url, path)) for (const name of names) methods.add(name);
    }
    return methods.size === 1 && methods.has('OPTIONS') ? [] : [...methods].sort();
  }
}

/** Whether a path matches the URL of a route, such as `/api/cameras/:id`. */
function isAt(url: string, path: string): boolean {
  const wanted = url.split('/');
  // A path may have thousands of parts, and is compared with each route.
  const given = path.split('/', wanted.length + 1);
  const open = wanted.at(-1) === '*';
  if (open ? given.length < wanted.length : given.length !== wanted.length) return false;
  return wanted.every((part, i) => part === '*' || part === given[i] || (part.startsWith(':') && given[i] !== ''));
}
