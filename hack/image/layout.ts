// What of the repository is in which image.

export const PROGRAMS = {
  operator: { entryPoints: { main: 'operator/main.ts' }, files: {} },
  recorder: {
    entryPoints: { main: 'recorder/main.ts', 'details-worker': 'recorder/archive/details-worker.ts' },
    /** Read while it runs: from the repository, to where the bundle looks for them. */
    files: { 'recorder/api/page': 'page' },
  },
} as const satisfies Record<string, { entryPoints: Record<string, string>; files: Record<string, string> }>;

export type Program = keyof typeof PROGRAMS;

export const isProgram = (name: string | undefined): name is Program => name !== undefined && name in PROGRAMS;
