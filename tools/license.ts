// The licence command: makes keys, signs licences and shows them. docs/license.md describes their content. Run it as
// `tools/license`.

import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  expiryMs,
  formatPublicKey,
  parsePublicKey,
  readUnverified,
  signLicense,
  verifyLicense,
} from '../recorder/license/statement.ts';
import { messageOf } from '../base/error.ts';

const HELP = `usage: tools/license keygen --key FILE
       tools/license sign --key FILE --holder NAME --cameras N [--expires DAY] [--feature NAME]... [--output FILE]
       tools/license show FILE [--public-key KEY]

  keygen  makes a private key in FILE, for its owner only, and prints the public key for license.publicKey
  sign    signs a licence with the private key; DAY, as 2027-12-31, is the last one on which it is good (UTC)
  show    prints what a licence says, and with KEY whether that key vouches for it
`;

class UsageError extends Error {}

function required(value: string | undefined, name: string): string {
  if (value === undefined) throw new UsageError(`--${name} is missing`);
  return value;
}

function keygen(args: string[]): void {
  const { values } = parseArgs({ args, options: { key: { type: 'string' } } });
  const file = required(values.key, 'key');
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  // Never overwrites a key with which licences were signed.
  writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600, flag: 'wx' });
  process.stdout.write(`${formatPublicKey(publicKey)}\n`);
}

function signOne(args: string[]): void {
  const { values } = parseArgs({
    args,
    options: {
      key: { type: 'string' },
      holder: { type: 'string' },
      cameras: { type: 'string' },
      expires: { type: 'string' },
      feature: { type: 'string', multiple: true, default: [] },
      output: { type: 'string' },
    },
  });
  const { holder, cameras, expires, feature, output } = values;
  const key = createPrivateKey(readFileSync(required(values.key, 'key'), 'utf8'));
  if (key.asymmetricKeyType !== 'ed25519') throw new UsageError('--key: expected an Ed25519 key, as keygen makes it');
  const licence = signLicense(
    {
      holder: required(holder, 'holder'),
      cameras: Number(required(cameras, 'cameras')),
      ...(expires === undefined ? {} : { expires }),
      issued: new Date().toISOString().slice(0, 10),
      features: feature,
    },
    key,
  );
  if (output === undefined) process.stdout.write(`${licence}\n`);
  else writeFileSync(output, `${licence}\n`);
}

function show(args: string[]): void {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { 'public-key': { type: 'string' } },
  });
  const [file] = positionals;
  if (file === undefined) throw new UsageError('which file?');
  const text = readFileSync(file, 'utf8');
  const keyText = values['public-key'];
  const statement = readUnverified(text);
  process.stdout.write(`${JSON.stringify(statement, undefined, 2)}\n`);
  if (Date.now() >= expiryMs(statement)) process.stdout.write('expired\n');
  if (keyText === undefined) return;
  const key = parsePublicKey(keyText);
  if (!key) throw new UsageError('--public-key: expected an Ed25519 public key');
  verifyLicense(text, key);
  process.stdout.write('signed with this key\n');
}

const COMMANDS: Readonly<Record<string, (args: string[]) => void>> = { keygen, sign: signOne, show };

const [name = '--help', ...rest] = process.argv.slice(2);
const command = COMMANDS[name];
if (name === '--help' || name === '-h') process.stdout.write(HELP);
else if (!command) fail(`unknown command ${name}`, 2);
else {
  try {
    command(rest);
  } catch (err) {
    if (err instanceof UsageError || (err as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')) {
      fail((err as Error).message, 2);
    } else fail(messageOf(err), 1);
  }
}

function fail(message: string, code: number): void {
  process.stderr.write(`license: ${message}\n${code === 2 ? `\n${HELP}` : ''}`);
  process.exitCode = code;
}
