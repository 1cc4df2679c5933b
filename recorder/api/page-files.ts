// The files of the page as browsers get them: TypeScript without its types, the libraries that it uses at addresses of their
// own, and everything under an address that changes with the content.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join, posix, relative, sep } from 'node:path';

/** By the name under which the page imports them: file in `node_modules`, and the name below `vendor/`. */
const LIBRARIES: Readonly<Record<string, readonly [file: string, name: string]>> = {
  preact: ['preact/dist/preact.mjs', 'preact.js'],
  'preact/hooks': ['preact/hooks/dist/hooks.mjs', 'preact-hooks.js'],
  '@preact/signals': ['@preact/signals/dist/signals.mjs', 'signals.js'],
  '@preact/signals-core': ['@preact/signals-core/dist/signals-core.mjs', 'signals-core.js'],
  htm: ['htm/dist/htm.mjs', 'htm.js'],
  'hls.js': ['hls.js/dist/hls.light.min.mjs', 'hls.js'],
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
};

interface PageFile {
  /** The value of the header `content-type`. */
  readonly type: string;
  readonly body: string;
  /** SHA-256 of the body, base64url. */
  readonly digest: string;
}

export interface PageFiles {
  /** By the path below the page's directory. */
  readonly files: ReadonlyMap<string, PageFile>;
  /** A digest of all files. */
  readonly version: string;
}

/**
 * Reads the page from its directory in the sources, or from one that a build has written: the latter has the libraries and no
 * types. `strip` removes the types of a source. Other work gets its turn between two files.
 */
export async function readPage(directory: string, strip: (source: string) => string = stripTypes): Promise<PageFiles> {
  const isBuilt = existsSync(join(directory, 'vendor'));
  const files = new Map<string, PageFile>();
  const add = (path: string, body: string): void => {
    const digest = createHash('sha256').update(body).digest('base64url');
    files.set(path, { type: TYPES[extname(path)] ?? '', body, digest });
  };
  for (const path of await pathsIn(directory)) {
    const source = await readFile(join(directory, path), 'utf8');
    const isScript = /\.[jt]s$/.test(path);
    const script = isScript && !isBuilt ? withAddresses(path, path.endsWith('.ts') ? strip(source) : source) : source;
    add(path, script);
  }
  if (!isBuilt) {
    for (const file of libraryFiles()) {
      const source = (await readFile(file.path, 'utf8')).replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '\n');
      add(`vendor/${file.name}`, withAddresses(`vendor/${file.name}`, source));
    }
  }
  return { files, version: versionOf(files) };
}

/** The libraries in `node_modules`: what a build lists with their licences. */
export function libraryFiles(): readonly { readonly path: string; readonly name: string }[] {
  const modules = modulesDirectory();
  return Object.values(LIBRARIES).map(([file, name]) => ({ path: join(modules, file), name }));
}

/** `node_modules`: packages do not export every file that browsers load, so they are read by their path. */
function modulesDirectory(): string {
  try {
    return (
      createRequire(import.meta.url)
        .resolve('preact')
        .split(`${sep}preact${sep}`)[0] ?? ''
    );
  } catch (err) {
    throw new Error('the libraries of the page are not installed: run npm ci', { cause: err });
  }
}

async function pathsIn(directory: string): Promise<readonly string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter(
      (entry) =>
        entry.isFile() && TYPES[extname(entry.name)] !== undefined && !/\.(test|support)\.ts$/.test(entry.name),
    )
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

/** The import of a package. Requires a quoted name, so that the words `from` and `import` in other text do not match. */
const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])(@?[a-z][\w./-]*)\2/g;

/** Browsers do not know where packages are: their names become addresses. Throws for a package that is not served. */
function withAddresses(path: string, source: string): string {
  return source.replace(IMPORT, (_all, before: string, quote: string, name: string) => {
    const library = LIBRARIES[name];
    if (!library) throw new Error(`${path}: the page imports ${name}, which is not served`);
    const up = relative(dirname(`/${path}`), `/vendor/${library[1]}`)
      .split(sep)
      .join('/');
    return `${before}${quote}${up.startsWith('.') ? up : `./${up}`}${quote}`;
  });
}

/** Keeps lines and columns: what the browser's debugger shows is the source. */
function stripTypes(source: string): string {
  const warn = process.emitWarning.bind(process);
  // Suppresses Node's warning that the function is experimental: a test checks the behaviour that is needed of it.
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = warn;
  }
}

/** The modules that a browser needs before it can run `entry`: those it imports, directly and indirectly. */
export function preloadsOf(files: ReadonlyMap<string, PageFile>, entry: string): readonly string[] {
  const found = new Set([entry]);
  for (const path of found) {
    for (const [, name = ''] of files.get(path)?.body.matchAll(STATIC_IMPORT) ?? []) {
      const target = posix.join(dirname(path), name);
      if (files.has(target)) found.add(target);
    }
  }
  return [...found];
}

const STATIC_IMPORT = /(?:\bfrom|\bimport)\s*["'](\.[^"']+)["']/g;

function versionOf(files: ReadonlyMap<string, PageFile>): string {
  const hash = createHash('sha256');
  for (const [path, { digest }] of files) hash.update(`${path}\0${digest}\0`);
  return hash.digest('base64url').slice(0, 16);
}
