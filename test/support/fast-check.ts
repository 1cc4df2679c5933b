// fast-check, whose cases are drawn as those of other random tests.

import fc from 'fast-check';
import { newSeed } from './random.ts';

fc.configureGlobal({ seed: newSeed() });

export * from 'fast-check';
export { default } from 'fast-check';
