// Queries that both dashboards use.

import type { Query } from './panels.ts';

/** Recorders on the chosen nodes. */
export const TARGET = 'namespace=~"$namespace",node=~"$node"';
/** The chosen cameras on them. */
export const CAMERA = `${TARGET},camera=~"$camera"`;

export const FRAMES_NOT_KEPT: readonly Query[] = [
  { expr: `sum(rate(kube_nvr_camera_discarded_frames_total{${CAMERA}}[$__rate_interval]))`, legend: 'discarded' },
  {
    expr: `sum by (cause) (rate(kube_nvr_camera_dropped_frames_total{${CAMERA}}[$__rate_interval]))`,
    legend: 'dropped: {{cause}}',
  },
];

/** Per minute. */
export const CONNECTIONS_ENDED: readonly Query[] = [
  {
    expr: `sum by (reason) (rate(kube_nvr_camera_reconnects_total{${CAMERA}}[$__rate_interval])) * 60`,
    legend: '{{reason}}',
  },
];
