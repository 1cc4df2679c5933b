// A recorder writes as the node its pod runs on, and as no other: ValidatingAdmissionPolicies compare the name of the
// object with the node that the caller's token is bound to. The same for every pool; installed once for a cluster.

import { GROUP, labels, NODE_NAME_CLAIM, nodeLeaseName, RECORDER_NODES } from '../../crds/names.ts';

const ADMISSION = 'admissionregistration.k8s.io/v1';

interface Validation {
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason: 'Forbidden';
}

/** Every service account that the operator makes for recorders has this end (`recorderName`). */
const IS_RECORDER = "request.userInfo.username.matches('^system:serviceaccount:[^:]+:.+-recorder$')";

/** The node of the caller's pod; empty when the token is bound to none. */
const NODE =
  `'${NODE_NAME_CLAIM}' in request.userInfo.extra && size(request.userInfo.extra['${NODE_NAME_CLAIM}']) == 1 ? ` +
  `request.userInfo.extra['${NODE_NAME_CLAIM}'][0] : ''`;

/** Policies and their bindings, in the order in which they should be applied. */
export function nodeIdentityPolicies() {
  return [
    ...policy('kube-nvr-node-lease', 'coordination.k8s.io', ['leases'], `'${nodeLeaseName('')}' + variables.node`, [
      {
        expression:
          "object == null || (has(object.spec.holderIdentity) && object.spec.holderIdentity.startsWith(variables.node + '/'))",
        message: 'spec.holderIdentity: must begin with the name of the node and "/"',
        reason: 'Forbidden',
      },
    ]),
    ...policy('kube-nvr-recorder-node', GROUP, [RECORDER_NODES, `${RECORDER_NODES}/status`], 'variables.node', []),
  ];
}

/** `expected`: the only name that the caller may write, in CEL. */
function policy(
  name: string,
  apiGroup: string,
  resources: readonly string[],
  expected: string,
  more: readonly Validation[],
) {
  const metadata = { name, labels: labels('operator') };
  const validations: readonly Validation[] = [
    {
      expression: "variables.node != ''",
      message: 'the token of this recorder is not bound to a pod on a node',
      reason: 'Forbidden',
    },
    {
      expression: `(object == null ? request.name : object.metadata.name) == ${expected}`,
      messageExpression: `'the recorder on node ' + variables.node + ' may only write ' + ${expected}`,
      reason: 'Forbidden',
    },
    ...more,
  ];
  return [
    {
      apiVersion: ADMISSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        // Without an answer of the policy nothing is written; a recorder goes on recording all the same.
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            { apiGroups: [apiGroup], apiVersions: ['*'], operations: ['CREATE', 'UPDATE', 'DELETE'], resources },
          ],
        },
        matchConditions: [{ name: 'recorders', expression: IS_RECORDER }],
        variables: [{ name: 'node', expression: NODE }],
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
