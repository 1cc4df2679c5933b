// The dashboard of all cameras: first what is not recorded now, then why, then what will be a problem next.

import { BigValueTextMode, type Dashboard } from '@grafana/schema';
import { dashboard, graph, stat, table, timeline, type Row, type Steps, type Texts } from './panels.ts';
import {
  ageOfFootage,
  CAMERA,
  CLUSTER,
  endedConnections,
  framesNotKept,
  missingBeforeAndAfter,
  NO_FAULT,
  POOL,
  TARGET,
} from './shared.ts';

const NONE_IS_GOOD: Steps = ['green', [1, 'red']];
const YES_IS_GOOD: Steps = ['red', [1, 'green']];
const STATES: Texts = {
  recording: ['recording', 'green'],
  connecting: ['connecting', 'orange'],
  retrying: ['retrying', 'red'],
  stopped: ['stopped', 'text'],
};

const now: Row = {
  title: 'Now: what is not recorded',
  panels: [
    stat({
      title: 'Silent cameras',
      description:
        'Cameras that should be recorded, but without video on the disk for 15 seconds. Their footage is being lost.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'no data',
      queries: [{ expr: `sum(kube_nvr_camera_silent{${CAMERA}})` }],
    }),
    stat({
      title: 'Without a node',
      description: 'Cameras that should be recorded but have no node. No recorder counts them as silent.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'no operator',
      queries: [
        { expr: `sum(max by (cluster, namespace, pool) (kube_nvr_operator_cameras{${POOL},state="unassigned"}))` },
      ],
    }),
    stat({
      title: 'Recorders not answering',
      description: 'Recorders that Prometheus cannot reach. If one is not running, nothing is recorded there.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'none known',
      queries: [{ expr: `sum(1 - up{job="kube-nvr-recorder",${TARGET}})` }],
    }),
    stat({
      title: 'Least free space',
      description:
        'On the node with the least: free space and removable footage, as a share of the disk. A disk full of old footage counts as free; protected footage and files of other programs do not.',
      unit: 'percentunit',
      width: 3,
      decimals: 0,
      steps: ['red', [0.1, 'orange'], [0.25, 'green']],
      queries: [{ expr: `min(kube_nvr_retention_room_bytes{${TARGET}} / kube_nvr_retention_disk_bytes{${TARGET}})` }],
    }),
    stat({
      title: 'Failover',
      description: 'Suspended: the operator sees no majority of a pool, so no camera moves from a dead node.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      texts: { 0: ['works', 'green'], 1: ['SUSPENDED', 'red'] },
      noValue: 'no operator',
      queries: [{ expr: `max(kube_nvr_operator_failover_suspended{${POOL}})` }],
    }),
    stat({
      title: 'Leading operators',
      description: 'One for each release. Without one, recording continues, but no camera moves when a node dies.',
      unit: 'short',
      width: 3,
      steps: YES_IS_GOOD,
      noValue: 'no operator',
      queries: [{ expr: `min(sum by (cluster) (kube_nvr_operator_leader{${CLUSTER}}))` }],
    }),
    stat({
      title: 'Recording',
      description: 'Cameras whose video arrives, and all known cameras.',
      unit: 'short',
      width: 3,
      textMode: BigValueTextMode.ValueAndName,
      queries: [
        { expr: `sum(kube_nvr_camera_state{${CAMERA},state="recording"})`, legend: 'recording' },
        { expr: `count(kube_nvr_camera_info{${CAMERA}})`, legend: 'known' },
      ],
    }),
    stat({
      title: 'Missing, last hour',
      description: 'Footage of all cameras that should have been recorded in the last hour but was not.',
      unit: 's',
      width: 3,
      steps: ['green', [10, 'orange'], [60, 'red']],
      noValue: 'no data',
      queries: [{ expr: `sum(increase(kube_nvr_gap_seconds_total{${CAMERA},${NO_FAULT}}[1h]))` }],
    }),
    table({
      title: 'Firing alerts',
      description: 'Alerts of kube-nvr. docs/runbooks explains what each means and what to do.',
      width: 9,
      height: 9,
      noValue: 'none',
      queries: [
        {
          expr: `max by (alertname, severity, cluster, node, camera, cause) (ALERTS{alertname=~"KubeNvr.*",alertstate="firing",${CLUSTER}})`,
        },
      ],
      columns: [
        {
          field: 'severity',
          title: 'Severity',
          texts: { critical: ['critical', 'red'], warning: ['warning', 'orange'] },
        },
        { field: 'alertname', title: 'Alert' },
        { field: 'camera', title: 'Camera' },
        { field: 'cluster', title: 'Cluster' },
        { field: 'node', title: 'Node' },
        { field: 'cause', title: 'Cause' },
      ],
      sortBy: { field: 'severity', descending: false },
    }),
    table({
      title: 'Cameras',
      description: 'Cameras without video for the longest time first. Click an id to see that camera.',
      width: 15,
      height: 9,
      queries: [
        { expr: `max by (cluster, namespace, node, camera) (kube_nvr_camera_last_written_age_seconds{${CAMERA}})` },
        { expr: `max by (cluster, namespace, node, camera, state) (kube_nvr_camera_state{${CAMERA}} == 1)` },
        { expr: `max by (cluster, namespace, node, camera) (kube_nvr_camera_bitrate{${CAMERA}})` },
        {
          expr: `sum by (cluster, namespace, node, camera) (increase(kube_nvr_gap_seconds_total{${CAMERA},${NO_FAULT}}[24h]))`,
        },
        {
          expr: `sum by (cluster, namespace, node, camera) (rate(kube_nvr_camera_lost_packets_total{${CAMERA}}[5m])) / sum by (cluster, namespace, node, camera) (rate(kube_nvr_camera_received_packets_total{${CAMERA}}[5m]))`,
        },
        {
          expr: `max by (cluster, namespace, node, camera, name, video, resolution, audio) (kube_nvr_camera_info{${CAMERA}})`,
        },
      ],
      columns: [
        {
          field: 'camera',
          title: 'Camera',
          link: {
            title: 'One camera',
            url: '/d/kube-nvr-camera?var-camera=${__value.raw}&${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}&${__url_time_range}',
          },
        },
        { field: 'name', title: 'Name' },
        { field: 'cluster', title: 'Cluster' },
        { field: 'node', title: 'Node' },
        { field: 'state', title: 'State', texts: STATES },
        {
          field: 'Value #A',
          title: 'Last picture',
          unit: 's',
          decimals: 0,
          steps: ['green', [15, 'orange'], [60, 'red']],
        },
        { field: 'Value #C', title: 'Bitrate', unit: 'bps' },
        {
          field: 'Value #D',
          title: 'Missing, 24 h',
          unit: 's',
          decimals: 0,
          steps: ['green', [60, 'orange'], [600, 'red']],
        },
        {
          field: 'Value #E',
          title: 'Lost packets',
          unit: 'percentunit',
          steps: ['green', [0.001, 'orange'], [0.01, 'red']],
        },
        { field: 'video', title: 'Video' },
        { field: 'resolution', title: 'Size' },
        { field: 'audio', title: 'Audio' },
      ],
      sortBy: { field: 'Value #A', descending: true },
    }),
  ],
};

