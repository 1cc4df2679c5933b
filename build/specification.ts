// The rules of the specification of the recording service, each with the tests that check it. Rules are in our own words and named by
// section and number; the page docs/design/specification.md is made of this table (build/generate-specification.ts).

import { format, resolveConfig } from 'prettier';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
export const PAGE = join(ROOT, 'docs/design/specification.md');

interface Rule {
  /** Section, and the number or the name of the rule in it. */
  readonly at: string;
  /** In our words. */
  readonly rule: string;
  /** File and the name of the test as the source has it. */
  readonly tests: readonly (readonly [file: string, name: string])[];
}

const API = 'recorder/api/app.test.ts';
const JOBS_API = 'recorder/api/routes/jobs.test.ts';
const JOBS = 'recorder/jobs/jobs.test.ts';
const STILLS = 'recorder/api/routes/stills.test.ts';
const SNAPSHOTS = 'recorder/still/snapshots.test.ts';
const PTZ = 'recorder/api/routes/ptz.test.ts';
const POSTGRES = 'test/e2e/postgres.test.ts';
const DEB = 'test/packages/deb.test.ts';
const SERVERS = 'test/packages/cluster.test.ts';
const PLAIN = 'test/cluster/plain-servers.test.ts';
const ROWS = 'test/cluster/rows.test.ts';

