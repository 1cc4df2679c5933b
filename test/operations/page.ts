// The pages of docs/operations as scripts: what stands in their console blocks is run, and must print what stands there.
//
//     $ kubectl get cameras            a command; questions (kubectl get, recorder get, curl without -X) are repeated until they
//                                      print what follows
//     NAME   NODE   …
//     node-2# mkdir /mnt/archive       a command on a node, whose disk is a directory here, or on a server
//     # node-2 loses power             something that no command does: the test does it
//
// Tables are compared cell by cell except for columns that are never the same twice; in other output ages, times,
// addresses and ids are passed over, and a line `…` stands for any number of lines. The sections of a page for servers without
// Kubernetes say so in their titles.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Ran {
  readonly code: number;
  readonly printed: string;
}

interface Shell {
  readonly env: NodeJS.ProcessEnv;
  readonly directory: string;
  /** Where the disk of a node is. */
  readonly root: (node: string) => string;
}

/** Servers without Kubernetes: all commands are run on one of them. */
interface ServerShell {
  readonly on: (server: string, script: string) => Promise<Ran>;
}

interface Follow {
  /** What lines that begin with `# ` stand for. */
  readonly events?: Readonly<Record<string, () => unknown>>;
  /** Columns that differ from run to run. With `NAME` among them, rows may be in any order. */
  readonly any?: readonly string[];
  /** Columns that are compared although they often differ. */
  readonly exact?: readonly string[];
  /** Names that stand for others this time. */
  readonly names?: Readonly<Record<string, string>>;
}

type Line =
  | { readonly kind: 'event'; readonly text: string }
  | { readonly kind: 'command'; readonly command: string; readonly node?: string; output: string };

interface Section {
  readonly title: string;
  readonly lines: readonly Line[];
}

const PAGES = join(import.meta.dirname, '../../docs/operations');
const VOLATILE = ['AGE', 'ASSIGNED', 'EPOCH', 'SOURCE', 'ADDRESS', 'ARCHIVE', 'FREE', 'VERSION', 'IP', 'RESTARTS'];
const TIMEOUT_MS = 600_000;
const SERVERS = 'without Kubernetes';
/** kubectl got no schemas from a busy API server, and has sent nothing: it says to try again. */
const NOT_SENT = /error validating data: .*(deadline exceeded|Client\.Timeout)/;

export class Page {
  readonly #sections: readonly Section[];
  readonly #shell: Shell | ServerShell;
  readonly #left: Set<string>;
  /** Variables that earlier commands of the page have set. */
  readonly #variables: string[] = [];

  constructor(name: string, shell: Shell | ServerShell) {
    const isOfServers = 'on' in shell;
    this.#sections = sectionsOf(readFileSync(join(PAGES, name), 'utf8')).filter(
      ({ title }) => title.includes(SERVERS) === isOfServers,
    );
    this.#shell = shell;
    this.#left = new Set(this.#sections.filter(({ lines }) => lines.length > 0).map(({ title }) => title));
  }

  /** Does all that stands under a heading. */
  async follow(title: string, { events = {}, any = [], exact = [], names = {} }: Follow = {}): Promise<void> {
    const section = this.#sections.find((one) => one.title === title);
    assert.ok(section, `the page has no heading ${title}`);
    this.#left.delete(title);
    const volatile = [...VOLATILE.filter((column) => !exact.includes(column)), ...any];
    for (const line of section.lines.map((one) => renamed(one, names))) {
      if (line.kind === 'command') {
        await this.#run(line, volatile);
        continue;
      }
      const happen = events[line.text];
      assert.ok(happen, `nobody does: ${line.text}`);
      await happen();
    }
  }

  /** Throws when the page tells of commands that were not followed. */
  end(): void {
    assert.deepEqual([...this.#left], [], 'headings with commands that nobody has followed');
  }

  async #run({ command, node, output }: Line & { kind: 'command' }, volatile: readonly string[]): Promise<void> {
    if (/^[A-Z_]+=/.test(command)) {
      this.#variables.push(command);
      return;
    }
    const isQuestion = /^((kubectl|recorder) get |curl (?!.* -X ))/.test(command);
    const deadlineMs = performance.now() + TIMEOUT_MS;
    for (;;) {
      const { code, printed } = await this.#try(command, node);
      if (code === 0 && (output === '' || matches(printed, output, volatile))) return;
      const isToBeRepeated = isQuestion || (code !== 0 && NOT_SENT.test(printed));
      if (!isToBeRepeated || performance.now() > deadlineMs) {
        throw new assert.AssertionError({
          message: `${command}\nends with ${code} and prints\n${printed}\ninstead of\n${output}`,
          actual: printed,
          expected: output,
        });
      }
      await sleep(200);
    }
  }

  #try(command: string, node: string | undefined): Promise<Ran> {
    const shell = this.#shell;
    if ('on' in shell) return shell.on(node ?? '', [...this.#variables, command].join('\n'));
    const here = node === undefined ? command : onDisk(command, shell.root(node));
    return this.#bash([...this.#variables, here].join('\n'), shell);
  }

  #bash(script: string, { env, directory }: Shell): Promise<Ran> {
    return new Promise((resolve) => {
      execFile('bash', ['-c', `exec 2>&1\n${script}`], { env, cwd: directory }, (error, stdout) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? 1 : 0, printed: stdout });
      });
    });
  }
}

