// What stands in for container images: a name means a command of this machine. There is no registry to pull from.

import type { Container } from './types.ts';

export interface Image {
  /** Run unless the container names a command; `args` follow it. */
  readonly entrypoint?: readonly string[];
  /** Of relative paths in commands, unless the container names one; default `/`. */
  readonly workingDir?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Directories of this machine that it is made of: they can be seen under a volume that is mounted over them, too. */
  readonly paths?: readonly string[];
}

/** By name: with a tag it means this tag alone, without one every tag that is not named itself. */
export type Images = Readonly<Record<string, Image>>;

/** The image cannot be had. */
export class ImageError extends Error {}

interface Launch {
  readonly command: readonly string[];
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly paths: readonly string[];
}

/** What to run for a container. An image that is not known will do when the container names its command. */
export function launchOf(container: Container, images: Images): Launch {
  const image = images[container.image] ?? images[repository(container.image)];
  const command = container.command ?? image?.entrypoint;
  if (!command || command.length === 0) {
    throw new ImageError(`no image ${container.image} on this machine, and the container names no command`);
  }
  return {
    command: [...command, ...(container.args ?? [])],
    workingDir: container.workingDir ?? image?.workingDir ?? '/',
    env: image?.env ?? {},
    paths: image?.paths ?? [],
  };
}

/** Without tag and digest; a port of the registry stays. */
const repository = (name: string): string => name.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
