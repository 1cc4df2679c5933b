// What the reasons of a camera's state and the warnings of a recorder mean, and what to do: docs/operations/reasons.md is printed
// from these tables, and the API answers with `todo`. Links are relative to that page.

/** `todo` is shown by the API, too: text without links, with names as code. `see`: links for the page. */
interface ReasonRow {
  readonly means: string;
  readonly todo: string;
  readonly see?: string;
}

export type ReasonTable = Readonly<Record<string, ReasonRow>>;

/** By the code that the recorder's API gives; `reasonOf` makes the reason of `Recording`. */
export const RECORDING_REASONS = {
  unreachable: {
    means: 'no connection to the camera',
    todo: 'check its power, its network and its address, and what filters traffic to it',
  },
  'refused-login': {
    means: 'user or password are wrong',
    todo: 'correct its user and password',
    see: '[password.md](password.md)',
  },
  'login-downgraded': {
    means: 'it wants the password in readable form, and accepted a better login before',
    todo: 'choose Digest in the camera, or set its `allowPlaintextLogin`',
    see: '[logins](../cameras.md#logins)',
  },
  'not-found': { means: 'the camera has no stream at this path', todo: 'correct the path in its `source`' },
  'no-video': {
    means: 'the camera offers no video that can be recorded',
    todo: 'choose H.264, H.265, AV1 or MJPEG in the camera',
  },
  'too-many-streams': {
    means: 'the camera accepts no more viewers',
    todo: 'close other viewers; watch through the recorder instead of the camera',
  },
  'transport-refused': {
    means: 'the camera serves neither TCP nor UDP as asked',
    todo: 'leave the choice of its `transport` to the recorder (`auto`)',
  },
  'stream-silent': { means: 'connected, and no video for 10 s', todo: 'restart the camera' },
  'closed-by-camera': { means: 'the camera ended the connection', todo: "look at the camera's own log" },
  'no-answer': {
    means: 'a request was not answered',
    todo: 'check its power, its network and its address, and what filters traffic to it',
  },
  protocol: {
    means: 'the camera sent an answer that the recorder cannot parse or follow',
    todo: 'update the firmware of the camera',
    see: '[what cameras do wrong](../cameras.md)',
  },
  'no-key-frame': {
    means: 'video without a key frame, so that decoding cannot begin',
    todo: 'set a key frame interval in the camera',
  },
  'not-decodable': {
    means: 'packets arrive, but no picture can be made of them',
    todo: 'the message says what they contain; `recorder probe` says more',
  },
  encrypted: {
    means: 'the camera sends its video over SRTP only',
    todo: 'turn SRTP off in the camera, or use `rtsps://`',
  },
  'bitrate-exceeded': {
    means: 'the camera sends more than its `maxBitrate`',
    todo: 'lower the bit rate in the camera, or raise its `maxBitrate`',
  },
  'address-refused': {
    means: "`cameraNetworks` does not allow the camera's address",
    todo: 'list its network in `cameraNetworks`',
  },
  'unsupported-parameters': {
    means: "the camera's codec parameters cannot be stored in MP4",
    todo: 'choose another codec or profile in the camera',
  },
  'disk-full': {
    means: 'the disk is full',
    todo: 'free space on the disk, or keep less footage',
    see: '[disk-full.md](disk-full.md)',
  },
  'disk-read-only': {
    means: 'the disk is mounted read-only, often because it fails',
    todo: 'look at `dmesg` on the node',
  },
  'disk-missing': { means: 'the directory is gone', todo: 'mount the disk of the archive again' },
  'disk-denied': {
    means: 'the recorder may not write there',
    todo: "make the recorder's user the owner of the directory",
  },
  'disk-error': {
    means: 'the disk reports errors',
    todo: 'look at `dmesg` on the node',
    see: '[replace-node.md](replace-node.md)',
  },
  'disk-slow': { means: 'the disk does not keep up', todo: 'record fewer cameras on the node, or use a faster disk' },
  'no-descriptors': {
    means: 'the recorder can open no more files and connections',
    todo: 'raise its limit (`LimitNOFILE` of the service, or that of the container runtime) to 65536 or more',
  },
  'file-removed': {
    means: 'somebody removed the file that was being written',
    todo: 'nothing: the recorder begins the next file',
  },
  'archive-missing': {
    means: 'this is not the previous disk: it has no archive',
    todo: 'mount the right disk',
    see: '[replace-node.md](replace-node.md)',
  },
  'archive-foreign': {
    means: 'the disk has the archive of another node or pool',
    todo: 'mount the right disk',
    see: '[move-archive.md](move-archive.md)',
  },
  'archive-in-use': {
    means: 'another recorder uses this archive now',
    todo: 'the message names it: give each a directory of its own',
  },
  'license-exceeded': {
    means: 'more cameras than the licence allows',
    todo: 'turn cameras off, or get a larger licence',
    see: '[license.md](../license.md)',
  },
  'stopped-by-user': {
    means: 'somebody has stopped it through the API',
    todo: 'start it, in the console or through the API',
  },
  'invalid-camera': {
    means: 'this version of the recorder does not understand the spec',
    todo: 'the message names the field',
    see: '[upgrade](upgrade.md) the recorders',
  },
} satisfies ReasonTable;

