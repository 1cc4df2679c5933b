// The sentences of the specification of the recording service, section by section, each with the rule in our own words and the tests
// that check it. build/specification.ts makes the page of them.

/** File and the name of the test as the source has it. */
export type Test = readonly [file: string, name: string];

/** `at` is the number in the section, or the name of a row of its table. */
interface Row {
  readonly at: string;
  readonly rule: string;
  /** What the tests look at. */
  readonly how: string;
  readonly tests: readonly Test[];
}

export interface Section {
  readonly title: string;
  /** Sentences, rows of tables and items of lists. Each has a row, or a reason why it has none. */
  readonly sentences: number;
  readonly rows: readonly Row[];
  /** What no test can check, and why. */
  readonly unchecked?: readonly (readonly [at: string, why: string])[];
}

const row = (at: string, rule: string, how: string, ...tests: readonly Test[]): Row => ({ at, rule, how, tests });

const API = 'recorder/api/app.test.ts';
const JOBS_API = 'recorder/api/routes/jobs.test.ts';
const JOBS = 'recorder/jobs/jobs.test.ts';
const ASSEMBLE = 'recorder/jobs/assemble.test.ts';
const STILLS = 'recorder/api/routes/stills.test.ts';
const SNAPSHOTS = 'recorder/snapshots/snapshots.test.ts';
const PTZ = 'recorder/api/routes/ptz.test.ts';
const CATALOGUE = 'recorder/archive/catalogue/catalogue.test.ts';
const LOAD = 'recorder/config/load.test.ts';
const ROW = 'recorder/database/camera-rows.test.ts';
const CONTROL = 'recorder/api/routes/camera-control.test.ts';
const POSTGRES = 'test/e2e/postgres.test.ts';
const DEB = 'test/packages/deb.test.ts';
const SERVERS = 'test/packages/cluster.test.ts';
const PLAIN = 'test/cluster/plain-servers.test.ts';
const MEMBER = 'test/cluster/member.test.ts';

