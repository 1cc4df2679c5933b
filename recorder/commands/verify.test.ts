import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fingerprintOf } from '../jobs/node-key.ts';
import { signedText } from '../jobs/signed-text.ts';
import { run } from './verify.ts';

test('a report is as it was made, changed, or of another key: 0, 1, and 2 without a key to compare', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'verify-test-'));
  t.after(() => rm(directory, { recursive: true }));
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const fingerprint = fingerprintOf(publicKey);
  const key = { publicKey: pem, fingerprint, sign: (text: Uint8Array) => sign(null, text, privateKey) };
  const path = join(directory, 'report-2026-10.html');
  const keyPath = join(directory, 'node.pem');
  await writeFile(keyPath, pem);
  const page = signedText('<p>99.9 %</p>', 'html', key);
  const verify = async (text: string, ...more: string[]) => {
    await writeFile(path, text);
    const lines: string[] = [];
    const code = await run([path, ...more], { print: (line) => void lines.push(line) });
    return [code, lines.at(-1)];
  };
  assert.deepEqual(await verify(page, '--key', keyPath), [0, 'as it was made\n']);
  assert.deepEqual(await verify(page.replace('99.9', '99.1'), '--key', keyPath), [1, 'not as it was made\n']);
  assert.deepEqual(await verify(page, '--fingerprint', 'ab'.repeat(32)), [1, 'not as it was made\n']);
  const [code] = await verify(page);
  assert.equal(code, 2);
});
