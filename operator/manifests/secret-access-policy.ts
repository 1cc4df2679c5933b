// Naming a Secret gives no access to it. Recorders read the Secrets that a Camera or RecorderPool names and send them
// where its author says, so ValidatingAdmissionPolicies ask the API server whether the author may get that Secret. The
// same for every namespace; installed once in a cluster.

import { toCustomResourceDefinition } from '../../crds/custom-resource-definition.ts';
import { KINDS, type KindDefinition } from '../../crds/kinds.ts';
import { GROUP } from '../../crds/names.ts';
import { admissionPolicy, type Validation } from './admission-policy.ts';

/** Fields that decide where a Secret is sent and who can read it on the way: if one changes, all references count as new. */
const DESTINATIONS: Readonly<Record<string, readonly string[]>> = {
  ArchiveTarget: ['endpoint', 'ca'],
  Camera: ['source', 'preview', 'snapshot', 'onvif', 'edge', 'tls', 'allowPlaintextLogin'],
  // Variables of the environment can make the recorder run other code, and names can lead elsewhere.
  RecorderPool: ['image', 'podTemplate', 'audit'],
};

/** A field of a spec that names one Secret, or a list of at most `maxItems`. */
interface SecretReference {
  /** Such as `auth.tokensSecretRef`. */
  readonly path: string;
  readonly maxItems: number | undefined;
}

/** Policies and their bindings, in the order in which they must be applied. */
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
        // Unchanged references need no right to the Secret: a tool may write the same again.
        ...references.map((reference) => ({
          name: variableOf(reference),
          expression: `${namesIn('object', reference)}.filter(name, name != '' && !(variables.goesWhereItWent && name in ${namesIn('oldObject', reference)}))`,
        })),
      ],
      validations: references.flatMap(validationsOf),
    });
  });
}

/** CEL variable with the names in one field to which the author must have access. */
const variableOf = ({ path }: SecretReference): string => path.replaceAll('.', '_');

/** A CEL expression for the list of names; '' where there is none. */
function namesIn(root: 'object' | 'oldObject', { path, maxItems }: SecretReference): string {
  const field = `${root}.spec.?${path.replaceAll('.', '.?')}`;
  return maxItems === undefined ? `[${field}.?name.orValue('')]` : `${field}.orValue([]).map(secret, secret.name)`;
}

/** One validation for each name: the cost limit of an expression allows only two authorizer checks. */
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

/** All fields of a kind's spec that refer to a Secret, recognised by the field's name. */
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
