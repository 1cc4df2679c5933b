// What of the repository is in which image.

/**
 * Of the operator's Node, wherever it runs. Bounds what one burst of events makes of the space for young objects, in MiB:
 * 280 MB of memory with 5 000 cameras on 200 nodes, 295 with twice the space.
 */
export const OPERATOR_NODE_FLAG = '--max-semi-space-size=2';

export const PROGRAMS = {
  operator: { entryPoints: { main: 'operator/main.ts' }, files: {}, nodeFlag: OPERATOR_NODE_FLAG },
  recorder: {
    entryPoints: { main: 'recorder/main.ts', 'details-worker': 'recorder/archive/details-worker.ts' },
    /** Read while it runs: from the repository, to where the bundle looks for them. */
    files: { 'recorder/api/page': 'page' },
    nodeFlag: undefined,
  },
} as const satisfies Record<
  string,
  { entryPoints: Record<string, string>; files: Record<string, string>; nodeFlag: string | undefined }
>;

export type Program = keyof typeof PROGRAMS;

export const isProgram = (name: string | undefined): name is Program => name !== undefined && name in PROGRAMS;
