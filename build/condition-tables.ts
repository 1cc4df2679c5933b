// Every condition of the resources, each reason that it may have, what that means and what to do: docs/operations/reasons.md is
// printed from these tables. Links are relative to that page.

/** A state of a condition. */
export interface ConditionRow {
  readonly status: 'True' | 'False' | 'Unknown';
  /** One reason, several that mean the same, or words for those of another table. */
  readonly reason: string | readonly string[];
  readonly means: string;
  readonly todo?: string;
}

export type ConditionTable = Readonly<Record<string, readonly ConditionRow[]>>;

export const CAMERA_CONDITIONS = {
  Assigned: [
    { status: 'True', reason: 'Assigned', means: 'a node has it' },
    {
      status: 'True',
      reason: 'NotTakenUp',
      means: 'it is assigned to a node that has not reported it yet',
      todo: 'after 5 s it is assigned to another node',
    },
    { status: 'False', reason: 'Waiting', means: 'it will be assigned to a node shortly' },
    {
      status: 'False',
      reason: 'NoPool',
      means: 'there is no RecorderPool with the name in `spec.poolRef`',
      todo: 'correct `spec.poolRef.name`, or create the pool',
    },
    {
      status: 'False',
      reason: 'NoEligibleNode',
      means: 'no live node meets `placement`',
      todo: '`kubectl get nodes --show-labels`, and compare with `placement`',
    },
    {
      status: 'False',
      reason: 'NoRoom',
      means: 'every node that could record it has reached its limit',
      todo: 'raise `maxCamerasPerNode`, or [add a node](nodes.md)',
    },
    {
      status: 'False',
      reason: 'NoMajority',
      means: 'too few voters are seen to assign it to a node',
      todo: '[lost-majority.md](lost-majority.md)',
    },
    {
      status: 'False',
      reason: 'NodeUnavailable',
      means: 'its node is gone, and `placement.failover` is `Never`',
      todo: 'bring the node back, or change `placement.failover`',
    },
    {
      status: 'False',
      reason: 'TwoNodesLost',
      means: 'two nodes had it when their recorders stopped renewing their Leases',
      todo: '[KubeNvrCamerasSuspect](../runbooks/KubeNvrCamerasSuspect.md)',
    },
    {
      status: 'False',
      reason: 'Suspended',
      means: '`spec.suspend` is true, or it was stopped through the API (`status.override` says by whom)',
      todo: 'start it through the API; or `kubectl patch camera NAME --type merge -p \'{"spec":{"suspend":false}}\'`, for a camera that was stopped through the API after the same with `true`',
    },
  ],
  CredentialsResolved: [
    { status: 'True', reason: 'NotNeeded', means: 'it has no `credentialsSecretRef`' },
    { status: 'True', reason: 'Found', means: 'its node has read the Secret' },
    {
      status: 'True',
      reason: 'FoundWithoutHosts',
      means:
        'the same; the Secret does not name its hosts, and is used only for those for which it was used before this was required',
      todo: '`kubectl annotate secret NAME kube-nvr.dev/camera-hosts=10.20.0.0/16`; see [security](../security.md#secrets-that-cameras-and-pools-name)',
    },
    {
      status: 'False',
      reason: 'NoHosts',
      means: 'the Secret does not name its hosts: recorders may not read it',
      todo: 'the same',
    },
    {
      status: 'False',
      reason: 'NoCredentials',
      means: 'the Secret is missing, lacks a key, or is for other hosts',
      todo: 'create it with the keys `username` and `password`; the message says what is wrong',
    },
    {
      status: 'False',
      reason: 'SecretGone',
      means:
        'the Secret has vanished, or the operator may not read it; the node that records the camera uses the login that it has read, but no other node can take over',
      todo: 'create it again',
    },
    { status: 'Unknown', reason: 'NotReported', means: 'no node has reported yet' },
  ],
  PlacementMet: [
    { status: 'True', reason: 'Met', means: 'its node is one that `spec.placement` allows' },
    {
      status: 'False',
      reason: 'NodeSelectorNotMet',
      means: 'its node lacks labels of `placement.nodeSelector`, and no other node that has them may record it',
      todo: 'give a node the labels in the message, or change `placement.nodeSelector`',
    },
    {
      status: 'False',
      reason: 'PreferredNodeUnknown',
      means: 'the pool has no node with the name in `placement.preferredNode`',
      todo: '`kubectl get recordernodes` lists the nodes',
    },
    {
      status: 'False',
      reason: 'PreferredNodeExcluded',
      means: 'the node in `placement.preferredNode` lacks labels of `placement.nodeSelector`',
      todo: 'change one of the two',
    },
    { status: 'Unknown', reason: 'NoPool', means: 'there is no RecorderPool with the name in `spec.poolRef`' },
  ],
  Recording: [
    { status: 'False', reason: 'LoginUnread', means: 'its node is about to read the Secret with its login' },
    { status: 'True', reason: 'Recording', means: 'its pictures are written to a disk' },
    {
      status: 'Unknown',
      reason: 'NodeUnavailable',
      means: 'its node has not renewed its Lease lately',
      todo: 'it moves after 15 s; see [replace-node.md](replace-node.md)',
    },
    { status: 'False', reason: 'NotAssigned', means: 'no node has it', todo: 'see `Assigned`' },
    { status: 'False', reason: 'NotTakenUp', means: 'its node has not reported it yet' },
    { status: 'False', reason: 'Suspended', means: 'the same as for `Assigned`' },
    { status: 'False', reason: 'Connecting', means: 'its node connects' },
  ],
  Standby: [
    {
      status: 'True',
      reason: 'Holding',
      means: 'a second node has its last seconds in memory ([standby](../standby.md))',
    },
    { status: 'True', reason: 'Chosen', means: 'a second node has been chosen for that' },
    { status: 'False', reason: ['Connecting', 'NotTakenUp'], means: 'the second node connects to it' },
    { status: 'False', reason: 'Waiting', means: 'a second node is chosen once its own records it' },
    {
      status: 'False',
      reason: 'NoMemory',
      means: 'the recorder of the second node does not have enough memory for it',
      todo: 'raise the memory in `spec.resources` of the RecorderPool ([how much](../standby.md#memory)), or use fewer standbys',
    },
    {
      status: 'False',
      reason: 'NoEligibleNode',
      means: 'no other live node meets `placement`',
      todo: 'label or add a node',
    },
    {
      status: 'False',
      reason: 'NoRoom',
      means: 'every other node that could record it has reached its limit',
      todo: 'raise `maxCamerasPerNode`, or [add a node](nodes.md)',
    },
    {
      status: 'False',
      reason: 'NoMajority',
      means: 'too few voters are seen to choose a second node',
      todo: '[lost-majority.md](lost-majority.md)',
    },
    {
      status: 'False',
      reason: 'KindOutdated',
      means: 'the kinds of the cluster are older than the operator: they have no `status.standby`',
      todo: 'apply the kinds of this version ([upgrade.md](upgrade.md))',
    },
    {
      status: 'False',
      reason: 'NodeLost',
      means:
        'a recorder stopped renewing its Lease while it had the camera; no second recorder is put at risk until the camera has been recorded for an hour',
    },
    {
      status: 'False',
      reason: 'FailoverNever',
      means: '`placement.failover` is `Never`: no other node may record it',
      todo: 'change one of the two',
    },
    { status: 'Unknown', reason: 'NodeUnavailable', means: 'the second node has not renewed its Lease lately' },
    {
      status: 'False',
      reason: 'those of the next table',
      means: 'the second node cannot connect: some cameras serve only one client',
      todo: 'allow more clients in the camera, or set `placement.standby` to `false`',
    },
  ],
  MembersAnswer: [
    { status: 'True', reason: 'AllAnswer', means: 'on servers that run etcd: every member answers' },
    {
      status: 'False',
      reason: 'MembersSilent',
      means: 'etcd on the servers in the message has not answered for 15 s: their votes are lost until it does',
      todo: '[KubeNvrEtcdMemberDown](../runbooks/KubeNvrEtcdMemberDown.md)',
    },
  ],
  CamerasRead: [
    { status: 'True', reason: 'AllRead', means: 'this version understands every Camera' },
    {
      status: 'False',
      reason: 'InvalidCamera',
      means:
        'another version has written what this one does not understand; the cameras in the message are recorded with the defaults of these fields',
      todo: 'upgrade the operator and the recorders, or correct the fields ([versions](../versions.md))',
    },
  ],
  RowsFollowed: [
    {
      status: 'True',
      reason: 'Followed',
      means: 'each row of the table `cameras` that names a node of the pool is a Camera',
    },
    {
      status: 'False',
      reason: 'TableUnusable',
      means: 'the table cannot be read, or the operator may not write Cameras: the cameras stay as they are',
      todo: 'see the message: check the database and the network to it, or set `watch.databaseRows` of the chart',
    },
    {
      status: 'False',
      reason: 'TableRestored',
      means: 'the table came back with older rows: the cameras in the message are recorded as before',
      todo: 'change the rows that are wrong, and delete the Cameras that should be gone',
    },
    {
      status: 'False',
      reason: 'RowsRefused',
      means: 'a row has no Camera: its `id` cannot be a name, or a Camera of a manifest has it',
      todo: 'change the row, or the manifest',
    },
  ],
  Reconciling: [
    {
      status: 'True',
      reason: 'that of `Ready`',
      means: 'it is about to be recorded; otherwise the condition is absent',
    },
  ],
  Stalled: [
    {
      status: 'True',
      reason: 'that of `Ready`',
      means:
        'it is not recorded until somebody changes the Camera, its Secret, its pool or the camera itself; otherwise the condition is absent',
      todo: 'see the condition with this reason',
    },
  ],
} satisfies ConditionTable;

