// The rooms (folders) of the code and what each may import. Anything that a row does not name is rejected
// (docs/design/layout.md).

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';

export interface Room {
  /** Directory relative to the root of the repository; files belong to the room with the longest matching name. */
  readonly name: string;
  /**
   * In the side that records (`engine`), in the one in front of it (`front`), or in `both` (docs/design/cores.md). Undefined: another
   * program, or what puts both sides together.
   */
  readonly side?: 'engine' | 'front' | 'both';
  /** Rooms above it in the table, `all` for each of these; with the prefix `type ` for their types only. */
  readonly rooms: readonly string[] | 'all';
  /** Packages and Node modules, `node:*` for all of the latter; with the prefix `type ` for their types only. */
  readonly packages: readonly string[];
}

const METRICS = 'prom-client';
const HTTP = ['fastify', '@fastify/swagger', 'fastify-type-provider-zod', 'zod', METRICS];

/** In order: a room may import only rooms before it. */
export const ROOMS: readonly Room[] = [
  {
    name: 'base',
    side: 'both',
    rooms: [],
    packages: ['node:*', 'undici', '@peculiar/x509', 'prom-client', 'reflect-metadata', 'sax', 'type zod'],
  },
  { name: 'crds', side: 'both', rooms: [], packages: ['yaml', 'zod'] },
  {
    name: 'store',
    side: 'front',
    rooms: ['base', 'crds'],
    packages: ['node:crypto', 'node:net', 'node:util', '@marcbachmann/cel-js'],
  },
  { name: 'recorder/certificates', side: 'front', rooms: ['base', 'crds'], packages: ['node:*', 'zod'] },
  // Pure rooms: no sockets, files, timers, processes or logs.
  { name: 'recorder/rtsp', side: 'both', rooms: ['base'], packages: ['node:crypto'] },
  { name: 'recorder/rtp', side: 'both', rooms: [], packages: [] },
  { name: 'recorder/codec', side: 'both', rooms: ['base', 'recorder/rtp'], packages: [] },
  { name: 'recorder/mp4', side: 'both', rooms: ['base', 'recorder/codec'], packages: ['node:zlib'] },
  {
    name: 'recorder/archive/disk',
    side: 'both',
    rooms: ['base', 'recorder/mp4'],
    packages: ['node:crypto', 'node:fs', 'node:os'],
  },
  {
    name: 'recorder/reach',
    side: 'both',
    rooms: ['base', 'recorder/rtsp'],
    packages: ['node:dns', 'node:net', 'node:tls', 'undici'],
  },
  // What the side that records tells the side in front of it, and is told: values, of which neither side owns the meaning alone.
  {
    name: 'recorder/contract',
    side: 'both',
    rooms: [
      'base',
      'recorder/rtsp',
      'recorder/rtp',
      'recorder/codec',
      'recorder/mp4',
      'recorder/archive/disk',
      'recorder/reach',
    ],
    packages: [],
  },
  {
    name: 'recorder/peers',
    side: 'front',
    rooms: ['base', 'recorder/contract'],
    packages: ['node:http', 'node:stream', 'node:tls', 'undici', 'type zod'],
  },
  // What is told of an examined camera.
  {
    name: 'recorder/probe/report',
    side: 'both',
    rooms: ['recorder/contract'],
    packages: ['zod'],
  },
  {
    name: 'recorder/camera',
    side: 'engine',
    rooms: [
      'base',
      'recorder/rtsp',
      'recorder/rtp',
      'recorder/codec',
      'recorder/mp4',
      'recorder/contract',
      'recorder/reach',
    ],
    packages: ['node:crypto', 'node:dgram', 'node:fs/promises', 'node:http', 'node:net', 'ws'],
  },
  {
    name: 'recorder/snapshots',
    side: 'both',
    rooms: ['base', 'recorder/rtsp', 'recorder/reach'],
    packages: ['node:crypto', 'undici'],
  },
  {
    name: 'recorder/onvif',
    side: 'both',
    rooms: ['base', 'crds', 'recorder/rtsp', 'recorder/reach', 'recorder/contract'],
    packages: ['node:*', 'onvif', 'undici', 'yaml'],
  },
  // The footage that cameras keep themselves.
  {
    name: 'recorder/edge',
    side: 'engine',
    rooms: [
      'base',
      'recorder/rtsp',
      'recorder/rtp',
      'recorder/codec',
      'recorder/contract',
      'recorder/reach',
      'recorder/camera',
      'recorder/onvif',
    ],
    packages: [],
  },
  {
    name: 'recorder/archive/catalogue',
    side: 'both',
    rooms: ['base', 'recorder/mp4', 'recorder/archive/disk'],
    packages: ['node:fs', 'node:worker_threads'],
  },
  {
    name: 'recorder/archive/segments',
    side: 'engine',
    rooms: [
      'base',
      'recorder/codec',
      'recorder/mp4',
      'recorder/camera',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/archive/catalogue',
    ],
    packages: [METRICS],
  },
  {
    name: 'recorder/archive/gaps',
    side: 'engine',
    rooms: ['base', 'recorder/mp4', 'recorder/archive/disk', 'recorder/contract', 'recorder/archive/catalogue'],
    packages: ['node:fs/promises', METRICS],
  },
  {
    name: 'recorder/archive/retention',
    side: 'engine',
    rooms: ['base', 'recorder/archive/disk', 'recorder/contract', 'recorder/archive/catalogue'],
    packages: ['node:crypto', 'zod', METRICS],
  },
  {
    name: 'recorder/archive',
    side: 'engine',
    rooms: [
      'base',
      'recorder/archive/disk',
      'recorder/archive/catalogue',
      'recorder/archive/segments',
      'recorder/archive/retention',
    ],
    packages: [METRICS],
  },
  // What other systems tell of cameras, kept beside the footage.
  {
    name: 'recorder/happenings',
    side: 'front',
    rooms: ['base', 'recorder/archive/disk'],
    packages: ['zod'],
  },
  // What a person has to know about: made of events, acknowledged by people, kept beside the footage.
  {
    name: 'recorder/alarms',
    side: 'front',
    rooms: ['base', 'recorder/contract', 'recorder/happenings'],
    packages: [],
  },
  // Mails about alarms.
  {
    name: 'recorder/mail',
    side: 'front',
    rooms: ['base', 'recorder/contract', 'recorder/alarms'],
    packages: ['node:fs/promises', 'nodemailer'],
  },
  // The footage of a camera, wherever it lies: who holds it, whose counts, how it is read.
  {
    name: 'recorder/footage',
    side: 'front',
    rooms: [
      'base',
      'recorder/peers',
      'recorder/mp4',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/archive/catalogue',
      'recorder/happenings',
    ],
    packages: ['node:fs', 'node:stream', 'zod'],
  },
  // What key frames show: grids of their luminance, kept beside the footage.
  {
    name: 'recorder/activity',
    side: 'front',
    rooms: ['base', 'recorder/mp4', 'recorder/archive/disk', 'recorder/archive/catalogue', 'recorder/footage'],
    packages: ['node:events'],
  },
  // What recordings must be: days, objectives and reports, from accounts of cameras.
  { name: 'recorder/objectives', side: 'front', rooms: ['base', 'recorder/contract'], packages: [METRICS] },
  // Copies of footage in object storage, and the targets as holders of footage.
  {
    name: 'recorder/copies',
    side: 'front',
    rooms: [
      'base',
      'recorder/mp4',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/archive/catalogue',
      'recorder/footage',
    ],
    packages: ['node:crypto', 'node:fs/promises', 'type node:stream', 'undici', 'zod', METRICS],
  },
  {
    name: 'recorder/edge/recovery',
    side: 'engine',
    rooms: [
      'base',
      'recorder/codec',
      'recorder/mp4',
      'recorder/contract',
      'recorder/camera',
      'recorder/edge',
      'recorder/archive/segments',
      'recorder/archive/gaps',
      'recorder/archive',
    ],
    packages: ['node:crypto', METRICS],
  },
  // What the two sides of a recorder say to each other, as messages.
  {
    name: 'recorder/border',
    side: 'both',
    rooms: [
      'base',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/snapshots',
      'recorder/probe/report',
      'recorder/onvif',
    ],
    packages: [],
  },
  {
    name: 'recorder/live',
    side: 'both',
    rooms: ['base', 'recorder/codec', 'recorder/mp4', 'recorder/contract'],
    packages: [],
  },
  {
    name: 'recorder/license',
    side: 'both',
    rooms: ['base'],
    packages: ['node:crypto', 'node:fs', 'node:fs/promises', 'zod', METRICS],
  },
  {
    name: 'recorder/config',
    side: 'both',
    rooms: ['base', 'recorder/rtsp', 'recorder/contract', 'recorder/reach', 'recorder/license'],
    packages: ['node:*', 'yaml', 'zod'],
  },
  {
    name: 'recorder/events',
    side: 'front',
    rooms: ['base', 'recorder/contract', 'recorder/reach', 'recorder/config'],
    packages: ['node:*', 'undici'],
  },
  {
    name: 'recorder/audit',
    side: 'front',
    rooms: ['base'],
    packages: ['node:*', METRICS, 'undici', '@opentelemetry/otlp-transformer', '@opentelemetry/resources'],
  },
  {
    name: 'recorder/cluster',
    side: 'both',
    rooms: ['base', 'crds', 'recorder/archive/disk', 'recorder/contract', 'recorder/config'],
    packages: ['node:crypto', 'node:net', 'node:path', 'node:util', 'zod'],
  },
  // What the front asks of the side that records, and what it is shown: types alone.
  {
    name: 'recorder/model',
    side: 'both',
    rooms: [
      'base',
      'recorder/codec',
      'recorder/contract',
      'recorder/onvif',
      'recorder/snapshots',
      'recorder/probe/report',
      'recorder/archive/catalogue',
      'recorder/live',
      'recorder/config',
      'recorder/cluster',
    ],
    packages: [],
  },
  {
    name: 'recorder/database',
    side: 'front',
    rooms: ['base', 'recorder/mp4', 'recorder/archive/disk', 'recorder/archive/catalogue', 'recorder/config'],
    packages: ['node:*', 'pg', METRICS],
  },
  // Which cameras this node records, holds or stops, and why.
  {
    name: 'recorder/cameras',
    side: 'engine',
    rooms: [
      'base',
      'crds',
      'recorder/codec',
      'recorder/reach',
      'recorder/camera',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/archive/segments',
      'recorder/archive/gaps',
      'recorder/archive/retention',
      'recorder/archive',
      'recorder/live',
      'recorder/model',
      'recorder/config',
      'recorder/cluster',
    ],
    packages: ['node:util'],
  },
  {
    name: 'recorder/jobs',
    side: 'front',
    rooms: [
      'base',
      'recorder/peers',
      'recorder/mp4',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/archive/catalogue',
      'recorder/footage',
    ],
    packages: ['node:*', 'bullmq', 'ioredis', 'zod', METRICS],
  },
  {
    name: 'recorder/still',
    side: 'front',
    rooms: ['base', 'recorder/mp4', 'recorder/jobs', 'recorder/snapshots'],
    packages: ['node:events'],
  },
  {
    name: 'recorder/probe',
    side: 'engine',
    rooms: [
      'base',
      'recorder/rtsp',
      'recorder/rtp',
      'recorder/codec',
      'recorder/mp4',
      'recorder/contract',
      'recorder/reach',
      'recorder/camera',
      'recorder/probe/report',
    ],
    packages: ['node:zlib', 'zod'],
  },
  {
    name: 'recorder/http',
    side: 'front',
    rooms: ['base', 'recorder/peers', 'recorder/config', 'recorder/audit', 'recorder/footage', 'type recorder/cluster'],
    packages: ['node:*', ...HTTP],
  },
  // A server's own place in a cluster without Kubernetes: its member of etcd, its registration, its keys.
  {
    name: 'recorder/servers',
    side: 'front',
    rooms: ['base', 'crds', 'recorder/peers', 'recorder/certificates', 'recorder/config', 'recorder/http'],
    packages: ['node:*', 'zod'],
  },
  {
    name: 'recorder/relay',
    side: 'front',
    rooms: ['recorder/contract', 'recorder/peers', 'recorder/http'],
    packages: ['type fastify', 'node:http', 'node:net', 'node:stream', 'node:stream/promises', 'prom-client'],
  },
  // Asks issuers of OpenID Connect who a person is.
  {
    name: 'recorder/identity',
    side: 'front',
    rooms: ['base', 'recorder/reach', 'recorder/config'],
    packages: ['node:fs/promises', 'node:util', 'jose', 'openid-client', 'undici'],
  },
  {
    name: 'recorder/playback',
    side: 'front',
    rooms: [
      'base',
      'recorder/peers',
      'recorder/mp4',
      'recorder/archive/disk',
      'recorder/archive/catalogue',
      'recorder/audit',
      'recorder/http',
      'recorder/relay',
      'recorder/footage',
    ],
    packages: ['node:crypto', 'node:http', 'node:zlib', ...HTTP],
  },
  {
    name: 'recorder/api',
    side: 'front',
    rooms: [
      'base',
      'crds',
      'recorder/peers',
      'recorder/codec',
      'recorder/archive/disk',
      'recorder/contract',
      'recorder/snapshots',
      'recorder/archive/catalogue',
      'recorder/live',
      'recorder/model',
      'recorder/config',
      'recorder/audit',
      'recorder/certificates',
      'recorder/cluster',
      'recorder/database',
      'recorder/jobs',
      'recorder/still',
      'recorder/probe/report',
      'recorder/onvif',
      'recorder/events',
      'recorder/http',
      'recorder/identity',
      'recorder/relay',
      'recorder/happenings',
      'recorder/activity',
      'recorder/alarms',
      'recorder/objectives',
      'recorder/footage',
    ],
    packages: ['node:*', '@fastify/websocket', 'type ws', ...HTTP],
  },
  // What browsers run.
  {
    name: 'console',
    side: 'front',
    rooms: ['type recorder/contract', 'type recorder/footage', 'type recorder/api'],
    packages: ['@preact/signals', 'hls.js', 'htm', 'preact', 'type zod'],
  },
  { name: 'operator/kube', rooms: ['base', 'crds'], packages: ['@kubernetes/client-node', 'type undici'] },
  { name: 'operator/plan', rooms: ['base', 'crds'], packages: [] },
  { name: 'operator/manifests', rooms: ['base', 'crds', 'operator/kube'], packages: ['yaml'] },
  { name: 'operator/observe', rooms: ['base', 'crds', 'operator/kube', 'operator/plan'], packages: ['node:net'] },
  {
    name: 'operator/controllers',
    rooms: ['base', 'crds', 'operator/kube', 'operator/plan', 'operator/manifests', 'operator/observe'],
    packages: ['node:crypto'],
  },
  // What rows of a database become.
  {
    name: 'operator/rows',
    rooms: [
      'base',
      'crds',
      'recorder/config',
      'recorder/database',
      'operator/kube',
      'operator/plan',
      'type operator/observe',
      'operator/controllers',
    ],
    packages: ['node:crypto', 'node:util'],
  },
  {
    name: 'operator',
    rooms: [
      'base',
      'crds',
      'operator/kube',
      'operator/plan',
      'operator/manifests',
      'operator/observe',
      'operator/controllers',
      'operator/rows',
    ],
    packages: ['node:*', 'pino', METRICS],
  },
  // An engine, put together: it records.
  {
    name: 'recorder/engine',
    side: 'engine',
    rooms: [
      'base',
      'crds',
      'recorder/rtsp',
      'recorder/codec',
      'recorder/reach',
      'recorder/snapshots',
      'recorder/contract',
      'recorder/onvif',
      'recorder/camera',
      'recorder/edge',
      'recorder/archive/disk',
      'recorder/archive/catalogue',
      'recorder/archive/gaps',
      'recorder/archive/retention',
      'recorder/archive',
      'recorder/edge/recovery',
      'recorder/live',
      'recorder/license',
      'recorder/config',
      'recorder/cluster',
      'recorder/model',
      'recorder/cameras',
      'recorder/probe',
    ],
    packages: ['node:*', METRICS],
  },
  // The front, put together: it answers.
  {
    name: 'recorder/front',
    side: 'front',
    rooms: [
      'base',
      'recorder/certificates',
      'recorder/archive/disk',
      'recorder/reach',
      'recorder/contract',
      'recorder/peers',
      'recorder/happenings',
      'recorder/activity',
      'recorder/alarms',
      'recorder/mail',
      'recorder/objectives',
      'recorder/footage',
      'recorder/config',
      'recorder/events',
      'recorder/audit',
      'recorder/cluster',
      'recorder/live',
      'recorder/model',
      'recorder/database',
      'recorder/jobs',
      'recorder/still',
      'recorder/http',
      'recorder/servers',
      'recorder/relay',
      'recorder/identity',
      'recorder/playback',
      'recorder/api',
    ],
    packages: ['node:*', METRICS, 'type fastify'],
  },
  // One recorder, put together. In a cluster of servers without Kubernetes each recorder has the operator in it.
  { name: 'recorder/run', rooms: 'all', packages: ['node:*', 'pino', METRICS] },
  {
    name: 'recorder/commands',
    rooms: [
      'base',
      'crds',
      'store',
      'recorder/certificates',
      'recorder/peers',
      'recorder/rtsp',
      'recorder/codec',
      'recorder/contract',
      'recorder/reach',
      'recorder/events',
      'recorder/onvif',
      'recorder/edge',
      'recorder/archive/disk',
      'recorder/archive/catalogue',
      'recorder/config',
      'recorder/audit',
      'recorder/cluster',
      'recorder/copies',
      'recorder/database',
      'recorder/jobs',
      'recorder/probe',
      'recorder/http',
      'recorder/servers',
      'recorder/engine',
      'recorder/front',
      'recorder/run',
    ],
    packages: ['node:*', 'ws', 'yaml', 'zod'],
  },
  // Environment and arguments; starts `run` or a command.
  {
    name: 'recorder',
    rooms: ['base', 'recorder/config', 'recorder/database', 'recorder/http', 'recorder/run', 'recorder/commands'],
    packages: ['node:*'],
  },
  // A vendor's tool, and what makes images, chart, dashboards and generated pages.
  { name: 'tools', rooms: ['base', 'recorder/license'], packages: ['node:*'] },
  {
    name: 'monitoring',
    rooms: [
      'base',
      'recorder/archive/segments',
      'recorder/archive/gaps',
      'recorder/archive/retention',
      'recorder/edge/recovery',
      'recorder/objectives',
      'recorder/copies',
      'recorder/license',
      'recorder/audit',
      'recorder/database',
      'recorder/jobs',
      'recorder/http',
      'recorder/relay',
      'recorder/playback',
      'recorder/api',
      'operator',
      'recorder/engine',
      'recorder/front',
      'recorder/run',
    ],
    packages: ['@grafana/schema', METRICS],
  },
  {
    name: 'build',
    rooms: [
      'base',
      'crds',
      'recorder/contract',
      'recorder/config',
      'recorder/audit',
      'recorder/http',
      'recorder/playback',
      'recorder/api',
      'operator/manifests',
      'recorder/commands',
      'monitoring',
      'recorder/footage',
    ],
    packages: ['node:*', 'esbuild', 'prettier', 'yaml', 'zod'],
  },
];