const gaps: Row = {
  title: 'Gaps',
  panels: [
    graph({
      title: 'Cameras without footage, by cause',
      description: 'Number of cameras that were not recorded, by cause. docs/gaps.md explains the causes.',
      unit: 'cameras',
      width: 12,
      stacked: true,
      queries: [
        {
          expr: `sum by (cause) (rate(kube_nvr_gap_seconds_total{${CAMERA}}[$__rate_interval])) > 0 or sum by (cause) (rate(kube_nvr_gap_seconds_total{${CAMERA},cause="unknown"}[$__rate_interval]))`,
          legend: '{{cause}}',
        },
      ],
    }),
    graph({
      title: 'Cameras by state',
      description:
        'recording: video arrives; connecting: no video yet; retrying: it waits after a failure; stopped: it should not be recorded.',
      unit: 'cameras',
      width: 6,
      stacked: true,
      queries: [{ expr: `sum by (state) (kube_nvr_camera_state{${CAMERA}})`, legend: '{{state}}' }],
    }),
    endedConnections('Connections to cameras that ended in each minute, by reason.'),
    missingBeforeAndAfter(),
    graph({
      title: 'Edge recovery, by result',
      description:
        'Attempts to fill gaps from the memories of cameras in each interval: filled, or the reason why not. docs/edge-recovery.md explains the reasons.',
      unit: 'short',
      width: 12,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: `sum by (result) (increase(kube_nvr_edge_fills_total{${TARGET}}[$__rate_interval])) > 0 or sum by (result) (increase(kube_nvr_edge_fills_total{${TARGET},result="filled"}[$__rate_interval]))`,
          legend: '{{result}}',
        },
      ],
    }),
  ],
};

