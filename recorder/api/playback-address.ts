// Where the playback listener is, as whoever asks reaches this node: the host of the request, with the port of playback.

import type { FastifyRequest } from 'fastify';

export interface PlaybackListener {
  /** Undefined until it listens. */
  readonly port: () => number | undefined;
  /** Base at which others reach it, where that is not the host they ask. */
  readonly advertised?: string | undefined;
}

/** `http://host:port`; undefined without playback. */
export function playbackAddress(request: FastifyRequest, listener: PlaybackListener | undefined): string | undefined {
  if (listener?.advertised !== undefined) return listener.advertised;
  const port = listener?.port();
  // The host is the caller's word, and becomes part of addresses and of a policy for the page.
  if (port === undefined || !/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)$/.test(request.hostname)) return undefined;
  return `${request.protocol}://${request.hostname}:${port}`;
}
