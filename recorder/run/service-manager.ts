// Tells systemd, if it started this process, that the recorder is ready, that it is alive, and that it stops (sd_notify(3)).
// Node has no datagram sockets in the local domain, so systemd-notify(1) sends the messages.

import { ANSWERS_ONLY, startChild } from '../../base/child.ts';

export interface ServiceManager {
  /** The recorder answers. From now on the manager is notified that the process is alive, as often as it requires. */
  ready(): void;
  stopping(): void;
}

/** How a message is sent; for tests. */
type Send = (message: string) => void;

const READY_AGAIN = 3;

/** Without NOTIFY_SOCKET in the environment, nothing is sent. */
export function serviceManager(
  { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID }: NodeJS.ProcessEnv,
  send: Send = (message) => notify(NOTIFY_SOCKET ?? '', message),
): ServiceManager {
  if (!NOTIFY_SOCKET) return { ready: () => {}, stopping: () => {} };
  // Set for the first process of the service only.
  const isWatched = WATCHDOG_USEC !== undefined && (!WATCHDOG_PID || Number(WATCHDOG_PID) === process.pid);
  return {
    ready: () => {
      send('READY=1');
      // Twice as often as necessary, as systemd recommends.
      // With the first ones it says again that it is ready: older versions of systemd lose a message whose sender has ended.
      let again = READY_AGAIN;
      const alive = (): void => send(again-- > 0 ? 'READY=1\nWATCHDOG=1' : 'WATCHDOG=1');
      if (isWatched) setInterval(alive, Number(WATCHDOG_USEC) / 2_000).unref();
    },
    stopping: () => send('STOPPING=1'),
  };
}

/** A message that is lost is repeated by the next one, or the manager restarts the recorder: nothing here waits for it. */
function notify(socket: string, message: string): void {
  startChild('systemd-notify', [message], {
    stdio: ['ignore', 'ignore', 'ignore'],
    limits: ANSWERS_ONLY,
    env: { NOTIFY_SOCKET: socket },
  }).on('error', () => {});
}
