// The commands for a whole site, by name: what it is like, what is missing, where cameras are recorded, and its footage.

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createWebSocketStream, WebSocket } from 'ws';
import { z } from 'zod';
import { errorCode, messageOf } from '../../base/error.ts';
import { CAMERAS, RECORDER_NODES, RECORDER_POOLS, REBALANCE } from '../../crds/names.ts';
import { AdminError, type AdminClient } from './admin-client.ts';
import { UsageError } from './command.ts';
import { objectTable, tableOf } from './object-table.ts';
import { nodesIn, type Named, type Site, type Values } from './site.ts';
import type { SiteCommand } from './site-command.ts';
import { supportArchive } from './support-archive.ts';

const DAY_S = 86_400;
/** As many as an answer may be about. */
const CAMERAS_AT_ONCE = 64;
const PARTS = [RECORDER_POOLS, RECORDER_NODES, CAMERAS] as const;

const Conditions = z.looseObject({
  status: z
    .looseObject({
      conditions: z
        .array(z.looseObject({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() }))
        .default([]),
    })
    .default({ conditions: [] }),
});
const ClusterCameras = z.object({
  node_id: z.string(),
  cameras: z.array(z.object({ id: z.string(), node_id: z.string().nullable() })),
});
const Timeline = z.object({
  cameras: z.array(
    z.object({
      camera_id: z.string(),
      known_until_ms: z.number(),
      gaps: z.array(
        z.object({ start_ms: z.number(), end_ms: z.number(), cause: z.string(), missing_ms: z.number().optional() }),
      ),
      elsewhere: z.array(z.object({ node_id: z.string(), online: z.boolean() })),
    }),
  ),
});
const Places = z.object({
  disks: z
    .array(
      z.object({
        path: z.string(),
        state: z.string(),
        problem: z.string().optional(),
        free_gb: z.number(),
        total_gb: z.number(),
      }),
    )
    .default([]),
  targets: z
    .array(
      z.object({
        name: z.string(),
        problem: z.string().optional(),
        lacking_files: z.number(),
        lag_seconds: z.number(),
        keeps_days: z.number().nullable(),
      }),
    )
    .default([]),
  uncopied_cameras: z.number().default(0),
});
const Submitted = z.object({ status_url: z.string(), download_url: z.string() });
const Job = z.object({ state: z.string(), reason: z.string().optional() });

const conditionsOf = (object: Named) => Conditions.parse(object).status.conditions;

const STATUS: SiteCommand = {
  synopsis: 'status',
  text: 'Prints pools, nodes and cameras of the cluster, disks and targets of nodes that have several, and what is wrong. Ends with 1 if a pool is not ready.\n\n',
  takes: [0, 0],
  run: async (site, _args, _values, { print, clock }) => {
    const wrong: string[] = [];
    let isReady = true;
    for (const plural of PARTS) {
      const objects = await site.list(plural);
      if (objects.length === 0) continue;
      print(`${objectTable(plural, objects, false, clock.wallMs())}\n`);
      for (const object of objects) {
        const ready = conditionsOf(object).find(({ type }) => type === 'Ready');
        if (ready === undefined || ready.status === 'True') continue;
        if (plural === RECORDER_POOLS) isReady = false;
        wrong.push(`${plural}/${object.metadata.name}: ${ready.reason}: ${ready.message}\n`);
      }
    }
    const places = await placesOf(site);
    if (places.length > 0) print(tableOf([['NODE', 'PLACE', 'STATE', 'FREE', 'KEEPS', 'ONLY HERE'], ...places]));
    print(wrong.join(''));
    return isReady ? 0 : 1;
  },
};

/** Disks and targets of all nodes that have more than one place for footage. A node that does not answer is in the list of nodes. */
async function placesOf(site: Site): Promise<string[][]> {
  const get = async (path: string): Promise<unknown> => {
    try {
      return await (await site.recorder()).call('GET', path);
    } catch (err) {
      if (!(err instanceof AdminError)) throw err;
      return {};
    }
  };
  const rows: string[][] = [];
  for (const [node, via] of nodesIn(await get('/cluster/cameras'))) {
    const answer = await get(`${via}/api/metrics`);
    const { disks, targets, uncopied_cameras: uncopied } = Places.parse(answer);
    for (const { path, state, problem, free_gb: free, total_gb: total } of disks)
      rows.push([node, path, problem ?? state, `${free} of ${total} GiB`, '', '']);
    for (const { name, problem, lacking_files: files, lag_seconds: lag, keeps_days: days } of targets) {
      const state = problem ?? (lag > 0 ? `${Math.ceil(lag / 60)} min behind` : 'up to date');
      rows.push([node, name, state, '', days === null ? 'all' : `${days} d`, `${files} files`]);
    }
    if (uncopied > 0) rows.push([node, '', 'without copies', '', '', `${uncopied} cameras`]);
  }
  return rows;
}

