// Writes the generated files of charts/kube-nvr: `node build/generate-chart.ts`.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CHART, generatedFiles } from './chart/chart.ts';

for (const [name, text] of await generatedFiles()) writeFileSync(join(CHART, name), text);
