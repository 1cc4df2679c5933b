// `recorder archive drain`: asks the running recorder to move the footage of a disk to the others, and shows how far it is.

import { exists, ignoreMissing } from '../../base/file-calls.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { DRAIN_FILE, segmentsOn } from '../archive/disk/drain.ts';
import { nodeFileSystem as fs } from '../archive/disk/file-system.ts';
import { replaceFile } from '../archive/disk/state-file.ts';
import type { Config } from '../config/schema.ts';
import type { CommandContext } from './command.ts';

const LOOK_MS = 2_000;

/** Resolves to the exit code when the disk has no footage any more, or when the user interrupts: the recorder goes on then. */
export async function drainDisk(
  { recordPath, archive }: Config,
  path: string,
  isCancelled: boolean,
  { clock, print, printError, interrupted }: CommandContext,
): Promise<number> {
  const root = withoutTrailingSlash(path);
  const problem =
    root === withoutTrailingSlash(recordPath)
      ? 'is record_path, which has the state of the archive and cannot be drained'
      : !archive.disks.some((disk) => withoutTrailingSlash(disk.path) === root)
        ? 'is not in archive.disks'
        : !(await exists(`${root}/.kube-nvr/archive.json`))
          ? 'is not there, or was never used'
          : undefined;
  if (problem !== undefined) return (printError(`${root} ${problem}\n`), 1);
  const file = `${root}/${DRAIN_FILE}`;
  if (isCancelled) {
    await fs.remove(file).catch(ignoreMissing);
    return (print(`${root} gets new files again\n`), 0);
  }
  if (!(await exists(file))) await replaceFile(fs, file, '');
  const signal = interrupted();
  for (let before: number | undefined; !signal.aborted;) {
    const left = (await segmentsOn(fs, root)).length;
    if (left === 0) return (print(`${root} has no footage any more: remove it from archive.disks\n`), 0);
    if (left !== before) print(`${root}: ${left} files left\n`);
    before = left;
    await clock.sleep(LOOK_MS, signal);
  }
  return (print('the recorder goes on moving files; --cancel ends that\n'), 0);
}