const GAPS: SiteCommand = {
  synopsis: 'gaps [CAMERA...] [--from TIME] [--to TIME]',
  text: `Prints the time of which no node has footage, and why. Without names: of all cameras.

  --from TIME, --to TIME    such as 2026-11-27T08:00:00Z, or seconds since 1970 (default: the last 24 hours)
`,
  takes: [0, Infinity],
  options: { from: { type: 'string' }, to: { type: 'string' } },
  run: async (site, args, values, { print, clock }) => {
    const { fromS, toS } = windowOf(values, Math.floor(clock.wallMs() / 1_000));
    const client = await site.recorder();
    const ids = args.length > 0 ? args : (await camerasOf(client)).cameras.map(({ id }) => id);
    const rows: string[][] = [['CAMERA', 'START', 'SECONDS', 'CAUSE']];
    const notes: string[] = [];
    let missingMs = 0;
    for (let i = 0; i < ids.length; i += CAMERAS_AT_ONCE) {
      const asked = ids.slice(i, i + CAMERAS_AT_ONCE).map((id) => `camera=${encodeURIComponent(id)}&`);
      const path = `/api/archive/timeline?${asked.join('')}scope=cluster&from=${fromS}&to=${toS}`;
      for (const camera of Timeline.parse(await client.call('GET', path)).cameras) {
        for (const { start_ms: startMs, end_ms: endMs, cause, missing_ms: ms = endMs - startMs } of camera.gaps) {
          missingMs += ms;
          rows.push([camera.camera_id, new Date(startMs).toISOString(), (ms / 1_000).toFixed(3), cause]);
        }
        const away = new Set(camera.elsewhere.flatMap(({ online, node_id }) => (online ? [] : [node_id])));
        for (const node of away)
          notes.push(`${camera.camera_id}: ${node} does not answer, and may have more footage\n`);
      }
    }
    if (rows.length > 1) print(tableOf(rows));
    print(`${rows.length - 1} gaps, ${(missingMs / 1_000).toFixed(3)} s are missing\n${notes.join('')}`);
    return 0;
  },
};

const MOVE: SiteCommand = {
  synopsis: 'move CAMERA NODE',
  text: 'Lets a camera be recorded by another node from now on (spec.placement.preferredNode), by a handover: nothing is missing.\n\n',
  takes: [2, 2],
  run: async (site, [camera = '', node = ''], _values, { print }) => {
    const nodes = (await site.list(RECORDER_NODES)).map(({ metadata }) => metadata.name);
    if (!nodes.includes(node)) throw new AdminError(`there is no node ${node}: expected ${nodes.join(', ')}`);
    await site.patch(CAMERAS, camera, { spec: { placement: { preferredNode: node } } });
    print(
      `${camera} moves to ${node}: spec.placement.preferredNode is ${node} now. If the Camera is kept in Git, write it there, too, or the next sync undoes it.\n`,
    );
    return 0;
  },
};

const DRAIN: SiteCommand = {
  synopsis: 'drain NODE [--undo]',
  text: `Lets all cameras of a node move to other nodes (spec.drain of its RecorderNode), each by a handover.

  --undo             let them return
`,
  takes: [1, 1],
  options: { undo: { type: 'boolean' } },
  run: async (site, [node = ''], { undo }, { print }) => {
    await site.patch(RECORDER_NODES, node, { spec: { drain: undo !== true } });
    print(undo === true ? `${node} is open again\n` : `the cameras of ${node} move to other nodes\n`);
    return 0;
  },
};

const REBALANCE_COMMAND: SiteCommand = {
  synopsis: 'rebalance [POOL] [--approve ID]',
  text: `Prints which cameras would move so that all nodes have equally many, and the id of this proposal.

  --approve ID       let exactly these cameras move
`,
  takes: [0, 1],
  options: { approve: { type: 'string' } },
  run: async (site, [pool = 'default'], { approve }, { print }) => {
    const found = (await site.list(RECORDER_POOLS)).find(({ metadata }) => metadata.name === pool);
    if (!found) throw new AdminError(`there is no pool ${pool}`);
    const balanced = conditionsOf(found).find(({ type }) => type === 'Balanced');
    if (approve === undefined) {
      print(balanced ? `${balanced.message}\n` : 'the operator has not proposed anything yet\n');
      return 0;
    }
    if (!balanced?.message.endsWith(`=${String(approve)}`)) {
      throw new AdminError(`there is no proposal ${String(approve)}: ${balanced?.message ?? 'nothing is proposed'}`);
    }
    await site.patch(RECORDER_POOLS, pool, { metadata: { annotations: { [REBALANCE]: approve } } });
    print(`${pool}: approved\n`);
    return 0;
  },
};

