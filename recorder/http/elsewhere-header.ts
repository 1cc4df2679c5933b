// Names, in a header, the footage that an answer lacks because its node does not answer, or refuses: a list of RFC 9651, such as
// `"node-2";from=1795230000.5;to=1795230060;online=?0`.

import type { Elsewhere } from '../footage/holders.ts';

const seconds = (ms: number): string => (Math.round(ms) / 1000).toFixed(3);

/** No header when nothing is missing. */
export const elsewhereHeaders = (elsewhere: readonly Elsewhere[]): Record<string, string> =>
  elsewhere.length === 0
    ? {}
    : {
        'x-elsewhere': elsewhere
          .map(
            ({ nodeId, fromMs, toMs, isOnline, refused }) =>
              `"${nodeId}";from=${seconds(fromMs)};to=${seconds(toMs)};online=?${isOnline ? 1 : 0}` +
              (refused ? `;status=${refused.status}` : ''),
          )
          .join(', '),
      };
