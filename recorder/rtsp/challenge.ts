// Parses WWW-Authenticate headers and chooses the strongest challenge that we can answer (RFC 7235 §4.1, RFC 7616 §3.3).

import { quote, readQuoted } from './parameters.ts';

type DigestAlgorithm = 'MD5' | 'SHA-256';

export type Challenge =
  | { readonly scheme: 'basic'; readonly realm: string }
  | {
      readonly scheme: 'digest';
      readonly realm: string;
      readonly nonce: string;
      readonly opaque: string | undefined;
      readonly algorithm: DigestAlgorithm;
      /** The `-sess` variant of the algorithm. */
      readonly session: boolean;
      /** The algorithm as the camera wrote it, including quotes, to be echoed; undefined when it wrote none. */
      readonly algorithmText: string | undefined;
      /** `auth`, or undefined for the older form without `qop` (RFC 2069). */
      readonly qop: 'auth' | undefined;
      readonly stale: boolean;
    };

interface RawChallenge {
  readonly scheme: string;
  readonly parameters: Map<string, { readonly value: string; readonly quoted: boolean }>;
}

/** Characters in one header; no real challenge is longer. */
const MAX_LENGTH = 8 * 1024;

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';

/**
 * Reads the challenges one after another: a word without a following `=` begins the next one. Quoted strings are unescaped
 * (`realm="Cam, \"A\""`); unquoted values end at a comma.
 */
function tokenize(text: string): RawChallenge[] {
  const challenges: RawChallenge[] = [];
  if (text.length > MAX_LENGTH) return challenges;
  let position = 0;
  while (position < text.length) {
    while (isBlank(text[position]) || text[position] === ',') position++;
    const wordStart = position;
    while (position < text.length && !/[\s,=]/.test(text[position] as string)) position++;
    const word = text.slice(wordStart, position).toLowerCase();
    while (isBlank(text[position])) position++;
    if (text[position] !== '=') {
      if (word === '') position++;
      else challenges.push({ scheme: word, parameters: new Map() });
      continue;
    }
    position++;
    while (isBlank(text[position])) position++;
    let value: string;
    const quoted = text[position] === '"';
    if (quoted) {
      const string = readQuoted(text, position);
      value = string.value;
      position = string.end;
    } else {
      const comma = text.indexOf(',', position);
      const end = comma < 0 ? text.length : comma;
      value = text.slice(position, end).trim();
      position = end;
    }
    const parameters = challenges.at(-1)?.parameters;
    if (parameters && word !== '' && !parameters.has(word)) parameters.set(word, { value, quoted });
  }
  return challenges;
}

function toChallenge({ scheme, parameters }: RawChallenge): Challenge | undefined {
  const value = (name: string): string | undefined => parameters.get(name)?.value;
  const realm = value('realm') ?? '';
  if (scheme === 'basic') return { scheme: 'basic', realm };
  const nonce = value('nonce');
  if (scheme !== 'digest' || nonce === undefined) return undefined;
  const match = /^(MD5|SHA-256)(-SESS)?$/i.exec((value('algorithm') || 'MD5').trim());
  if (!match) return undefined;
  const qops = (value('qop') ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((qop) => qop !== '');
  // Only auth-int is offered, which would need a hash of the body; no camera is known to require it.
  if (qops.length > 0 && !qops.includes('auth')) return undefined;
  const algorithm = parameters.get('algorithm');
  return {
    scheme: 'digest',
    realm,
    nonce,
    opaque: value('opaque'),
    algorithm: match[1]?.toUpperCase() === 'SHA-256' ? 'SHA-256' : 'MD5',
    session: match[2] !== undefined,
    algorithmText: algorithm && (algorithm.quoted ? quote(algorithm.value) : algorithm.value),
    qop: qops.length > 0 ? 'auth' : undefined,
    stale: value('stale')?.toLowerCase() === 'true',
  };
}

/** All challenges that this program can answer, from all WWW-Authenticate headers of a response. */
export function parseChallenges(lines: readonly string[]): Challenge[] {
  return lines
    .flatMap((line) => tokenize(line))
    .map(toChallenge)
    .filter((challenge) => challenge !== undefined);
}

function strength(challenge: Challenge): number {
  if (challenge.scheme === 'basic') return 0;
  return challenge.algorithm === 'SHA-256' ? 2 : 1;
}

/** Prefers SHA-256 to MD5 to Basic, in whatever order the camera lists them. */
export function strongest(challenges: readonly Challenge[]): Challenge | undefined {
  let best: Challenge | undefined;
  for (const challenge of challenges) if (!best || strength(challenge) > strength(best)) best = challenge;
  return best;
}
