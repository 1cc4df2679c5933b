// The commands of `recorder` besides the recorder itself, by name. They are loaded on demand, so that they do not slow down the
// start of the recorder.

import type { Command } from './command.ts';
import type { SITE_COMMANDS } from './site-commands.ts';

/** A command, and what the usage of the program and the manual page say of it. */
interface CommandEntry {
  readonly load: () => Promise<Command>;
  /** How it is called; without it, the command is not for people. */
  readonly usage?: string;
  /** What it does. */
  readonly text?: string;
  /** The subcommand that `text` is about. */
  readonly subcommand?: string;
  /** The arguments before `--help` for each of its pages in the manual. */
  readonly pages: readonly (readonly string[])[];
}

const CLUSTER_PAGES = [[], ['init'], ['token'], ['join'], ['rotate-key'], ['recover']];

/** In the order in which the usage names them. */
export const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map<string, CommandEntry>(
  Object.entries({
    setup: {
      usage: 'setup [--help]',
      text: 'write the configuration of a new server',
      load: () => import('./setup.ts'),
      pages: [[]],
    },
    discover: {
      usage: 'discover [--help]',
      text: 'look for cameras in the networks of this machine',
      load: () => import('./discover.ts'),
      pages: [[]],
    },
    probe: {
      usage: 'probe URL [--help]',
      text: 'report what a camera is, what it does wrong, and what will be recorded of it',
      load: () => import('./probe.ts'),
      pages: [[]],
    },
    token: {
      usage: 'token create --name NAME [--help]',
      subcommand: 'create',
      text: 'make a token that cannot be guessed, and print its entry for the configuration',
      load: () => import('./token.ts'),
      pages: [['create']],
    },
    'admin-link': {
      usage: 'admin-link [--config FILE]',
      text: 'make a link with which the first person who opens it becomes an admin',
      load: () => import('./admin-link.ts'),
      pages: [[]],
    },
    webhook: {
      usage: 'webhook test [--help]',
      subcommand: 'test',
      text: 'send a test event to each webhook of the configuration; webhook secret: make a secret for one',
      load: () => import('./webhook.ts'),
      pages: [[]],
    },
    cluster: {
      usage: 'cluster init|token|join|rotate-key|recover [--help]',
      text: 'make a cluster of servers without Kubernetes, and let servers join it',
      load: () => import('./cluster.ts'),
      pages: CLUSTER_PAGES,
    },
    apply: {
      usage: 'apply -f FILE [--help]',
      text: 'create or change cameras of a cluster of servers, by manifests',
      load: async () => (await import('./objects.ts')).APPLY,
      pages: [[]],
    },
    get: {
      usage: 'get KIND [NAME] [--help]',
      text: 'print cameras and other objects of a cluster of servers',
      load: async () => (await import('./objects.ts')).GET,
      pages: [[]],
    },
    delete: {
      usage: 'delete KIND NAME [--help]',
      text: 'delete cameras and other objects of a cluster of servers',
      load: async () => (await import('./objects.ts')).DELETE,
      pages: [[]],
    },
    status: {
      usage: 'status [--help]',
      text: 'print pools, nodes and cameras of the cluster, and what is wrong',
      load: () => ofSite('status'),
      pages: [[]],
    },
    gaps: {
      usage: 'gaps [CAMERA...] [--help]',
      text: 'print the time of which no node has footage, and why',
      load: () => ofSite('gaps'),
      pages: [[]],
    },
    move: {
      usage: 'move CAMERA NODE [--help]',
      text: 'let another node record a camera',
      load: () => ofSite('move'),
      pages: [[]],
    },
    drain: {
      usage: 'drain NODE [--help]',
      text: 'let all cameras of a node move to other nodes',
      load: () => ofSite('drain'),
      pages: [[]],
    },
    rebalance: {
      usage: 'rebalance [--help]',
      text: 'print which moves would make the nodes equal, or approve them',
      load: () => ofSite('rebalance'),
      pages: [[]],
    },
    export: {
      usage: 'export CAMERA [--help]',
      text: 'write the footage of all nodes into a movie',
      load: () => ofSite('export'),
      pages: [[]],
    },
    live: {
      usage: 'live CAMERA [--help]',
      text: 'write the live stream of a camera to standard output',
      load: () => ofSite('live'),
      pages: [[]],
    },
    report: {
      usage: 'report -o FILE [--help]',
      text: 'write one archive for support, without secrets',
      load: () => ofSite('report'),
      pages: [[]],
    },
    kubectl: {
      usage: 'kubectl COMMAND [--help]',
      text: 'status to report above, through kubectl: kubectl nvr',
      load: async () => (await import('./kubectl-nvr.ts')).KUBECTL_NVR,
      pages: [],
    },
    'prepare-node': {
      usage: 'prepare-node [--help]',
      text: "make a pool's directories on a Kubernetes node, for the recorder of the same pod",
      load: () => import('./prepare-node.ts'),
      pages: [],
    },
    audit: {
      usage: 'audit DIRECTORY',
      text: 'check whether the files of an audit are unchanged',
      load: () => import('./audit.ts'),
      pages: [[]],
    },
    archive: {
      usage: 'archive check|adopt [--help]',
      subcommand: 'check',
      text: 'try all that copies in object storage need; archive adopt: take over the copies of a lost archive',
      load: () => import('./archive.ts'),
      pages: [[]],
    },
    verify: {
      usage: 'verify FILE [--help]',
      text: 'check whether an export or a case is unchanged, and which node made it',
      load: () => import('./verify.ts'),
      pages: [[]],
    },
    wait: { load: () => import('./wait.ts'), pages: [] },
  } satisfies Record<string, CommandEntry>),
);

async function ofSite(name: keyof typeof SITE_COMMANDS): Promise<Command> {
  const [{ SITE_COMMANDS: commands }, { siteCommand }] = await Promise.all([
    import('./site-commands.ts'),
    import('./site-command.ts'),
  ]);
  return siteCommand(commands[name], false);
}
