// The OpenAPI documents against a recorder that records: they are well-formed and complete, and whatever is sent to the API
// by its document or against it, no answer is one that it does not list.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { spawn } from 'node:child_process';
import { startCamera } from '../camera/camera.ts';
import { browserMissing, launchBrowser } from '../support/browser.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { API_ROUTES, PLAYBACK_ROUTES } from './routes.ts';
import { newSeed } from '../support/random.ts';
import { workspace } from '../support/workspace.ts';
import { LONG } from '../support/variant.ts';

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr');
const REDOCLY = join(CACHE, 'redocly/node_modules/@redocly/cli/bin/cli.js');
const SCHEMATHESIS = join(CACHE, 'schemathesis/bin/schemathesis');
const SETTINGS = join(import.meta.dirname, '../openapi');
const TOKEN = 'a-token-for-this-test';
/** Of the requests; generating the first of them takes as long again. */
const SECONDS = LONG ? 1_200 : 25;

const missing = (file: string): string | false => !existsSync(file) && `not installed: hack/setup api`;

async function recorderOf(t: TestContext): Promise<RecorderProcess> {
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      auth: { mode: 'token', tokens: [{ name: 'test', role: 'admin', sha256 }] },
      trustedProxies: ['127.0.0.1'],
      archive: { segmentDuration: '2s' },
      cameras: [{ id: 'gate', source: camera.url }],
    },
  });
  // In order: its Redis ends with it.
  t.after(() => recorder.stop());
  return recorder;
}

/** The end of a program, and what it printed. */
async function run(command: string, args: readonly string[], cwd: string): Promise<{ code: number; output: string }> {
  const env = {
    ...process.env,
    SCHEMATHESIS_HOOKS: join(SETTINGS, 'schemathesis_hooks.py'),
    REDOCLY_TELEMETRY: 'off',
    REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
    NO_COLOR: '1',
  };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += text.toString()));
  const [code] = (await once(child, 'close')) as [number];
  return { code, output };
}

interface Operation {
  readonly operationId?: string;
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { example?: unknown }>> }>>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const documentAt = async (url: string): Promise<Document> =>
  (await (await fetch(`${url}/openapi.json`)).json()) as Document;

/** Pages, the document itself, and what only other nodes, browsers on their way to an issuer, and issuers ask. */
const NOT_DESCRIBED = /^GET \/($|page\/|reference|openapi\.json|footage\/)|^OPTIONS |^\w+ \/api\/sign-in\//;

const describedIn = ({ paths }: Document): string[] =>
  Object.entries(paths).flatMap(([path, operations]) =>
    methodsOf(operations).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
  );
const methodsOf = (operations: object): string[] => Object.keys(operations).filter((key) => key !== 'servers');
const shownOf = (routes: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(routes).filter((name) => !NOT_DESCRIBED.test(name));

test('the documents of API and playback describe every route, and every answer in JSON by an example', async (t) => {
  const recorder = await recorderOf(t);
  const playback = await documentAt(recorder.playbackUrl);
  assert.equal(playback.openapi, '3.1.0');
  const files = shownOf(PLAYBACK_ROUTES).map((name) => name.replace('*', ':filename'));
  assert.deepEqual(describedIn(playback).sort(), files.sort());
  const document = await documentAt(recorder.url);
  const { openapi, paths } = document;
  assert.equal(openapi, '3.1.0');
  assert.deepEqual(describedIn(document).sort(), [...shownOf(API_ROUTES), ...files].sort(), 'one document has both');
  const { servers } = paths['/{filename}'] as unknown as { servers: { url: string }[] };
  assert.equal(servers[0]?.url, recorder.playbackUrl);
  const bare = Object.entries(paths).flatMap(([path, operations]) =>
    methodsOf(operations).flatMap((method) =>
      Object.entries(operations[method]?.responses ?? {}).flatMap(([status, { content }]) => {
        const json = content?.['application/json'];
        return json && json.example === undefined ? [`${method.toUpperCase()} ${path} ${status}`] : [];
      }),
    ),
  );
  assert.deepEqual(bare, [], 'without an example: config.examples of the route');
});

test('the documents pass their lint', { skip: missing(REDOCLY) }, async (t) => {
  const directory = workspace(t);
  const config = join(SETTINGS, 'redocly.yaml');
  const recorder = await recorderOf(t);
  for (const [name, url] of Object.entries({ api: recorder.url, playback: recorder.playbackUrl })) {
    const file = join(directory, `${name}.json`);
    writeFileSync(file, JSON.stringify(await documentAt(url), undefined, 2));
    const { code, output } = await run(process.execPath, [REDOCLY, 'lint', file, '--config', config], directory);
    assert.equal(code, 0, output);
  }
});

test(
  'requests by the document and against it get no answer that it does not list',
  { skip: missing(SCHEMATHESIS) },
  async (t) => {
    const recorder = await recorderOf(t);
    const args = ['--config-file', join(SETTINGS, 'schemathesis.toml'), 'run', `${recorder.url}/openapi.json`];
    args.push('--header', `Authorization: Bearer ${TOKEN}`, '--checks', 'all', '--max-time', String(SECONDS));
    args.push('--max-response-time', '30');
    // They are of another listener.
    args.push('--exclude-tag', 'playback');
    if (!LONG) args.push('--max-examples', '5');
    args.push('--seed', String(process.env['TEST_SEED'] ?? newSeed()));
    const { code, output } = await run(SCHEMATHESIS, args, workspace(t));
    t.diagnostic(/Test cases:\n\s*(.*)/.exec(output)?.[1] ?? 'no summary');
    assert.equal(code, 0, `${output.slice(-20_000)}\n${recorder.child.output.slice(-5_000)}`);
    assert.doesNotMatch(recorder.child.output, /"a request failed"/, 'nothing failed inside');
  },
);

test(
  'the page for reading shows the fields of every answer, also of what is named elsewhere',
  { skip: browserMissing() },
  async (t) => {
    const recorder = await recorderOf(t);
    const browser = await launchBrowser();
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(`${recorder.url}/reference`);
    const cameras = page
      .locator('details', { has: page.locator('summary code', { hasText: /^\/api\/cameras$/ }) })
      .first();
    await cameras.waitFor();
    assert.match((await cameras.textContent()) ?? '', /cameras\.codecs\.video\.width/);
    assert.ok((await page.locator('details').count()) > 40, 'playback is there, too');
  },
);
