// Writes crds/yaml/ from the schemas in crds/: `node hack/generate-crds.ts`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toCustomResourceDefinition, toYaml } from '../crds/custom-resource-definition.ts';
import { KINDS } from '../crds/kinds.ts';

const directory = join(import.meta.dirname, '../crds/yaml');
mkdirSync(directory, { recursive: true });
for (const definition of KINDS) {
  writeFileSync(join(directory, `${definition.plural}.yaml`), toYaml(toCustomResourceDefinition(definition)));
}
