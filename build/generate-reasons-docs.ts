// Writes docs/operations/reasons.md from the table of reasons.

import { writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { reasonsPage } from '../crds/reasons-page.ts';

const file = new URL('../docs/operations/reasons.md', import.meta.url).pathname;
await writeFile(file, await format(reasonsPage(), { ...(await resolveConfig(file)), parser: 'markdown' }));