/** Rooms of one side that may import the other, and rooms of both sides that may import one of them. */
export function crossings(): string[] {
  const sides = new Map(ROOMS.map(({ name, side }) => [name, side]));
  return ROOMS.flatMap(({ name, side, rooms }) =>
    rooms === 'all' || side === undefined
      ? []
      : rooms
          .map((other) => ({ other, its: sides.get(other) }))
          .filter(({ its }) => its !== undefined && its !== 'both' && its !== side)
          .map(({ other, its }) => `${name} (${side}) -> ${other} (${its})`),
  );
}

interface Import {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly line: number;
  /** As in the source. */
  readonly specifier: string;
  /** The imported file, relative to the root; undefined for a package. */
  readonly target: string | undefined;
  readonly isType: boolean;
}

const IMPORT = /^(?:import|export)\s+(type\s)?[^;']*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm;

export function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map((match) => {
    const specifier = (match[2] ?? match[3] ?? match[4]) as string;
    return {
      file,
      line: text.slice(0, match.index).split('\n').length,
      specifier,
      target: specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : undefined,
      isType: match[1] !== undefined,
    };
  });
}

function roomOf(file: string, table: readonly Room[]): Room | undefined {
  const rooms = table.filter(({ name }) => file.startsWith(`${name}/`));
  return rooms.sort((a, b) => b.name.length - a.name.length)[0];
}