const EXPORT: SiteCommand = {
  synopsis: 'export CAMERA --from TIME --to TIME -o FILE',
  text: `Writes the footage of all nodes into a movie.

  --from TIME, --to TIME    such as 2026-11-27T08:00:00Z, or seconds since 1970; at most four hours apart
  -o, --output FILE         must not exist; a ZIP file if the codec changed in the window
`,
  takes: [1, 1],
  options: { from: { type: 'string' }, to: { type: 'string' }, output: { type: 'string', short: 'o' } },
  run: async (site, [camera = ''], values, { print, clock, interrupted }) => {
    const { output } = values;
    if (values['from'] === undefined || values['to'] === undefined || typeof output !== 'string') {
      throw new UsageError('expected --from, --to and -o');
    }
    const { fromS, toS } = windowOf(values, 0);
    const client = await site.recorder();
    const path = `/api/archive/${encodeURIComponent(camera)}/export?from=${fromS}&to=${toS}&scope=cluster`;
    const job = Submitted.parse(await client.call('POST', path));
    const signal = interrupted();
    for (;;) {
      const { state, reason } = Job.parse(await client.call('GET', job.status_url));
      if (state === 'failed') throw new AdminError(reason ?? 'the export failed');
      if (state !== 'pending' && state !== 'running') break;
      await clock.sleep(1_000, signal);
    }
    await client.save(job.download_url, output);
    print(`${output}\n`);
    return 0;
  },
};

const LIVE: SiteCommand = {
  synopsis: 'live CAMERA',
  text: 'Writes the live stream of a camera to standard output as fragmented MP4, for example: live gate | ffplay -\n\n',
  takes: [1, 1],
  run: async (site, [camera = ''], _values, { stdout, interrupted }) => {
    const client = await site.recorder();
    const { node_id: asked, cameras } = await camerasOf(client);
    const node = cameras.find(({ id }) => id === camera)?.node_id ?? asked;
    const via = node === asked ? '' : `/node/${encodeURIComponent(node)}`;
    const { url, headers, tls } = client.target(`${via}/websocket/${encodeURIComponent(camera)}`);
    const socket = new WebSocket(url, { headers, ...tls });
    const closed = once(socket, 'close') as Promise<[number, Buffer]>;
    const signal = interrupted();
    try {
      await pipeline(createWebSocketStream(socket), stdout, { signal, end: false });
    } catch (err) {
      if (!signal.aborted && errorCode(err) !== 'EPIPE') throw new AdminError(messageOf(err), { cause: err });
      return 0;
    }
    const [code, reason] = await closed;
    throw new AdminError(`the stream ended: ${reason.toString() || code}`);
  },
};

const REPORT: SiteCommand = {
  synopsis: 'report -o FILE',
  text: `Writes one archive for support (.tar.gz): objects of the cluster, state and metrics of each node, on Kubernetes also events and logs.
No Secret is read for it; passwords, tokens and keys in texts are replaced by ***. Read it before you send it.

  -o, --output FILE  must not exist
`,
  takes: [0, 0],
  options: { output: { type: 'string', short: 'o' } },
  run: async (site, _args, { output }, context) => {
    if (typeof output !== 'string') throw new UsageError('expected -o');
    const archive = await supportArchive(site, context);
    try {
      await writeFile(output, archive, { flag: 'wx', mode: 0o600 });
    } catch (err) {
      throw new AdminError(`${output} cannot be written (${errorCode(err)})`, { cause: err });
    }
    context.print(`${output}\n`);
    return 0;
  },
};

export const SITE_COMMANDS = {
  status: STATUS,
  gaps: GAPS,
  move: MOVE,
  drain: DRAIN,
  rebalance: REBALANCE_COMMAND,
  export: EXPORT,
  live: LIVE,
  report: REPORT,
} satisfies Readonly<Record<string, SiteCommand>>;

const camerasOf = async (client: AdminClient) => ClusterCameras.parse(await client.call('GET', '/cluster/cameras'));

/** Throws UsageError. Without times: the day before `nowS`. */
function windowOf(values: Values, nowS: number) {
  const at = (name: string, otherwise: number): number => {
    const value = values[name];
    if (value === undefined) return otherwise;
    const text = String(value);
    const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1_000;
    if (!Number.isFinite(seconds)) throw new UsageError(`--${name}: expected a time such as 2026-11-27T08:00:00Z`);
    return seconds;
  };
  const toS = at('to', nowS);
  const fromS = at('from', toS - DAY_S);
  if (fromS >= toS) throw new UsageError('--from must be before --to');
  return { fromS, toS };
}
