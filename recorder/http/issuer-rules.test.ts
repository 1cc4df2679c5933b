import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IssuerRules, type Claims, type IssuerRights } from './issuer-rules.ts';

type Rule = IssuerRights['rules'][number];

const issuer = (rules: readonly Rule[], nameClaim = 'preferred_username'): IssuerRights => ({
  name: 'plant',
  issuer: 'https://sso.example',
  nameClaim,
  rules,
  sessionMs: 1_000,
});

const roleOf = (rules: readonly Rule[], claims: object): string | undefined => {
  const all = new IssuerRules([issuer(rules)]);
  const holder = all.sessionOf('plant', { sub: 'u-1', ...claims }, 0);
  return holder && all.caller(holder)?.role;
};

const ruleFor = (claim: string, value: string): readonly Rule[] => [{ claim, value, role: 'operator' }];

test('a rule fits a text, one of a list, a number or a flag, and nothing that only contains it', () => {
  const fits = (claims: object): boolean => roleOf(ruleFor('groups', 'nvr'), claims) !== undefined;
  assert.deepEqual(
    [{ groups: 'nvr' }, { groups: ['a', 'nvr'] }, { groups: ['nvr-2'] }, { groups: { nvr: true } }, {}].map(fits),
    [true, true, false, false, false],
  );
  assert.equal(roleOf(ruleFor('level', '7'), { level: 7 }), 'operator');
  assert.equal(roleOf(ruleFor('staff', 'true'), { staff: true }), 'operator');
});

test('a claim may be in an object, and its own name may have dots', () => {
  assert.equal(roleOf(ruleFor('realm_access.roles', 'nvr'), { realm_access: { roles: ['nvr'] } }), 'operator');
  const name = 'https://example.com/roles';
  assert.equal(roleOf(ruleFor(name, 'nvr'), { [name]: ['nvr'] }), 'operator');
  assert.equal(roleOf(ruleFor('constructor.name', 'Object'), {}), undefined);
});

test('the first rule that fits counts; one without a claim is for everybody', () => {
  const rules: readonly Rule[] = [{ claim: 'groups', value: 'admins', role: 'admin' }, { role: 'viewer' }];
  assert.deepEqual([roleOf(rules, { groups: 'admins' }), roleOf(rules, {})], ['admin', 'viewer']);
});

test('the name of a person is one line of the claim, or the subject, after the name of the issuer', () => {
  const nameOf = (claims: object): string | undefined =>
    new IssuerRules([issuer([{ role: 'viewer' }])]).sessionOf('plant', { sub: 'u-1', ...claims }, 0)?.name;
  assert.equal(nameOf({ preferred_username: ' anna\n\u202eb ' }), 'plant/anna b');
  assert.equal(nameOf({ preferred_username: '' }), 'plant/u-1');
  assert.equal(nameOf({ preferred_username: { a: 1 } }), 'plant/u-1');
  assert.equal(nameOf({ preferred_username: 'x'.repeat(500) })?.length, 106);
});

test('persons of two issuers, or with two subjects, are never the same', () => {
  const endsOf = (name: string, address: string, claims: Claims): readonly string[] =>
    new IssuerRules([{ ...issuer([{ role: 'viewer' }]), name, issuer: address }]).sessionOf(name, claims, 0)
      ?.ofIssuer ?? [];
  const all = [
    endsOf('a', 'https://a.example', { sub: '1', sid: '2' }),
    endsOf('b', 'https://b.example', { sub: '1', sid: '2' }),
    endsOf('a', 'https://a.example', { sub: '2', sid: '1' }),
  ].flat();
  assert.equal(new Set(all).size, 6);
});
