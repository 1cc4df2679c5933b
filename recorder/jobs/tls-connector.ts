// Opens TLS connections for the Redis client. Its own connector handles one error of a socket only; a refused certificate
// causes two, and an unhandled error would end the process.

import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { AbstractConnector, type RedisOptions } from 'ioredis';

const DISCONNECT_TIMEOUT_MS = 2_000;

export class TlsConnector extends AbstractConnector {
  readonly #options: RedisOptions;

  constructor(options: unknown) {
    super(DISCONNECT_TIMEOUT_MS);
    this.#options = options as RedisOptions;
  }

  // eslint-disable-next-line typescript/require-await -- a promise is what the client wants
  async connect(): Promise<TLSSocket> {
    this.connecting = true;
    const { host = 'localhost', port = 6379, tls } = this.#options;
    const socket = connect({ host, port, ...(tls as ConnectionOptions) });
    socket.on('error', (err) => (this.firstError ??= err));
    this.stream = socket;
    return socket;
  }
}
