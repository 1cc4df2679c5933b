// The rights of people whom issuers know: the rules of the configuration, applied to what an issuer says of a person (claims, OpenID
// Connect Core 1.0 §5.1).

import { hash } from 'node:crypto';
import { printable } from '../../base/printable.ts';
import type { IssuerConfig } from '../config/schema.ts';
import { callerFor, type Caller } from './caller.ts';
import type { Holder } from './sessions.ts';

/** What other nodes of a cluster need to know of an issuer: no secret. */
export type IssuerRights = Pick<IssuerConfig, 'name' | 'issuer' | 'nameClaim' | 'rules' | 'sessionMs'>;

export interface Claims {
  /** Names the person at the issuer, for ever. */
  readonly sub: string;
  /** The session of the person at the issuer. */
  readonly sid?: unknown;
  readonly [claim: string]: unknown;
}

/** A person who signed in at an issuer. */
export interface PersonHolder extends Caller {
  /** The rule that gives the rights, with all that is in it. */
  readonly rule: string;
}

type PersonSession = Extract<Holder, { readonly rule: string }>;

type Rule = IssuerRights['rules'][number];

const MAX_NAME = 100;

const markOf = (issuer: IssuerRights, rule: Rule): string => {
  const { claim, value, role, cameras, export: exports } = rule;
  return hash(
    'sha256',
    JSON.stringify([issuer.name, issuer.issuer, claim, value, role, cameras, exports]),
    'base64url',
  );
};

/** Names a person, or a session of a person, at an issuer. */
const endOf = (issuer: string, kind: 'sub' | 'sid', value: string): string =>
  hash('sha256', JSON.stringify([issuer, kind, value]), 'base64url');

/** Whose sessions an issuer ends: of the session there if it names one, else all of the person. */
export function endedBy(
  { issuer }: Pick<IssuerConfig, 'issuer'>,
  { sub, sid }: { sub?: string; sid?: string },
): string {
  return sid === undefined ? endOf(issuer, 'sub', sub ?? '') : endOf(issuer, 'sid', sid);
}

export class IssuerRules {
  #issuers: readonly IssuerRights[] = [];
  #byMark: ReadonlyMap<string, Rule> = new Map();

  constructor(issuers: readonly IssuerRights[]) {
    this.replace(issuers);
  }

  replace(issuers: readonly IssuerRights[]): void {
    this.#issuers = issuers;
    this.#byMark = new Map(
      issuers.flatMap((issuer) => issuer.rules.map((rule) => [markOf(issuer, rule), rule] as const)),
    );
  }

  /** What a session holds that begins now; undefined for a person whom no rule fits, and for an issuer that is not configured. */
  sessionOf(issuerName: string, claims: Claims, nowMs: number): PersonSession | undefined {
    const issuer = this.#issuers.find(({ name }) => name === issuerName);
    const rule = issuer?.rules.find((one) => fits(one, claims));
    if (!issuer || !rule) return undefined;
    const sid = typeof claims.sid === 'string' ? [endOf(issuer.issuer, 'sid', claims.sid)] : [];
    return {
      rule: markOf(issuer, rule),
      name: `${issuer.name}/${nameIn(claims, issuer.nameClaim)}`,
      ofIssuer: [endOf(issuer.issuer, 'sub', claims.sub), ...sid],
      untilMs: nowMs + issuer.sessionMs,
    };
  }

  /** The person with the rights of a rule; undefined when the rule was changed or removed. */
  caller({ rule: mark, name }: Pick<PersonSession, 'rule' | 'name'>): PersonHolder | undefined {
    const rule = this.#byMark.get(mark);
    return rule && { ...callerFor({ ...rule, name }), rule: mark };
  }
}

function fits({ claim, value }: Rule, claims: Claims): boolean {
  if (claim === undefined) return true;
  const found = valueOf(claims, claim);
  return (Array.isArray(found) ? (found as readonly unknown[]) : [found]).some(
    (one) => (typeof one === 'string' || typeof one === 'number' || typeof one === 'boolean') && String(one) === value,
  );
}

/** Names of claims may contain dots, as addresses do; otherwise, a dot leads into an object. */
function valueOf(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  const dot = path.indexOf('.');
  const inner = dot < 0 || !Object.hasOwn(claims, path.slice(0, dot)) ? undefined : claims[path.slice(0, dot)];
  if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return undefined;
  return valueOf(inner as Readonly<Record<string, unknown>>, path.slice(dot + 1));
}

/** For log and audit: of one line, and not too long for a cookie. */
function nameIn(claims: Claims, claim: string): string {
  const found = valueOf(claims, claim);
  const text = typeof found === 'string' && found.trim() !== '' ? found : claims.sub;
  return printable(text, MAX_NAME);
}
