// A recorder may write only the objects of the node its pod runs on: ValidatingAdmissionPolicies compare the name of the object
// with the node to which the caller's token is bound. The same for every pool; installed once in a cluster.

import { GROUP, NODE_NAME_CLAIM, nodeLeaseName, RECORDER_NODES } from '../../crds/names.ts';
import { admissionPolicy, type Validation } from './admission-policy.ts';

const mayDo = (verb: string): string =>
  `authorizer.group('${GROUP}').resource('${RECORDER_NODES}').namespace(request.namespace).check('${verb}').allowed()`;

/**
 * CEL: whether the caller is a service account of our recorders. Its name ends as `recorderName` makes it, and it may watch
 * RecorderNodes but not delete them. Accounts of other programs with such a name are not affected.
 */
const IS_RECORDER =
  "request.userInfo.username.matches('^system:serviceaccount:[^:]+:.+-recorder$') && " +
  `${mayDo('watch')} && !${mayDo('delete')}`;

/** CEL: the node of the caller's pod; empty if the token is not bound to a pod. */
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

/** `expected` is a CEL expression for the only name that the caller may write. */
function policy(
  name: string,
  apiGroup: string,
  resources: readonly string[],
  expected: string,
  more: readonly Validation[],
) {
  return admissionPolicy({
    name,
    apiGroup,
    resources,
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: [{ name: 'recorders', expression: IS_RECORDER }],
    variables: [{ name: 'node', expression: NODE }],
    validations: [
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
    ],
  });
}
