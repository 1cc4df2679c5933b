// The audit of a node, joined from its room: what the listeners tell goes to files, and what is read comes from them.

import type { Registry } from 'prom-client';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Audit } from './api/deps.ts';
import type { Warning } from './model/warning.ts';
import { cameraChanges } from './audit/camera-changes.ts';
import { readAudit } from './audit/read.ts';
import { AuditTrail } from './audit/trail.ts';
import { Visits } from './audit/visits.ts';
import type { CameraConfig, Config } from './config/schema.ts';

export interface NodeAuditDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Takes each line as well. */
  readonly copy: Pick<Log, 'info'> | undefined;
  readonly registry: Registry;
}

export interface NodeAudit extends Audit {
  readonly visits: Visits;
  warnings(): readonly Warning[];
  /** The cameras that are wanted now; the first ones are those that there were. */
  camerasAre(cameras: readonly CameraConfig[]): void;
  /** Visits end, and lines are written as far as the disk takes them in time. */
  close(): Promise<void>;
}

export function openAudit({ audit, nodeName }: Config, deps: NodeAuditDeps): NodeAudit {
  const { clock } = deps;
  const sink = new AuditTrail({ ...audit, ...deps, node: nodeName });
  const visits = new Visits({ audit: sink, views: audit.views, clock });
  let wanted: readonly CameraConfig[] | undefined;
  return {
    sink,
    visits,
    reader: {
      read: (query) => readAudit(audit.directory, query),
      get end() {
        return sink.end;
      },
    },
    warnings() {
      const { problem } = sink;
      if (problem === undefined) return [];
      return [{ code: 'audit-not-written', message: `the audit is not written: ${problem}`, cameraId: undefined }];
    },
    camerasAre(cameras) {
      const changes = wanted && cameraChanges(wanted, cameras);
      if (changes) sink.write(changes);
      wanted = cameras;
    },
    close() {
      visits.close();
      return sink.close();
    },
  };
}
