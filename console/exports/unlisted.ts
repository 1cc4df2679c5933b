// Which nodes a list of the whole cluster lacks, in words.

export interface UnlistedNodes {
  /** Missing in answers of older nodes. */
  readonly nodes_away?: readonly string[];
  readonly nodes_refusing?: readonly { readonly node_id: string; readonly status: number; readonly problem: string }[];
}

export const unlistedWords = ({ nodes_away = [], nodes_refusing = [] }: UnlistedNodes): readonly string[] => [
  ...nodes_away.map((id) => `${id} is away`),
  ...nodes_refusing.map(({ node_id, status, problem }) => `${node_id} answers with ${status}: ${problem}`),
];
