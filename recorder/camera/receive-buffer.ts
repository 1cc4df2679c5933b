// What the kernel does with datagrams that this process has not read yet: how many bytes it keeps, and how many datagrams it dropped.

import type { Socket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { RECEIVE_BUFFER_BYTES } from '../contract/camera-status.ts';

/** One table for IPv4 and one for IPv6 (proc(5)). */
const TABLES = ['/proc/net/udp', '/proc/net/udp6'];

export function enlargeReceiveBuffer(socket: Socket): void {
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES);
  } catch {
    // Then the system's default is used.
  }
}

/** What the kernel granted. Linux states twice of what was asked for, to have space for its own records (socket(7)). */
export const receiveBufferOf = (socket: Socket): number =>
  socket.getRecvBufferSize() / (process.platform === 'linux' ? 2 : 1);

/**
 * How many datagrams the kernel received and dropped since the sockets of these local ports were opened, because their buffers were full.
 * 0 where the kernel does not tell.
 */
export async function droppedAt(ports: readonly number[]): Promise<number> {
  // A system without such a table has no such file.
  const tables = await Promise.all(TABLES.map((path) => readFile(path, 'latin1').catch(() => '')));
  return tables.reduce((sum, table) => sum + droppedIn(table, ports), 0);
}

/** The second column ends with the local port in hexadecimal digits; the last one has the dropped datagrams. */
function droppedIn(table: string, ports: readonly number[]): number {
  let dropped = 0;
  for (const line of table.split('\n').slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (ports.includes(Number.parseInt(columns[1]?.split(':')[1] ?? '', 16))) dropped += Number(columns.at(-1));
  }
  return dropped;
}