const DEFAULTS: Test = [LOAD, 'a file without settings is a recorder without cameras and every default'];
const KEYS: Test = [LOAD, 'every documented key is accepted and arrives in our units'];
const HOST_NAME: Test = [LOAD, 'an empty nodeName becomes the host name, and without one the start is refused'];
const OPENAPI: Test = [
  'test/e2e/openapi.test.ts',
  'requests by the document and against it get no answer that it does not list',
];
const RECORDED: Test = [
  'test/e2e/recording.test.ts',
  '${transport}: H.264 with AAC, H.265 with Opus, B-frames with G.711: every file plays, every session ends',
];
const PLAYS_LIVE: Test = ['test/e2e/player.test.ts', 'H.264 with AAC plays at the live edge'];
const READY: Test = [API, 'ready shows checks only to callers with a role'];
const NOT_READY: Test = [
  API,
  'not ready: 503 names the failed checks to callers with a role, and only the status to others',
];
const CLUSTER_CHECK: Test = [
  API,
  'ready: a passing outage of the cluster only warns; after five minutes, and before the node ever joined, it fails',
];
const LICENSE: Test = [
  'test/e2e/license.test.ts',
  'a recorder that needs a licence: which cameras record, and how licences come and go without a restart',
];
const NUMBERS: Test = [API, 'node metrics are whole numbers under the names of the specification'];
const SEGMENTS: Test = [API, 'segments: the wire form of the specification'];
const INTERVALS: Test = [API, 'segments${query} asks for the right interval'];
const BAD_INTERVALS: Test = [API, 'segments?${query} is refused, and the answer names the parameter'];
const UNKNOWN: Test = [API, 'segments: a camera that the node does not know has empty lists'];
const UNREADABLE: Test = [API, 'segments: an archive that cannot be read is 500, and never an empty list'];
const DAMAGED: Test = [CATALOGUE, 'when ${damage}, the list is an error and never shorter than the archive'];
const CURRENT: Test = [API, 'current: what is being written, and 404 when nothing can be reported'];
const CURRENT_CHANGES: Test = [
  'test/e2e/current.test.ts',
  'over ${CHANGES} changes of the file it is always there, and the list has it open; format mp4 is only listed',
];
const CURRENT_LOST: Test = [
  'test/e2e/current.test.ts',
  'a camera that is lost has none, and has it again with the first pictures; a listed open segment is never empty',
];
const ROWS_ARE_FILES: Test = [
  POSTGRES,
  'each closed segment has one row, which says what its file says, and lists from the table are those of the disk',
];
const TABLE_LISTS: Test = [
  'test/e2e/postgres-listing.test.ts',
  'segments and days are those of a plain look at every row, whatever waits in the queue or is being written',
];
const ROWS_OF_NODES: Test = [
  'test/e2e/postgres-listing.test.ts',
  'rows of other nodes and cameras are not listed, unless all nodes are asked for',
];
const DATABASE_AWAY: Test = [
  POSTGRES,
  'while the database is away rows wait, lists are answered with 503, the node is not ready, and recording continues',
];
const TABLE_CAMERAS: Test = [
  POSTGRES,
  'a camera of the table is recorded, changed and stopped within two seconds, the others are not touched',
];
const OTHER_NAME: Test = [POSTGRES, 'a node with another name has no cameras, says so, and is healthy'];
const ROW_WORDS: Test = [ROW, 'a row becomes a camera in the words of the configuration'];
const ROW_CAMERAS: Test = [
  'test/cluster/rows.test.ts',
  'a row is recorded by the node that it names, every node redirects to it, and its login is in no Camera',
];
const ROWS_FAIL_OVER: Test = [
  PLAIN,
  'cameras of one Postgres are cameras of the cluster, whether Postgres lives, is killed, hangs or is restored from a backup',
];
const REDIRECT: Test = [
  MEMBER,
  'a request for a camera of another node is sent there with its query, and never to and fro',
];
const ALL_NODES: Test = [
  'recorder/api/collected-segments.test.ts',
  'the list of segments is that of all nodes, at each of them, in order and in pages too',
];
const SUBMIT: Test = [JOBS_API, 'an export and a time-lapse are taken with 202 and say where to look'];
const BAD_SUBMIT: Test = [JOBS_API, '${query} is refused with ${status}'];
const NO_FFMPEG: Test = [JOBS_API, 'without ffmpeg, or without Redis, both kinds answer 503 with what is missing'];
const JOB: Test = [JOBS_API, 'the state of a job has the fields of the specification'];
const DOWNLOAD: Test = [
  JOBS_API,
  'a result is sent inline, or as an attachment with a name; in ranges; and not after it has expired',
];
const NOT_DONE: Test = [
  JOBS_API,
  'what is not done yet answers 202, what failed 409 with its reason, what is unknown 404',
];
const EXPIRY: Test = [JOBS, 'an hour after completion a result is gone, also when the recorder was down then'];
const FOUR: Test = [JOBS, 'more than four exports wait; one that waits and one that runs can be cancelled'];
const FOUR_AND_TWO: Test = [
  JOBS,
  'no answer ever has more than four exports and two time-lapses that run, assemblies among them',
];
const EXPORT: Test = [
  'test/e2e/export.test.ts',
  '${video}: an export over several files has exactly the pictures of its window',
];
const MILLISECONDS: Test = [
  JOBS_API,
  'a window with fractions of a second is kept to the millisecond, and told in whole seconds around it',
];
const EMPTY_POST: Test = [JOBS_API, 'an export without a body may name any type of content, and a time-lapse, too'];
const LAPSE: Test = [JOBS, 'a time-lapse has its size, its rate and its length'];
const X264: Test = [
  'recorder/jobs/ffmpeg.test.ts',
  'a time-lapse over a change of resolution keeps its length and its first size, and small pictures stay small',
];
const PARTS: Test = [
  JOBS_API,
  'an assembly is taken with 202; its parts are in the order of their ordinals, its credential beside it',
];
const BAD_PARTS: Test = [JOBS_API, 'an assembly ${what} is refused with ${status}'];
const ASSEMBLY: Test = [
  ASSEMBLE,
  'parts of two nodes are one movie: the pictures of both windows, sound, and the gap between them',
];
const ASSEMBLIES: Test = [
  'test/e2e/assemble.test.ts',
  'exports of two nodes, asked for and assembled by a third, are one movie and one time-lapse',
];
const STARTED: Test = [CONTROL, 'start and stop answer how many cameras they changed, and record the caller'];
const STOPPED: Test = [
  'test/e2e/camera-control.test.ts',
  'a camera is stopped and started by the API, over reloads, kill -9 and restarts, and its gap says so',
];
const STILL: Test = [STILLS, 'a snapshot is the bytes of the camera, with its age in Cache-Control'];
const STILL_FAULTS: Test = [STILLS, '404, 502 and 504 are told apart'];
const STILL_AGE: Test = [SNAPSHOTS, 'an image is handed out for 15 seconds, counted from when it was there'];
const STILL_LATE: Test = [SNAPSHOTS, 'a camera that ${name} is given up after 10 seconds, by all who wait'];
const LIVE: Test = [
  'recorder/api/websocket.test.ts',
  'a viewer gets the initialization segment, then fragments, all as binary messages',
];
const MOVES: Test = [PTZ, 'move and stop'];
const MOVE_REFUSED: Test = [PTZ, 'move is refused: ${name}'];
const SPEED: Test = [PTZ, 'a speed of ${speed} is limited: pan ${pan}'];
const ONVIF: Test = ['recorder/onvif/ptz.test.ts', 'a camera moves and stops: ${name}'];
const INSTALLED: Test = [DEB, 'an installation starts nothing, and makes the user and the directories'];
const STARTS: Test = [DEB, 'it answers when systemd says that it has started, and records'];
const WRONG: Test = [
  DEB,
  'with a wrong configuration it does not start, and the journal names the file, the line and the key',
];
const UPGRADE: Test = [
  DEB,
  'an upgrade keeps a changed config.yaml and does not restart: the old version records until it is restarted',
];
const RPM_UPGRADE: Test = [
  'test/packages/rpm.test.ts',
  'an upgrade writes config.yaml.rpmnew next to a changed file and does not restart',
];
const STOP: Test = [
  'test/e2e/stop.test.ts',
  'SIGTERM with 20 cameras: exit 0 within 5 s, every file finalised, every session torn down',
];
const ROLLING: Test = [SERVERS, 'all servers are upgraded one after the other, and not a second is missing'];
const BACKUP: Test = [SERVERS, 'a state from a backup is refused with an instruction, and the instruction helps'];
const SCRATCH: Test = [
  DEB,
  'a server made from scratch with the saved /etc/recorder and the old disk finds the archive',
];
const REPLACED: Test = [SERVERS, 'a server that died is replaced by another one under its name, with its disk'];
const RESET: Test = [SERVERS, 'a server is reset, and one whose state was deleted by hand gets a new certificate'];
const LEFT: Test = [
  PLAIN,
  'a server that leaves has no data of etcd, keeps its certificate, and returns without a restart',
];
const CAME_BACK: Test = [
  'test/cluster/operator.test.ts',
  'a node leaves without a restart, and comes back through add-learner and change-membership',
];
const FORCED: Test = [PLAIN, 'without a majority a server leaves by force'];
const BY_HAND: Test = [
  PLAIN,
  'state from a backup is refused, and the server returns with a certificate of its own name',
];
const REMOVED: Test = [PLAIN, 'a camera that is applied is recorded, and by another one after its server was killed'];
const MAJORITY: Test = [
  SERVERS,
  'with two of three servers lost no camera moves and the last server continues to record, also after a restart; with two servers, cameras move',
];
const CUT_OFF: Test = [
  SERVERS,
  'a server that is cut off continues to record, others record its camera, too, and the second recording ends with the outage',
];
const LEADER_LOST: Test = [
  SERVERS,
  'the server whose operator leads loses its power: others record its camera, and it returns as it was',
];
const SILENCE: Test = [
  'operator/plan/liveness.test.ts',
  'a node is unavailable after 15 s of silence, and not before a read of its Lease says so',
];
const FAILED_OVER: Test = [
  'test/cluster/operator.test.ts',
  'a node that dies loses its cameras to the others; footage stays where it is',
];
const CLUSTER: Test = [PLAIN, 'the first one makes the cluster, and others join with a token'];
const ONE_NODE: Test = [
  'test/cluster/servers.test.ts',
  'each camera is recorded by one of them, and they share the cameras',
];
const EARLY: Test = [
  'recorder/cluster/access.test.ts',
  'a vote is given once etcd says so, and one that waits for data is told as that',
];
const PAGE_OF_SERVERS: Test = [
  'test/cluster/page-of-servers.test.ts',
  'the page of a cluster of servers, followed word for word, ends with one address, one login, all cameras',
];
const METRICS_LISTENER: Test = [
  'test/e2e/metrics-token.test.ts',
  'metrics need their token, which is replaced without a restart and opens nothing else',
];
const ADMIN_ASSEMBLES: Test = [JOBS_API, 'an assembly needs the role admin, and as a time-lapse ffmpeg'];
const NAMES: Test = [
  'recorder/archive/disk/names.test.ts',
  'a segment lies in the directory of its UTC day under name, camera id, date and time',
];
const ONE_BODY = 'the whole body of an answer is compared';
const ABOUT = 'is about the specification itself';
const NOT_SAID = 'says what the specification leaves open';

