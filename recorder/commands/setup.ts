// The command `recorder setup`: writes the configuration of a new server, and makes the directory of its archive.

import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { isMap, isSeq, parseDocument } from 'yaml';
import { asOwnerOf, giveAway, type Owner } from '../../base/as-owner.ts';
import { SETUP_LINE } from '../config/camera-file.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { pageAddress } from './admin-link.ts';
import { credentialsOf, LOGIN_OPTIONS, searched } from './discover.ts';
import type { DeviceReport } from '../onvif/discovery/describe.ts';
import { formatConfig } from '../onvif/discovery/output.ts';
import type { Credentials } from '../onvif/target.ts';
import { CONFIG_OPTION, parsedArgs, UsageError, type CommandContext } from './command.ts';
import { ask, isTerminal } from './terminal.ts';

export const usage = `Usage: recorder setup [--archive DIRECTORY] [--camera ID=URL]... [--discover] [--user NAME --password-file FILE] [--config FILE]

Writes the configuration of a new server to conf.d/setup.yaml next to the configuration file, and makes the directory of the
archive. Without any of the first three options it asks. Unless the configuration has tls, it is \`tls: auto\`. It starts nothing.

  --archive DIRECTORY   where footage is kept, such as a directory of a disk for it
  --camera ID=URL       a camera to record, such as gate=rtsp://192.168.1.20/stream1
  --discover            search the networks of this machine, and record all cameras that answer
  --user NAME           the user of the cameras that --discover finds
  --password-file FILE  a file whose first line is the password; - for standard input
  --config FILE         configuration (default /etc/recorder/config.yaml)
`;

const DEFAULT_ARCHIVE = '/var/lib/recorder/recordings';
/** Where the unit of the package lets the recorder write. */
export const WRITABLE: readonly string[] = ['/var/lib/recorder', '/mnt', '/media', '/srv'];
const FILE_MODE = 0o640;
const DIRECTORY_MODE = 0o750;
/** What an archive on a new disk may have next to it. */
const EMPTY_DISK: readonly string[] = ['lost+found'];

interface Wishes {
  readonly archive: string | undefined;
  /** As `ID=URL`. */
  readonly cameras: readonly string[];
  readonly isSearched: boolean;
  readonly credentials: Credentials | undefined;
}

/** Throws `ConfigError`, too, for a camera that cannot be recorded. */
export async function run(args: readonly string[], context: CommandContext): Promise<number> {
  const options = parsedArgs(args, {
    options: {
      ...CONFIG_OPTION,
      ...LOGIN_OPTIONS,
      archive: { type: 'string' },
      camera: { type: 'string', multiple: true, default: [] },
      discover: { type: 'boolean', default: false },
    },
  }).values;
  const directory = join(dirname(options.config), 'conf.d');
  const file = join(directory, 'setup.yaml');
  if (existsSync(file)) throw new UsageError(`${file} already exists: change or remove it`);

  const isAsked = options.archive === undefined && options.camera.length === 0 && !options.discover;
  if (isAsked && !isTerminal(context.stdin)) throw new UsageError('expected --archive, --camera or --discover');
  const wishes = isAsked
    ? await asked(context)
    : {
        archive: options.archive,
        cameras: options.camera,
        isSearched: options.discover,
        credentials: await credentialsOf(options, context.stdin),
      };
  if (wishes.archive !== undefined && !isAbsolute(wishes.archive))
    throw new UsageError('--archive: expected a path that begins with /');

  const reports = wishes.isSearched ? await searched([], 3_000, wishes.credentials, context) : [];
  const { tls } = await loadConfig(options.config);
  const text = settings(wishes, reports, tls === undefined);
  const config = await loadConfig(options.config, { change: { file, text } });

  await asOwnerOf(directory, () => mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE }));
  if (wishes.archive !== undefined) await makeArchive(wishes.archive, statSync(directory));
  await asOwnerOf(directory, () => writeFileSync(file, text, { mode: FILE_MODE, flag: 'wx' }));
  context.print(`${file}: ${config.cameras.length} cameras, footage in ${config.recordPath}\n${nextSteps(config)}`);
  return 0;
}

async function asked({ stdin, print }: CommandContext): Promise<Wishes> {
  const archive = (await ask(`Directory for footage [${DEFAULT_ARCHIVE}]: `, stdin, print)).trim() || DEFAULT_ARCHIVE;
  const answer = await ask('Search the networks of this machine for cameras? [Y/n]: ', stdin, print);
  if (/^\s*n/i.test(answer)) return { archive, cameras: [], isSearched: false, credentials: undefined };
  const username = (await ask('User of the cameras [none]: ', stdin, print)).trim();
  if (username === '') return { archive, cameras: [], isSearched: true, credentials: undefined };
  const password = await ask('Password of the cameras: ', stdin, print, { hidden: true });
  return { archive, cameras: [], isSearched: true, credentials: { username, password } };
}

/** The text of a file of `conf.d`. */
function settings(
  { archive, cameras, credentials }: Wishes,
  reports: readonly DeviceReport[],
  needsTls: boolean,
): string {
  const document = parseDocument(formatConfig(reports, credentials));
  for (const camera of cameras) {
    const [, id, source] = /^([^=:/]+)=(.+)$/.exec(camera) ?? [];
    if (id === undefined) throw new UsageError('--camera: expected ID=URL, such as gate=rtsp://192.168.1.20/stream1');
    document.addIn(['cameras'], { id, source });
  }
  const list = document.get('cameras');
  if (isSeq(list)) list.flow = list.items.length === 0;
  for (const [key, value] of Object.entries({ tls: needsTls ? 'auto' : undefined, record_path: archive })) {
    if (value !== undefined && isMap(document.contents))
      document.contents.items.unshift(document.createPair(key, value));
  }
  return `${SETUP_LINE}${document.toString({ lineWidth: 0 })}`;
}

/** A directory with files of other programs is refused, so that a mistyped path changes nothing. */
async function makeArchive(archive: string, owner: Owner): Promise<void> {
  await asOwnerOf(archive, () => {
    mkdirSync(archive, { recursive: true, mode: DIRECTORY_MODE });
    const { uid } = statSync(archive);
    const isEmpty = readdirSync(archive).every((name) => EMPTY_DISK.includes(name));
    if (uid === owner.uid || (uid === 0 && isEmpty)) return;
    throw new UsageError(
      `--archive: ${archive} ${isEmpty ? '' : 'is not empty and '}belongs to another user: give it to the recorder (chown -R recorder: ${archive}), or name another directory`,
    );
  });
  giveAway(archive, owner);
}

const nextSteps = (config: Config): string =>
  (WRITABLE.some((directory) => `${config.recordPath}/`.startsWith(`${directory}/`))
    ? ''
    : `systemd does not let the recorder write there: see /usr/share/doc/recorder/examples/hot-disks.conf\n`) +
  'Start the recorder, now and at each boot: systemctl enable --now recorder\n' +
  `Then make the first admin at ${pageAddress(config)}, by the link that this prints: recorder admin-link\n`;
