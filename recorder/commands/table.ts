// The commands of `recorder` besides the recorder itself, by name. They are loaded on demand, so that they do not slow down the
// start of the recorder.

import type { Clock } from '../../base/clock.ts';
import type { Config } from '../config/schema.ts';
import { UsageError } from './usage-error.ts';

/** What a command uses of its process. */
interface Surroundings {
  readonly clock: Clock;
  readonly version: string;
  readonly stdin: NodeJS.ReadableStream;
  /** Writes results to standard output. */
  readonly print: (text: string) => void;
  /** Writes errors to standard error. */
  readonly printError: (text: string) => void;
  /** Aborts when the user interrupts. */
  readonly interrupted: () => AbortSignal;
  /** Reads a configuration file. */
  readonly load: (file: string) => Promise<Config>;
}

/** Resolves to the exit code. */
type Command = (args: readonly string[], around: Surroundings) => Promise<number>;

/** A command, and what the usage of the program and the manual page say of it. */
interface CommandEntry {
  readonly run: Command;
  /** How it is called, and what it does; without it, it is not for people. */
  readonly about?: { readonly usage: string; readonly name: string; readonly text: string };
  /** The arguments before `--help` for each of its pages in the manual. */
  readonly pages?: readonly (readonly string[])[];
}

/** In the order in which the usage names them. */
export const COMMANDS: ReadonlyMap<string, CommandEntry> = new Map<string, CommandEntry>([
  [
    'setup',
    {
      run: setUpServer,
      about: { usage: 'setup [--help]', name: 'setup', text: 'write the configuration of a new server' },
      pages: [[]],
    },
  ],
  [
    'discover',
    {
      run: discoverCameras,
      about: {
        usage: 'discover [--help]',
        name: 'discover',
        text: 'look for cameras in the networks of this machine',
      },
      pages: [[]],
    },
  ],
  [
    'probe',
    {
      run: probeCamera,
      about: {
        usage: 'probe URL [--help]',
        name: 'probe',
        text: 'report what a camera is, what it does wrong, and what will be recorded of it',
      },
      pages: [[]],
    },
  ],
  [
    'token',
    {
      run: makeToken,
      about: {
        usage: 'token create --name NAME [--help]',
        name: 'token create',
        text: 'make a token that cannot be guessed, and print its entry for the configuration',
      },
      pages: [['create']],
    },
  ],
  [
    'admin-link',
    {
      run: makeAdminLink,
      about: {
        usage: 'admin-link [--config FILE]',
        name: 'admin-link',
        text: 'make a link with which the first person who opens it becomes an admin',
      },
      pages: [[]],
    },
  ],
  [
    'webhook',
    {
      run: callWebhooks,
      about: {
        usage: 'webhook test [--help]',
        name: 'webhook test',
        text: 'send a test event to each webhook of the configuration; webhook secret: make a secret for one',
      },
      pages: [[]],
    },
  ],
  [
    'cluster',
    {
      run: clusterOfServers,
      about: {
        usage: 'cluster init|token|join|rotate-key|recover [--help]',
        name: 'cluster',
        text: 'make a cluster of servers without Kubernetes, and let servers join it',
      },
      pages: [[], ['init'], ['token'], ['join'], ['rotate-key'], ['recover']],
    },
  ],
  [
    'apply',
    {
      run: applyObjects,
      about: {
        usage: 'apply -f FILE [--help]',
        name: 'apply',
        text: 'create or change cameras of a cluster of servers, by manifests',
      },
      pages: [[]],
    },
  ],
  [
    'get',
    {
      run: getObjects,
      about: {
        usage: 'get KIND [NAME] [--help]',
        name: 'get',
        text: 'print cameras and other objects of a cluster of servers',
      },
      pages: [[]],
    },
  ],
  [
    'delete',
    {
      run: deleteObjects,
      about: {
        usage: 'delete KIND NAME [--help]',
        name: 'delete',
        text: 'delete cameras and other objects of a cluster of servers',
      },
      pages: [[]],
    },
  ],
  [
    'prepare-node',
    {
      run: prepareNode,
      about: {
        usage: 'prepare-node [--help]',
        name: 'prepare-node',
        text: "make a pool's directories on a Kubernetes node, for the recorder of the same pod",
      },
    },
  ],
  [
    'audit',
    {
      run: checkAudit,
      about: {
        usage: 'audit DIRECTORY',
        name: 'audit',
        text: 'check whether the files of an audit are unchanged',
      },
      pages: [[]],
    },
  ],
  [
    'verify',
    {
      run: verifyResult,
      about: {
        usage: 'verify FILE [--help]',
        name: 'verify',
        text: 'check whether an export or a case is unchanged, and which node made it',
      },
      pages: [[]],
    },
  ],
  ['wait', { run: waitForEnd }],
]);

