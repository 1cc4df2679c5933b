// Writes docs/design/specification.md: `node build/generate-specification.ts`.

import { writeFile } from 'node:fs/promises';
import { PAGE, specificationPage } from './specification.ts';

await writeFile(PAGE, await specificationPage());