export const RULES: readonly Rule[] = [
  {
    at: '1 nodes',
    rule: 'one node at a time records a camera',
    tests: [
      ['test/cluster/servers.test.ts', 'each camera is recorded by one of them, and they share the cameras'],
      [
        'test/cluster/member.test.ts',
        'a planned move: the old node records until the handover is complete, and then stops',
      ],
    ],
  },
  {
    at: '1 nodes',
    rule: 'a row of the table `cameras` is recorded by the node that it names',
    tests: [
      [
        POSTGRES,
        'a camera of the table is recorded, changed and stopped within two seconds, the others are not touched',
      ],
      [ROWS, 'a row is recorded by the node that it names, every node redirects to it, and its login is in no Camera'],
      [
        PLAIN,
        'cameras of one Postgres are cameras of the cluster, whether Postgres lives, is killed, hangs or is restored from a backup',
      ],
    ],
  },
  {
    at: '1 database',
    rule: 'each closed segment has a row',
    tests: [
      [
        POSTGRES,
        'each closed segment has one row, which says what its file says, and lists from the table are those of the disk',
      ],
    ],
  },
  {
    at: '1 metrics',
    rule: 'Prometheus reads a listener of its own',
    tests: [
      [
        'test/e2e/metrics-token.test.ts',
        'metrics need their token, which is replaced without a restart and opens nothing else',
      ],
    ],
  },
  {
    at: '1 places',
    rule: 'unit, journal, log directory, configuration, licence, working directory and state are where they are said to be',
    tests: [
      [DEB, 'an installation starts nothing, and makes the user and the directories'],
      [DEB, 'it answers when systemd says that it has started, and records'],
      [
        'test/packages/contents.test.ts',
        'both install the same files, which belong to root and which only root can change',
      ],
    ],
  },
  {
    at: '1.1',
    rule: 'a server that is ready answers 200',
    tests: [[DEB, 'it answers when systemd says that it has started, and records']],
  },
  {
    at: '1.2',
    rule: 'a wrong configuration keeps the service from starting, and the journal names the key',
    tests: [
      [DEB, 'with a wrong configuration it does not start, and the journal names the file, the line and the key'],
      [
        'test/e2e/directories.test.ts',
        'a record_path that cannot be used is named with its key, also after the first start and by --check-config',
      ],
    ],
  },
  {
    at: '1.3',
    rule: 'an upgrade restarts nothing, the old version goes on, and a stop closes files',
    tests: [
      [
        DEB,
        'an upgrade keeps a changed config.yaml and does not restart: the old version records until it is restarted',
      ],
      [
        'recorder/archive/catalogue/details-reader.test.ts',
        'a thread whose file was replaced since the start is not started: the caller reads',
      ],
      [
        'test/e2e/stop.test.ts',
        'SIGTERM with 20 cameras: exit 0 within 5 s, every file finalised, every session torn down',
      ],
    ],
  },
  {
    at: '1.4',
    rule: 'an upgrade keeps a changed configuration; rpm puts its own file beside it',
    tests: [
      ['test/packages/rpm.test.ts', 'an upgrade writes config.yaml.rpmnew next to a changed file and does not restart'],
      ['test/packages/contents.test.ts', 'config.yaml is a file of configuration to both'],
    ],
  },
  {
    at: '1.5, 1.6',
    rule: 'servers are upgraded one after the other, by ready, version and being online',
    tests: [[SERVERS, 'all servers are upgraded one after the other, and not a second is missing']],
  },
  {
    at: '1.7',
    rule: 'the state of a node from a backup disturbs no cluster',
    tests: [
      [SERVERS, 'a state from a backup is refused with an instruction, and the instruction helps'],
      [PLAIN, 'state from a backup is refused, and the server returns with a certificate of its own name'],
    ],
  },
  {
    at: '1.8',
    rule: 'a server is made from scratch out of its configuration and the disk of the archive',
    tests: [[DEB, 'a server made from scratch with the saved /etc/recorder and the old disk finds the archive']],
  },
  {
    at: '1.9, 1.11',
    rule: 'a server that replaces a dead one under its name, with its disk, has its archive and its cameras',
    tests: [[SERVERS, 'a server that died is replaced by another one under its name, with its disk']],
  },
  {
    at: '1.10',
    rule: 'a node leaves without a restart, keeps its certificate, and comes back as a learner and then with a vote',
    tests: [
      [PLAIN, 'a server that leaves has no data of etcd, keeps its certificate, and returns without a restart'],
      [
        'test/cluster/operator.test.ts',
        'a node leaves without a restart, and comes back through add-learner and change-membership',
      ],
    ],
  },
  {
    at: '1.10',
    rule: 'a node leaves by force where the cluster cannot accept it',
    tests: [[PLAIN, 'without a majority a server leaves by force']],
  },
  {
    at: '1.10',
    rule: 'a node whose state was deleted by hand needs another certificate',
    tests: [[SERVERS, 'a server is reset, and one whose state was deleted by hand gets a new certificate']],
  },
  {
    at: '1.12',
    rule: 'without a majority no camera moves, and the rest goes on; three nodes survive one loss',
    tests: [
      [
        SERVERS,
        'with two of three servers lost no camera moves and the last server continues to record, also after a restart; with two servers, cameras move',
      ],
      ['test/cluster/etcd-member.test.ts', 'others join as learners, get a vote, and one of three may be lost'],
    ],
  },
  {
    at: '1.13',
    rule: 'a node that is cut off goes on, others record its cameras, too, until the link is back',
    tests: [
      [
        SERVERS,
        'a server that is cut off continues to record, others record its camera, too, and the second recording ends with the outage',
      ],
    ],
  },
  {
    at: '2 ready',
    rule: 'fields of the answer, and those that only callers with a role see',
    tests: [
      [API, 'ready shows checks only to callers with a role'],
      [API, 'not ready: 503 names the failed checks to callers with a role, and only the status to others'],
    ],
  },
  {
    at: '2 metrics',
    rule: 'numbers of the node are whole, under the names of the specification',
    tests: [[API, 'node metrics are whole numbers under the names of the specification']],
  },
  {
    at: '2 names',
    rule: 'without a name in the configuration the host name counts, and without any the start is refused',
    tests: [
      ['recorder/config/load.test.ts', 'an empty nodeName becomes the host name, and without one the start is refused'],
    ],
  },
  {
    at: '2 names',
    rule: 'a node whose name no row has is healthy, without cameras',
    tests: [[POSTGRES, 'a node with another name has no cameras, says so, and is healthy']],
  },
  {
    at: '2 segments',
    rule: 'fields and types of a segment and of the list',
    tests: [[API, 'segments: the wire form of the specification']],
  },
  {
    at: '2 current, 3',
    rule: 'what is being written, with the bytes so far; 404 where nothing can be reported, as with format mp4',
    tests: [
      [API, 'current: what is being written, and 404 when nothing can be reported'],
      [
        'test/e2e/current.test.ts',
        'over ${CHANGES} changes of the file it is always there, and the list has it open; format mp4 is only listed',
      ],
      [
        'test/e2e/current.test.ts',
        'a camera that is lost has none, and has it again with the first pictures; a listed open segment is never empty',
      ],
    ],
  },
  {
    at: '2 jobs',
    rule: 'fields of a job, and of the answer to its submission',
    tests: [
      [JOBS_API, 'the state of a job has the fields of the specification'],
      [JOBS_API, 'an export and a time-lapse are taken with 202 and say where to look'],
    ],
  },
  {
    at: '2 cameras',
    rule: 'the settings of a camera have the names of the specification',
    tests: [['recorder/config/load.test.ts', 'every documented key is accepted and arrives in our units']],
  },
  {
    at: '3 results',
    rule: 'a result ends an hour after its completion',
    tests: [[JOBS, 'an hour after completion a result is gone, also when the recorder was down then']],
  },
  {
    at: '3 nodes',
    rule: 'the cameras of a node that is silent for 15 s move to others',
    tests: [
      [
        'test/cluster/servers.test.ts',
        'the cameras of a server that dies move to the others, also if its operator led',
      ],
      ['test/cluster/operator.test.ts', 'a node that dies loses its cameras to the others; footage stays where it is'],
      [ROWS, 'a node that dies while Postgres hangs loses its cameras to others, and gets them back'],
    ],
  },
  {
    at: '3 leader',
    rule: 'a leader that is lost is replaced',
    tests: [
      [SERVERS, 'the server whose operator leads loses its power: others record its camera, and it returns as it was'],
    ],
  },
  {
    at: '4 health, 5.1',
    rule: 'live and ready need no credentials',
    tests: [
      [API, 'live answers anyone'],
      [
        'test/e2e/health-listener.test.ts',
        'probes are answered in plain HTTP while the API speaks TLS and strangers hold all their places',
      ],
    ],
  },
  {
    at: '4 health, 7',
    rule: 'ready answers 503 and names what failed: database, directory, licence, cluster',
    tests: [
      [API, 'ready: a database that does not answer fails within two seconds, and probes do not pile up on it'],
      [API, 'ready: a disk that does not answer is not writable, and probes do not pile up on it'],
      [
        API,
        'ready: a passing outage of the cluster only warns; after five minutes, and before the node ever joined, it fails',
      ],
      [POSTGRES, 'a database in which no tables may be made is no storage, and ready says why until they may'],
      [
        'test/e2e/license.test.ts',
        'a recorder that needs a licence: which cameras record, and how licences come and go without a restart',
      ],
    ],
  },
  {
    at: '4 segments 1',
    rule: 'the interval of a list without one or both ends',
    tests: [[API, 'segments${query} asks for the right interval']],
  },
  {
    at: '4 segments 1, 5',
    rule: 'a day is that of the node or of the viewer, with as many hours as the clock gives it, of which a list has 25',
    tests: [
      ['recorder/api/machine.test.ts', 'the day of a viewer east and west of UTC'],
      ['recorder/api/machine.test.ts', 'a day of 26 hours is a list of its last 25'],
      ['recorder/api/zone-days.test.ts', 'days on which clocks change have as many hours as they have'],
    ],
  },
  {
    at: '4 segments 2, 7, 8',
    rule: 'intervals above 25 hours, boundaries that are no numbers or in the wrong order, and zones out of range are 400',
    tests: [[API, 'segments?${query} is refused, and the answer names the parameter']],
  },
  {
    at: '4 segments 3, 4, 7',
    rule: 'a list has each segment that overlaps it, and the one that is being written; from the table or from the disk it is the same',
    tests: [
      [
        'test/e2e/postgres-listing.test.ts',
        'segments and days are those of a plain look at every row, whatever waits in the queue or is being written',
      ],
    ],
  },
  {
    at: '4 segments 6',
    rule: 'a camera that the node does not know has empty lists',
    tests: [[API, 'segments: a camera that the node does not know has empty lists']],
  },
  {
    at: '4 segments 7, 8, 5.2',
    rule: 'a node that does not record the camera redirects with 307, keeps the query, and brings no credentials',
    tests: [
      [
        'test/cluster/member.test.ts',
        'a request for a camera of another node is sent there with its query, and never to and fro',
      ],
      [
        'test/cluster/page-of-servers.test.ts',
        'the page of a cluster of servers, followed word for word, ends with one address, one login, all cameras',
      ],
    ],
  },
  {
    at: '4 segments 7',
    rule: 'in a cluster the records of all nodes are listed',
    tests: [
      [
        'recorder/api/collected-segments.test.ts',
        'the list of segments is that of all nodes, at each of them, in order and in pages too',
      ],
    ],
  },
  {
    at: '4 current',
    rule: 'a file that is being written is played',
    tests: [
      ['test/e2e/playback.test.ts', 'a file that is still written plays from its start to its live end, and seeks'],
    ],
  },
  {
    at: '4 export',
    rule: 'one movie of the window to the millisecond, copied, without a body in the request',
    tests: [
      ['test/e2e/export.test.ts', '${video}: an export over several files has exactly the pictures of its window'],
      [JOBS_API, 'a window with fractions of a second is kept to the millisecond, and told in whole seconds around it'],
      ['recorder/api/client-habits.test.ts', 'a POST without body may name the type ${type}'],
    ],
  },
  {
    at: '4 time-lapse, 8',
    rule: 'speed, width, pictures a second and length; no sound',
    tests: [[JOBS, 'a time-lapse has its size, its rate and its length']],
  },
  {
    at: '4 download, 7',
    rule: 'inline, or as an attachment; 202 until it is done, 410 when it has expired',
    tests: [
      [JOBS_API, 'a result is sent inline, or as an attachment with a name; in ranges; and not after it has expired'],
      [JOBS_API, 'what is not done yet answers 202, what failed 409 with its reason, what is unknown 404'],
    ],
  },
  {
    at: '4 assembly, 5.3',
    rule: 'parts of other nodes become one movie in their order; members and admins only',
    tests: [
      [
        'recorder/jobs/assemble.test.ts',
        'parts of two nodes are one movie: the pictures of both windows, sound, and the gap between them',
      ],
      ['recorder/jobs/assemble.test.ts', 'a time-lapse is made from the pictures alone'],
      [
        JOBS_API,
        'an assembly is taken with 202; its parts are in the order of their ordinals, its credential beside it',
      ],
      [JOBS_API, 'an assembly needs the role admin, and as a time-lapse ffmpeg'],
    ],
  },
  {
    at: '4 cameras',
    rule: 'a camera is started and stopped, and the answer counts',
    tests: [
      [
        'test/e2e/camera-control.test.ts',
        'a camera is stopped and started by the API, over reloads, kill -9 and restarts, and its gap says so',
      ],
      [
        'recorder/api/routes/camera-control.test.ts',
        '${path}: an id that is missing or none is 400 and named, an unknown one 404',
      ],
    ],
  },
  {
    at: '4 snapshot, 8',
    rule: 'the bytes of the camera, for 15 s and for all who ask at once, with the login of the address or of the stream',
    tests: [
      [STILLS, 'a snapshot is the bytes of the camera, with its age in Cache-Control'],
      [SNAPSHOTS, 'a hundred who ask at once get the same image, of one question to the camera'],
      [SNAPSHOTS, 'an image is handed out for 15 seconds, counted from when it was there'],
      [SNAPSHOTS, 'login: ${name}'],
      [SNAPSHOTS, 'the login of the stream is used where the snapshot has none, and only there'],
    ],
  },
  {
    at: '4 snapshot, 7, 8',
    rule: '404, 502 and 504 after 10 s',
    tests: [
      [STILLS, '404, 502 and 504 are told apart'],
      [SNAPSHOTS, 'a camera that ${name} is given up after 10 seconds, by all who wait'],
    ],
  },
  {
    at: '4 live, 6',
    rule: 'an initialization segment and then fragments, all as binary messages, which a browser plays',
    tests: [
      [
        'recorder/api/websocket.test.ts',
        'a viewer gets the initialization segment, then fragments, all as binary messages',
      ],
      ['test/e2e/player.test.ts', 'H.264 with AAC plays at the live edge'],
    ],
  },
  {
    at: '4 PTZ, 7, 8',
    rule: 'moves and stops, values in their ranges, and 403, 404, 422 and 502',
    tests: [
      [PTZ, 'move and stop'],
      [PTZ, 'move is refused: ${name}'],
      [PTZ, 'what goes wrong at the camera is 502 with its own reason'],
      ['recorder/onvif/ptz.test.ts', 'a camera moves and stops: ${name}'],
    ],
  },
  {
    at: '4 cluster',
    rule: 'the nodes and whether each is online; voters are those of etcd that answer',
    tests: [
      ['test/cluster/member.test.ts', 'a node lists the nodes of the cluster, and the leader that the operator names'],
      [PLAIN, 'a vote that is taken and given is one of etcd, too'],
      [PLAIN, 'a member of etcd that hangs is no voter, and its server is not ready until it answers again'],
    ],
  },
  {
    at: '7 segments',
    rule: 'an index or an archive that cannot be read is 503 or 500, and never an empty list',
    tests: [
      [API, 'segments: an archive that cannot be read is 500, and never an empty list'],
      [
        POSTGRES,
        'while the database is away rows wait, lists are answered with 503, the node is not ready, and recording continues',
      ],
    ],
  },
  {
    at: '7, 8 export, time-lapse',
    rule: 'windows above four hours are 413; without ffmpeg 503',
    tests: [
      [JOBS_API, '${query} is refused with ${status}'],
      [JOBS_API, 'without ffmpeg, or without Redis, both kinds answer 503 with what is missing'],
    ],
  },
  {
    at: '8 jobs',
    rule: 'four exports and two time-lapses run at once, and others wait',
    tests: [[JOBS, 'more than four exports wait; one that waits and one that runs can be cancelled']],
  },
  {
    at: '9',
    rule: 'ready has the version, which changes with a restart only',
    tests: [
      [
        DEB,
        'an upgrade keeps a changed config.yaml and does not restart: the old version records until it is restarted',
      ],
    ],
  },
];

