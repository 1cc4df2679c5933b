// The command `recorder archive`: looks whether copies in object storage work, takes over those of an archive that is lost, and empties a disk.

import { messageOf } from '../../base/error.ts';
import { silentLog } from '../../base/log.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { nodeFileSystem } from '../archive/disk/file-system.ts';
import { ArchiveIdentity } from '../archive/disk/identity.ts';
import type { Config } from '../config/schema.ts';
import { openTarget, type ConfiguredTarget } from '../copies/copies.ts';
import { S3Error, type S3Code } from '../copies/s3.ts';
import { ForeignPrefix, type Target } from '../copies/target.ts';
import { archiveName } from '../run/copies.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';
import { drainDisk } from './drain-disk.ts';

export const usage = `Usage: recorder archive check [--config FILE]
       recorder archive adopt TARGET [--config FILE]
       recorder archive drain PATH [--cancel] [--config FILE]

check: tries all that copying to each target of archive.targets needs, and removes what it made. Exits with 1 if something fails.
adopt: the copies at TARGET belong to the archive of this recorder from now on, whichever archive they were made of. For an
       archive that is lost: its footage is then listed and played from there.
drain: the running recorder moves the footage of the disk at PATH, one of archive.disks, to the others, and writes no new files there.
       The command shows how far it is, and ends when the disk can be removed from archive.disks.
       --cancel: the disk is used again.

  --config FILE    default: /etc/recorder/config.yaml
`;

/** What to do, beyond what the message says. */
const ADVICE: Partial<Record<S3Code, string>> = {
  'wrong-credentials': 'correct accessKeyId, and secretAccessKey or secretAccessKeyFile',
  'no-bucket': 'make the bucket, or correct bucket and region',
  forbidden:
    'the access key needs s3:GetObject, s3:PutObject, s3:DeleteObject, s3:DeleteObjectVersion and s3:ListBucket for the prefix, with objectLock also s3:PutObjectRetention',
  unreachable: 'correct endpoint, and let this machine reach it',
  'bad-digest': 'the service must compute the SHA-256 of what it stores (x-amz-checksum-sha256)',
};

export async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const options = { ...CONFIG_OPTION, cancel: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parsedArgs(args, { allowPositionals: true, options });
  const [subcommand, name, ...more] = positionals;
  const isNamed = subcommand === 'drain' || (subcommand === 'adopt' && !values.cancel);
  const isRight = isNamed ? name !== undefined : subcommand === 'check' && name === undefined && !values.cancel;
  if (!isRight || more.length > 0)
    throw new UsageError('expected check, adopt and the name of a target, or drain and a path');
  const config = await context.load(values.config);
  if (subcommand === 'drain' && name !== undefined) return drainDisk(config, name, values.cancel, context);
  const { targets } = config.archive;
  const chosen = targets.filter((target) => name === undefined || target.name === name);
  if (chosen.length === 0) {
    context.printError(name === undefined ? 'archive.targets is empty\n' : `archive.targets has no target "${name}"\n`);
    return 1;
  }
  const owner = await ownerOf(config);
  // The wait for the end of a lock would not keep the process running.
  const awake = setInterval(() => {}, 60_000);
  let failures = 0;
  for (const target of chosen) {
    const problem = await tried(target, context, (opened) => work(opened, owner, name !== undefined));
    if (problem !== undefined) failures++;
    context.print(`${target.name}: ${problem ?? (name === undefined ? 'ok' : 'belongs to this archive now')}\n`);
  }
  clearInterval(awake);
  return failures === 0 ? 0 : 1;
}

async function work(target: Target, owner: string | undefined, adopt: boolean): Promise<void> {
  if (adopt && owner === undefined) throw new ForeignPrefix('this archive has no name yet: start the recorder once');
  await target.check();
  if (owner !== undefined) await (adopt ? target.adopt(owner) : target.take(owner));
}

/** What keeps a target from working; undefined if nothing does. */
async function tried(
  config: ConfiguredTarget,
  { clock }: Pick<CommandContext, 'clock'>,
  what: (target: Target) => Promise<void>,
): Promise<string | undefined> {
  let target: Target | undefined;
  try {
    target = await openTarget(config, clock);
    await what(target);
    return undefined;
  } catch (err) {
    const advice = err instanceof S3Error ? ADVICE[err.code] : undefined;
    const isForeign = err instanceof ForeignPrefix;
    const more = isForeign ? 'choose another prefix, or take over a lost archive with recorder archive adopt' : advice;
    return more === undefined ? messageOf(err) : `${messageOf(err)}; ${more}`;
  } finally {
    await target?.s3.close();
  }
}

/** Undefined before the first start, and in a pod, whose namespace is a part of the name. */
async function ownerOf(config: Config): Promise<string | undefined> {
  if (config.cluster.mode === 'kubernetes') return undefined;
  const name = await archiveName(config, undefined);
  if (name !== undefined) return name;
  const { recordPath, workDir } = config;
  const options = { root: withoutTrailingSlash(recordPath), workDir, node: undefined, pool: undefined };
  const identity = new ArchiveIdentity({ ...options, fs: nodeFileSystem, log: silentLog });
  // Without its disk, the archive has no name for now.
  await identity.look().catch(() => undefined);
  return identity.id;
}
