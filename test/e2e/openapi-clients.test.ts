// Clients that generators make of the OpenAPI document: they compile, and do what docs/first-steps.md does with a recorder
// that records. And the document against that of the last release: what clients rely on is still there.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { execFile, type ExecFileException } from 'node:child_process';
import { wholeDocument } from '../../build/generate-openapi.ts';
import { startCamera } from '../camera/camera.ts';
import { RecorderProcess } from '../support/recorder-process.ts';
import { until } from '../support/until.ts';
import { workspace } from '../support/workspace.ts';

const ROOT = join(import.meta.dirname, '../..');
const SETTINGS = join(ROOT, 'test/openapi');
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'kube-nvr');
const NODE_MODULES = join(CACHE, 'openapi-typescript/node_modules');
const PYTHON = join(CACHE, 'openapi-python-client/bin');
const version = (module: string): string =>
  new RegExp(`^require ${module} (.*)$`, 'm').exec(readFileSync(join(ROOT, 'test/rig/openapi/go.mod'), 'utf8'))?.[1] ??
  '';
const CODEGEN = join(CACHE, 'oapi-codegen', version('github.com/oapi-codegen/oapi-codegen/v2'), 'oapi-codegen');
const OASDIFF = join(CACHE, 'oasdiff', version('github.com/oasdiff/oasdiff'), 'oasdiff');
const TOKEN = 'a-token-for-this-test';

const missing = (file: string): string | false => !existsSync(file) && `not installed: hack/setup clients`;

/** What a program printed; rejects with all of it when it fails. */
async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, ...env }, maxBuffer: 64 * 2 ** 20 };
  try {
    return (await promisify(execFile)(command, [...args], options)).stdout;
  } catch (err) {
    const { message, stdout = '', stderr = '' } = err as ExecFileException;
    throw new Error(`${message}\n${stdout.slice(-5_000)}\n${stderr.slice(-5_000)}`, { cause: err });
  }
}