/** Why an import is rejected; undefined if it is allowed. */
export function refusal(found: Import, table: readonly Room[] = ROOMS): string | undefined {
  const { file, specifier, target, isType } = found;
  const room = roomOf(file, table);
  const at = `${file}:${found.line}: `;
  if (!room) return `${at}belongs to no room`;
  if (target === undefined) {
    const may = room.packages.some((one) => {
      if (one.startsWith('type ')) return isType && one.slice(5) === packageOf(specifier);
      return one === packageOf(specifier) || (one === 'node:*' && specifier.startsWith('node:'));
    });
    return may ? undefined : `${at}${room.name} may not import the package ${specifier}`;
  }
  const other = roomOf(target, table);
  if (!other) return `${at}${room.name} may not import ${target}: it is in no room`;
  if (
    other === room ||
    (isType && room.rooms !== 'all' && room.rooms.includes(`type ${other.name}`)) ||
    (room.rooms === 'all' ? table.indexOf(other) < table.indexOf(room) : room.rooms.includes(other.name))
  ) {
    return undefined;
  }
  return `${at}${room.name} may not import ${other.name} (${target})`;
}

/** `@a/b/c` and `a/c` give `@a/b` and `a`; Node modules are returned unchanged. */
function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** The sources in these directories: without tests and their helpers. */
export function sourcesOf(root: string, directories: readonly string[]): string[] {
  return directories.flatMap((directory) =>
    readdirSync(join(root, directory), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((file) => !/\.test\.ts$|\.support\.ts$|(^|\/)test-support(\.ts$|\/)/.test(file))
      .sort(),
  );
}

export function readImports(root: string, files: readonly string[]): Import[] {
  return files.flatMap((file) => importsOf(file, readFileSync(join(root, file), 'utf8')));
}

/** Files that import each other, directly or indirectly, including types: each circle once, as a path. */
export function circles(imports: readonly Import[]): string[] {
  const edges = Map.groupBy(
    imports.filter(({ target }) => target !== undefined),
    ({ file }) => file,
  );
  const done = new Set<string>();
  const path: string[] = [];
  const found: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) found.push([...path.slice(at), file].join(' -> '));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const { target } of edges.get(file) ?? []) visit(target as string);
    path.pop();
    done.add(file);
  };
  for (const file of edges.keys()) visit(file);
  return found;
}

/** The table in docs/design/layout.md. */
export function roomTable(): string {
  const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ') || 'none';
  const rows = ROOMS.map(({ name, side = '', rooms, packages }) => {
    const others = rooms === 'all' ? 'each room above' : code(rooms);
    return `| \`${name}\` | ${side} | ${others} | ${code(packages)} |`;
  });
  return ['| room | side | rooms | packages |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