/** A line with other names, all replaced at once. */
function renamed(line: Line, names: Readonly<Record<string, string>>): Line {
  const known = Object.keys(names);
  if (known.length === 0) return line;
  const pattern = new RegExp(`\\b(${known.join('|')})\\b`, 'g');
  const other = (text: string): string => text.replaceAll(pattern, (name) => names[name] ?? name);
  if (line.kind === 'event') return { ...line, text: other(line.text) };
  const { command, node, output } = line;
  return { ...line, command: other(command), output: other(output), ...(node !== undefined && { node: other(node) }) };
}

const onDisk = (command: string, root: string): string =>
  command.replaceAll(/(?<![\w.])\/(mnt|var\/lib)\b/g, `${root}/$1`);

export function sectionsOf(text: string): readonly Section[] {
  const sections: { title: string; lines: Line[] }[] = [];
  let block: string[] | undefined;
  let isCode = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) {
      if (block) sections.at(-1)?.lines.push(...linesOf(block));
      block = !isCode && line === '```console' ? [] : undefined;
      isCode = !isCode;
    } else if (isCode) block?.push(line);
    else if (/^#+ /.test(line)) sections.push({ title: line.replace(/^#+ /, ''), lines: [] });
  }
  return sections;
}

function linesOf(block: readonly string[]): readonly Line[] {
  const lines: Line[] = [];
  let isContinued = false;
  for (const text of block) {
    const last = lines.at(-1);
    const [, node, command] = /^(?:(\S+)# |\$ )(.*)$/.exec(text) ?? [];
    if (isContinued && last?.kind === 'command') {
      lines[lines.length - 1] = { ...last, command: `${last.command}\n${text}` };
      isContinued = text.endsWith('\\');
    } else if (command !== undefined) {
      lines.push({ kind: 'command', command, output: '', ...(node !== undefined && { node }) });
      isContinued = command.endsWith('\\');
    } else if (text.startsWith('# ')) lines.push({ kind: 'event', text: text.slice(2) });
    else if (text.trim() !== '' && last?.kind === 'command') last.output += `${text}\n`;
  }
  return lines;
}

export function matches(printed: string, shown: string, volatile: readonly string[] = VOLATILE): boolean {
  const [expected, actual] = [shown, printed].map((text) => tableOf(text, volatile));
  if (expected) return actual !== undefined && JSON.stringify(actual) === JSON.stringify(expected);
  const wanted = maskedLines(shown);
  const found = maskedLines(printed);
  return isCovered(found, wanted);
}

/** Undefined when it is no table of `kubectl get`. */
function tableOf(text: string, volatile: readonly string[]): readonly (readonly string[])[] | undefined {
  const [header = '', ...rows] = text.split('\n').filter((line) => line.trim() !== '');
  if (!/^[A-Z][A-Z ]*$/.test(header)) return undefined;
  const columns = [...header.matchAll(/[A-Z]+( [A-Z]+)*/g)].map(({ 0: name, index }) => ({ name, index }));
  const cells = rows.map((row) =>
    columns.map(({ name, index }, i) =>
      volatile.includes(name) ? '' : row.slice(index, columns[i + 1]?.index).trim(),
    ),
  );
  if (volatile.includes('NAME')) cells.sort((a, b) => (a.join() < b.join() ? -1 : 1));
  return [columns.map(({ name }) => name), ...cells];
}

const maskedLines = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) =>
      line
        .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)/g, 'TIME')
        .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'ID')
        .replaceAll(/\b\d{1,3}(\.\d{1,3}){3}\b/g, 'ADDRESS')
        .replaceAll(/\b(\d+[smhd])+\b/g, 'AGE')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => line !== '');

function isCovered(found: readonly string[], wanted: readonly string[]): boolean {
  const [first, ...rest] = wanted;
  if (first === undefined) return found.length === 0;
  if (first !== '…') return found[0] === first && isCovered(found.slice(1), rest);
  return found.some((_, i) => isCovered(found.slice(i), rest)) || rest.length === 0;
}
