// The members of etcd as this server sees them, for Prometheus.

import type { Registry } from 'prom-client';
import { scraped } from '../../base/scraped.ts';
import { isDown, type Vote } from '../cluster/votes.ts';

export function registerVoteMetrics(registry: Registry, votes: () => readonly Vote[]): void {
  scraped(registry).gauge(
    'etcd_members',
    'Members of etcd in a cluster of servers that run it themselves, as this server sees them: voter and learner answer, down has not answered for 15 s. Absent elsewhere.',
    ['state'],
    () => {
      const all = votes();
      if (all.length === 0) return [];
      return [
        [{ state: 'voter' }, all.filter(({ hasVote, answers }) => hasVote && answers).length],
        [{ state: 'learner' }, all.filter(({ hasVote, answers }) => !hasVote && answers).length],
        [{ state: 'down' }, all.filter(isDown).length],
      ];
    },
  );
}
