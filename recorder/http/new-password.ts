// What may become a password (NIST SP 800-63B §3.1.1.2): nothing that is guessed first. Passwords that exist are not judged.

import { brotliDecompressSync } from 'node:zlib';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../base/password-hash.ts';
import { COMMON_PASSWORDS } from './common-passwords.ts';

/** Of a password that contains the name of its user, so many characters must be left without it. */
const MIN_BESIDES_NAME = 4;

/** Why a text cannot be the password of a user with this name; undefined if it can. */
export function problemOfPassword(password: string, name = ''): string | undefined {
  if (password.length < MIN_PASSWORD_LENGTH) return `expected at least ${MIN_PASSWORD_LENGTH} characters`;
  if (password.length > MAX_PASSWORD_LENGTH) return `expected at most ${MAX_PASSWORD_LENGTH} characters`;
  const text = password.normalize('NFC').toLowerCase();
  if (repeats(text)) return 'it repeats a shorter text: choose one that is harder to guess';
  if (isSequence(text)) return 'it is a sequence of characters: choose one that is harder to guess';
  const own = name.normalize('NFC').toLowerCase();
  if (own !== '' && text.includes(own) && text.replaceAll(own, '').length < MIN_BESIDES_NAME) {
    return 'it is little more than the name: choose one that is harder to guess';
  }
  if (isCommon(text)) return 'it is one of the most common passwords, which are guessed first: choose another one';
  return undefined;
}

/** A text that repeats a part of it is found in twice itself before its end. */
const repeats = (text: string): boolean => (text + text).indexOf(text, 1) < text.length;

/** Each character is the next one, or each the one before, as in 12345678 and hgfedcba. */
function isSequence(text: string): boolean {
  const steps = Array.from(text.slice(1), (_, i) => text.charCodeAt(i + 1) - text.charCodeAt(i));
  return Math.abs(steps[0] ?? 0) === 1 && steps.every((step) => step === steps[0]);
}

/** The list is read each time: a recorder needs it once or never. */
const isCommon = (text: string): boolean =>
  brotliDecompressSync(Buffer.from(COMMON_PASSWORDS, 'base64')).toString().split('\n').includes(text);
