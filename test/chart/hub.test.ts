// What Artifact Hub shows of the charts: https://artifacthub.io/docs/topics/annotations/helm/

import { suite, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { parseArchiveTarget } from '../../crds/archive-target.ts';
import { parseCamera } from '../../crds/camera.ts';
import { KINDS } from '../../crds/kinds.ts';
import { GROUP, VERSION } from '../../crds/names.ts';
import { parseRecorderNode } from '../../crds/recorder-node.ts';
import { parseRecorderPool } from '../../crds/recorder-pool.ts';
import { parseRecordingObjective } from '../../crds/recording-objective.ts';
import { CHART, KINDS_CHART, type Manifest } from './helm.ts';

const ROOT = join(CHART, '../..');
const LEVELS = ['Basic Install', 'Seamless Upgrades', 'Full Lifecycle', 'Deep Insights', 'Auto Pilot'];
const PARSERS: Readonly<Record<string, (value: unknown) => unknown>> = {
  ArchiveTarget: parseArchiveTarget,
  Camera: parseCamera,
  RecorderNode: parseRecorderNode,
  RecorderPool: parseRecorderPool,
  RecordingObjective: parseRecordingObjective,
};
const chartOf = (directory: string): Manifest => parse(readFileSync(join(directory, 'Chart.yaml'), 'utf8'));

suite('Artifact Hub', () => {
  for (const [name, directory] of Object.entries({ 'kube-nvr': CHART, 'kube-nvr-crds': KINDS_CHART })) {
    test(`${name}: all kinds are described in plain text, each with an example that is valid`, () => {
      const { home, maintainers, annotations } = chartOf(directory);
      assert.ok(home.startsWith('https://') && maintainers.length > 0);
      assert.equal(annotations['artifacthub.io/license'], 'Apache-2.0');
      const kinds: Manifest[] = parse(annotations['artifacthub.io/crds']);
      assert.deepEqual(
        kinds.map((kind) => [kind.kind, kind.version, kind.name]),
        KINDS.map(({ kind, plural }) => [kind, VERSION, `${plural}.${GROUP}`]),
      );
      for (const { kind, description } of kinds) assert.match(description, /^[A-Z][^`\][]+\.$/, kind);
      const examples: Manifest[] = parse(annotations['artifacthub.io/crdsExamples']);
      for (const example of examples) {
        // The API server adds the namespace.
        const metadata = { namespace: 'video', ...example.metadata };
        assert.ok(PARSERS[example.kind]?.({ ...example, metadata }), example.kind);
      }
      assert.equal(examples.length, KINDS.length);
    });
  }

  test('the page of capability levels names tests that there are', () => {
    const page = readFileSync(join(ROOT, 'docs/capability-levels.md'), 'utf8');
    const named = Array.from(page.matchAll(/`([a-z0-9/-]+\.test\.ts)`(?:: ([^|;…_]+))?/g));
    assert.ok(named.length > 15, `${named.length}`);
    for (const [, file = '', begins = ''] of named) {
      assert.ok(existsSync(join(ROOT, file)), file);
      for (const words of begins.split(' …, ')) {
        assert.ok(readFileSync(join(ROOT, file), 'utf8').includes(words.trim()), `${file}: ${words}`);
      }
    }
  });

  test('the level is the highest that docs/capability-levels.md calls met, with all below it', () => {
    const page = readFileSync(join(ROOT, 'docs/capability-levels.md'), 'utf8');
    const met = Array.from(page.matchAll(/^## [IV]+\. .*: (yes|partly|no)$/gm), ([, word]) => word);
    assert.equal(met.length, LEVELS.length);
    const { annotations } = chartOf(CHART);
    assert.equal(
      annotations['artifacthub.io/operatorCapabilities'],
      LEVELS[met.findIndex((word) => word !== 'yes') - 1],
    );
  });
});
