// The audit of a node: connects the listeners with the files of the audit.

import type { Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Warning } from '../../base/reason.ts';
import type { Audit } from '../api/deps.ts';
import { cameraChanges } from '../audit/camera-changes.ts';
import { readAudit } from '../audit/read.ts';
import { AuditTrail } from '../audit/trail.ts';
import { Visits } from '../audit/visits.ts';
import type { CameraConfig, Config } from '../config/schema.ts';

interface NodeAuditDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Also receives each line. */
  readonly copy: Pick<Log, 'info'> | undefined;
  readonly registry: Registry;
}

export interface NodeAudit extends Audit {
  readonly visits: Visits;
  warnings(): readonly Warning[];
  /** Sets the wanted cameras and records the changes. The first call only sets the initial list. */
  camerasAre(cameras: readonly CameraConfig[]): void;
  /** Ends all visits, and writes lines as far as the disk accepts them in time. */
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
