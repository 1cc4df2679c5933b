// Remembers across restarts which cameras have accepted a better login than a plaintext password, in a file of the node.

import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { withoutTrailingSlash } from '../../base/paths.ts';
import { parseJson } from '../../base/parse-json.ts';
import type { FileSystem } from '../archive/disk/file-system.ts';
import { makeDirectories, readIfThere, replaceFile } from '../archive/disk/state-file.ts';
import { CameraLogins, type BetterLogin, type BetterLogins } from '../reach/logins.ts';

interface KeptLoginsDeps {
  readonly fs: FileSystem;
  /** The directory of the file; created when it is missing. */
  readonly workDir: string;
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>;
  readonly log: Log;
}

const FILE = 'camera-logins.json';

/** Never rejects: without the file, it learns from the next login of each camera. */
export async function openCameraLogins({ fs, workDir, clock, log }: KeptLoginsDeps): Promise<CameraLogins> {
  const directory = withoutTrailingSlash(workDir);
  const path = `${directory}/${FILE}`;
  let writing: Promise<void> = Promise.resolve();
  const kept = await load();
  return new CameraLogins({
    clock,
    kept,
    changed(better) {
      writing = writing.then(() => keep(better));
    },
  });

  async function load(): Promise<BetterLogins> {
    try {
      const text = await readIfThere(fs, path);
      return text === undefined ? new Map() : parse(text);
    } catch (err) {
      log.error({ path, err }, 'the login methods of cameras cannot be read: they are learned again');
      return new Map();
    }
  }

  async function keep(better: BetterLogins): Promise<void> {
    try {
      await makeDirectories(fs, directory);
      await replaceFile(fs, path, format(better), 0o600);
    } catch (err) {
      log.warn({ path, err }, 'the login method of a camera cannot be stored: it is learned again after a restart');
    }
  }
}

function format(better: BetterLogins): string {
  const places = Array.from(better, ([place, { took, sinceMs }]) => [
    place,
    { took, since: new Date(sinceMs).toISOString() },
  ]);
  return `${JSON.stringify({ version: 1, places: Object.fromEntries(places) }, undefined, 2)}\n`;
}

/** Throws for text that `format` did not write. */
function parse(text: string): BetterLogins {
  const { places } = (parseJson(text) ?? {}) as { places?: unknown };
  if (typeof places !== 'object' || places === null) throw new Error('the file is damaged');
  return new Map(
    Object.entries(places as Record<string, { took?: unknown; since?: unknown } | null>).flatMap(
      ([place, value]): [string, BetterLogin][] => {
        const took = value?.took;
        if (took !== 'Digest' && took !== 'TLS') return [];
        return [[place, { took, sinceMs: Date.parse(String(value?.since)) || 0 }]];
      },
    ),
  );
}
