// The page about hardening: a recorder with its configuration prints what the page says, command by command.

import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { blocks } from '../support/blocks.ts';
import { Child } from '../support/child.ts';
import { freePorts, MAIN, RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';

const PAGE = blocks('docs/hardening.md');
const TOKEN = 'that-of-the-page-about-hardening';
const missingCurl = spawnSync('curl', ['--version']).status !== 0 && 'curl is not installed';

describe('the page about hardening', { skip: missingCurl }, () => {
  let directory: string;
  let recorder: RecorderProcess;
  let run: (script: string) => Promise<{ code: number | null; output: string }>;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kube-nvr-hardening-'));
    const { text } = PAGE.find(({ language }) => language === 'yaml')!;
    const page = join(directory, 'page.yaml');
    writeFileSync(page, text);
    const { auth, metrics, tls, cameraNetworks, audit } = parse(text) as {
      auth: { tokens: readonly [object] };
      metrics: object;
    } & Readonly<Record<string, unknown>>;
    const [port] = await freePorts(1);
    const sha256 = createHash('sha256').update(TOKEN).digest('hex');
    recorder = await RecorderProcess.start({
      directory,
      // It trusts the certificate after the start.
      waitUntilReady: false,
      // All but the addresses: that of the camera is of nobody here.
      config: {
        tls,
        cameraNetworks,
        audit,
        auth: { ...auth, tokens: [{ ...auth.tokens[0], sha256 }] },
        metrics: { ...metrics, listen: `127.0.0.1:${port}` },
      },
    });
    const authority = join(directory, 'work/tls/certificate.pem');
    const env = { ...process.env, TOKEN, CURL_CA_BUNDLE: authority };
    run = async (script) => {
      const here = script
        .replaceAll('https://nvr:9997', recorder.url.replace('http:', 'https:'))
        .replaceAll('http://nvr:9997', recorder.url)
        .replaceAll('https://nvr:9998', new URL(recorder.metricsUrl).origin.replace('http:', 'https:'))
        .replaceAll('/etc/recorder/config.yaml', page)
        .replace(/^recorder /, `${process.execPath} ${MAIN} `);
      await using child = new Child('bash', ['-o', 'pipefail', '-c', here], { env });
      return { code: (await child.exit()).code, output: child.output };
    };
    await until('it answers', async () => (await run('curl -sf https://nvr:9997/api/health/ready')).code === 0);
  });
  after(async () => {
    await recorder?.child[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  PAGE.forEach(({ language, text }, index) => {
    if (language !== 'sh') return;
    const next = PAGE[index + 1];
    test(text.trim(), async () => {
      const expected = next?.language === '' ? next.text : undefined;
      // The audit is written a moment after the answer that it is about.
      await until(text, async () => {
        const { code, output } = await run(text);
        return code === 0 && output === (expected ?? output);
      });
    });
  });

  test('there are commands to follow', () => {
    assert.ok(PAGE.filter(({ language }) => language === 'sh').length >= 8);
  });
});