export const POOL_CONDITIONS = {
  NamespaceGranted: [
    {
      status: 'False',
      reason: 'NoRights',
      means:
        'the operator, which watches all namespaces, has no rights in this one; it does nothing here, and running recorders continue',
      todo: 'run the command in the message as a user who may create RoleBindings and pools there ([install.md](../install.md#several-tenants))',
    },
  ],
  QuorumAvailable: [
    { status: 'True', reason: 'Majority', means: 'the operator sees renewals of more than half of the voters' },
    {
      status: 'False',
      reason: 'NoMajority',
      means: 'it does not see them; nodes continue to record what is assigned to them',
      todo: '[lost-majority.md](lost-majority.md)',
    },
    {
      status: 'False',
      reason: 'NoVoters',
      means: 'no node is a voter yet',
      todo: 'wait for the first recorder, or see its pod',
    },
  ],
  FailoverSuspended: [
    { status: 'False', reason: 'Majority', means: 'cameras of an unavailable node move' },
    {
      status: 'True',
      reason: ['NoMajority', 'NoVoters'],
      means: 'no camera is assigned or moved',
      todo: '[lost-majority.md](lost-majority.md)',
    },
  ],
  CapacityAvailable: [
    { status: 'True', reason: 'Room', means: 'there is capacity for every camera' },
    {
      status: 'False',
      reason: 'NoRoom',
      means: 'there is no capacity for the cameras in the message',
      todo: 'raise `maxCamerasPerNode`, or [add a node](nodes.md)',
    },
    {
      status: 'False',
      reason: 'OverLimit',
      means: 'the nodes in the message have more cameras than their limit',
      todo: 'the same',
    },
  ],
  Balanced: [
    { status: 'True', reason: 'Even', means: 'no move would give the nodes more equally many cameras' },
    {
      status: 'False',
      reason: 'Uneven',
      means: 'the moves in the message would; `Ready` does not depend on it',
      todo: 'if you want it, approve the moves: [nodes.md](nodes.md#cameras-are-spread-again)',
    },
    { status: 'Unknown', reason: 'Moving', means: 'cameras are being moved' },
  ],
  NodesOnline: [
    { status: 'True', reason: 'AllOnline', means: 'no node of the pool is unavailable' },
    {
      status: 'False',
      reason: 'NodesUnavailable',
      means:
        'the nodes in the message have not renewed their Leases for too long; others record their cameras if they can',
      todo: '[replace-node.md](replace-node.md)',
    },
  ],
  Reconciling: [
    {
      status: 'True',
      reason: 'RollingOut',
      means: 'pods are being replaced; the condition is absent when nothing is to be done',
    },
  ],
  Stalled: [
    {
      status: 'True',
      reason: 'as in `ResourcesApplied` or `RolloutStopped`',
      means: 'you must act before the pool can be what its spec says; otherwise the condition is absent',
    },
  ],
  ResourcesApplied: [
    { status: 'True', reason: 'Applied', means: 'DaemonSet, Services and access are as they should be' },
    {
      status: 'False',
      reason: 'ForeignObject',
      means: "an object with the same name exists and is not the operator's",
      todo: 'rename the pool, or remove the object that the message names',
    },
    {
      status: 'False',
      reason: 'NotUnderstood',
      means:
        'another version has written fields that this one does not understand; recording and failover continue, and pods and objects stay as they are',
      todo: 'upgrade the operator, or correct the fields ([versions](../versions.md))',
    },
    {
      status: 'False',
      reason: 'TargetsUnknown',
      means: 'the ArchiveTargets that the pool or its cameras name cannot be listed: pods and objects stay as they are',
      todo: 'if it stays so, apply the kinds of this version, and give the operator the rights of the chart',
    },
    {
      status: 'False',
      reason: 'Rejected',
      means:
        'the API server refuses an object; the others are applied, running recorders continue, and no pod is replaced until it is accepted',
      todo: 'the message has its answer: correct the field of the pool, or the quota, policy or right that it names',
    },
    {
      status: 'False',
      reason: 'NoMetricsToken',
      means:
        'the operator may not make the Secret with the token for metrics, or the Secret has none; recorders continue to record, but Prometheus gets 401',
      todo: 'give the operator the rights of the chart, or delete that Secret',
    },
    {
      status: 'False',
      reason: 'NoTokens',
      means: 'the operator may not make the Secret with the tokens of the pool, for which its recorders wait',
      todo: 'give the operator the rights of the chart, or name a Secret in `spec.auth.tokensSecretRef`',
    },
    {
      status: 'False',
      reason: 'NoSessionKey',
      means:
        'the operator may not make the Secret with the key of sessions, or the Secret has none; recorders continue to record, but users who sign in are signed in on one node only',
      todo: 'give the operator the rights of the chart, or delete that Secret',
    },
  ],
  NodesSelected: [
    { status: 'True', reason: 'Selected', means: 'it selects nodes for its recorders' },
    {
      status: 'False',
      reason: 'NoNodes',
      means:
        'no node has the labels of `spec.nodeSelector`, or fits the affinity of `spec.podTemplate`: nothing is recorded',
      todo: 'give nodes the labels, as the message says',
    },
  ],
  NodesTaken: [
    {
      status: 'False',
      reason: 'NoneTaken',
      means: 'no node that it selects records for another pool of the namespace',
    },
    {
      status: 'True',
      reason: 'NodeTaken',
      means: 'some of them do: this pool has no recorder there',
      todo: 'give the pools different `nodeSelector`s, or the second a namespace of its own',
    },
  ],
  CopiesConfigured: [
    {
      status: 'True',
      reason: 'Configured',
      means: 'the recorders have all that the pool and its cameras say about copies',
    },
    {
      status: 'False',
      reason: 'NotCopied',
      means:
        'the message names what is not copied, and why; everything else is recorded and copied. Absent in a pool without copies',
      todo: 'correct `copies` of the camera or the pool, or the ArchiveTarget ([copies](../copies.md#on-kubernetes))',
    },
  ],
  PodsPlaced: [
    { status: 'True', reason: 'AllPlaced', means: 'each node that should have a recorder has a pod' },
    {
      status: 'False',
      reason: 'NoPod',
      means:
        'for a minute no pod has been made for the nodes in the message, for example because of a ResourceQuota: nothing is recorded there, and no update waits for them',
      todo: 'see the events of the DaemonSet with the command in the message; raise the quota, or correct the policy that they name',
    },
    {
      status: 'False',
      reason: 'Unschedulable',
      means:
        'for a minute the scheduler could not place the pods of the nodes in the message: nothing is recorded there, and no update waits for them',
      todo: 'free resources there, or lower `spec.resources`, or exclude the node from the pool',
    },
  ],
  CertificatesIssued: [
    { status: 'True', reason: 'Issued', means: 'each recorder that asks for a certificate has one' },
    {
      status: 'False',
      reason: 'AuthorityUnavailable',
      means:
        'the operator may not read or write the Secret with the keys of the CA; recorders keep the certificates that they have',
      todo: 'give it the rights of the chart in its own namespace',
    },
    {
      status: 'False',
      reason: 'RequestRefused',
      means: 'the recorder in the message sent something that is not a certificate request',
      todo: "see its log; does its image match the operator's?",
    },
  ],
  RolloutStopped: [
    {
      status: 'False',
      reason: ['UpToDate', 'RollingOut'],
      means:
        'there is nothing to update; an update is in progress. The message names nodes that hold it up or are not waited for',
    },
    {
      status: 'True',
      reason: 'ProgressDeadlineExceeded',
      means: 'the node in the message was not ready and online in time: the update waits',
      todo: '[upgrade.md](upgrade.md)',
    },
  ],
} satisfies ConditionTable;

