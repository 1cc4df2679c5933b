// Which nodes a list of the whole cluster lacks, in words.

import type { UnlistedNodes } from '../app/answers.ts';

export const unlistedWords = ({ nodes_away = [], nodes_refusing = [] }: UnlistedNodes): readonly string[] => [
  ...nodes_away.map((id) => `${id} is away`),
  ...nodes_refusing.map(({ node_id, http_status, problem }) => `${node_id} answers with ${http_status}: ${problem}`),
];
