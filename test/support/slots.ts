// Slots that processes share, so that only so many of them work at a time. A slot is a Unix socket with an abstract name, at which
// the process that has the slot listens: the kernel frees it when the process ends, however that happens. A process that waits for
// a slot connects to those that have one, and tries again when a connection ends.

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Frees it. */
type Slot = () => void;

export class Slots {
  readonly #names: readonly string[];

  /** All processes give the same name and the same count. */
  constructor(name: string, count: number) {
    this.#names = Array.from({ length: count }, (_, n) => `\0${name}-${n}`);
  }

  async take(): Promise<Slot> {
    for (;;) {
      for (const name of this.#names) {
        const slot = await listenAt(name);
        if (slot !== undefined) return slot;
      }
      const waiting = this.#names.map((name) => connect(name));
      await Promise.race(waiting.map(ended));
      for (const socket of waiting) socket.destroy();
    }
  }
}

/** Undefined if another one listens there. */
async function listenAt(name: string): Promise<Slot | undefined> {
  const waiting = new Set<Socket>();
  const server: Server = createServer((socket) => {
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket)).on('error', () => {});
  });
  try {
    await once(server.listen(name), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
  return () => {
    server.close();
    for (const socket of waiting) socket.destroy();
  };
}

const ended = (socket: Socket): Promise<void> =>
  new Promise(
    (resolve) =>
      void socket
        .once('close', () => resolve())
        .on('error', () => {})
        .resume(),
  );