export const NODE_CONDITIONS = {
  Drained: [
    {
      status: 'True',
      reason: 'Empty',
      means: 'it is being drained, and no camera is recorded there: it can be switched off',
    },
    { status: 'False', reason: 'HandingOver', means: 'its cameras move to other nodes, one by one' },
    {
      status: 'False',
      reason: 'NotMoving',
      means:
        'for `spec.cordon.progressDeadlineSeconds` no camera could leave it: `kubectl drain` does not wait any longer',
      todo: 'see `Assigned` of its cameras, `CapacityAvailable` and `QuorumAvailable` of the pool',
    },
    {
      status: 'False',
      reason: 'NoOtherNode',
      means: 'no other node may record the cameras that it still has: `kubectl drain` does not wait for them',
      todo: '[drain.md](drain.md#when-it-does-not-wait)',
    },
  ],
  Online: [
    { status: 'True', reason: 'LeaseRenewed', means: 'it renews its Lease' },
    {
      status: 'False',
      reason: 'NodeUnavailable',
      means: 'it has not renewed its Lease for 15 s, or it is left and its recorder has ended: its cameras move',
      todo: '[replace-node.md](replace-node.md)',
    },
    {
      status: 'Unknown',
      reason: 'NotHeard',
      means: 'it does not renew its Lease, and there is no majority to confirm that it is gone',
      todo: '[lost-majority.md](lost-majority.md)',
    },
  ],
  EtcdMember: [
    { status: 'True', reason: 'Voting', means: 'its member of etcd has a vote, and answers' },
    { status: 'True', reason: 'NotVoting', means: 'its member of etcd has no vote' },
    {
      status: 'False',
      reason: 'NotAnswering',
      means: 'its member of etcd has not answered for 15 s',
      todo: '[KubeNvrEtcdMemberDown](../runbooks/KubeNvrEtcdMemberDown.md)',
    },
    {
      status: 'Unknown',
      reason: 'NoMember',
      means: 'it has no member of etcd: others get their votes first, or its etcd cannot be started, as its log says',
    },
  ],
  Ready: [
    { status: 'True', reason: 'Recording', means: 'its recorder can write' },
    {
      status: 'False',
      reason: "a disk's reason",
      means: 'its recorder cannot write: the reasons of disks and archives above',
      todo: 'as above',
    },
  ],
} satisfies ConditionTable;