/** Rules with a test that is not there, or without any. */
export function unchecked(rules: readonly Rule[] = RULES): string[] {
  return rules.flatMap(({ at, rule, tests }) => {
    if (tests.length === 0) return [`${at}: ${rule}: no test`];
    return tests.flatMap(([file, name]) => (names(file).has(name) ? [] : [`${at}: ${file} has no test "${name}"`]));
  });
}

/** The names in a file of tests, as its source has them. */
function names(file: string): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return new Set(Array.from(text.matchAll(/\btest\(\s*(['`])((?:(?!\1).)+)\1/g), ([, , name]) => name as string));
}

/** The page. */
export async function specificationPage(): Promise<string> {
  const rows = RULES.map(({ at, rule, tests }) => {
    const checks = tests.map(([file, name]) => `\`${file}\`: ${name.replaceAll('|', '\\|').replaceAll('${', '\\${')}`);
    return `| ${at} | ${rule} | ${checks.join('<br>')} |`;
  });
  const text = `# The specification, rule by rule

Status: in force. Made by build/generate-specification.ts from build/specification.ts; do not edit.

What the specification of the recording service says and a test can check: its section and number, the rule in our words, and the tests.
\`build/specification.test.ts\` fails for a rule without a test, and for a test that is not there.

| section | rule | tests |
| --- | --- | --- |
${rows.join('\n')}
`;
  return format(text, { ...(await resolveConfig(PAGE)), parser: 'markdown' });
}
