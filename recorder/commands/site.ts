// What the commands for a whole site use: the objects of its cluster, and the API of its recorders. `recorder status` asks a recorder for
// both; as a plugin of kubectl, it reads and changes the objects through kubectl.

import { z } from 'zod';
import { AdminClient, type AdminOptions } from './admin-client.ts';
import type { CommandContext } from './command.ts';

export type Json = Readonly<Record<string, unknown>>;
/** The options of a command. */
export type Values = Readonly<Record<string, string | boolean | undefined>>;

const Named = z.looseObject({ metadata: z.looseObject({ name: z.string() }) });
export type Named = z.output<typeof Named>;
export const NamedList = z.object({ items: z.array(Named) });

/** All methods throw AdminError. */
export interface Site {
  readonly list: (plural: string) => Promise<readonly Named[]>;
  /** A merge patch of the spec or of annotations. */
  readonly patch: (plural: string, name: string, change: Json) => Promise<void>;
  /** A recorder, which also passes requests on to the others. */
  readonly recorder: () => Promise<AdminClient>;
  /** What else belongs into an archive for support, by the name of the file. Not what cannot be read. */
  readonly more: () => Promise<ReadonlyMap<string, string>>;
}

/** Each request is answered by the recorder of this machine, or by the one that `--server` names. */
export function ofServer(options: AdminOptions, { load }: Pick<CommandContext, 'load'>): Site {
  let opened: Promise<AdminClient> | undefined;
  const recorder = (): Promise<AdminClient> => (opened ??= AdminClient.open(options, load));
  return {
    recorder,
    list: async (plural) => NamedList.parse(await (await recorder()).call('GET', `/api/cluster/${plural}`)).items,
    patch: async (plural, name, change) => {
      await (await recorder()).call('PATCH', `/api/cluster/${plural}/${encodeURIComponent(name)}`, change);
    },
    more: async () => new Map(),
  };
}

const Nodes = z.object({ node_id: z.string(), nodes: z.array(z.object({ node_id: z.string() })) });

/** All nodes by name, with the start of a path at the recorder that is asked under which each answers. */
export function nodesIn(answer: unknown): ReadonlyMap<string, string> {
  const { node_id: own, nodes } = Nodes.safeParse(answer).data ?? { node_id: 'node', nodes: [] };
  const others = nodes.map(({ node_id: node }) => node).filter((node) => node !== own);
  return new Map([[own, ''], ...others.map((node) => [node, `/node/${encodeURIComponent(node)}`] as const)]);
}