const streams: Row = {
  title: 'Streams',
  panels: [
    graph({
      title: 'Received and written',
      description: 'Data from cameras and data written to the disk. They differ only by packet headers.',
      unit: 'bps',
      width: 6,
      queries: [
        {
          expr: `sum by (cluster, node) (rate(kube_nvr_camera_received_bytes_total{${CAMERA}}[$__rate_interval])) * 8`,
          legend: 'received {{node}} {{cluster}}',
        },
        {
          expr: `sum by (cluster, node) (rate(kube_nvr_camera_written_bytes_total{${CAMERA}}[$__rate_interval])) * 8`,
          legend: 'written {{node}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Frames per second',
      description: 'All cameras: pictures and audio frames that arrived complete, and pictures in files.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `sum by (kind) (rate(kube_nvr_camera_frames_total{${CAMERA}}[$__rate_interval]))`, legend: '{{kind}}' },
        {
          expr: `sum(rate(kube_nvr_camera_written_frames_total{${CAMERA}}[$__rate_interval]))`,
          legend: 'video in files',
        },
      ],
    }),
    graph({
      title: 'Packets lost',
      description: 'The ten cameras that lose the largest share of their packets. From 1 % on, pictures are missing.',
      unit: 'percentunit',
      width: 6,
      queries: [
        {
          expr: `topk(10, sum by (cluster, camera) (rate(kube_nvr_camera_lost_packets_total{${CAMERA}}[$__rate_interval])) / sum by (cluster, camera) (rate(kube_nvr_camera_received_packets_total{${CAMERA}}[$__rate_interval])))`,
          legend: '{{camera}} {{cluster}}',
        },
      ],
    }),
    framesNotKept(
      'discarded: a part of the picture was lost on the way; dropped: it arrived but was not written, by cause.',
    ),
  ],
};

const disks: Row = {
  title: 'Disks and how long footage is kept',
  panels: [
    graph({
      title: 'Disk of the archive',
      description: 'By node: footage, its protected part, and free space.',
      unit: 'bytes',
      width: 6,
      queries: [
        {
          expr: `sum by (cluster, node) (kube_nvr_retention_used_bytes{${TARGET}})`,
          legend: 'footage {{node}} {{cluster}}',
        },
        {
          expr: `sum by (cluster, node) (kube_nvr_retention_protected_bytes{${TARGET}})`,
          legend: 'protected {{node}} {{cluster}}',
        },
        {
          expr: `sum by (cluster, node) (kube_nvr_retention_free_bytes{${TARGET}})`,
          legend: 'free {{node}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Space for new footage, now and in three days',
      description:
        'Free space and removable footage: now, and in three days by the trend of the last day. At 0, new footage is lost.',
      unit: 'bytes',
      width: 6,
      queries: [
        {
          expr: `sum by (cluster, node) (kube_nvr_retention_room_bytes{${TARGET}})`,
          legend: 'now {{node}} {{cluster}}',
        },
        {
          expr: `clamp_min(sum by (cluster, node) (predict_linear(kube_nvr_retention_room_bytes{${TARGET}}[1d], 3 * 86400)), 0)`,
          legend: 'in 3 days {{node}} {{cluster}}',
        },
      ],
    }),
    ageOfFootage('By node. It decreases when retention has to remove more than before.'),
    graph({
      title: 'Removed by retention',
      description: 'Bytes per second, by rule. full: the disk was full; the other rules are limits.',
      unit: 'Bps',
      width: 6,
      queries: [
        {
          expr: `sum by (rule) (rate(kube_nvr_retention_removed_bytes_total{${TARGET}}[$__rate_interval]))`,
          legend: '{{rule}}',
        },
      ],
    }),
    graph({
      title: 'Duration of a sync',
      description: '99th percentile. Seconds mean that the disk is too slow or is failing.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `histogram_quantile(0.99, sum by (cluster, node, le) (rate(kube_nvr_archive_sync_seconds_bucket{${TARGET}}[$__rate_interval])))`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Disk problems',
      description:
        'Writes that waited for free space, segments that could not be removed, files that ended because of disk failures; and nodes that cannot write at all.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: `sum(increase(kube_nvr_retention_write_waits_total{${TARGET}}[$__rate_interval]))`,
          legend: 'waiting writes',
        },
        {
          expr: `sum(increase(kube_nvr_retention_failures_total{${TARGET}}[$__rate_interval]))`,
          legend: 'not removable',
        },
        {
          expr: `sum by (cause) (increase(kube_nvr_archive_file_failures_total{${TARGET}}[$__rate_interval]))`,
          legend: 'file stopped: {{cause}}',
        },
        { expr: `sum(kube_nvr_retention_exhausted{${TARGET}})`, legend: 'nodes with a full disk' },
        { expr: `sum by (cause) (kube_nvr_archive_wrong_disk{${TARGET}})`, legend: 'wrong disk: {{cause}}' },
      ],
    }),
    table({
      title: 'Oldest footage and disk, by camera',
      description: 'Size and oldest footage of each camera. Protected footage is never removed.',
      width: 12,
      height: 8,
      queries: [
        { expr: `sum by (cluster, node, camera) (kube_nvr_retention_used_bytes{${CAMERA}})` },
        { expr: `sum by (cluster, node, camera) (kube_nvr_retention_protected_bytes{${CAMERA}})` },
        {
          expr: `time() - min by (cluster, node, camera) (kube_nvr_archive_oldest_footage_timestamp_seconds{${CAMERA}})`,
        },
      ],
      columns: [
        { field: 'camera', title: 'Camera' },
        { field: 'cluster', title: 'Cluster' },
        { field: 'node', title: 'Node' },
        { field: 'Value #A', title: 'Footage', unit: 'bytes' },
        { field: 'Value #B', title: 'Protected', unit: 'bytes' },
        { field: 'Value #C', title: 'Oldest', unit: 's', decimals: 0 },
      ],
      sortBy: { field: 'Value #A', descending: true },
    }),
  ],
};

const nodes: Row = {
  title: 'Nodes and failover',
  panels: [
    timeline({
      title: 'Nodes online',
      description: 'Whether each node renews its Lease, according to the leading operator.',
      unit: 'short',
      width: 8,
      steps: YES_IS_GOOD,
      texts: { 0: ['offline', 'red'], 1: ['online', 'green'] },
      queries: [
        {
          expr: `max by (cluster, namespace, pool, node) (kube_nvr_operator_node_live{${TARGET}})`,
          legend: '{{pool}} {{node}} {{cluster}}',
        },
      ],
    }),
    timeline({
      title: 'Recorders answering',
      description: 'Whether Prometheus reaches each recorder.',
      unit: 'short',
      width: 8,
      steps: YES_IS_GOOD,
      texts: { 0: ['down', 'red'], 1: ['up', 'green'] },
      queries: [{ expr: `up{job="kube-nvr-recorder",${TARGET}}`, legend: '{{node}} {{instance}} {{cluster}}' }],
    }),
    graph({
      title: 'Failovers',
      description:
        'Cameras that were taken from a node because it did not record them, by node. Each has a gap of some seconds.',
      unit: 'cameras',
      width: 8,
      bars: true,
      queries: [
        {
          expr: `sum by (cluster, node) (increase(kube_nvr_operator_failovers_total{${TARGET}}[$__rate_interval]))`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Cameras of pools',
      description: 'assigned: a node records it; unassigned: no node records it; suspended: a user stopped it.',
      unit: 'cameras',
      width: 8,
      stacked: true,
      queries: [
        {
          expr: `sum by (state) (max by (cluster, namespace, pool, state) (kube_nvr_operator_cameras{${POOL}}))`,
          legend: '{{state}}',
        },
      ],
    }),
    graph({
      title: 'Assignments written',
      description: 'How often a camera was assigned to a node, by reason.',
      unit: 'short',
      width: 8,
      bars: true,
      queries: [
        {
          expr: `sum by (reason) (increase(kube_nvr_operator_assignments_total{${POOL}}[$__rate_interval]))`,
          legend: '{{reason}}',
        },
      ],
    }),
    graph({
      title: 'Nodes of pools, by state',
      description:
        'Live: it renews its Lease; Unavailable: it does not, and its cameras are moved; Unknown: there is no majority, or it was not seen yet.',
      unit: 'short',
      width: 8,
      stacked: true,
      queries: [
        {
          expr: `sum by (state) (max by (cluster, namespace, pool, state) (kube_nvr_operator_nodes{${POOL}}))`,
          legend: '{{state}}',
        },
      ],
    }),
    graph({
      title: 'Processor of recorders',
      description: 'Cores that each recorder uses.',
      unit: 'short',
      width: 8,
      queries: [
        {
          expr: `rate(process_cpu_seconds_total{job="kube-nvr-recorder",${TARGET}}[$__rate_interval])`,
          legend: '{{node}} {{instance}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Memory of recorders',
      description: 'Resident memory of each recorder.',
      unit: 'bytes',
      width: 8,
      queries: [
        {
          expr: `process_resident_memory_bytes{job="kube-nvr-recorder",${TARGET}}`,
          legend: '{{node}} {{instance}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Lag of the event loop',
      description: '99th percentile. From some hundred milliseconds on, the recorder is overloaded.',
      unit: 's',
      width: 8,
      queries: [
        {
          expr: `nodejs_eventloop_lag_p99_seconds{job="kube-nvr-recorder",${TARGET}}`,
          legend: '{{node}} {{instance}} {{cluster}}',
        },
      ],
    }),
  ],
};

const work: Row = {
  title: 'Exports, viewers, database, expiry',
  panels: [
    graph({
      title: 'Jobs',
      description: 'Exports and time-lapses that wait or run.',
      unit: 'short',
      width: 6,
      stacked: true,
      queries: [{ expr: `sum by (queue, state) (kube_nvr_jobs{${TARGET}})`, legend: '{{queue}} {{state}}' }],
    }),
    graph({
      title: 'Jobs without progress',
      description: 'Time since any job of a node made progress. If it only grows, the jobs are stuck.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `max by (cluster, node) (kube_nvr_jobs_progress_age_seconds{${TARGET}})`,
          legend: '{{node}} {{cluster}}',
        },
        { expr: `sum(1 - kube_nvr_jobs_available{${TARGET}})`, legend: 'nodes that refuse jobs' },
      ],
    }),
    graph({
      title: 'Ended jobs',
      description: 'By kind and outcome.',
      unit: 'short',
      width: 6,
      bars: true,
      queries: [
        {
          expr: `sum by (kind, outcome) (increase(kube_nvr_jobs_finished_total{${TARGET}}[$__rate_interval]))`,
          legend: '{{kind}} {{outcome}}',
        },
      ],
    }),
    graph({
      title: 'Viewers and players',
      description: 'Live viewers, and files, parts and windows that are being sent.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `sum(kube_nvr_camera_viewers{${CAMERA}})`, legend: 'live' },
        { expr: `sum(kube_nvr_playback_responses{${TARGET}})`, legend: 'playback' },
      ],
    }),
    graph({
      title: 'Sent to viewers and players',
      description: 'Live streams, and recordings that are played.',
      unit: 'bps',
      width: 6,
      queries: [
        { expr: `sum(rate(kube_nvr_camera_live_sent_bytes_total{${CAMERA}}[$__rate_interval])) * 8`, legend: 'live' },
        { expr: `sum(rate(kube_nvr_playback_bytes_total{${TARGET}}[$__rate_interval])) * 8`, legend: 'playback' },
      ],
    }),
    graph({
      title: 'Rows that wait for the database',
      description:
        'A row follows its footage. If this stays above 0 although the database answers, there is a problem.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `max by (cluster, node) (kube_nvr_database_queue_rows{${TARGET}})`, legend: '{{node}} {{cluster}}' },
        {
          expr: `sum(increase(kube_nvr_database_rows_rejected_total{${TARGET}}[$__rate_interval]))`,
          legend: 'refused',
        },
      ],
    }),
    timeline({
      title: 'Database reachable',
      description: 'For each recorder with a database.',
      unit: 'short',
      width: 6,
      steps: YES_IS_GOOD,
      texts: { 0: ['away', 'red'], 1: ['there', 'green'] },
      queries: [{ expr: `kube_nvr_database_reachable{${TARGET}}`, legend: '{{node}} {{instance}} {{cluster}}' }],
    }),
    table({
      title: 'Expiry',
      description: 'How long the TLS certificate and the licence of each recorder are still valid.',
      width: 6,
      height: 8,
      queries: [
        {
          expr: `min by (cluster, node, instance) (kube_nvr_certificate_expiry_timestamp_seconds{${TARGET}}) - time()`,
        },
        { expr: `min by (cluster, node, instance) (kube_nvr_license_expiry_timestamp_seconds{${TARGET}}) - time()` },
        { expr: `max by (cluster, node, instance, version) (kube_nvr_info{${TARGET}})` },
      ],
      columns: [
        { field: 'cluster', title: 'Cluster' },
        { field: 'node', title: 'Node' },
        {
          field: 'Value #A',
          title: 'Certificate',
          unit: 's',
          decimals: 0,
          steps: ['red', [172_800, 'orange'], [1_209_600, 'green']],
        },
        {
          field: 'Value #B',
          title: 'Licence',
          unit: 's',
          decimals: 0,
          steps: ['red', [172_800, 'orange'], [1_209_600, 'green']],
        },
        { field: 'version', title: 'Version' },
      ],
      sortBy: { field: 'Value #A', descending: false },
    }),
  ],
};

const operator: Row = {
  title: 'Operator',
  panels: [
    timeline({
      title: 'Leader',
      description: 'For each replica: whether it leads or is a standby.',
      unit: 'short',
      width: 6,
      steps: ['text', [1, 'green']],
      texts: { 0: ['stands by', 'text'], 1: ['leads', 'green'] },
      queries: [{ expr: `kube_nvr_operator_leader{${CLUSTER}}`, legend: '{{instance}} {{cluster}}' }],
    }),
    graph({
      title: 'Failed reconciliations',
      description: 'Failures per minute, by controller. They are tried again after growing delays.',
      unit: 'cpm',
      width: 6,
      queries: [
        {
          expr: `sum by (controller) (rate(kube_nvr_operator_reconcile_total{${CLUSTER},outcome="error"}[$__rate_interval])) * 60`,
          legend: '{{controller}}',
        },
      ],
    }),
    graph({
      title: 'Time since the last event',
      description:
        'By kind, for the replica that has waited longest. The API server sends something about once a minute.',
      unit: 's',
      width: 6,
      queries: [
        { expr: `max by (resource) (kube_nvr_operator_watch_age_seconds{${CLUSTER}})`, legend: '{{resource}}' },
      ],
    }),
    graph({
      title: 'Waiting work',
      description: 'Keys in the queues of the leading replica; other replicas do not work on theirs.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: `workqueue_depth{${CLUSTER}} and on (cluster, job, instance) kube_nvr_operator_leader{${CLUSTER}} == 1`,
          legend: '{{name}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Work in progress',
      description: 'How long unfinished work has taken so far. If it only grows, it is stuck.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `workqueue_unfinished_work_seconds{${CLUSTER}} and on (cluster, job, instance) kube_nvr_operator_leader{${CLUSTER}} == 1`,
          legend: '{{name}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Duration of a reconciliation',
      description: '99th percentile.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `histogram_quantile(0.99, sum by (controller, le) (rate(kube_nvr_operator_reconcile_duration_seconds_bucket{${CLUSTER}}[$__rate_interval])))`,
          legend: '{{controller}}',
        },
      ],
    }),
    graph({
      title: 'Requests to the API server',
      description: 'Per second, by verb.',
      unit: 'reqps',
      width: 6,
      queries: [
        {
          expr: `sum by (verb) (rate(kube_nvr_operator_api_requests_total{${CLUSTER}}[$__rate_interval]))`,
          legend: '{{verb}}',
        },
      ],
    }),
    graph({
      title: 'Failed watches, invalid objects',
      description: 'Watches and lists that failed, per minute, and objects that the operator cannot parse.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: `sum by (resource) (rate(kube_nvr_operator_watch_failures_total{${CLUSTER}}[$__rate_interval])) * 60`,
          legend: 'failed {{resource}}',
        },
        {
          expr: `max by (resource) (kube_nvr_operator_invalid_objects{${CLUSTER}})`,
          legend: 'not understood {{resource}}',
        },
      ],
    }),
  ],
};

export function fleetDashboard(): Dashboard {
  return dashboard({
    uid: 'kube-nvr-fleet',
    title: 'kube-nvr / Fleet',
    description: 'What is recorded and what is not, why, and what will fail next.',
    last: '6h',
    oneCamera: false,
    rows: [now, gaps, disks, nodes, streams, work, operator],
    links: [],
  });
}
