// The metrics of what this node passes on to others.

import type { Socket } from 'node:net';
import { Counter, type Registry } from 'prom-client';

/**
 * What became of a request. `answered`: the other node's answer was passed on, whatever its status, or as much of it as the caller
 * wanted. `broken`: it ended before it was whole. `busy`, `away`: as in `PeerUnavailable`.
 */
type RelayResult = 'answered' | 'broken' | 'busy' | 'away';

/** A connection of a caller on which an answer is being passed on. */
interface Passing {
  readonly peer: string;
  readonly socket: Pick<Socket, 'bytesWritten'>;
  countedBytes: number;
}

/** Of all listeners of this node together. */
export class RelayMetrics {
  readonly #requests: Counter<'peer' | 'result'>;
  readonly #bytes: Counter<'peer'>;
  readonly #passing = new Set<Passing>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: 'kube_nvr_relay_requests_total',
      help: 'Requests and WebSockets of clients that this node passed on to another one, by what became of them: answered; broken, the answer ended before it was whole; away, the node did not answer in time; busy, too many requests to it were open.',
      labelNames: ['peer', 'result'],
      registers,
    });
    const count = (): void => this.#passing.forEach((passing) => this.#countBytes(passing));
    this.#bytes = new Counter({
      name: 'kube_nvr_relay_bytes_total',
      help: 'Bytes of answers of another node that this node passed on to clients, with their heads.',
      labelNames: ['peer'],
      registers,
      collect: count,
    });
  }

  request(peer: string, result: RelayResult): void {
    this.#requests.inc({ peer, result });
  }

  /** Counts what is written to the connection of a caller, until the returned function is called. */
  passing(peer: string, socket: Passing['socket']): () => void {
    const passing = { peer, socket, countedBytes: socket.bytesWritten };
    this.#passing.add(passing);
    return () => {
      this.#countBytes(passing);
      this.#passing.delete(passing);
    };
  }

  #countBytes(passing: Passing): void {
    const { bytesWritten } = passing.socket;
    this.#bytes.inc({ peer: passing.peer }, Math.max(0, bytesWritten - passing.countedBytes));
    passing.countedBytes = bytesWritten;
  }
}
