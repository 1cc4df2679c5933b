// Building blocks of the schemas of our kinds. What Kubernetes has beyond JSON Schema (list types, CEL rules) is metadata of the
// zod schema, so that one definition gives both the validation in our programs and the CRD.

import { z } from 'zod';

/** A rule in the Common Expression Language, evaluated by the API server (x-kubernetes-validations). */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** JSON path of the field that the message is about, if it is not the one with the rule. */
  readonly fieldPath?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
}

/** `T` with every part read-only: values passed between rooms are never changed. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

const RULES = 'x-kubernetes-validations';

const rulesOf = (schema: z.ZodType): readonly CelRule[] => (schema.meta()?.[RULES] ?? []) as readonly CelRule[];

export function withRules<T extends z.ZodType>(schema: T, ...rules: CelRule[]): T {
  return schema.meta({ [RULES]: [...rulesOf(schema), ...rules] });
}

/** A CEL expression: whether `value` matches. The source of `pattern` must be RE2 as well, and has no single quote. */
const matches = (pattern: RegExp, value = 'self'): string => `${value}.matches(r'${pattern.source}')`;

/**
 * Text of a given form. In the CRD it is a rule with `message` instead of a pattern, because the API server would show
 * the regular expression of a pattern to the user.
 */
export const formed = (schema: z.ZodString, pattern: RegExp, message: string): z.ZodString =>
  withRules(schema.regex(pattern, message), { rule: matches(pattern), message });

/**
 * An object in a status. It keeps unknown fields, so that an older program that replaces the status does not erase what a newer
 * one wrote.
 */
export function statusObject<T extends z.ZodRawShape>(shape: T): z.ZodObject<T> {
  return z.looseObject(shape);
}

/** An enumeration in a status: the API server accepts only `values`, but readers also accept values of newer versions. */
export function statusEnum<const T extends readonly [string, ...string[]]>(values: T) {
  return z.union([z.enum(values), z.string() as z.ZodType<string & {}>]).meta({ crdEnum: values });
}

/** A list (type `map`) whose items are identified by `keys`. */
export function listMap<T extends z.ZodType>(item: T, maxItems: number, ...keys: string[]) {
  return z.array(item).max(maxItems).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys });
}

/** A list that is always replaced as a whole. */
export function atomicList<T extends z.ZodType>(item: T, maxItems: number) {
  return z.array(item).max(maxItems).meta({ 'x-kubernetes-list-type': 'atomic' });
}

/** A list (type `set`) of distinct strings or numbers. */
export function listSet<T extends z.ZodType>(item: T, maxItems: number) {
  return z.array(item).max(maxItems).meta({ 'x-kubernetes-list-type': 'set' });
}

export const integer = (min: number, max: number) => z.number().int().min(min).max(max);

/** RFC 3339 as Kubernetes writes it. Kept as a string, because clients differ in how they return dates from lists and watches. */
export const time = () => z.string().max(64).meta({ format: 'date-time' });

// Short, because the cost of a rule grows with the length of its regular expression.
const DNS_LABEL = '[a-z0-9]+(-+[a-z0-9]+)*';
const SUBDOMAIN = String.raw`[a-z0-9]+((-+|\.)[a-z0-9]+)*`;
/** How messages describe the form of names and of words in a status. */
export const NAME_FORM =
  'must have only lower-case letters, digits, "-" and ".", with a letter or digit at both ends of each part';
export const WORD_FORM = 'must be one word of letters and digits that begins with a capital letter';

/** RFC 1123 subdomain: the name of most objects, including nodes. */
export const subdomain = (maxLength = 253) =>
  formed(z.string().max(maxLength), new RegExp(`^${SUBDOMAIN}$`), NAME_FORM);

/** RFC 1123 label: the name of a Service. */
export const LABEL_RULE: CelRule = {
  rule: matches(new RegExp(`^${DNS_LABEL}$`), 'self.metadata.name'),
  message:
    'metadata.name: must have only lower-case letters, digits and "-", with a letter or digit at both ends; it becomes part of the name of a Service',
};

/** One word in CamelCase, as the reason of a condition. */
export const word = (maxLength: number) => formed(z.string().min(1).max(maxLength), /^[A-Z][A-Za-z0-9]*$/, WORD_FORM);

/** Leaves space for the prefix of a node's Lease, whose name has at most 253 characters. */
const MAX_NODE_NAME = 239;

export const nodeName = () => subdomain(MAX_NODE_NAME);