async function discoverCameras(args: readonly string[], around: Surroundings): Promise<number> {
  const { DISCOVER_USAGE, runDiscover } = await import('./discover.ts');
  return explained(around, DISCOVER_USAGE, async () => {
    await runDiscover(args, around);
    return 0;
  });
}

async function probeCamera(args: readonly string[], around: Surroundings): Promise<number> {
  const { PROBE_USAGE, runProbe } = await import('./probe.ts');
  return explained(around, PROBE_USAGE, () => runProbe(args, around, around.interrupted()));
}

async function makeToken(args: readonly string[], around: Surroundings): Promise<number> {
  const { TOKEN_USAGE, runToken } = await import('./token.ts');
  return explained(around, TOKEN_USAGE, () => {
    around.print(runToken(args));
    return 0;
  });
}

async function callWebhooks(args: readonly string[], around: Surroundings): Promise<number> {
  const { runWebhook, WEBHOOK_USAGE } = await import('./webhook.ts');
  return explained(around, WEBHOOK_USAGE, () => runWebhook(args, around));
}

async function clusterOfServers(args: readonly string[], around: Surroundings): Promise<number> {
  const { CLUSTER_USAGE, runCluster } = await import('./cluster.ts');
  return explained(around, CLUSTER_USAGE, () => runCluster(args, around));
}

async function applyObjects(args: readonly string[], around: Surroundings): Promise<number> {
  const { APPLY_USAGE, runApply } = await import('./objects.ts');
  return explained(around, APPLY_USAGE, () => runApply(args, around));
}

async function getObjects(args: readonly string[], around: Surroundings): Promise<number> {
  const { GET_USAGE, runGet } = await import('./objects.ts');
  return explained(around, GET_USAGE, () => runGet(args, around));
}

async function deleteObjects(args: readonly string[], around: Surroundings): Promise<number> {
  const { DELETE_USAGE, runDelete } = await import('./objects.ts');
  return explained(around, DELETE_USAGE, () => runDelete(args, around));
}

async function prepareNode(args: readonly string[], { print, printError }: Surroundings): Promise<number> {
  const { PrepareError, runPrepareNode } = await import('./prepare-node.ts');
  try {
    runPrepareNode(args, (line) => print(`${line}\n`));
    return 0;
  } catch (err) {
    if (!(err instanceof PrepareError)) throw err;
    printError(`recorder: ${err.message}\n`);
    return 1;
  }
}

async function waitForEnd(): Promise<number> {
  const { waitUntilEnded } = await import('./wait.ts');
  waitUntilEnded();
  return 0;
}

async function checkAudit(args: readonly string[], around: Surroundings): Promise<number> {
  const { AUDIT_USAGE, runAudit } = await import('./audit.ts');
  return explained(around, AUDIT_USAGE, () => runAudit(args, around.print));
}

async function verifyResult(args: readonly string[], around: Surroundings): Promise<number> {
  const { runVerify, VERIFY_USAGE } = await import('./verify.ts');
  return explained(around, VERIFY_USAGE, () => runVerify(args, around.print));
}

async function makeAdminLink(args: readonly string[], around: Surroundings): Promise<number> {
  const { ADMIN_LINK_USAGE, runAdminLink } = await import('./admin-link.ts');
  return explained(around, ADMIN_LINK_USAGE, async () => {
    around.print(await runAdminLink(args, around));
    return 0;
  });
}

async function setUpServer(args: readonly string[], around: Surroundings): Promise<number> {
  const { runSetup, SETUP_USAGE } = await import('./setup.ts');
  return explained(around, SETUP_USAGE, async () => {
    await runSetup(args, around);
    return 0;
  });
}

/** Prints the usage for invalid arguments. */
async function explained(
  { printError }: Surroundings,
  usage: string,
  run: () => number | Promise<number>,
): Promise<number> {
  try {
    return await run();
  } catch (err) {
    if (!(err instanceof UsageError)) throw err;
    printError(`${err.message}\n\n${usage}`);
    return 2;
  }
}
