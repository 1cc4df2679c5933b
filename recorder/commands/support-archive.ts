// One archive with what support needs to know of a site, and none of its secrets.

import { gzipSync } from 'node:zlib';
import { messageOf } from '../../base/error.ts';
import { CAMERAS, RECORDER_NODES, RECORDER_POOLS } from '../../crds/names.ts';
import type { CommandContext } from './command.ts';
import { nodesIn, type Site } from './site.ts';

/** Of each node. */
const ASKED = ['/api/health/ready', '/cluster/metrics', '/api/cameras', '/api/alarms', '/api/metrics'] as const;

/** A tar file, compressed. What cannot be read is a file that says why. */
export async function supportArchive(site: Site, { clock, version }: CommandContext): Promise<Buffer> {
  const files = new Map<string, string>([
    ['about.json', json({ time: new Date(clock.wallMs()).toISOString(), version })],
  ]);
  const add = async (name: string, read: () => Promise<unknown>): Promise<unknown> => {
    const found = await read().catch((err: unknown) => ({ notRead: messageOf(err) }));
    files.set(name, json(found));
    return found;
  };
  for (const plural of [RECORDER_POOLS, RECORDER_NODES, CAMERAS]) {
    await add(`objects/${plural}.json`, () => site.list(plural));
  }
  const call = async (path: string): Promise<unknown> => (await site.recorder()).call('GET', path);
  for (const [node, via] of nodesIn(await add('cluster.json', () => call('/cluster/cameras')))) {
    for (const path of ASKED) await add(`nodes/${node}${path}.json`, () => call(`${via}${path}`));
  }
  for (const [name, content] of await site.more()) files.set(name, content);
  return gzipSync(
    tar(
      Array.from(files, ([name, content]) => ({ name, content: withoutSecrets(content) })),
      clock.wallMs(),
    ),
  );
}

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

const SECRET_WORD = String.raw`[\w.-]*(?:password|passwd|passphrase|token|secret|authorization|api[_-]?key|private[_-]?key|accessKey)[\w.-]*`;

/** Replaces what could let its reader in: in addresses, in queries, in headers, in fields by their name, and keys in PEM. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, '***')
    .replace(/:\/\/[^\s/?#"'@\\]*@/g, '://***@')
    .replace(/\b(Bearer|Basic|Digest)\s+[^\s"\\,]+/gi, '$1 ***')
    .replace(new RegExp(String.raw`("${SECRET_WORD}"\s*:\s*")(?:[^"\\]|\\.)*`, 'gi'), '$1***')
    // The same in a line of a log that is itself a text in JSON.
    .replace(new RegExp(String.raw`(\\"${SECRET_WORD}\\"\s*:\s*\\")(?:[^"\\]|\\\\(?:\\.)?)*`, 'gi'), '$1***')
    .replace(new RegExp(String.raw`\b(${SECRET_WORD}=)[^\s&"\\]+`, 'gi'), '$1***');

const BLOCK = 512;

/** POSIX.1-1988 ustar. */
function tar(files: readonly { readonly name: string; readonly content: string }[], nowMs: number): Buffer {
  const blocks = files.flatMap(({ name, content }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(BLOCK);
    const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
    header.write(name.slice(-100), 0); // name
    header.write(octal(0o600, 7), 100); // mode
    header.write(octal(0, 7), 108); // uid
    header.write(octal(0, 7), 116); // gid
    header.write(octal(body.length, 11), 124); // size
    header.write(octal(Math.floor(nowMs / 1_000), 11), 136); // mtime
    header.write(' '.repeat(8), 148); // checksum, while it is computed
    header.write('0', 156); // typeflag: a file
    header.write('ustar\x0000', 257); // magic, version
    header.write(
      `${octal(
        header.reduce((sum, byte) => sum + byte, 0),
        6,
      )} `,
      148,
    );
    return [header, body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}
