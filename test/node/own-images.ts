// The images of this checkout, as build/images builds them; kept in the cache under what goes into them.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { builtFromSources } from '../support/built-from-sources.ts';

const ROOT = join(import.meta.dirname, '../..');
export const VERSION = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
export const OPERATOR_IMAGE = 'kube-nvr-operator';
export const RECORDER_IMAGE = 'kube-nvr-recorder';

/**
 * docker-archives of both, built when sources changed (minutes the first time, then a quarter of one). KUBE_NVR_IMAGES
 * names a directory that has them already, built from whatever sources.
 */
export function ownImages(): readonly string[] {
  const directory = process.env['KUBE_NVR_IMAGES'] ?? builtDirectory();
  return ['operator', 'recorder'].map((name) => join(directory, `${name}.tar`));
}

const builtDirectory = (): string =>
  builtFromSources('own-images', ['build/images'], (output) => {
    execFileSync(join(ROOT, 'build/images'), ['--output', output], { stdio: ['ignore', 'pipe', 'pipe'] });
  });
