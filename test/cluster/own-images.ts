// The images of this repository: what a cluster's nodes run under their names, whatever the tag.

import { dirname, join } from 'node:path';
import { OPERATOR_NODE_FLAG, PROGRAMS, type Program } from '../../build/image/layout.ts';
import { mainOf, PROGRAM_DIRECTORY } from '../support/own-programs.ts';
import type { Image, Images } from './kubelet/images.ts';

const image = (directory: string, main: string, flags: readonly string[] = []): Image => ({
  entrypoint: [process.execPath, ...flags, main],
  workingDir: directory,
  paths: [directory, dirname(process.execPath)],
});

/** As the checkout has them, or a run of hack/test has built them. */
export const OWN_IMAGES: Images = {
  'kube-nvr-operator': image(PROGRAM_DIRECTORY, mainOf('operator'), [OPERATOR_NODE_FLAG]),
  'kube-nvr-recorder': image(PROGRAM_DIRECTORY, mainOf('recorder')),
};

/** As images have them, each program one file, in this directory: they start in half the time. */
export async function bundledImages(directory: string): Promise<Images> {
  // Only here: commands that run the checkout start without a bundler.
  const { bundleProgram } = await import('../../build/image/program-bundle.ts');
  const bundled = async (program: Program): Promise<Image> => {
    const { nodeFlag } = PROGRAMS[program];
    await bundleProgram(program, directory);
    return image(directory, join(directory, program, 'main.js'), nodeFlag === undefined ? [] : [nodeFlag]);
  };
  return { 'kube-nvr-operator': await bundled('operator'), 'kube-nvr-recorder': await bundled('recorder') };
}
