// Makes new tokens and recognises tokens that are easy to guess.

import { hash, randomBytes } from 'node:crypto';

/** Lets people and secret scanners recognise a token. */
const PREFIX = 'nvr_';
const BYTES = 32;
/** 22 characters of base64 are 128 bits. A shorter token was chosen by a person or can be found by trying. */
const SHORTEST = 22;
const FEWEST_DIFFERENT = 8;

/** A token with 256 random bits. */
export const newToken = (): string => `${PREFIX}${randomBytes(BYTES).toString('base64url')}`;

/** The hash of a token that the configuration stores. */
export const sha256 = (token: string): Buffer => hash('sha256', token, 'buffer');

/** Whether the token is too short to be safe or repeats itself. */
export const isGuessable = (token: string): boolean =>
  token.length < SHORTEST || new Set(token).size < FEWEST_DIFFERENT;
