// The command `recorder verify`: checks whether an export, a case or a report is as the node made it.

import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { checkedText } from '../jobs/signed-text.ts';
import { fingerprintOf } from '../jobs/node-key.ts';
import { VerifyError, verifyResult } from '../jobs/verify.ts';
import { parsedArgs, UsageError, type CommandContext } from './command.ts';

export const usage = `Usage: recorder verify FILE [--manifest FILE] [--key FILE | --fingerprint HEX]

Checks that a case, or an export with its manifest, is as the node made it: signature, sizes, hashes, and that footage
and gaps cover the window; of a report (.json, .html) the signature. Exits with 0 if all is right, 1 if something is
wrong, 2 if this cannot be determined.

  --manifest FILE    manifest of a movie, or of a ZIP file without one (default FILE.manifest.json); its signature is in
                     the file of that name with .sig
  --key FILE         the public key of the node, PEM, from GET /api/keys
  --fingerprint HEX  or its fingerprint; without either, nothing proves who made the file, and it exits with 2
`;

export async function run(args: readonly string[], { print }: Pick<CommandContext, 'print'>): Promise<number> {
  try {
    const { path, manifest, key, fingerprint } = parse(args);
    if (path === undefined) throw new UsageError('expected a file');
    const report = checkedReport(path, key ? fingerprintOf(key) : fingerprint);
    const { right, wrong } = report ?? (await verifyResult({ path, manifest, key, fingerprint }));
    for (const line of right) print(`ok     ${printable(line)}\n`);
    for (const line of wrong) print(`WRONG  ${printable(line)}\n`);
    if (wrong.length > 0) {
      print('not as it was made\n');
      return 1;
    }
    if (key === undefined && fingerprint === undefined) {
      print('cannot be determined: whose key this is; anybody can sign, so pass --key or --fingerprint of the node\n');
      return 2;
    }
    print('as it was made\n');
    return 0;
  } catch (err) {
    if (!(err instanceof VerifyError)) throw err;
    print(`cannot be checked: ${err.message}\n`);
    return 2;
  }
}

/** No report is larger: it has a row a camera and day. */
const MAX_REPORT_BYTES = 64 * 1024 * 1024;

/** Undefined for a file that is no signed report. */
function checkedReport(path: string, wanted: string | undefined) {
  if (
    !/\.(json|html)$/.test(path) ||
    (statSync(path, { throwIfNoEntry: false })?.size ?? Infinity) > MAX_REPORT_BYTES
  ) {
    return undefined;
  }
  const found = checkedText(readFileSync(path));
  if (!found) return undefined;
  const { fingerprint, isRight } = found;
  if (!isRight) return { right: [], wrong: ['the report was changed after it was signed'] };
  const right = [`the report was signed with key ${fingerprint} and has not been changed since`];
  if (wanted === undefined) return { right, wrong: [] };
  return wanted === fingerprint
    ? { right: [...right, 'that is the expected key'], wrong: [] }
    : { right, wrong: [`it was signed with key ${fingerprint}, not with ${wanted}`] };
}

/** Escapes control characters: a manifest may contain terminal commands. */
const printable = (line: string): string => line.replaceAll(/\p{C}/gu, '?');

function parse(args: readonly string[]) {
  const { values, positionals } = parsedArgs(args, {
    allowPositionals: true,
    options: { manifest: { type: 'string' }, key: { type: 'string' }, fingerprint: { type: 'string' } },
  });
  if (positionals.length > 1) throw new UsageError('expected one file');
  const { manifest, key, fingerprint } = values;
  return {
    path: positionals[0],
    manifest,
    key: key === undefined ? undefined : keyIn(key),
    fingerprint: fingerprint === undefined ? undefined : digits(fingerprint),
  };
}

function keyIn(path: string): KeyObject {
  try {
    return createPublicKey(readFileSync(path));
  } catch (err) {
    throw new VerifyError(`--key ${path}: not a public key (${(err as Error).message})`);
  }
}

/** Accepts hex of any case, with or without colons. */
function digits(text: string): string {
  const hex = text.replaceAll(':', '').toLowerCase();
  if (/^[0-9a-f]{64}$/.test(hex)) return hex;
  throw new VerifyError(`--fingerprint ${text}: expected 64 hexadecimal digits`);
}
