// Writes crds/yaml/ and docs/resources.md from the schemas in crds/: `node build/generate-crds.ts`.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toCustomResourceDefinition, toYaml } from '../crds/custom-resource-definition.ts';
import { format, resolveConfig } from 'prettier';
import { KINDS } from '../crds/kinds.ts';
import { resourceReference } from './crd-reference.ts';

const directory = join(import.meta.dirname, '../crds/yaml');
mkdirSync(directory, { recursive: true });
for (const definition of KINDS) {
  writeFileSync(join(directory, `${definition.plural}.yaml`), toYaml(toCustomResourceDefinition(definition)));
}

const page = join(import.meta.dirname, '../docs/resources.md');
const options = await resolveConfig(page);
writeFileSync(page, await format(resourceReference(), { ...options, parser: 'markdown' }));
