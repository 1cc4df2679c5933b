// Writes the pages of docs that explain reasons and causes.

import { writeFile } from 'node:fs/promises';
import { reasonPages } from './reason-pages.ts';

for (const { path, text } of await reasonPages()) await writeFile(path, text);
