// Makes a ValidatingAdmissionPolicy and its binding from rules for the written objects. Pure.

import { labels } from '../../crds/names.ts';

const ADMISSION = 'admissionregistration.k8s.io/v1';

export interface Validation {
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason: 'Forbidden';
}

interface AdmissionPolicy {
  readonly name: string;
  readonly apiGroup: string;
  readonly resources: readonly string[];
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
  /** The requests to which it applies; left out: all. */
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly variables: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
}

/** Both manifests, in the order in which they must be applied. */
export function admissionPolicy(policy: AdmissionPolicy) {
  const { name, apiGroup, resources, operations, matchConditions, variables, validations } = policy;
  const metadata = { name, labels: labels('operator') };
  return [
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        // If the policy cannot be evaluated, the write fails; a recorder continues to record all the same.
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: [{ apiGroups: [apiGroup], apiVersions: ['*'], operations, resources }] },
        ...(matchConditions && { matchConditions }),
        variables,
        validations,
      },
    },
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}
