// The images of this repository: what a cluster's nodes run under their names, whatever the tag.

import { dirname, join } from 'node:path';
import { OPERATOR_NODE_FLAG, PROGRAMS, type Program } from '../../build/image/layout.ts';
import type { Image, Images } from './kubelet/images.ts';

const ROOT = join(import.meta.dirname, '../..');

const image = (directory: string, main: string, flags: readonly string[] = []): Image => ({
  entrypoint: [process.execPath, ...flags, join(directory, main)],
  workingDir: directory,
  paths: [directory, dirname(process.execPath)],
});

/** As the checkout has them. */
export const OWN_IMAGES: Images = {
  'kube-nvr-operator': image(ROOT, 'operator/main.ts', [OPERATOR_NODE_FLAG]),
  'kube-nvr-recorder': image(ROOT, 'recorder/main.ts'),
};

/** As images have them, each program one file, in this directory: they start in half the time. */
export async function bundledImages(directory: string): Promise<Images> {
  // Only here: commands that run the checkout start without a bundler.
  const { bundleProgram } = await import('../../build/image/program-bundle.ts');
  const bundled = async (program: Program): Promise<Image> => {
    const { nodeFlag } = PROGRAMS[program];
    await bundleProgram(program, directory);
    return image(directory, `${program}/main.js`, nodeFlag === undefined ? [] : [nodeFlag]);
  };
  return { 'kube-nvr-operator': await bundled('operator'), 'kube-nvr-recorder': await bundled('recorder') };
}