/** By the code of a warning of a recorder; those of a wrong disk are in the table above. */
export const NODE_WARNINGS = {
  'no-tls': {
    means: 'other machines reach the recorder over plain HTTP',
    todo: 'set `tls: auto`, or listen on a loopback address behind a proxy with TLS',
    see: '[security](../security.md)',
  },
  'token-guessable': {
    means: 'a token was used that is easy to guess',
    todo: 'replace it with `recorder token create`',
    see: '[security](../security.md)',
  },
  'audit-not-written': {
    means: 'what users do is not recorded',
    todo: 'the message says why: correct the directory of the audit, or free space',
    see: '[audit](../audit.md)',
  },
  'mail-failed': {
    means: 'a mail about alarms was not accepted',
    todo: 'the message says why: correct `mail` in the configuration, and send a test mail in Alarms',
    see: '[events](../events.md#mail)',
  },
  'audit-not-sent': {
    means: 'a collector of the audit has no line of the last 15 minutes',
    todo: 'the message says why: repair the collector or the way to it; the lines wait in the files of the audit',
    see: '[KubeNvrAuditSilent](../runbooks/KubeNvrAuditSilent.md)',
  },
  'configuration-refused': {
    means: 'the files of the configuration, or the rows of cameras, were not taken up: what was in use before stays',
    todo: 'correct what the message names; or send SIGHUP to the recorder, if the cameras or tokens that are gone are to be removed',
    see: '[configuration](../configuration.md)',
  },
  'camera-removed': {
    means:
      'the configuration, the table `cameras` or the cluster no longer has the camera, since less than an hour ago',
    todo: 'add it again, if it should be recorded',
    see: '[configuration](../configuration.md)',
  },
  'cluster-unreachable': {
    means: 'the cluster does not answer this node, which continues with the cameras that it has',
    todo: 'check the network between this node and the store of the cluster, which the message names',
  },
  'etcd-member-down': {
    means: 'etcd does not answer on a server of the cluster: one vote less, although the server may record',
    todo: 'look at etcd and the disk of the server in the message; stop no other server meanwhile',
    see: '[KubeNvrEtcdMemberDown](../runbooks/KubeNvrEtcdMemberDown.md)',
  },
  'not-a-member': {
    means: 'the node left the cluster or was removed from it, and records none of its cameras',
    todo: 'add it again (`POST /cluster/add-learner`, then `change-membership`), or stop its recorder',
    see: '[nodes](nodes.md)',
  },
  'rows-restored': {
    means:
      'the rows of the table `cameras` are older than what the cluster read last: the cameras in the message are recorded as before, or are no longer in the table',
    todo: 'change the row of each as it should be; delete a camera whose row is gone with `recorder delete camera`',
    see: '[database](../database.md#in-a-cluster-of-servers)',
  },
  'database-unreachable': {
    means: 'the database does not answer; recording continues, and its rows follow',
    todo: 'check the database, and the network to it',
    see: '[database](../database.md)',
  },
  'database-unusable': {
    means: 'the database answers, but its tables cannot be used for the reason in the message; recording continues',
    todo: 'give the user of the database the right, or the table the column, that the message names',
    see: '[database](../database.md#a-table-that-another-program-has-made)',
  },
  'login-rests': {
    means:
      'the camera refused its login for still images or ONVIF, which are not asked for until the time in the message; others of the same device may work',
    todo: 'wait, correct user and password of the camera, which are tried at once, or try again, in the console or through the API; the account may be locked, or lack a right',
    see: '[logins](../cameras.md#logins)',
  },
  'frame-rate-low': {
    means: 'for a minute the camera has sent less than four fifths of the pictures that it usually sends',
    todo: 'check the network to the camera, and its exposure time, which lowers the rate in the dark',
  },
  'recorder-held': {
    means:
      'in the last ten minutes one piece of work kept everything else on the node waiting for two seconds or more, of recording too; if a camera is named, it was what this camera sent',
    todo: 'report it with the log; until it is mended, disable the camera that is named, or find the request of that time in the audit',
    see: '[requests that take long](../security.md#requests-that-take-long)',
  },
  'machine-frozen': {
    means:
      'in the last ten minutes the recorder stood still for five seconds or more, and not because of its own work: its machine was paused or moved, other programs had its processors, or a limit of processor time was used up',
    todo: 'the message has the reason: raise the limit of processor time, move other programs to other machines, or exempt the virtual machine from snapshots and moves while it runs',
    see: '[gaps](../gaps.md)',
  },
  'receive-buffer-small': {
    means:
      'cameras send over UDP, and the kernel of the node drops what does not fit into a buffer smaller than a key frame',
    todo: 'set `net.core.rmem_max` to 2097152 or more on the node, or use `transport: tcp` for its cameras',
    see: '[UDP](../cameras.md#udp)',
  },
  'kept-too-short': {
    means: 'footage is removed before its time, because the disk is too small for the current bit rates',
    todo: 'add disk space, lower the bit rates in the cameras, or record fewer cameras on the node',
    see: '[retention](../retention.md)',
  },
  'ffmpeg-missing': {
    means: 'exports and time-lapses are refused',
    todo: 'install ffmpeg, or correct `ffmpeg.path`',
    see: '[exports](../exports.md)',
  },
  'jobs-unavailable': {
    means: 'exports and time-lapses are refused, because Redis cannot be used',
    todo: 'the message says why: start Redis, or correct `redis.url`',
    see: '[exports](../exports.md)',
  },
  'signing-key-unusable': {
    means: 'exports fail, because they cannot be signed',
    todo: "the message names the file: make the recorder's user its owner, and let nobody else read it",
    see: '[exports](../exports.md)',
  },
  'archive-unreadable': {
    means:
      'a directory of the archive cannot be read: lists, playback and timelines answer with errors; recording continues',
    todo: 'the message names the directory: correct its owner and mode, or check the disk',
  },
  'disk-exhausted': {
    means: 'the disk is full, and no footage is left that may be removed',
    todo: 'free space on the disk, or protect less footage',
    see: '[disk-full.md](disk-full.md)',
  },
  'disk-failing': {
    means: 'one of several disks fails; its cameras record to the others',
    todo: 'look at the disk that the message names',
    see: '[KubeNvrDiskFailing](../runbooks/KubeNvrDiskFailing.md)',
  },
  'writes-failing': {
    means:
      'in the last half minute, pictures of one camera or more could not be written, or they wait for a disk that does not answer; if these are half of the cameras, the node is not ready',
    todo: 'the message has the reason: look at the disk and at the log of its kernel',
    see: '[ready.md](ready.md)',
  },
  'files-short': {
    means:
      'more than six files of a camera in the last minute are shorter than a second: what it sends breaks off again and again, or its clock or its picture changes',
    todo: 'look at the state of the camera and at its gaps, which name the cause, and correct it in the camera or the network; report it if they name none',
    see: '[time](../design/time.md)',
  },
  'room-not-made': {
    means: 'removing footage frees no space',
    todo: 'look for snapshots, quotas and other programs on the disk',
    see: '[disk-full.md](disk-full.md)',
  },
  'protected-over-quota': {
    means: 'protected footage alone is larger than a limit',
    todo: 'release protections, or raise `maxSize`',
    see: '[retention](../retention.md)',
  },
  'protections-unreadable': {
    means: 'it is not known which footage is protected',
    todo: 'restore `.kube-nvr/protections.json`, or remove it to start with an empty list',
    see: '[retention](../retention.md)',
  },
  'copies-failing': {
    means: 'footage is not copied to a target in object storage; files wait on the disk',
    todo: 'the message says why; `recorder archive check` tries all that copying needs',
    see: '[copies](../copies.md)',
  },
  'copies-behind': {
    means: 'a file has waited to be copied for more than an hour',
    todo: 'compare the bit rates of the cameras with the way to the target, its `maxBitrate` and `hours`',
    see: '[copies](../copies.md)',
  },
  'segment-not-removable': {
    means: 'a file of footage cannot be removed',
    todo: 'the log says why: correct its owner or its mode',
  },
} satisfies ReasonTable;