const FAILING =
  'see the message; `kubectl exec POD -c recorder -- recorder archive check` tries all that copying needs';

export const TARGET_CONDITIONS = {
  Ready: [
    { status: 'True', reason: 'Copying', means: 'every recorder that copies to it says that nothing is wrong' },
    {
      status: 'Unknown',
      reason: 'NotReported',
      means: 'no recorder copies to it',
      todo: 'name it in `copies` of a Camera or `archive.copies` of a RecorderPool; recorders report it after their restart',
    },
    {
      status: 'False',
      reason: 'WrongCredentials',
      means: 'the access key is wrong or revoked, or its Secret is missing',
      todo: 'correct the keys `accessKeyId` and `secretAccessKey` of the Secret: recorders read them again',
    },
    {
      status: 'False',
      reason: 'NoBucket',
      means: 'there is no such bucket',
      todo: 'create it, or correct `spec.bucket`',
    },
    {
      status: 'False',
      reason: 'ForeignPrefix',
      means: 'the prefix has copies of another pool or archive, and nothing is changed there',
      todo: 'give each pool a prefix of its own, or [take the prefix over](../copies.md#a-lost-archive)',
    },
    {
      status: 'False',
      reason: ['Forbidden', 'Refused'],
      means: 'the service refuses a request, for example because a permission is missing',
      todo: FAILING,
    },
    { status: 'False', reason: 'Unreachable', means: 'the service does not answer', todo: FAILING },
    {
      status: 'False',
      reason: 'Full',
      means: 'the service has no space left',
      todo: 'give it space, or keep copies for a shorter time',
    },
    {
      status: 'False',
      reason: 'BadDigest',
      means: 'the service does not confirm the SHA-256 of what it stores',
      todo: FAILING,
    },
    {
      status: 'False',
      reason: 'FileFailed',
      means: 'a file on the disk of the node cannot be copied; others are',
      todo: 'see the message',
    },
    {
      status: 'False',
      reason: 'OldCopiesKept',
      means: 'copies that are too old cannot be removed, for example because the bucket locks them',
      todo: 'see the message',
    },
    {
      status: 'False',
      reason: 'CopiesBehind',
      means: 'a file has waited to be copied for more than an hour',
      todo: '[KubeNvrCopiesBehind](../runbooks/KubeNvrCopiesBehind.md)',
    },
  ],
} satisfies ConditionTable;

