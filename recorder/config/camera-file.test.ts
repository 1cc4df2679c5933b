import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from '../../test/support/fast-check.ts';
import { parse } from 'yaml';
import { formatCameraFile, isOurs } from './camera-file.ts';

const GATE = { id: 'gate', source: 'rtsp://a:#1: "x"@10.0.0.9/live', name: '- {gate}' };

test('a file holds its camera, whatever is in its settings, and is ours', () => {
  const text = fc.string({ unit: 'grapheme' });
  const plain = { noNullPrototype: true };
  const value = fc.oneof(text, fc.integer(), fc.boolean(), fc.dictionary(text, text, plain));
  const settings = fc.dictionary(text, value, plain);
  fc.assert(
    fc.property(settings, (camera) => {
      const written = formatCameraFile(camera);
      assert.deepEqual(parse(written), { cameras: [camera] });
      assert.ok(isOurs(written), written);
    }),
  );
});

test('another value in a file of ours leaves it ours', () => {
  assert.ok(isOurs(formatCameraFile(GATE).replace('id: gate', 'id: yard')));
  assert.ok(isOurs(formatCameraFile(GATE).replaceAll('\n', '\r\n').replaceAll('\r\n#', '\n#')));
});

const OURS = formatCameraFile(GATE);
for (const [name, text] of [
  ['without our words above it', OURS.replace(/^#.*\n/, '')],
  ['with a word more above it', `# The gate.\n${OURS}`],
  ['with a comment above the camera', OURS.replace('  - id', '  # The gate.\n  - id')],
  ['with a comment beside a value', OURS.replace('id: gate', 'id: gate # The gate.')],
  ['with a comment between keys', OURS.replace('    source', '    # Main stream.\n    source')],
  ['with a comment beside the list', OURS.replace('cameras:', 'cameras: # One.')],
  ['with a comment at the end', `${OURS}# The end.\n`],
  ['with a second camera', `${OURS}  - { id: yard, source: rtsp://10.0.0.8/ }\n`],
  ['with another setting', `${OURS}nodeName: nvr-1\n`],
  [
    'with an anchor that is used',
    OURS.replace('id: gate', 'id: &id gate\n    name: *id').replace(/ {4}name: "-.*\n/, ''),
  ],
  ['that is no YAML', `${OURS}]`],
  ['that is empty', ''],
] as const) {
  test(`a file ${name} is not ours`, () => {
    assert.notEqual(text, OURS);
    assert.equal(isOurs(text), false, text);
  });
}