/** A recorder with a camera of which there is footage, and what its own answers say. */
async function recording(t: TestContext): Promise<{ env: Record<string, string>; expected: object }> {
  const camera = await startCamera({ pace: 'realtime' });
  t.after(() => camera.close());
  const sha256 = createHash('sha256').update(TOKEN).digest('hex');
  const recorder = await RecorderProcess.start({
    directory: workspace(t),
    config: {
      auth: { mode: 'token', tokens: [{ name: 'test', role: 'admin', sha256 }] },
      cameras: [{ id: 'gate', name: 'Front gate', source: camera.url }],
    },
  });
  t.after(() => recorder.stop());
  const ask = async (path: string): Promise<Response> =>
    fetch(`${recorder.url}${path}`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const answer = async <T>(path: string): Promise<T> => (await ask(path)).json() as Promise<T>;
  await until('the camera is written', async () => (await ask('/api/archive/gate/current')).ok);
  type Known = { name: string; codecs: { video: { width: number } } };
  const { name, codecs } = await answer<Known>('/api/cameras/gate');
  const { archive } = await answer<{ archive: { filename: string; start_ms: number }[] }>('/api/archive/gate/segments');
  const [segment] = archive;
  assert.ok(segment);
  const { node_name } = await answer<{ node_name: string }>('/api/metrics');
  return {
    env: { RECORDER: recorder.url, TOKEN },
    expected: {
      status: 'ready',
      camera: name,
      width: codecs.video.width,
      filename: segment.filename,
      start_ms: segment.start_ms,
      current: segment.filename,
      node: node_name,
      code: 'unknown-camera',
      box: 'ftyp',
    },
  };
}

describe('clients that are generated from the OpenAPI document do what docs/first-steps.md does', () => {
  let document: string;
  before(async () => {
    document = JSON.stringify(await wholeDocument());
  });

  const written = (directory: string): string => {
    const file = join(directory, 'openapi.json');
    writeFileSync(file, document);
    return file;
  };

  test('TypeScript: openapi-typescript', { skip: missing(NODE_MODULES) }, async (t) => {
    const directory = workspace(t);
    symlinkSync(NODE_MODULES, join(directory, 'node_modules'));
    copyFileSync(join(SETTINGS, 'clients/client.ts'), join(directory, 'client.ts'));
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
    const types = join(directory, 'schema.d.ts');
    const generator = join(NODE_MODULES, 'openapi-typescript/bin/cli.js');
    await run(process.execPath, [generator, written(directory), '--output', types], directory);
    const options = [
      '--strict',
      '--noEmit',
      '--target',
      'es2024',
      '--module',
      'preserve',
      '--moduleResolution',
      'bundler',
    ];
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    await run(
      process.execPath,
      [tsc, ...options, '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types'), 'client.ts'],
      directory,
    );
    const { env, expected } = await recording(t);
    assert.deepEqual(JSON.parse(await run(process.execPath, ['client.ts'], directory, env)), expected);
  });

  test('Go: oapi-codegen', { skip: missing(CODEGEN) }, async (t) => {
    const directory = workspace(t);
    for (const file of ['go.mod', 'go.sum']) copyFileSync(join(ROOT, 'test/rig/openapi', file), join(directory, file));
    copyFileSync(join(SETTINGS, 'clients/main.go'), join(directory, 'main.go'));
    mkdirSync(join(directory, 'client'));
    const output = join(directory, 'client/client.go');
    await run(
      CODEGEN,
      ['-package', 'client', '-generate', 'types,client', '-o', output, written(directory)],
      directory,
    );
    // The modules were fetched with the generator.
    const offline = { GOPROXY: 'off', GOFLAGS: '-mod=readonly', GOTOOLCHAIN: 'local', CGO_ENABLED: '0' };
    await run('go', ['build', '-o', 'example', '.'], directory, offline);
    const { env, expected } = await recording(t);
    assert.deepEqual(JSON.parse(await run(join(directory, 'example'), [], directory, env)), expected);
  });

  test('Python: openapi-python-client', { skip: missing(PYTHON) }, async (t) => {
    const directory = workspace(t);
    const made = join(directory, 'made');
    const config = join(SETTINGS, 'clients/openapi-python-client.yaml');
    const args = [
      'generate',
      '--fail-on-warning',
      '--config',
      config,
      '--output-path',
      made,
      '--path',
      written(directory),
    ];
    const path = `${PYTHON}:${process.env['PATH']}`;
    await run(join(PYTHON, 'openapi-python-client'), args, directory, { PATH: path });
    const python = join(PYTHON, 'python');
    await run(python, ['-W', 'error', '-m', 'compileall', '-q', made], directory);
    const { env, expected } = await recording(t);
    const printed = await run(python, [join(SETTINGS, 'clients/client.py')], directory, { ...env, PYTHONPATH: made });
    assert.deepEqual(JSON.parse(printed), expected);
  });
});

describe('the OpenAPI document against that of the last release', { skip: missing(OASDIFF) }, () => {
  const RELEASED = join(SETTINGS, 'released.json');

  interface Change {
    readonly level: number;
    readonly operation: string;
    readonly path: string;
    readonly text: string;
  }
  /** Below it: new values of enumerations, which answers may have. */
  const ERROR = 3;

  /** What of `document` breaks clients of the last release. */
  async function broken(t: TestContext, document: unknown): Promise<string[]> {
    const directory = workspace(t);
    const file = join(directory, 'openapi.json');
    writeFileSync(file, JSON.stringify(document));
    const found = JSON.parse(
      await run(OASDIFF, ['breaking', RELEASED, file, '--format', 'json'], directory),
    ) as Change[];
    return found
      .filter(({ level }) => level === ERROR)
      .map(({ operation, path, text }) => `${operation} ${path}: ${text}`)
      .sort();
  }

  test('nothing that clients rely on is gone or another', async (t) => {
    assert.deepEqual(await broken(t, await wholeDocument()), [], 'docs/releasing.md says what to do');
  });

  test('a field that is gone, one of another type and a path that is gone are found', async (t) => {
    type Changed = {
      paths: Record<string, unknown>;
      components: { schemas: Record<string, { properties: Record<string, { type: string }>; required: string[] }> };
    };
    const changed = structuredClone(await wholeDocument()) as unknown as Changed;
    const { Segment, Job } = changed.components.schemas;
    assert.ok(Segment && Job);
    delete Segment.properties['mtime'];
    Segment.required = Segment.required.filter((name) => name !== 'mtime');
    Job.properties['kind'] = { type: 'integer' };
    delete changed.paths['/api/log'];
    const found = (await broken(t, changed)).join('\n');
    for (const word of [/mtime/, /kind/, /\/api\/log/]) assert.match(found, word);
  });
});
