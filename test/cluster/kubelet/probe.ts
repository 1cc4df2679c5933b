// The probes of a container: asked again and again, with thresholds, as core/v1 defines them.

import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container, Probe } from './types.ts';

export interface ProbeTarget {
  readonly container: Container;
  readonly address: string;
  /** Whether the command inside the container ends with 0. */
  execute(command: readonly string[], timeoutMs: number): Promise<boolean>;
}

/** Runs until `signal` aborts. `changed` hears of every change of the result; the first one counts from nothing. */
export async function watchProbe(
  probe: Probe,
  target: ProbeTarget,
  changed: (ok: boolean, message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const { initialDelaySeconds = 0, periodSeconds = 10, timeoutSeconds = 1 } = probe;
  const { successThreshold = 1, failureThreshold = 3 } = probe;
  let told: boolean | undefined;
  let last: boolean | undefined;
  let count = 0;
  try {
    if (initialDelaySeconds > 0) await sleep(initialDelaySeconds * 1000, undefined, { signal });
    while (!signal.aborted) {
      const failure = await ask(probe, target, timeoutSeconds * 1000).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      if (signal.aborted) return;
      const ok = failure === undefined;
      count = ok === last ? count + 1 : 1;
      last = ok;
      if (ok !== told && count >= (ok ? successThreshold : failureThreshold)) {
        told = ok;
        changed(ok, failure ?? '');
      }
      await sleep(periodSeconds * 1000, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Throws with the reason when the container is not well. */
export async function ask(probe: Probe, target: ProbeTarget, timeoutMs: number): Promise<void> {
  const { httpGet, tcpSocket, exec } = probe;
  if (httpGet) return get(httpGet, target, timeoutMs);
  if (tcpSocket) return dial(tcpSocket.host ?? target.address, portNumber(tcpSocket.port, target), timeoutMs);
  if (exec && !(await target.execute(exec.command, timeoutMs))) throw new Error(`${exec.command.join(' ')} failed`);
}

function portNumber(port: number | string, { container }: ProbeTarget): number {
  if (typeof port === 'number') return port;
  const named = container.ports?.find(({ name }) => name === port);
  if (!named) throw new Error(`container ${container.name} has no port ${port}`);
  return named.containerPort;
}

function get(httpGet: NonNullable<Probe['httpGet']>, target: ProbeTarget, timeoutMs: number): Promise<void> {
  const { path = '/', scheme = 'HTTP', httpHeaders = [] } = httpGet;
  const options = {
    host: httpGet.host ?? target.address,
    port: portNumber(httpGet.port, target),
    path,
    agent: false,
    headers: Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
    signal: AbortSignal.timeout(timeoutMs),
    // As the kubelet: a probe does not verify certificates.
    rejectUnauthorized: false,
  } as const;
  return new Promise((resolve, reject) => {
    const outgoing = (scheme === 'HTTPS' ? httpsRequest : httpRequest)(options, (answer) => {
      answer.resume();
      const status = answer.statusCode ?? 0;
      if (status >= 200 && status < 400) resolve();
      else reject(new Error(`HTTP probe failed with statuscode: ${status}`));
    });
    outgoing.once('error', reject);
    outgoing.end();
  });
}

function dial(host: string, port: number, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    socket.once('timeout', () => socket.destroy(new Error('timeout')));
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve();
    });
  });
}
