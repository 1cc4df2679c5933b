// Whatever the values, each object is of its kind: fields that the kind does not have, or of another type, are refused.

import { after, before, suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { needProgram } from '../cluster/programs.ts';
import { Helm, helmMissing, objectsOf } from './helm.ts';
import { schemasMissing, writeSchemas } from './schemas.ts';
import { POOL, VARIANTS } from './variants.ts';

interface Finding {
  readonly filename: string;
  readonly kind: string;
  readonly status: 'statusValid' | 'statusInvalid' | 'statusError' | 'statusSkipped';
  readonly msg: string;
}

const BROKEN = [
  {
    name: 'a field that the kind does not have',
    from: 'revisionHistoryLimit: 3',
    to: 'revisionHistory: 3',
    kind: 'Deployment',
    words: /additional properties 'revisionHistory'/,
  },
  {
    name: 'a field of another type',
    from: 'revisionHistoryLimit: 3',
    to: 'revisionHistoryLimit: many',
    kind: 'Deployment',
    words: /revisionHistoryLimit.*got string, want integer/,
  },
  {
    name: 'a field that is there twice',
    from: 'revisionHistoryLimit: 3',
    to: 'replicas: 3',
    kind: 'Deployment',
    words: /key "replicas" already set/,
  },
  {
    name: 'a field that a pool does not have',
    from: 'hostPath: /mnt/archive',
    to: 'path: /mnt/archive',
    kind: 'RecorderPool',
    words: /additional properties 'path'/,
  },
] as const;

const skip = helmMissing() || helmMissing('kubeconform') || schemasMissing();

suite('kubeconform', { skip }, () => {
  const helm = new Helm();
  const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-conform-'));
  const texts = new Map<string, string>();
  let findings: readonly Finding[];

  // One run for all: most of its time it reads schemas.
  before(async () => {
    const schemas = join(directory, 'schemas');
    const manifests = join(directory, 'manifests');
    for (const path of [schemas, manifests]) mkdirSync(path);
    for (const { name, values, args = [] } of VARIANTS) texts.set(name, await helm.templateText(values, ...args));
    const whole = await helm.templateText({ pool: POOL });
    for (const { name, from, to } of BROKEN) {
      assert.equal(whole.split(from).length, 2, from);
      texts.set(name, whole.replace(from, to));
    }
    for (const [name, text] of texts) writeFileSync(join(manifests, `${name}.yaml`), text);
    const args = ['-strict', '-verbose', '-output', 'json', '-schema-location', writeSchemas(schemas), manifests];
    const { stdout, stderr } = spawnSync(needProgram('kubeconform'), args, { encoding: 'utf8' });
    assert.ok(stdout.startsWith('{'), stderr);
    findings = (JSON.parse(stdout) as { resources: readonly Finding[] }).resources;
  });
  after(() => {
    helm.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const about = (name: string): readonly Finding[] =>
    findings.filter(({ filename }) => basename(filename) === `${name}.yaml`);

  for (const { name } of VARIANTS) {
    test(`${name}: every object is of its kind`, () => {
      const seen = about(name);
      assert.deepEqual(
        seen.filter(({ status }) => status !== 'statusValid'),
        [],
      );
      assert.equal(seen.length, objectsOf(texts.get(name)!).length);
    });
  }

  for (const { name, kind, words } of BROKEN) {
    test(`${name} is refused`, () => {
      const [refused, ...others] = about(name).filter(({ status }) => status !== 'statusValid');
      assert.ok(refused);
      assert.deepEqual(others, []);
      assert.equal(refused.kind, kind);
      assert.match(refused.msg, words);
    });
  }
});
