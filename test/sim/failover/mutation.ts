// Rules of the protocol that can be broken, one at a time, to see that the check notices.

export const MUTATIONS = {
  'no compare-and-swap': 'assignments are written over whatever is there',
  'no majority': 'whoever is heard is the majority',
  'wall clocks': 'the times in the Leases say who is live',
  'clocks run through outages': 'silence counts while nobody can be heard',
  'epoch stays': 'a camera is given to another node under the same epoch',
  'early end of handovers': 'the old node stops as soon as the new one is named',
  'handover ends when taken up': 'the old node stops before the new one has written',
  'recorder stops without asking': 'a camera that leaves one watch is stopped',
  'recorder believes lower epochs': 'the last event wins, not the highest epoch',
  'recorder stops without an answer': 'a recorder that cannot reach the API server stops',
  'recorder forgets': 'no copy of the assignments on disk',
  'no list after a silence': 'a recorder believes its watches after it was cut off',
  'slots are not given back': 'a move counts as under way for ever',
} as const;

export type Mutation = keyof typeof MUTATIONS;
