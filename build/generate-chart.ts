// Writes the generated files of the charts: `node build/generate-chart.ts`.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHARTS, generatedFiles } from './chart/chart.ts';

for (const [name, text] of await generatedFiles()) writeFileSync(join(CHARTS, name), text);
