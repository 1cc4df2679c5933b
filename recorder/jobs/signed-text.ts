// A text that ends in its own signature: one file that can be sent on, and checked with the public key of the node alone. What is
// signed are the bytes before the signature.

import { createPublicKey, verify } from 'node:crypto';
import { fingerprintOf, type NodeKey } from './node-key.ts';

/** How the signature is written at the end of each form. */
const ENDS = { json: [',"signature":', '}\n'], html: ['\n<!-- "signature":', ' -->\n'] } as const;
const SIGNATURE = /(?:,|\n<!-- )"signature":(\{[^{}]*\})(?:\}| -->)\n$/;

/** `text`: without its end, which is the last brace of a JSON object. */
export function signedText(
  text: string,
  form: keyof typeof ENDS,
  key: Pick<NodeKey, 'publicKey' | 'fingerprint' | 'sign'>,
) {
  const [before, after] = ENDS[form];
  const signature = {
    algorithm: 'Ed25519',
    fingerprint: key.fingerprint,
    public_key: key.publicKey,
    value: key.sign(Buffer.from(text)).toString('base64'),
  };
  return `${text}${before}${JSON.stringify(signature)}${after}`;
}

/** The fingerprint of the key that signed a text; `isRight`: nothing was changed since. Undefined for a text without a signature. */
export function checkedText(bytes: Buffer): { readonly fingerprint: string; readonly isRight: boolean } | undefined {
  // One character a byte: where the signature begins is a number of bytes.
  const found = SIGNATURE.exec(bytes.toString('latin1'));
  if (!found) return undefined;
  try {
    const { public_key: pem, value } = JSON.parse(found[1] ?? '') as { public_key: string; value: string };
    const key = createPublicKey(pem);
    const isRight =
      key.asymmetricKeyType === 'ed25519' &&
      verify(null, bytes.subarray(0, found.index), key, Buffer.from(value, 'base64'));
    return { fingerprint: fingerprintOf(key), isRight };
  } catch {
    // It is not a key.
    return { fingerprint: '', isRight: false };
  }
}
