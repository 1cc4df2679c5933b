// What both dashboards have: the selectors of their queries, and panels that differ only in their description.

import { graph } from './panels.ts';

/** Everything of the chosen Kubernetes clusters. A Prometheus of one cluster needs no label. */
export const CLUSTER = 'cluster=~"$cluster"';
/** The operator's metrics of pools have the label of the pool's namespace. */
export const POOL = `${CLUSTER},namespace=~"$namespace"`;
/** Recorders on the chosen nodes. */
export const TARGET = `${POOL},node=~"$node"`;
/** The chosen cameras on them. */
export const CAMERA = `${TARGET},camera=~"$camera"`;
/** Leaves out cameras that a user stopped, and those that another node records. */
export const NO_FAULT = 'cause!~"stopped|moved"';

type SharedPanel = ReturnType<typeof graph>;

export const framesNotKept = (description: string): SharedPanel =>
  graph({
    title: 'Frames not kept',
    description,
    unit: 'short',
    width: 6,
    queries: [
      { expr: `sum(rate(kube_nvr_camera_discarded_frames_total{${CAMERA}}[$__rate_interval]))`, legend: 'discarded' },
      {
        expr: `sum by (cause) (rate(kube_nvr_camera_dropped_frames_total{${CAMERA}}[$__rate_interval]))`,
        legend: 'dropped: {{cause}}',
      },
    ],
  });

export const endedConnections = (description: string, { bars = false } = {}): SharedPanel =>
  graph({
    title: 'Ended connections',
    description,
    unit: 'cpm',
    width: 6,
    bars,
    queries: [
      {
        expr: `sum by (reason) (rate(kube_nvr_camera_reconnects_total{${CAMERA}}[$__rate_interval])) * 60`,
        legend: '{{reason}}',
      },
    ],
  });

export const ageOfFootage = (description: string): SharedPanel =>
  graph({
    title: 'Age of the oldest footage',
    description,
    unit: 's',
    width: 6,
    queries: [
      {
        expr: `time() - min by (cluster, node) (kube_nvr_archive_oldest_footage_timestamp_seconds{${CAMERA}})`,
        legend: '{{node}} {{cluster}}',
      },
    ],
  });

/** What edge recovery changes. */
export const missingBeforeAndAfter = (): SharedPanel => {
  const day = (metric: string): string => `sum(increase(${metric}{${CAMERA},${NO_FAULT}}[24h]))`;
  const [before, filled] = [day('kube_nvr_gap_seconds_total'), day('kube_nvr_gap_filled_seconds_total')];
  return graph({
    title: 'Missing in 24 hours, before and after edge recovery',
    description:
      'Footage that was not recorded in the day before each moment, and the part of it that could not be filled from the memories of cameras. docs/edge-recovery.md.',
    unit: 's',
    width: 12,
    queries: [
      { expr: before, legend: 'before' },
      { expr: `clamp_min(${before} - ${filled}, 0)`, legend: 'after' },
    ],
  });
};
