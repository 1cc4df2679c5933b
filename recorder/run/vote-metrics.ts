// The members of etcd as this server sees them, for Prometheus.

import { Gauge, type Registry } from 'prom-client';
import { isDown, type Vote } from '../cluster/votes.ts';

export function registerVoteMetrics(registry: Registry, votes: () => readonly Vote[]): void {
  const members = new Gauge({
    name: 'kube_nvr_etcd_members',
    help: 'Members of etcd in a cluster of servers that run it themselves, as this server sees them: voter and learner answer, down has not answered for 15 s. Absent elsewhere.',
    labelNames: ['state'],
    registers: [],
    collect() {
      this.reset();
      const all = votes();
      if (all.length === 0) return;
      this.set({ state: 'voter' }, all.filter(({ hasVote, answers }) => hasVote && answers).length);
      this.set({ state: 'learner' }, all.filter(({ hasVote, answers }) => !hasVote && answers).length);
      this.set({ state: 'down' }, all.filter(isDown).length);
    },
  });
  registry.registerMetric(members);
}