export const OBJECTIVE_CONDITIONS = {
  Ready: [
    { status: 'True', reason: 'Measured', means: 'the leader of the pool measured it in the last 15 minutes' },
    {
      status: 'Unknown',
      reason: 'NotMeasured',
      means: 'no recorder has measured it in the last 15 minutes. A new objective is measured within some minutes',
      todo: 'see whether the pool is ready, and whether the recorders have this version',
    },
    {
      status: 'False',
      reason: 'NoPool',
      means: 'there is no such RecorderPool',
      todo: 'create it, or correct `spec.poolRef`',
    },
    {
      status: 'False',
      reason: 'NoCameras',
      means: 'no Camera of the pool has the labels of `spec.cameraSelector`',
      todo: 'label the Cameras, or correct the selector',
    },
    {
      status: 'False',
      reason: 'TooMany',
      means: 'the pool has more objectives, or their selectors select more cameras, than recorders measure',
      todo: 'delete objectives, or name cameras by `spec.cameras`',
    },
  ],
  Met: [
    { status: 'True', reason: 'Met', means: 'no more is missing than the target allows' },
    {
      status: 'False',
      reason: 'NotMet',
      means:
        'more is missing in the window than the target allows; `status.worstCameras` names the cameras that miss most',
      todo: '[KubeNvrObjectiveNotMet](../runbooks/KubeNvrObjectiveNotMet.md)',
    },
    { status: 'Unknown', reason: 'NotMeasured', means: 'see `Ready`' },
    {
      status: 'Unknown',
      reason: 'NothingToRecord',
      means: 'none of its cameras should have been recorded in the window',
    },
  ],
} satisfies ConditionTable;
