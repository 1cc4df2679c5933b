// The address of the playback listener for a caller: the host of its request, with the port of playback.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { OpenApiDocument } from '../http/openapi.ts';

export interface PlaybackListener {
  /** Undefined until it listens. */
  readonly port: () => number | undefined;
  /** Base URL at which others reach it, where that is not the host of their request. */
  readonly advertised: string | undefined;
  readonly document: () => OpenApiDocument;
  /** Adds its routes, which the API serves under `/playback`. */
  readonly routes: (app: FastifyInstance) => Promise<void>;
}

/** `http://host:port`; undefined before it listens. */
export function playbackAddress(request: FastifyRequest, listener: PlaybackListener): string | undefined {
  if (listener.advertised !== undefined) return listener.advertised;
  const port = listener.port();
  if (port === undefined || !isHost(request.hostname)) return undefined;
  return `${request.protocol}://${request.hostname}:${port}`;
}

/** Checks the host of a request: the caller chooses it, and it becomes part of addresses and of the page's policy. */
export const isHost = (text: string): boolean => /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/.test(text);