/** Manifests rendered from templates have an empty string where no node is meant. */
export const nodeNameOrEmpty = () => formed(z.string().max(MAX_NODE_NAME), new RegExp(`^(${SUBDOMAIN})?$`), NAME_FORM);

export const reference = () => z.object({ name: subdomain().min(1).describe('Name of an object in this namespace.') });

const QUANTITY = /^[0-9]+(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/;
const SIZE_FORM = 'must be a size such as 200Gi';

/** A number of bytes as Kubernetes writes quantities: `200Gi`, `1.5T`, `1048576`. */
const quantity = () =>
  intOrString(z.number().int().nonnegative(), QUANTITY, SIZE_FORM, `self >= 0 : ${matches(QUANTITY)}`);

/** A quantity of CPU or memory in a pod; also allows `500m` and exponents. */
export const podQuantity = () =>
  intOrString(
    z.number().int(),
    /^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$/,
    'must be a quantity such as 500m or 1Gi',
    // Not the pattern: for the cost of this rule, the API server assumes the longest text that a request can have.
    'true : isQuantity(self)',
  );

const SHARE = /^([1-9][0-9]?|100)%$/;

/** A number from 1 to 1000, or a percentage from `1%` to `100%`. */
export const countOrShare = () =>
  intOrString(
    integer(1, 1000),
    SHARE,
    'must be a number from 1 to 1000, or a percentage from 1% to 100%',
    `self >= 1 && self <= 1000 : ${matches(SHARE)}`,
  );

/** `rule`: CEL expressions for a number and for text. */
function intOrString(number: z.ZodNumber, pattern: RegExp, message: string, rule: string) {
  const rules: CelRule[] = [{ rule: `type(self) == int ? ${rule}`, message }];
  return z
    .union([number, z.string().max(32).regex(pattern, message)])
    .meta({ crdIntOrString: { pattern: pattern.source, [RULES]: rules } });
}

export const stringMap = (maxProperties: number, maxLength: number) =>
  z.record(z.string(), z.string().max(maxLength)).meta({ maxProperties });

export const nodeSelector = () => stringMap(32, 63).describe('Labels that a node must have.');

const podResources = () => z.record(z.string(), podQuantity()).meta({ maxProperties: 16 }).optional();

export const resources = () =>
  z.object({
    requests: podResources().describe('What the node reserves for the pod.'),
    limits: podResources().describe('What the pod may use at most.'),
  });

export const toleration = () =>
  z.object({
    key: z.string().max(316).optional().describe('The taint that is tolerated; empty with Exists: every taint.'),
    operator: z.enum(['Exists', 'Equal']).optional().describe('How value is compared; Equal when left out.'),
    value: z.string().max(63).optional().describe('The value of the taint.'),
    effect: z
      .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
      .optional()
      .describe('The effect of the taint. Default: every effect.'),
    tolerationSeconds: integer(0, 2 ** 31 - 1)
      .optional()
      .describe('With NoExecute: how long the taint is tolerated.'),
  });

/** The limits of an archive; all of them apply together. */
export const retention = () =>
  z.object({
    maxAgeSeconds: integer(60, 36_525 * 86_400)
      .optional()
      .describe('Footage older than this is deleted.'),
    maxSize: quantity().optional().describe('The oldest footage is deleted when all of it is larger than this.'),
    minFree: formed(
      z.string().max(32),
      /^(([0-8]?[0-9]|90)%|[0-9]+(\.[0-9]{1,9})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?)$/,
      'must be a percentage of at most 90%, such as 5%, or a size such as 20Gi',
    )
      .optional()
      .describe('The oldest footage is deleted when less than this is free on the file system: 5% or 20Gi.'),
  });

const conditionSchema = statusObject({
  type: word(316),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: integer(0, Number.MAX_SAFE_INTEGER).optional(),
  lastTransitionTime: time(),
  reason: word(128),
  message: z.string().max(4096),
});

/** Conditions of a resource, as used by `kubectl wait --for=condition=`. */
export const conditions = () => listMap(conditionSchema, 16, 'type').describe('Conditions of this resource.');

export type Condition = Immutable<z.output<typeof conditionSchema>>;

const ownerReference = statusObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

/** The metadata that we read; other fields are kept. */
export const metadata = statusObject({
  name: z.string().min(1),
  namespace: z.string().min(1),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  creationTimestamp: z.string().optional(),
  deletionTimestamp: z.string().optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(ownerReference).optional(),
});
