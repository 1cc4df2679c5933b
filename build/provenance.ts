// Where the files of a release come from, as an in-toto statement with the predicate SLSA Provenance v1:
// `node build/provenance.ts VERSION COMMIT INPUTS FILE...`. INPUTS is inputs.json of build/images; the files are its subjects.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

const [version, commit, inputs, ...files] = process.argv.slice(2);
if (version === undefined || commit === undefined || inputs === undefined || files.length === 0) {
  throw new Error('usage: node build/provenance.ts VERSION COMMIT INPUTS FILE...');
}
const images = Object.entries(JSON.parse(readFileSync(inputs, 'utf8')) as Readonly<Record<string, string>>);
// Without a time: the same commit and inputs give the same statement.
const statement = {
  _type: 'https://in-toto.io/Statement/v1',
  subject: files.map((file) => ({ name: basename(file), digest: { sha256: sha256(file) } })),
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'https://kube-nvr.dev/build/release/v1',
      externalParameters: { version },
      resolvedDependencies: [
        { name: 'kube-nvr', digest: { gitCommit: commit } },
        { name: 'package-lock.json', digest: { sha256: sha256(join(ROOT, 'package-lock.json')) } },
        ...images.map(([name, digest]) => ({ name, digest: { sha256: digest.replace('sha256:', '') } })),
      ],
    },
    // A maintainer's machine, and no service that would refuse to be told what to build: build level 1 of SLSA.
    runDetails: { builder: { id: 'https://kube-nvr.dev/build/maintainer' } },
  },
};
process.stdout.write(`${JSON.stringify(statement, null, 2)}\n`);
