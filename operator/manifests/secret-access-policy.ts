// No author gets a Secret by naming it. Recorders read the Secrets that a Camera or a RecorderPool names, and send them where its
// author says; so ValidatingAdmissionPolicies ask the API server whether the author may get that Secret. The same for every
// namespace; installed once for a cluster.

import { toCustomResourceDefinition } from '../../crds/custom-resource-definition.ts';
import { KINDS, type KindDefinition } from '../../crds/kinds.ts';
import { GROUP } from '../../crds/names.ts';
import { admissionPolicy, type Validation } from './admission-policy.ts';

/** Fields that decide where a Secret goes and who can read it on the way: if one changes, references count as new. */
const DESTINATIONS: Readonly<Record<string, readonly string[]>> = {
  Camera: ['source', 'snapshot', 'onvif', 'tls', 'allowPlaintextLogin'],
  RecorderPool: ['image'],
};

/** A field of a spec that names one Secret, or a list of at most so many. */
export interface SecretReference {
  /** As `auth.tokensSecretRef`. */
  readonly path: string;
  readonly maxItems: number | undefined;
}

/** Policies and their bindings, in the order in which they should be applied. */
export function secretAccessPolicies() {
  return KINDS.flatMap((definition) => {
    const references = secretReferences(definition);
    if (references.length === 0) return [];
    const { kind, plural } = definition;
    const isSame = (DESTINATIONS[kind] ?? []).map((field) => `object.spec.?${field} == oldObject.spec.?${field}`);
    return admissionPolicy({
      name: `kube-nvr-${kind.toLowerCase()}-secrets`,
      apiGroup: GROUP,
      resources: [plural],
      operations: ['CREATE', 'UPDATE'],
      variables: [
        { name: 'goesWhereItWent', expression: ['oldObject != null', ...isSame].join(' && ') },
        // A change of other fields needs no right to it: the operator suspends a camera, a tool writes it again.
        ...references.map((reference) => ({
          name: variableOf(reference),
          expression: `${namesIn('object', reference)}.filter(name, name != '' && !(variables.goesWhereItWent && name in ${namesIn('oldObject', reference)}))`,
        })),
      ],
      validations: references.flatMap(validationsOf),
    });
  });
}

/** The names that the author must have the right to: of one field. */
const variableOf = ({ path }: SecretReference): string => path.replaceAll('.', '_');

/** A list of names, in CEL; '' where there is none. */
function namesIn(root: 'object' | 'oldObject', { path, maxItems }: SecretReference): string {
  const field = `${root}.spec.?${path.replaceAll('.', '.?')}`;
  return maxItems === undefined ? `[${field}.?name.orValue('')]` : `${field}.orValue([]).map(secret, secret.name)`;
}

/** One for each name: the cost limit of an expression allows two questions to the authorizer, and no more. */
const validationsOf = (reference: SecretReference): readonly Validation[] =>
  Array.from({ length: reference.maxItems ?? 1 }, (_, i) => {
    const names = `variables.${variableOf(reference)}`;
    return {
      expression: `size(${names}) <= ${i} || authorizer.group('').resource('secrets').namespace(request.namespace).name(${names}[${i}]).check('get').allowed()`,
      messageExpression: `'spec.${reference.path}: you may not read the Secret ' + ${names}[${i}]`,
      reason: 'Forbidden',
    };
  });

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly maxItems?: number;
}

/** Every field of a kind's spec that refers to a Secret, recognised by the field's name. */
export function secretReferences(definition: KindDefinition): readonly SecretReference[] {
  const { versions } = toCustomResourceDefinition(definition).spec as unknown as {
    readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: Schema } }];
  };
  const below = (schema: Schema | undefined, above: string): readonly SecretReference[] =>
    Object.entries(schema?.properties ?? {}).flatMap(([name, field]) => {
      const path = `${above}${name}`;
      return /secretRefs?$/i.test(name) ? [{ path, maxItems: field.maxItems }] : below(field, `${path}.`);
    });
  return below(versions[0].schema.openAPIV3Schema.properties?.['spec'], '');
}
