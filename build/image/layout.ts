// Which files of the repository are in which image.

/**
 * For the operator's Node, wherever it runs: limits the space for young objects (in MiB) that a burst of events uses. It holds only
 * from the start of a process; operator/main.ts sets what can be set later.
 */
export const OPERATOR_NODE_FLAG = '--max-semi-space-size=2';

interface Layout {
  readonly entryPoints: Readonly<Record<string, string>>;
  /** Entry points that are started as threads, each by one source file. */
  readonly threads: readonly { readonly name: string; readonly startedBy: string }[];
  /** The page that it serves: path in the repository, and beside the bundle. */
  readonly page: string | undefined;
  readonly nodeFlag: string | undefined;
}

export const PROGRAMS = {
  operator: { entryPoints: { main: 'operator/main.ts' }, threads: [], page: undefined, nodeFlag: OPERATOR_NODE_FLAG },
  recorder: {
    entryPoints: { main: 'recorder/main.ts', 'details-worker': 'recorder/archive/catalogue/details-worker.ts' },
    threads: [{ name: 'details-worker', startedBy: 'recorder/archive/catalogue/details-reader.ts' }],
    page: 'console',
    nodeFlag: undefined,
  },
} as const satisfies Record<string, Layout>;

export type Program = keyof typeof PROGRAMS;

export const isProgram = (name: string | undefined): name is Program => name !== undefined && name in PROGRAMS;
