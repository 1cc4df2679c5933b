// Writes docs/configuration.md from the schema of the configuration.

import { writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { configurationReference } from '../recorder/config/reference.ts';

const file = new URL('../docs/configuration.md', import.meta.url).pathname;
const options = await resolveConfig(file);
await writeFile(file, await format(configurationReference(), { ...options, parser: 'markdown' }));
