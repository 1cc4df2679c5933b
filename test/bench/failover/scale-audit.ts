// Which requests a user sent to the API server, from its audit log (https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/).

import { closeSync, existsSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One answered request; for a watch, when it ended. */
export interface Call {
  readonly atMs: number;
  readonly verb: string;
  /** Such as `cameras` or `cameras/status`. */
  readonly resource: string;
  readonly code: number;
}

interface AuditEvent {
  readonly user?: { readonly username?: string };
  readonly verb: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
  readonly stageTimestamp: string;
}

/** Flags for an API server that logs only the requests of this user. */
export function AUDIT_FLAGS(directory: string, user: string): readonly string[] {
  const policy = join(directory, 'audit-policy.json');
  writeFileSync(
    policy,
    JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived', 'ResponseStarted'],
      rules: [{ level: 'Metadata', users: [user] }, { level: 'None' }],
    }),
  );
  return [`--audit-policy-file=${policy}`, `--audit-log-path=${join(directory, 'audit.log')}`];
}

export class Audit {
  readonly #file: string;
  readonly #user: string;
  readonly #calls: Call[] = [];
  /** One for all reads: a poll every 50 ms must not leave a megabyte each to the collector. */
  readonly #chunk = Buffer.alloc(1 << 20);
  #offset = 0;
  #rest = '';

  constructor(file: string, user: string) {
    this.#file = file;
    this.#user = user;
  }

  /** Requests answered since then. */
  since(ms: number): readonly Call[] {
    this.#read();
    return this.#calls.filter(({ atMs }) => atMs >= ms);
  }

  #read(): void {
    if (!existsSync(this.#file)) return;
    const file = openSync(this.#file, 'r');
    try {
      for (let read = -1; read !== 0;) {
        read = readSync(file, this.#chunk, 0, this.#chunk.length, this.#offset);
        this.#offset += read;
        const lines = (this.#rest + this.#chunk.toString('utf8', 0, read)).split('\n');
        this.#rest = lines.pop() ?? '';
        for (const line of lines) this.#take(JSON.parse(line) as AuditEvent);
      }
    } finally {
      closeSync(file);
    }
  }

  #take({ user, verb, objectRef, responseStatus, stageTimestamp }: AuditEvent): void {
    if (user?.username !== this.#user) return;
    const { resource = '', subresource } = objectRef ?? {};
    this.#calls.push({
      atMs: Date.parse(stageTimestamp),
      verb,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      code: responseStatus?.code ?? 0,
    });
  }
}
