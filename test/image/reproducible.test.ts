// Given the same sources and packages, build/images makes the same images, byte by byte: two builds, each with a cache of
// its own that is empty.

import { test } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LONG } from '../support/variant.ts';
import { imagesMissing, PROGRAMS, ROOT } from './image.ts';

const short = !LONG && 'two builds from nothing take minutes; LONG=1 runs them';

interface Manifest {
  /** Named by its digest, which is the image's: it names each layer by the digest of its content. */
  readonly Config: string;
  readonly Layers: readonly string[];
}

test('two builds from nothing are one image', { skip: imagesMissing() || short }, (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-image-'));
  const names = ['first', 'second'];
  t.after(() => {
    // Where images are kept is a mount of its own.
    for (const name of names) spawnSync('umount', [join(directory, name, 'kube-nvr/images/storage/overlay')]);
    rmSync(directory, { recursive: true, force: true });
  });
  const built = names.map((name) => {
    const output = join(directory, name, 'images');
    mkdirSync(output, { recursive: true });
    execFileSync(join(ROOT, 'build/images'), ['--output', output], {
      env: { ...process.env, XDG_CACHE_HOME: join(directory, name) },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return output;
  });
  for (const program of PROGRAMS) {
    t.diagnostic(
      execFileSync(
        'sha256sum',
        built.map((output) => join(output, `${program}.tar`)),
        { encoding: 'utf8' },
      ),
    );
    const [first, second] = built.map((output): Manifest => {
      const text = execFileSync('tar', ['-xOf', join(output, `${program}.tar`), 'manifest.json'], { encoding: 'utf8' });
      return (JSON.parse(text) as [Manifest])[0];
    });
    assert.deepEqual(second, first, program);
    // Also what is in it, as a list.
    execFileSync('cmp', built.map((output) => join(output, `${program}.cdx.json`)) as [string, string]);
  }
});
