// Writes docs/metrics.md from the metrics that the code registers.

import { writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { metricsPage } from '../monitoring/metrics-page.ts';

const file = new URL('../docs/metrics.md', import.meta.url).pathname;
await writeFile(file, await format(metricsPage(), { ...(await resolveConfig(file)), parser: 'markdown' }));
// The monitor of the event loop keeps the process alive.
process.exit();