export const SECTIONS: readonly Section[] = [
  {
    title: 'Introduction',
    sentences: 2,
    rows: [
      row(
        '2',
        'the API listens at port 9997 unless the configuration says otherwise',
        'an empty file is read',
        DEFAULTS,
      ),
    ],
    unchecked: [['1', ABOUT]],
  },
  {
    title: 'Section 1: what the service does',
    sentences: 15,
    rows: [
      row(
        '1',
        'streams of cameras are recorded on the disks of the node',
        'cameras of GStreamer; every file is decoded',
        RECORDED,
      ),
      row(
        '2',
        'browsers play a camera live, close to the present',
        'Chromium shows numbered pictures; how old they are is measured',
        PLAYS_LIVE,
      ),
      row(
        '3',
        'the API is HTTP with bodies in JSON',
        'requests made from the OpenAPI document; answers are held against it',
        OPENAPI,
      ),
      row('3.1', 'it lists the archive and what is being written', ONE_BODY, SEGMENTS, CURRENT),
      row(
        '3.2',
        'it makes exports and time-lapses as jobs',
        'a recorder makes an export of what it recorded; a job makes a time-lapse',
        EXPORT,
        LAPSE,
      ),
      row('3.3', 'it starts and stops cameras', 'sessions at the camera, over reloads, kills and restarts', STOPPED),
      row('3.4', 'it hands out still images of cameras', 'the bytes are those that the camera sent', STILL),
      row('3.5', 'it moves cameras', 'what an ONVIF device was told', MOVES, ONVIF),
      row('3.6', 'it reports health and numbers of the node', ONE_BODY, READY, NUMBERS),
      row(
        '4.1',
        'nodes form a cluster with a consensus log and a leader',
        'three servers, each with its etcd, name the same leaders',
        CLUSTER,
      ),
      row(
        '4.2',
        'one node at a time records a camera',
        'what each of three servers records is compared with the assignments',
        ONE_NODE,
        [MEMBER, 'a planned move: the old node records until the handover is complete, and then stops'],
      ),
      row(
        '4.3',
        'a row of the table `cameras` is recorded by the node that its `node_name` names',
        'rows are added and changed in Postgres, alone, on servers and on Kubernetes',
        TABLE_CAMERAS,
        ROW_CAMERAS,
        ROWS_FAIL_OVER,
      ),
      row('5.1', 'a database may be configured', 'with and without it the lists are the same', ROWS_ARE_FILES),
      row(
        '5.2',
        'closed segments are rows of `recordings`; cameras come from the table `cameras`',
        'each row is compared with its file, its size and its length by ffprobe',
        ROWS_ARE_FILES,
        TABLE_CAMERAS,
      ),
      row(
        '6',
        'Prometheus reads a listener of its own',
        'what it asks of callers, beside the listener of the API',
        METRICS_LISTENER,
      ),
    ],
  },
  {
    title: 'Section 1: operation of a server: places',
    sentences: 7,
    rows: [
      row('service unit', 'the unit is called `recorder`', 'systemd starts and stops it under that name', STARTS),
      row('service log', 'the journal of the unit has the log', '`journalctl --unit recorder`', STARTS, WRONG),
      row('log files', 'they are in `/var/log/recorder`', 'the file there is not empty once it runs', STARTS),
      row(
        'configuration',
        'it is `/etc/recorder/config.yaml` and `/etc/recorder/conf.d`',
        'a mistake in a file of conf.d is named with its path; cameras of it are recorded',
        INSTALLED,
        WRONG,
        STARTS,
      ),
      row('license file', 'it is `/etc/recorder/recorder.lic`', 'an empty configuration is read', DEFAULTS),
      row(
        'working directory',
        'it is `/var/lib/recorder`',
        'the directory of the process that systemd started',
        STARTS,
      ),
      row(
        'cluster node state',
        'it is `node_<id>` in `cluster.dataDir`, by default `/var/lib/recorder/data`',
        'the certificate of a server is found there',
        DEFAULTS,
        RESET,
      ),
    ],
  },
  {
    title: 'Section 1: operation of a server: rules',
    sentences: 40,
    rows: [
      row(
        '1',
        'ready with 200 means that the server is ready',
        'asked when systemd says that the unit is active',
        STARTS,
      ),
      row('2.1', 'the configuration is checked at the start', 'wrong files, each with its message', [
        LOAD,
        'refused: ${name}',
      ]),
      row(
        '2.2',
        'a wrong one keeps the service from starting, and the journal names the key',
        'the journal after `systemctl start`; directories that cannot be used',
        WRONG,
        [
          'test/e2e/directories.test.ts',
          'a record_path that cannot be used is named with its key, also after the first start and by --check-config',
        ],
      ),
      row(
        '3.1',
        'an upgrade restarts nothing',
        'the process id before and after, of both kinds of packages',
        UPGRADE,
        RPM_UPGRADE,
      ),
      row(
        '3.2',
        'the old version goes on until it is restarted',
        'its version and its new files; pages and a thread whose files were replaced',
        UPGRADE,
        [
          'recorder/archive/catalogue/details-reader.test.ts',
          'a thread whose file was replaced since the start is not started: the caller reads',
        ],
        [
          'recorder/api/routes/page.test.ts',
          'the page is read once, and again if it could not be read: files that a package replaces are those of the next process',
        ],
      ),
      row(
        '3.3',
        'a stop closes the files that are being written',
        'every file of twenty cameras is decoded after SIGTERM',
        STOP,
      ),
      row('4.1', 'an upgrade keeps a changed `config.yaml`', 'the text of the file', UPGRADE, RPM_UPGRADE, [
        'test/packages/contents.test.ts',
        'config.yaml is a file of configuration to both',
      ]),
      row('4.2', 'with deb the default answer keeps the file', 'Return is the answer to dpkg', UPGRADE),
      row(
        '4.3',
        'with rpm the packaged file is beside it as `config.yaml.rpmnew`',
        'the text of that file',
        RPM_UPGRADE,
      ),
      row('5', 'after a restart ready is 200 and has the new version', 'both are asked', UPGRADE),
      row(
        '6.1',
        'nodes are upgraded one after the other',
        'the page of upgrades is followed on three servers; every second of footage is there',
        ROLLING,
      ),
      row(
        '6.2',
        'the next one comes when the one before is ready and online',
        '`/cluster/metrics` at another server',
        ROLLING,
      ),
      row(
        '7.2',
        'a state from a backup disturbs no cluster',
        'an old copy is put in place: the start is refused, and the page helps',
        BACKUP,
        BY_HAND,
      ),
      row('8.1', 'a server is made again with the same package', 'a second machine with systemd', SCRATCH),
      row('8.2', 'its configuration is that of before', 'the saved `/etc/recorder` is unpacked there', SCRATCH),
      row('8.3', 'footage is found by its path and its names', 'the list has every file of the old disk', SCRATCH),
      row('8.4', '`systemctl enable --now recorder` is enough to start it', 'it is the last command', SCRATCH),
      row(
        '9.1',
        'rows of recordings belong to the name of the node, files to its disk',
        'rows of two nodes; files of a node that died stay where they are',
        ROWS_OF_NODES,
        FAILED_OVER,
      ),
      row(
        '9.2',
        'a node that returns under its name has its archive',
        'every file of before is listed after the replacement',
        REPLACED,
      ),
      row(
        '10.1',
        'a member that does not work is reset while its process runs',
        'the page is followed on a server',
        RESET,
      ),
      row(
        '10.2',
        '`POST /cluster/leave` with `{}` is sent to the node itself',
        'the call and its answer',
        LEFT,
        CAME_BACK,
      ),
      row(
        '10.3',
        'the node is no member, has no cameras and no state of consensus',
        'members as etcd lists them, files of the state, who records',
        LEFT,
        CAME_BACK,
      ),
      row('10.4', 'no restart is needed', 'the process id after the return', LEFT, RESET),
      row(
        '10.5',
        'with `force` it leaves what cannot accept that, and is removed at the leader',
        'a server without a majority; a removal of a dead one, sent on to the leader',
        FORCED,
        REMOVED,
      ),
      row(
        '10.6',
        '`add-learner` and then `change-membership` bring it back',
        'members of etcd after each step; a client that is early is told what follows',
        LEFT,
        CAME_BACK,
        EARLY,
      ),
      row(
        '10.7',
        'it gets the state and takes cameras again',
        'it votes, and records the camera that prefers it',
        RESET,
      ),
      row('10.8', 'key and certificate stay', 'the certificate is the same file', LEFT, RESET),
      row(
        '10.9',
        'a state that was deleted by hand needs a new certificate',
        'the start is refused; after an invitation the certificate is another one',
        RESET,
        BY_HAND,
      ),
      row('11.1', 'another server replaces one that failed', 'the page is followed with a new machine', REPLACED),
      row(
        '11.2',
        'a dead node is removed at the leader, and its vote counts until then',
        'members of etcd after the removal; of three servers two are killed',
        REMOVED,
        MAJORITY,
      ),
      row(
        '11.3',
        'with its disk, its name and its path the recordings are there',
        'the files of before are listed',
        REPLACED,
      ),
      row('11.4', 'it gets a certificate and is added', 'it joins with a token, and votes', REPLACED),
      row(
        '12.1',
        'more than half of the voters must live',
        'one of two servers is killed; how many of the voters the operator wants',
        FORCED,
        [
          'operator/plan/voters.test.ts',
          'of two voters that the operator chose, one is a majority; of two that a person chose, both are',
        ],
      ),
      row(
        '12.2',
        'three nodes survive one loss, two none',
        'one of three servers is killed, then two',
        MAJORITY,
        FORCED,
      ),
      row(
        '12.3',
        'without a majority there is no leader and no camera moves; recording goes on',
        'for longer than a failover takes, and over a restart',
        MAJORITY,
        [
          'operator/plan/plan.test.ts',
          'without a majority nothing gets a node, no leader is reported, and the conditions say so',
        ],
      ),
      row('13.1', 'a node that is cut off records on', 'no second of its camera is missing', CUT_OFF),
      row(
        '13.2',
        'after 15 to 20 s others record its cameras, too, until the link is back',
        'footage of both servers, and its end',
        CUT_OFF,
      ),
    ],
    unchecked: [
      ['7.1', 'says what a person saves'],
      ['7.3', 'says what a person saves apart'],
      ['13.3', 'is advice to a person; the page of a server that is cut off has it'],
    ],
  },
  {
    title: 'Section 2: ready',
    sentences: 9,
    rows: [
      row('status', '`ready` when all checks pass', ONE_BODY, READY),
      row('version', 'the version of the service', ONE_BODY, READY),
      row('timestamp', 'ISO 8601 with an offset', ONE_BODY, READY),
      row('checks', 'for callers with a role', 'the bodies for a viewer, nobody, and a wrong token', READY),
      row('checks.storage', '`configured` and `reachable`', ONE_BODY, READY),
      row('checks.cluster_store', '`configured`', ONE_BODY, READY, CLUSTER_CHECK),
      row('checks.recordings_dir', '`path` and `writable`', ONE_BODY, READY),
      row('checks.license', '`valid`', ONE_BODY, READY, LICENSE),
    ],
    unchecked: [['last', NOT_SAID]],
  },
  {
    title: 'Section 2: node metrics',
    sentences: 9,
    rows: [
      row('online', 'a boolean', ONE_BODY, NUMBERS),
      row('node_name', 'the name of the node', ONE_BODY, NUMBERS),
      row('cpu_load', 'a whole number', ONE_BODY, NUMBERS),
      row('mem_used_gb', 'a whole number', ONE_BODY, NUMBERS),
      row('mem_total_gb', 'a whole number', ONE_BODY, NUMBERS),
      row('storage_free_gb', 'a whole number', ONE_BODY, NUMBERS),
      row('storage_used_gb', 'a whole number', ONE_BODY, NUMBERS),
      row('timestamp', 'ISO 8601 with an offset', ONE_BODY, NUMBERS),
    ],
    unchecked: [['mem_total_gb, again', 'is the row before it once more']],
  },
  {
    title: 'Section 2: names of nodes',
    sentences: 6,
    rows: [
      row('1.1', 'an empty name is the name of the host', 'a file with an empty name is read', HOST_NAME),
      row('1.2', 'no name is built in', 'without a name of the host the start is refused', HOST_NAME),
      row('2', 'a node without a name does not start', 'the message names the key', HOST_NAME),
      row(
        '4.1',
        'a name with a wrong letter is no error',
        'a row for another case, a node with a letter less',
        OTHER_NAME,
      ),
      row('4.2', 'that node has no cameras and is healthy', 'its cameras, and ready', OTHER_NAME),
    ],
    unchecked: [['3', 'is a duty of a management platform']],
  },
  {
    title: 'Section 2: segment',
    sentences: 6,
    rows: [
      row('timestamp', 'the start, ISO 8601 with an offset', ONE_BODY, SEGMENTS),
      row('sequence', 'a whole number', ONE_BODY, SEGMENTS),
      row(
        'filename',
        'the path below the record path, by day, name, camera, date and time',
        'names are written, and read back',
        SEGMENTS,
        NAMES,
      ),
      row('size', 'bytes, final once it is closed', 'rows and lists against the files', SEGMENTS, ROWS_ARE_FILES),
      row(
        'mtime',
        'seconds since 1970',
        'against the file, while it grows and when it is closed',
        SEGMENTS,
        CURRENT_CHANGES,
      ),
      row(
        'is_open',
        'true for the segment that is being written, and no other',
        'the list while files change, and after a stop',
        CURRENT_CHANGES,
        CURRENT_LOST,
      ),
    ],
  },
  {
    title: 'Section 2: list of segments',
    sentences: 2,
    rows: [
      row('archive', 'a list of segments', ONE_BODY, SEGMENTS),
      row('days', 'a list of days as YYYY-MM-DD', ONE_BODY, SEGMENTS),
    ],
  },
  {
    title: 'Section 2: current recording',
    sentences: 4,
    rows: [
      row('camera_id', 'a string', ONE_BODY, CURRENT),
      row('filename', 'a string', ONE_BODY, CURRENT, CURRENT_CHANGES),
      row('start', 'ISO 8601 with an offset', ONE_BODY, CURRENT),
      row('size', 'the bytes so far', 'it is never 0, and the file has them', CURRENT, CURRENT_CHANGES),
    ],
  },
  {
    title: 'Section 2: job',
    sentences: 9,
    rows: [
      row('job_id', 'a string', ONE_BODY, JOB),
      row('camera_id', 'a string', ONE_BODY, JOB),
      row('from, to', 'whole seconds since 1970', ONE_BODY, JOB, MILLISECONDS),
      row('created_at, completed_at', 'whole seconds since 1970', ONE_BODY, JOB),
      row('kind', '`export` or `timelapse`', ONE_BODY, JOB),
      row('speed', 'of a time-lapse alone', ONE_BODY, JOB),
      row('state', 'one of the four states', ONE_BODY, JOB, NOT_DONE),
      row('size_bytes', 'when it is done', ONE_BODY, JOB),
      row('reason', 'when it failed', ONE_BODY, JOB),
    ],
  },
  {
    title: 'Section 2: answer to the request for a job',
    sentences: 3,
    rows: [
      row('job_id', 'a string', ONE_BODY, SUBMIT),
      row('status_url', 'the address of the job', ONE_BODY, SUBMIT),
      row('download_url', 'the address of its result', ONE_BODY, SUBMIT),
    ],
  },
  {
    title: 'Section 2: part of an assembly',
    sentences: 3,
    rows: [
      row('peer_addr', 'host and port of a member', 'what is refused, and what a job is made of', PARTS, BAD_PARTS),
      row('peer_job_id', 'the id of an export there', 'what is refused, and what a job is made of', PARTS, BAD_PARTS),
      row(
        'ordinal',
        'the place of the part, from 0',
        'parts in reverse; ordinals twice, missing, negative',
        PARTS,
        BAD_PARTS,
      ),
    ],
  },
  {
    title: 'Section 2: camera',
    sentences: 9,
    rows: [
      row('id', 'a string', 'a file with every key is read', KEYS),
      row(
        'source',
        'an RTSP address, whose login also serves ONVIF and still images',
        'the camera gets that login',
        KEYS,
        ONVIF,
        [SNAPSHOTS, 'the login of the stream is used where the snapshot has none, and only there'],
      ),
      row('snapshot', 'the address of still images in files', 'a file with every key is read', KEYS),
      row('snapuri', 'the address of still images in the database', 'a row is read', ROW_WORDS),
      row('ptz', 'whether the camera may be moved', 'a camera with it and one without', KEYS, MOVE_REFUSED),
      row(
        'record.format',
        'with `mp4` there is no current recording',
        'a camera with that format is asked while it records',
        KEYS,
        CURRENT_CHANGES,
      ),
      row(
        'cameras.node_name',
        'the node that records the camera',
        'rows are moved from node to node',
        TABLE_CAMERAS,
        ROW_CAMERAS,
      ),
      row(
        'other settings',
        '`nodeName`, `record_path` and `cluster.dataDir` are keys',
        'a file with every key is read',
        KEYS,
      ),
    ],
    unchecked: [['last', NOT_SAID]],
  },
  {
    title: 'Section 3: states of jobs',
    sentences: 5,
    rows: [
      row('pending', 'waits, because as many of its kind run as may', 'six exports at once', FOUR),
      row('running', 'is being made', 'six exports at once', FOUR, JOB),
      row('done', 'has a size', ONE_BODY, JOB),
      row('failed', 'has a reason', ONE_BODY, JOB, [JOBS, 'a job without footage fails with its reason']),
    ],
    unchecked: [['last', NOT_SAID]],
  },
  {
    title: 'Section 3: other moves',
    sentences: 6,
    rows: [
      row(
        'archive segment',
        'a closed file is not open, has its size, and has a row',
        'files, lists and rows are compared',
        ROWS_ARE_FILES,
        CURRENT_LOST,
      ),
      row(
        'job result',
        'an hour after its completion it is gone, and the download is 410',
        'with a clock that is an hour ahead',
        EXPIRY,
        DOWNLOAD,
      ),
      row(
        'cluster node',
        'after more than 15 s of silence its cameras move',
        'the planner by a virtual clock; nodes that are killed, and the gap that is left',
        SILENCE,
        FAILED_OVER,
        ROWS_FAIL_OVER,
      ),
      row(
        'cluster leader',
        'a leader that is lost is replaced within seconds',
        'a virtual clock; the server that leads loses its power',
        ['operator/kube/leader.test.ts', 'a leader that dies is replaced 10 s after its last renewal, and not before'],
        LEADER_LOST,
      ),
      row(
        'cluster',
        'without more than half of the voters there is no leader, and nothing moves',
        'two of three servers are killed',
        MAJORITY,
      ),
      row(
        'current recording',
        '404 when the camera is lost, not recorded, or has the format mp4',
        'a camera that goes and comes',
        CURRENT,
        CURRENT_CHANGES,
        CURRENT_LOST,
      ),
    ],
  },
  {
    title: 'Section 4: before its parts',
    sentences: 2,
    rows: [row('2', 'bodies are JSON', 'requests made from the OpenAPI document', OPENAPI)],
    unchecked: [['1', ABOUT]],
  },
  {
    title: 'Section 4: health',
    sentences: 4,
    rows: [
      row('live', '200 while the process answers', 'asked without credentials', [API, 'live answers anyone']),
      row(
        'ready, 1',
        '200 when all checks pass, else 503 with the name of what failed',
        'each check fails: database, disk, licence, cluster',
        NOT_READY,
        CLUSTER_CHECK,
        LICENSE,
        DATABASE_AWAY,
        [API, 'ready: a disk that does not answer is not writable, and probes do not pile up on it'],
      ),
      row(
        'ready, 2',
        'without a role there are three fields',
        'also for a wrong token, and when a check fails',
        READY,
        NOT_READY,
      ),
      row('ready, 3', 'probes need no credentials', 'also while the API speaks TLS', READY, [
        'test/e2e/health-listener.test.ts',
        'probes are answered in plain HTTP while the API speaks TLS and strangers hold all their places',
      ]),
    ],
  },
  {
    title: 'Section 4: node metrics',
    sentences: 2,
    rows: [row('1', '`GET /api/metrics` has the numbers of the node', ONE_BODY, NUMBERS)],
    unchecked: [['2', NOT_SAID]],
  },
  {
    title: 'Section 4: list of segments',
    sentences: 18,
    rows: [
      row('first', '`GET …/segments` has segments and days', ONE_BODY, SEGMENTS),
      row('1.1', 'boundaries are seconds since 1970', 'what the archive is asked for', INTERVALS),
      row('1.2', 'without any the list is of today', 'in zones west of UTC too, and on a day of 26 hours', INTERVALS, [
        'recorder/api/machine.test.ts',
        'a day of 26 hours is a list of its last 25',
      ]),
      row('1.3', '`from` alone is the day from then on', 'what the archive is asked for', INTERVALS),
      row('1.4', '`to` alone is the day until then', 'what the archive is asked for', INTERVALS),
      row('2', 'at most 25 hours', '25 hours, and a second more', INTERVALS, BAD_INTERVALS),
      row(
        '3',
        'a segment that overlaps the interval is in the list, also one that began before',
        'files on the disk; rows at random',
        TABLE_LISTS,
        [CATALOGUE, 'every segment that overlaps the interval is listed, also one that began before it, by start'],
      ),
      row('4.1', 'the open segment is in the list, as open', 'the list while files change', CURRENT_CHANGES, [
        CATALOGUE,
        'the open segment is listed as open, once, with what is written so far',
      ]),
      row('4.2', 'all others are not', 'after the camera was lost', CURRENT_LOST),
      row(
        '5.1',
        'days are all with footage, whatever the interval',
        'files of five days; rows at random',
        TABLE_LISTS,
        [CATALOGUE, 'days are those of the viewer, whatever the interval'],
      ),
      row(
        '5.2',
        'days are those of the viewer’s clock, else of the node’s',
        'offsets, with changes of clocks',
        [CATALOGUE, 'without an offset days are those of the node'],
        [CATALOGUE, 'days are those of the viewer, whatever the interval'],
        [
          'recorder/archive/catalogue/calendar.test.ts',
          'days of the node are those of its time zone, shorter and longer where summer time changes',
        ],
      ),
      row('6', 'a camera that the node does not know is 200 with empty lists', ONE_BODY, UNKNOWN),
      row(
        '7, alone without database',
        'the disk is read, and what is being written is added',
        'files of the disk, and the open one',
        ROWS_ARE_FILES,
        [CATALOGUE, 'own files are in the list without reading their directory again'],
      ),
      row(
        '7, alone with database',
        'the table is read, and what is being written is added',
        'the lists are those of the disk',
        ROWS_ARE_FILES,
        TABLE_LISTS,
      ),
      row(
        '7, own camera of a cluster',
        'segments of all nodes',
        'three nodes that each have a third; rows of two nodes',
        ALL_NODES,
        ROWS_OF_NODES,
      ),
      row('7, camera of another node', '307 with `from` and `to`', 'the address of the answer', REDIRECT),
      row(
        '8.1',
        'the client repeats the request with its own credentials',
        'the answer has an address and nothing else; a client that follows it',
        REDIRECT,
        PAGE_OF_SERVERS,
      ),
      row('8.2', 'any node may be asked', 'each of three nodes', ALL_NODES, PAGE_OF_SERVERS),
    ],
  },
  {
    title: 'Section 4: current recording',
    sentences: 4,
    rows: [
      row('1', '`GET …/current` has what is being written', ONE_BODY, CURRENT),
      row(
        '2',
        '404 when nothing can be reported',
        'a camera that is lost, and one of format mp4',
        CURRENT,
        CURRENT_LOST,
      ),
      row('3', 'another node answers 307', 'the address of the answer', REDIRECT, ROW_CAMERAS, ROWS_FAIL_OVER),
      row('4', 'the file that is being written is played', 'Chromium plays and seeks in it while it grows', [
        'test/e2e/playback.test.ts',
        'a file that is still written plays from its start to its live end, and seeks',
      ]),
    ],
  },
  {
    title: 'Section 4: export',
    sentences: 3,
    rows: [
      row(
        '1',
        '`POST …/export` without a body',
        'with types of content that clients name without one',
        SUBMIT,
        EMPTY_POST,
      ),
      row(
        '2',
        'one MP4 of the window, copied, to the millisecond',
        'numbers of its pictures are those of the files; its length',
        EXPORT,
        MILLISECONDS,
      ),
      row('3', '202 with where to look', ONE_BODY, SUBMIT),
    ],
  },
  {
    title: 'Section 4: time-lapse',
    sentences: 4,
    rows: [
      row(
        '1',
        '`POST …/timelapse` without a body',
        'with types of content that clients name without one',
        SUBMIT,
        EMPTY_POST,
      ),
      row(
        '2',
        'a whole speed from 2 to 120, by which the length is divided',
        'speeds beside the range; the length by ffprobe',
        BAD_SUBMIT,
        LAPSE,
        X264,
      ),
      row(
        '3',
        'x264 veryfast with CRF 23, at most 1280 wide, 30 pictures a second, no sound',
        'settings that x264 writes into the stream; streams by ffprobe, also of footage with sound',
        LAPSE,
        X264,
        [ASSEMBLE, 'a time-lapse is made from the pictures alone'],
      ),
      row('4', '202 with where to look', 'the status', SUBMIT),
    ],
  },
  {
    title: 'Section 4: state of a job',
    sentences: 1,
    rows: [row('1', '`GET …/jobs/{id}` has the job', ONE_BODY, JOB)],
  },
  {
    title: 'Section 4: download',
    sentences: 5,
    rows: [
      row('1', 'the finished MP4 is sent', 'its bytes, whole and in ranges', DOWNLOAD),
      row('2', 'inline, or with `download=1` as an attachment', 'the header of the answer', DOWNLOAD),
      row('3', '202 while it runs, 410 when it has expired', 'jobs in each state', NOT_DONE, DOWNLOAD),
      row('4', 'a job reads the disk of its node alone', 'the request that a job is made of, in a cluster', [
        JOBS_API,
        'in a cluster an export is of this node, unless it is requested of all nodes; it gets no credential of its caller',
      ]),
      row(
        '5',
        'footage of other nodes is not in it',
        'two nodes that each have a part; the job of each has its own',
        ASSEMBLIES,
      ),
    ],
  },
  {
    title: 'Section 4: assembly',
    sentences: 6,
    rows: [
      row('kind', '`export` or `timelapse`', 'both are made, another is refused', ASSEMBLIES, BAD_PARTS),
      row(
        'speed',
        'with `timelapse`: times are divided by it',
        'the pictures and the length of the result',
        ASSEMBLIES,
        BAD_PARTS,
      ),
      row('parts', 'a list of parts', 'none, too many, wrong ones', PARTS, BAD_PARTS),
      row(
        '1',
        'parts are fetched at the same time, and become one MP4',
        'each of two nodes answers when the other is asked; pictures of both',
        ASSEMBLY,
        [ASSEMBLE, 'parts are fetched at the same time'],
      ),
      row('2', '202; then it is a job like others', 'its state and its download', PARTS, ASSEMBLIES),
      row(
        '3',
        'for management alone',
        'other roles, and addresses that are no members, are 403',
        ADMIN_ASSEMBLES,
        BAD_PARTS,
      ),
    ],
  },
  {
    title: 'Section 4: start and stop of cameras',
    sentences: 2,
    rows: [
      row('start', '`ok` and how many were started', ONE_BODY, STARTED, STOPPED),
      row('stop', '`ok` and how many were stopped', ONE_BODY, STARTED, STOPPED),
    ],
  },
  {
    title: 'Section 4: snapshot',
    sentences: 5,
    rows: [
      row('first', 'the image as the camera sent it', 'its bytes', STILL),
      row('1', 'from `snapshot`, or `snapuri` of a row', 'what the camera was asked; a row is read', STILL, ROW_WORDS),
      row(
        '2',
        'Digest and Basic, with the login of the address or of `source`',
        'a camera that asks in eight ways',
        [SNAPSHOTS, 'login: ${name}'],
        [SNAPSHOTS, 'the login of the stream is used where the snapshot has none, and only there'],
      ),
      row('3', 'one image for 15 s, told in `Cache-Control`', 'a virtual clock', STILL_AGE, STILL),
      row('4', 'who asks meanwhile waits for that image', 'a hundred at once are one request', [
        SNAPSHOTS,
        'a hundred who ask at once get the same image, of one question to the camera',
      ]),
    ],
  },
  {
    title: 'Section 4: live',
    sentences: 3,
    rows: [
      row('1', 'first an initialization segment, as a binary message', 'kinds of the messages', LIVE),
      row(
        '2',
        'then fragments, as binary messages, as they come',
        'kinds of the messages, and the boxes in each',
        LIVE,
        ['recorder/live/hub.test.ts', 'a message is one fragment with the frame in it'],
      ),
      row('3', 'a browser plays them with Media Source Extensions', 'Chromium with H.264 and sound', PLAYS_LIVE),
    ],
  },
  {
    title: 'Section 4: PTZ',
    sentences: 5,
    rows: [
      row(
        'move',
        'pan, tilt and zoom from -1 to 1; a speed is limited to 0 to 1',
        'what an ONVIF device was told; values beside the ranges',
        MOVES,
        MOVE_REFUSED,
        SPEED,
      ),
      row('stop', '`ok` and a message', ONE_BODY, MOVES),
      row('requirement 1', 'the node knows the camera', 'another id is 404', MOVE_REFUSED),
      row('requirement 2', 'the camera has `ptz: true`', 'one without is 403', MOVE_REFUSED),
      row('requirement 3', 'the login of the RTSP address is used', 'devices that ask for it in several ways', ONVIF),
    ],
  },
  {
    title: 'Section 4: cluster',
    sentences: 4,
    rows: [
      row(
        'metrics',
        'the nodes, and whether each is online',
        'nodes that live, hang and die; voters are those of etcd that answer',
        CLUSTER,
        [MEMBER, 'a node lists the nodes of the cluster, and the leader that the operator names'],
        [PLAIN, 'a member of etcd that hangs is no voter, and its server is not ready until it answers again'],
      ),
      row('leave', 'with `{}`, and with `force`', 'both, with a majority and without', LEFT, FORCED),
      row('remove-node', 'at the leader', 'another node answers 307 to the leader', REMOVED, [
        MEMBER,
        'a node lists the nodes of the cluster, and the leader that the operator names',
      ]),
      row(
        'add-learner, change-membership',
        'a node is added, and gets a vote',
        'members of etcd after each',
        LEFT,
        CAME_BACK,
        [PLAIN, 'a vote that is taken and given is one of etcd, too'],
      ),
    ],
  },
  {
    title: 'Section 5: authentication',
    sentences: 7,
    rows: [
      row('1.1', 'live and ready need no credentials', 'asked without', [API, 'live answers anyone'], READY),
      row('1.2', 'ready without a role has three fields', ONE_BODY, READY, NOT_READY),
      row('1.3', 'checks are for those who may use the API', 'roles, nobody, wrong tokens', READY),
      row(
        '2.1',
        'nodes do not have the credentials of each other’s callers',
        'a credential is on no disk and in no log; a member states a caller without one',
        ASSEMBLIES,
        [
          'recorder/peers/peer-requests.test.ts',
          'a caller that a member states sees the stated cameras, reads only, and is named at the peer',
        ],
      ),
      row('2.2', 'after a 307 the client sends its own', 'the address of the answer', REDIRECT, PAGE_OF_SERVERS),
      row('3', 'an assembly is for a trusted network', 'only admins, only members', ADMIN_ASSEMBLES, BAD_PARTS),
    ],
    unchecked: [['4', NOT_SAID]],
  },
  {
    title: 'Section 6: events',
    sentences: 2,
    rows: [row('2', 'a live stream has media alone', 'kinds of the messages', LIVE)],
    unchecked: [['1', NOT_SAID]],
  },
  {
    title: 'Section 7: errors',
    sentences: 20,
    rows: [
      row(
        'segments 400',
        'no number, the wrong order, above 25 hours, an offset out of range',
        'fourteen wrong queries, each with the parameter that is named',
        BAD_INTERVALS,
      ),
      row('segments 503', 'the database cannot be read', 'the connection to Postgres is cut', DATABASE_AWAY),
      row(
        'segments 500',
        'the disk cannot be read',
        'directories that are damaged, or may not be read',
        UNREADABLE,
        DAMAGED,
        [CATALOGUE, 'a directory that cannot be read is named, relative to the record path, until it can be read'],
        [
          'recorder/archive/archive.test.ts',
          'old footage that cannot be read is logged at start and a warning, and new footage is recorded',
        ],
      ),
      row('segments, current 307', 'another node records the camera', 'the address of the answer', REDIRECT),
      row('current 404', 'nothing can be reported', 'the status and the code', CURRENT, CURRENT_LOST),
      row('export, timelapse 413', 'above four hours', 'four hours, and a second more', SUBMIT, BAD_SUBMIT),
      row('export, timelapse 503', 'ffmpeg is not there', 'the code, and what to install', NO_FFMPEG),
      row('download 202', 'the job is not done', 'a job that waits', NOT_DONE),
      row('download 410', 'the result has expired', 'the status', DOWNLOAD),
      row('snapshot 404', 'no such camera, or no address', 'both', STILL_FAULTS),
      row('snapshot 502', 'an error of the camera, or no image', 'an HTML page; eighteen faults', STILL_FAULTS, [
        SNAPSHOTS,
        "the camera's fault: ${name}",
      ]),
      row('snapshot 504', 'no answer within 10 s', 'a virtual clock', STILL_FAULTS, STILL_LATE),
      row('PTZ 404', 'no such camera', 'the code', MOVE_REFUSED),
      row('PTZ 403', 'it may not be moved', 'the code', MOVE_REFUSED),
      row('PTZ 422', 'values that are none', 'seven of them', MOVE_REFUSED),
      row('PTZ 502', 'the camera or ONVIF failed', 'a fault, and no answer', [
        PTZ,
        'what goes wrong at the camera is 502 with its own reason',
      ]),
      row('ready 503', 'a check failed', 'each check', NOT_READY, CLUSTER_CHECK, LICENSE, DATABASE_AWAY),
      row(
        'after the table, 1',
        'an error is never an empty archive',
        'lists while directories are damaged or the database is away',
        UNREADABLE,
        DAMAGED,
        DATABASE_AWAY,
      ),
      row('after the table, 2', 'an unknown camera is 200 with empty lists', ONE_BODY, UNKNOWN),
    ],
    unchecked: [['last', NOT_SAID]],
  },
  {
    title: 'Section 8: limits',
    sentences: 13,
    rows: [
      row('segment list interval', '25 hours', '25 hours, and a second more', INTERVALS, BAD_INTERVALS),
      row('export or time-lapse window', '4 hours', 'four hours, and a second more', SUBMIT, BAD_SUBMIT),
      row('time-lapse speed', '2 to 120, whole', '1, 2, 2.5, 120 and 121', SUBMIT, BAD_SUBMIT, X264),
      row('time-lapse output', '1280 wide, 30 pictures a second', 'footage of 1600 pixels', LAPSE),
      row(
        'concurrent jobs',
        '4 exports, 2 time-lapses; others wait',
        'many are requested at once, and looked at all the while',
        FOUR,
        FOUR_AND_TWO,
      ),
      row('job result retention', 'an hour', 'with a clock that is an hour ahead', EXPIRY),
      row('snapshot cache', '15 s', 'a virtual clock', STILL_AGE),
      row('camera snapshot time-out', '10 s', 'a virtual clock: 9.999 s and 10 s', STILL_LATE),
      row('PTZ pan, tilt, zoom', '-1 to 1', 'values beside the range', MOVE_REFUSED, MOVES),
      row('PTZ speed', '0 to 1', '0.5, 7 and -3', SPEED),
      row('tz_offset_minutes', '-840 to 840', '840, 841 and -841', INTERVALS, BAD_INTERVALS),
      row('node unavailable', 'after more than 15 s', 'a virtual clock; a killed node', SILENCE, FAILED_OVER),
    ],
    unchecked: [['last', NOT_SAID]],
  },
  {
    title: 'Section 9: versions',
    sentences: 3,
    rows: [
      row('1', 'ready has the version', ONE_BODY, READY, UPGRADE),
      row(
        '2',
        'a package is installed over the one before; the version changes with the restart',
        'the version before and after',
        UPGRADE,
        RPM_UPGRADE,
      ),
    ],
    unchecked: [['3', NOT_SAID]],
  },
];
