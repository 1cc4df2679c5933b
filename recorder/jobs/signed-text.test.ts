import assert from 'node:assert/strict';
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { test } from 'node:test';
import { fingerprintOf } from './node-key.ts';
import { checkedText, signedText } from './signed-text.ts';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const key = {
  publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  fingerprint: fingerprintOf(publicKey),
  sign: (text: Uint8Array) => sign(null, text, privateKey),
};

const FORMS = [
  { form: 'json', text: '{"site":"Größe ,\\"signature\\":{}"' },
  { form: 'html', text: '<!doctype html>\n<p>Größe</p>\n<!-- "signature":{} -->' },
] as const;

for (const { form, text } of FORMS) {
  test(`a signed ${form} text is right as it was made, and wrong after any change`, () => {
    const signed = Buffer.from(signedText(text, form, key));
    assert.deepEqual(checkedText(signed), {
      fingerprint: fingerprintOf(createPublicKey(key.publicKey)),
      isRight: true,
    });
    for (let at = 0; at < Buffer.byteLength(text); at++) {
      const changed = Buffer.from(signed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      assert.equal(checkedText(changed)?.isRight, false, `byte ${at}`);
    }
    assert.equal(checkedText(Buffer.concat([signed, Buffer.from('<p>more</p>')])), undefined);
  });
}

test('a signed JSON text is JSON, with the signature as its last member', () => {
  const { site, signature } = JSON.parse(signedText('{"site":"a"', 'json', key)) as Record<
    string,
    Record<string, string>
  >;
  assert.deepEqual([site, signature?.['fingerprint'], signature?.['algorithm']], ['a', key.fingerprint, 'Ed25519']);
});
