// Copies in object storage, versitygw on this machine: what copying costs.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from '../../../base/clock.ts';
import { silentLog } from '../../../base/log.ts';
import { Archive } from '../../../recorder/archive/archive.ts';
import { Copies } from '../../../recorder/copies/copies.ts';
import { ArchiveFiles } from '../../../recorder/footage/archive-file.ts';
import { accountReader } from '../../../recorder/run/copies.ts';
import { KEY, ObjectStorage, storageMissing } from '../../support/object-storage.ts';
import { writeFullFiles } from '../archive.ts';
import { emptyDirectory, type Bench } from '../bench.ts';
import { sleep } from '../processes.ts';

/** Has footage that is copied. */
const COPIED = 900;
const FILES = 8;
const SEGMENT_SECONDS = 300;
const ARCHIVE_ID = '00000000-0000-4000-8000-000000000000';
const TARGET = { ...KEY, name: 'offsite', bucket: 'footage', prefix: 'site/' };

export async function measureCopies(bench: Bench): Promise<void> {
  const missing = storageMissing();
  if (missing !== false) return bench.say(missing);
  const directory = emptyDirectory(bench, 'copies');
  const ends: (() => Promise<void>)[] = [];
  try {
    const storage = await ObjectStorage.start({ after: (end) => void ends.push(end) }, join(directory, 'storage'));
    await measureCopying(bench, directory, storage);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** Copies files in this process, so that nothing else is counted. */
async function measureCopying(bench: Bench, directory: string, { endpoint }: ObjectStorage): Promise<void> {
  const root = join(directory, 'recordings');
  const paths = writeFullFiles(root, COPIED, bench.quick ? 2 : FILES, randomBytes(1024 * 1024));
  const around = { clock: systemClock, log: silentLog };
  const archive = new Archive({ root, syncIntervalMs: 5_000, ...around });
  await archive.recover();
  await archive.catalogue.refresh();
  const copies = await Copies.open({
    targets: [{ ...TARGET, endpoint }],
    rules: () => [{ targets: [TARGET.name], afterMs: 0, keepMs: undefined }],
    archive: {
      owner: () => ARCHIVE_ID,
      days: () => archive.catalogue.days(),
      openPaths: () => new Set(),
      isBehind: () => archive.isBehind,
      wantedMs: () => undefined,
      isProtected: () => false,
      receive: (...asked) => archive.receive(...asked),
      account: { node: 'bench', archiveId: () => undefined, files: async () => new Map(), ...accountReader },
    },
    files: new ArchiveFiles(root),
    ...around,
  });
  const before = process.cpuUsage();
  const startMs = performance.now();
  copies.start();
  while ((copies.copiers[0]?.copiedFiles ?? 0) < paths.length) await sleep(50);
  const { user, system } = process.cpuUsage(before);
  const [bytes, seconds] = [copies.copiers[0]?.copiedBytes ?? 0, (performance.now() - startMs) / 1000];
  await copies.close();
  await archive.close();
  const fileMs = (user + system) / 1000 / paths.length;
  const megabytes = bytes / 1e6 / paths.length;
  bench.figure({
    figure: 'copying a camera of 4 Mbit/s to object storage: processor',
    unit: '% of a core',
    measured: (fileMs / 10 / SEGMENT_SECONDS) * (150 / megabytes),
    must: 0.05,
    note: `${fileMs.toFixed(0)} ms for a file of ${megabytes.toFixed(0)} MB; ${(bytes / 1e6 / seconds).toFixed(0)} MB/s`,
  });
}
