// Connects copies in object storage with the archive of this node.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import { cameraOfFootage } from '../../base/camera-id.ts';
import { ignoreMissing } from '../../base/file-calls.ts';
import type { Archive } from '../archive/archive.ts';
import { gapsIn } from '../archive/gaps/journal-report.ts';
import { parseProtections } from '../archive/retention/protections.ts';
import { isAuditFile } from '../audit/files.ts';
import type { CurrentConfig } from '../config/current-config.ts';
import type { Config } from '../config/schema.ts';
import type { AccountReader } from '../copies/account.ts';
import type { Copies } from '../copies/copies.ts';
import { ArchiveFiles } from '../footage/archive-file.ts';
import type { RecorderDeps } from './deps.ts';
import { ownerOf } from '../engine/owner.ts';

type Owning = Pick<Config, 'cluster' | 'nodeName'>;

/** Resolves to undefined without targets; `archiveOf` is called when the recorder runs. Rejects if the authorities of a target cannot be read. */
export async function openCopies(
  current: Pick<CurrentConfig, 'value'>,
  archiveOf: () => Archive,
  registry: Registry,
  { pod, clock, log }: Pick<RecorderDeps, 'pod' | 'clock' | 'log'>,
): Promise<Copies | undefined> {
  const config = current.value;
  const { targets } = config.archive;
  if (targets.length === 0) return undefined;
  // Loaded only when there is a target.
  const [{ Copies }, { registerCopyMetrics }] = await Promise.all([
    import('../copies/copies.ts'),
    import('../copies/metrics.ts'),
  ]);
  const owner = await archiveName(config, pod);
  const copies = await Copies.open({
    targets,
    rules: () => current.value.archive.copies,
    archive: {
      owner: () => owner ?? archiveOf().id,
      days: () => archiveOf().catalogue.days(),
      openPaths: () =>
        new Set(
          archiveOf()
            .openEntries()
            .map(({ path }) => path),
        ),
      isBehind: () => archiveOf().isBehind,
      wantedMs: (cameraId) => archiveOf().keeping?.wantedMs(cameraId),
      receive: (segment, sizeBytes, write) => archiveOf().receive(segment, sizeBytes, write),
      isProtected(cameraId, fromMs, toMs) {
        const { protections } = archiveOf();
        if (!protections?.readable) return true;
        const windows = protections.list(cameraOfFootage(cameraId));
        return windows.some((window) => window.fromMs < toMs && window.toMs > fromMs);
      },
      account: {
        node: config.nodeName,
        archiveId: () => archiveOf().id,
        files: () => accountFiles(archiveOf().stateRoot, config.audit.directory),
        ...accountReader,
      },
    },
    files: new ArchiveFiles((path) => archiveOf().rootOf(path)),
    clock,
    log,
  });
  registerCopyMetrics(registry, () => copies.copiers);
  return copies;
}

export const accountReader: AccountReader = {
  gapsIn,
  protectedIn(text) {
    const windows = parseProtections(text);
    if (!windows) throw new Error('the list of protections is damaged');
    return windows.filter(({ untilMs = Infinity }) => untilMs > Date.now());
  },
};

/** The files of ledger, protections and audit, by their names at a target. The sign of life last: what it covers is copied before. */
async function accountFiles(stateRoot: string, auditDirectory: string): Promise<ReadonlyMap<string, string>> {
  const state = join(stateRoot, '.kube-nvr');
  const names = async (directory: string): Promise<string[]> => (await readdir(directory).catch(ignoreMissing)) ?? [];
  const [gaps, lines] = await Promise.all([names(join(state, 'gaps')), names(auditDirectory)]);
  const journals = gaps.filter((name) => name.endsWith('.jsonl'));
  return new Map([
    ['protections.json', join(state, 'protections.json')],
    ...lines.filter(isAuditFile).map((name) => [`audit/${name}`, join(auditDirectory, name)] as const),
    ...[...journals, 'alive'].map((name) => [`gaps/${name}`, join(state, 'gaps', name)] as const),
  ]);
}

/** The name of the archive of a pool, which all its nodes have; undefined for a recorder that is alone. */
export async function archiveName(config: Owning, pod: RecorderDeps['pod']): Promise<string | undefined> {
  const { cluster } = config;
  if (cluster.mode === 'none') return undefined;
  return (await ownerOf(config, pod)).pool ?? `servers/${cluster.pool}`;
}
