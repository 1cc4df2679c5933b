// Where the playback listener is, as whoever asks reaches this node: the host of the request, with the port of playback.

import type { FastifyRequest } from 'fastify';
import type { OpenApiDocument } from '../http/openapi.ts';

export interface PlaybackListener {
  /** Undefined until it listens. */
  readonly port: () => number | undefined;
  /** Base at which others reach it, where that is not the host they ask. */
  readonly advertised?: string | undefined;
  /** What it says of itself. */
  readonly document?: () => OpenApiDocument;
}

/** `http://host:port`; undefined without playback. */
export function playbackAddress(request: FastifyRequest, listener: PlaybackListener | undefined): string | undefined {
  if (listener?.advertised !== undefined) return listener.advertised;
  const port = listener?.port();
  if (port === undefined || !isHost(request.hostname)) return undefined;
  return `${request.protocol}://${request.hostname}:${port}`;
}

/** The host is the caller's word, and becomes part of addresses and of a policy for the page. */
export const isHost = (text: string): boolean => /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?$/.test(text);
