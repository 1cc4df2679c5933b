// The images of build/images as file systems, and their programs run in them as a kubelet would: with a read-only root, a
// user that is not root, and nothing of this machine but what is bound in. No container engine is needed.

import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownImages } from '../node/own-images.ts';
import { Child } from '../support/child.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
export const PROGRAMS = ['operator', 'recorder'] as const;
type Program = (typeof PROGRAMS)[number];

/** Why there can be no images here, or false. */
export function imagesMissing(): string | false {
  if (process.getuid?.() !== 0) return 'images are built, and run, as root';
  if (process.env['KUBE_NVR_IMAGES'] !== undefined) return false;
  const missing = ['buildah', 'debootstrap'].filter(
    (name) => !['/usr/bin', '/usr/sbin'].some((path) => existsSync(join(path, name))),
  );
  return missing.length > 0 && `${missing.join(' and ')} missing: hack/setup images`;
}

/** As the OCI image specification names them. */
interface ImageConfig {
  readonly created: string;
  readonly architecture: string;
  readonly config: {
    readonly User?: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
}

export class Image {
  /** Of the archive. */
  readonly file: string;
  /** What its layers make. */
  readonly root: string;
  readonly tags: readonly string[];
  readonly config: ImageConfig;
  readonly #directory: string;

  constructor(program: Program) {
    this.file = ownImages()[PROGRAMS.indexOf(program)]!;
    this.#directory = mkdtempSync(join(tmpdir(), 'kube-nvr-image-'));
    this.root = join(this.#directory, 'root');
    mkdirSync(this.root);
    execFileSync('tar', ['-xf', this.file, '-C', this.#directory]);
    const [manifest] = this.#read('manifest.json') as [{ Config: string; RepoTags: string[]; Layers: string[] }];
    this.tags = manifest.RepoTags;
    this.config = this.#read(manifest.Config) as ImageConfig;
    for (const layer of manifest.Layers) {
      execFileSync('tar', ['-xpf', join(this.#directory, layer), '-C', this.root, '--same-owner']);
    }
    // A runtime makes them; they are where it mounts what a pod has.
    for (const path of ['dev', 'proc', 'var/lib/recorder']) mkdirSync(join(this.root, path), { recursive: true });
  }

  #read(name: string): unknown {
    return JSON.parse(readFileSync(join(this.#directory, name), 'utf8'));
  }

  /** Of every file, from its root. */
  files(): readonly string[] {
    const names = readdirSync(this.root, { recursive: true }) as string[];
    return names.filter((name) => !/^(dev|proc)(\/|$)/.test(name) && !lstatSync(join(this.root, name)).isDirectory());
  }

  /**
   * The start of a command that runs what follows in the image. `bind`: a directory that becomes the user's, and is there
   * under the same name. `instead`: runs in place of the first two words that follow.
   */
  through(
    user: number,
    { bind, instead }: { readonly bind?: string; readonly instead?: string } = {},
  ): readonly string[] {
    const script = `
      root=$1 user=$2 bind=$3 instead=$4
      shift 4
      if [ -n "$instead" ]; then
        shift 2
        set -- "$instead" "$@"
      fi
      mount --bind "$root" "$root"
      cd "$root"
      mount --rbind /dev dev
      mount -t proc proc proc
      mount -t tmpfs -o mode=1777 tmpfs tmp
      if [ -n "$bind" ]; then
        chown -R "$user:$user" "$bind"
        mkdir -p ".$bind"
        mount --bind "$bind" ".$bind"
      fi
      mount -o remount,ro,bind "$root"
      chroot=$(command -v chroot)
      export ${this.config.config.Env.join(' ')}
      exec /usr/bin/setpriv --no-new-privs "$chroot" --userspec="$user:$user" --groups= "$root" "$@"`;
    return ['unshare', '--mount', 'sh', '-ec', script, 'sh', this.root, `${user}`, bind ?? '', instead ?? ''];
  }

  run(user: number, args: readonly string[], env: NodeJS.ProcessEnv = {}): Child {
    const [command, ...rest] = this.through(user);
    return new Child(command!, [...rest, ...args], { env: { PATH: process.env['PATH'], ...env } });
  }

  close(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
