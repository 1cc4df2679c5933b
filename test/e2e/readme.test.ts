// The examples of README and first steps do what they say, and links lead somewhere.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startCamera, type Camera } from '../camera/camera.ts';
import { audioMedia, videoMedia } from '../camera/media.ts';
import { audioTrack, videoTrack } from '../camera/tracks.ts';
import { blocks } from '../support/blocks.ts';
import { Child } from '../support/child.ts';
import { MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');
const TOKEN = 'readme';
const CURRENT = '/api/archive/gate/current';

/** What two JSON values have in common when one is an example of the other: keys and types; null may stand for anything. */
function shape(value: unknown): unknown {
  if (value === null) return 'any';
  if (Array.isArray(value)) return value.slice(0, 1).map(shape);
  if (typeof value !== 'object') return typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shape(item)]));
}

/** `shape`, with `any` wherever the other side has it. */
function aligned(value: unknown, other: unknown): unknown {
  if (value === 'any' || other === 'any') return 'any';
  if (Array.isArray(value) && Array.isArray(other)) return value.map((item, i) => aligned(item, other[i]));
  if (typeof value !== 'object' || typeof other !== 'object' || value === null || other === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, aligned(item, (other as Record<string, unknown>)[key])]),
  );
}

const STEPS = blocks('docs/first-steps.md');

describe('first steps: the API at a glance', { skip: missingCurl() }, () => {
  let directory: string;
  let camera: Camera;
  let recorder: RecorderProcess;
  let url: string;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-readme-'));
    const tracks = [videoTrack(await videoMedia('h264')), audioTrack(await audioMedia('aac'))];
    camera = await startCamera({ tracks, pace: 'realtime' });
    const sha256 = createHash('sha256').update(TOKEN).digest('hex');
    recorder = await RecorderProcess.start({
      directory,
      // As in the example.
      waitUntilReady: false,
      config: {
        tls: 'auto',
        cameras: [{ id: 'gate', name: 'Front gate', source: camera.url }],
        auth: { mode: 'token', tokens: [{ name: 'readme', role: 'admin', sha256 }] },
      },
    });
    url = recorder.url.replace('http:', 'https:');
    env = { ...process.env, TOKEN, CURL_CA_BUNDLE: join(directory, 'work/tls/certificate.pem') };
    await until('the camera is written', async () => {
      await using child = new Child('bash', ['-c', `curl -sf -H "Authorization: Bearer $TOKEN" ${url}${CURRENT}`], {
        env,
      });
      return (await child.exit()).code === 0 && (JSON.parse(child.output) as { size: number }).size > 10_000;
    });
  });
  after(async () => {
    await recorder?.child[Symbol.asyncDispose]();
    await camera?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  STEPS.forEach(({ language, text }, index) => {
    if (language !== 'sh') return;
    const expected = STEPS[index + 1]?.language === 'json' ? STEPS[index + 1]!.text : undefined;
    test(text.slice(text.lastIndexOf('127.0.0.1') + 9).trim(), async () => {
      const script = text
        .replaceAll('https://127.0.0.1:9997', url)
        .replaceAll('http://127.0.0.1:9998', new URL(recorder.metricsUrl).origin);
      await using child = new Child('bash', ['-c', `curl() { command curl --fail-with-body "$@"; }\n${script}`], {
        env,
      });
      const { code } = await child.exit();
      assert.equal(code, 0, child.output);
      assert.ok(child.output.length > 0);
      if (expected === undefined) return;
      const [actual, example] = [shape(JSON.parse(child.output)), shape(JSON.parse(expected))];
      assert.deepEqual(aligned(actual, example), aligned(example, actual));
    });
  });
});

test('first steps: there are examples to test', () => {
  const count = (language: string): number => STEPS.filter((block) => block.language === language).length;
  assert.ok(count('sh') >= 6 && count('json') >= 4 && count('yaml') >= 1);
});

test('README and first steps: the example configurations are accepted', async () => {
  for (const { text } of [...blocks('README.md'), ...STEPS].filter(({ language }) => language === 'yaml')) {
    const directory = mkdtempSync(join(tmpdir(), 'kube-nvr-readme-'));
    try {
      const file = join(directory, 'config.yaml');
      writeFileSync(file, text);
      await using child = new Child(process.execPath, [MAIN, '--check-config', '--config', file]);
      assert.equal((await child.exit()).code, 0, child.output);
    } finally {
      rmSync(directory, { recursive: true });
    }
  }
});

for (const file of [
  'README.md',
  'docs/README.md',
  'docs/hardening.md',
  'docs/releasing.md',
  'SECURITY.md',
  'docs/first-steps.md',
  'docs/performance.md',
  'docs/testing.md',
  'docs/design/layout.md',
  'CHANGELOG.md',
]) {
  test(`${file}: every file that it links to exists`, () => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const targets = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(([, target]) => target!);
    const dead = targets.filter((target) => !/^https?:/.test(target) && !existsSync(join(ROOT, file, '..', target)));
    assert.deepEqual(dead, []);
  });
}

function missingCurl(): string | false {
  return spawnSync('curl', ['--version']).status === 0 ? false : 'curl is not installed';
}
