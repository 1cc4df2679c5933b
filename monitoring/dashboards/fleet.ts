// The dashboard of all cameras: first what is not recorded now, then why, then what will be a problem next.

import { BigValueTextMode, type Dashboard } from '@grafana/schema';
import { dashboard, graph, stat, table, timeline, type Row, type Steps, type Texts } from './panels.ts';
import { CAMERA, CONNECTIONS_ENDED, FRAMES_NOT_KEPT, TARGET } from './queries.ts';

/** The operator's metrics of pools have the label of the pool's namespace. */
const POOL = 'namespace=~"$namespace"';
/** Leaves out cameras that a user stopped, and those that another node records. */
const NO_FAULT = 'cause!~"stopped|moved"';

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
        'Cameras that should be recorded and of which no video has come to the disk for 15 seconds. What they see is lost.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'no data',
      queries: [{ expr: `sum(kube_nvr_camera_silent{${CAMERA}})` }],
    }),
    stat({
      title: 'Without a node',
      description: 'Cameras that should be recorded and that no node has: no recorder counts them as silent.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'no operator',
      queries: [{ expr: `sum(max by (namespace, pool) (kube_nvr_operator_cameras{${POOL},state="unassigned"}))` }],
    }),
    stat({
      title: 'Recorders not answering',
      description: 'Recorders that Prometheus does not reach. If one is not running, nothing is recorded there.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      noValue: 'none known',
      queries: [{ expr: `sum(1 - up{job="kube-nvr-recorder",${TARGET}})` }],
    }),
    stat({
      title: 'Least room',
      description:
        'On the node that has least: what is free and what may be removed for new footage, as a part of the disk. A disk full of old footage has all its room; protected footage and files of others take it.',
      unit: 'percentunit',
      width: 3,
      decimals: 0,
      steps: ['red', [0.1, 'orange'], [0.25, 'green']],
      queries: [{ expr: `min(kube_nvr_retention_room_bytes{${TARGET}} / kube_nvr_retention_disk_bytes{${TARGET}})` }],
    }),
    stat({
      title: 'Failover',
      description: 'Suspended: less than a majority of a pool is heard, and nothing is moved from a dead node.',
      unit: 'short',
      width: 3,
      steps: NONE_IS_GOOD,
      texts: { 0: ['works', 'green'], 1: ['SUSPENDED', 'red'] },
      noValue: 'no operator',
      queries: [{ expr: `max(kube_nvr_operator_failover_suspended{${POOL}})` }],
    }),
    stat({
      title: 'Operators that lead',
      description: 'One a release. Without any, nothing is moved when a node dies; recording goes on.',
      unit: 'short',
      width: 3,
      steps: YES_IS_GOOD,
      noValue: 'no operator',
      queries: [{ expr: 'sum(kube_nvr_operator_leader)' }],
    }),
    stat({
      title: 'Recording',
      description: 'Cameras whose video arrives, and all that are known here.',
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
      description: 'Footage of all cameras together that should have been recorded in the last hour and was not.',
      unit: 's',
      width: 3,
      steps: ['green', [10, 'orange'], [60, 'red']],
      noValue: 'no data',
      queries: [{ expr: `sum(increase(kube_nvr_gap_seconds_total{${CAMERA},${NO_FAULT}}[1h]))` }],
    }),
    table({
      title: 'Alerts that fire',
      description: 'Of this product. What each means and what to do: docs/runbooks.',
      width: 9,
      height: 9,
      noValue: 'none',
      queries: [
        {
          expr: 'max by (alertname, severity, node, camera, cause) (ALERTS{alertname=~"KubeNvr.*",alertstate="firing"})',
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
        { field: 'node', title: 'Node' },
        { field: 'cause', title: 'Cause' },
      ],
      sortBy: { field: 'severity', descending: false },
    }),
    table({
      title: 'Cameras',
      description: 'The longest without video first. A click on the id shows one camera.',
      width: 15,
      height: 9,
      queries: [
        { expr: `max by (namespace, node, camera) (kube_nvr_camera_last_written_age_seconds{${CAMERA}})` },
        { expr: `max by (namespace, node, camera, state) (kube_nvr_camera_state{${CAMERA}} == 1)` },
        { expr: `max by (namespace, node, camera) (kube_nvr_camera_bitrate{${CAMERA}})` },
        {
          expr: `sum by (namespace, node, camera) (increase(kube_nvr_gap_seconds_total{${CAMERA},${NO_FAULT}}[24h]))`,
        },
        {
          expr: `sum by (namespace, node, camera) (rate(kube_nvr_camera_lost_packets_total{${CAMERA}}[5m])) / sum by (namespace, node, camera) (rate(kube_nvr_camera_received_packets_total{${CAMERA}}[5m]))`,
        },
        {
          expr: `max by (namespace, node, camera, name, video, resolution, audio) (kube_nvr_camera_info{${CAMERA}})`,
        },
      ],
      columns: [
        {
          field: 'camera',
          title: 'Camera',
          link: {
            title: 'One camera',
            url: '/d/kube-nvr-camera?var-camera=${__value.raw}&${datasource:queryparam}&${namespace:queryparam}&${__url_time_range}',
          },
        },
        { field: 'name', title: 'Name' },
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
      description: 'How many cameras were not being recorded at a time, and why. docs/gaps.md explains the causes.',
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
        'recording: video arrives; connecting: not yet; retrying: waits after a failure; stopped: not wanted.',
      unit: 'cameras',
      width: 6,
      stacked: true,
      queries: [{ expr: `sum by (state) (kube_nvr_camera_state{${CAMERA}})`, legend: '{{state}}' }],
    }),
    graph({
      title: 'Connections that ended',
      description: 'Connections to cameras that ended in each minute, by reason.',
      unit: 'cpm',
      width: 6,
      queries: CONNECTIONS_ENDED,
    }),
  ],
};

const streams: Row = {
  title: 'Streams',
  panels: [
    graph({
      title: 'Received and written',
      description: 'What cameras send and what goes to the disk. Both are the same but for packet headers.',
      unit: 'bps',
      width: 6,
      queries: [
        {
          expr: `sum by (node) (rate(kube_nvr_camera_received_bytes_total{${CAMERA}}[$__rate_interval])) * 8`,
          legend: 'received {{node}}',
        },
        {
          expr: `sum by (node) (rate(kube_nvr_camera_written_bytes_total{${CAMERA}}[$__rate_interval])) * 8`,
          legend: 'written {{node}}',
        },
      ],
    }),
    graph({
      title: 'Frames a second',
      description: 'Of all cameras: pictures and audio frames that arrived whole, and pictures that are in files.',
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
      description: 'The ten cameras that lose most, as a part of what they send. From 1 % on, pictures are missing.',
      unit: 'percentunit',
      width: 6,
      queries: [
        {
          expr: `topk(10, sum by (camera) (rate(kube_nvr_camera_lost_packets_total{${CAMERA}}[$__rate_interval])) / sum by (camera) (rate(kube_nvr_camera_received_packets_total{${CAMERA}}[$__rate_interval])))`,
          legend: '{{camera}}',
        },
      ],
    }),
    graph({
      title: 'Frames not kept',
      description:
        'discarded: a part of the picture was lost on the way; dropped: it arrived and is in no file, by cause.',
      unit: 'short',
      width: 6,
      queries: FRAMES_NOT_KEPT,
    }),
  ],
};

const disks: Row = {
  title: 'Disks and how long footage is kept',
  panels: [
    graph({
      title: 'Disk of the archive',
      description: 'By node: footage, the protected part of it, and what is free.',
      unit: 'bytes',
      width: 6,
      queries: [
        { expr: `sum by (node) (kube_nvr_retention_used_bytes{${TARGET}})`, legend: 'footage {{node}}' },
        { expr: `sum by (node) (kube_nvr_retention_protected_bytes{${TARGET}})`, legend: 'protected {{node}}' },
        { expr: `sum by (node) (kube_nvr_retention_free_bytes{${TARGET}})`, legend: 'free {{node}}' },
      ],
    }),
    graph({
      title: 'Room for new footage, and in three days',
      description:
        'Free space and what may be removed: now, and in three days by the trend of the last day. At 0 new footage is lost.',
      unit: 'bytes',
      width: 6,
      queries: [
        { expr: `sum by (node) (kube_nvr_retention_room_bytes{${TARGET}})`, legend: 'now {{node}}' },
        {
          expr: `clamp_min(sum by (node) (predict_linear(kube_nvr_retention_room_bytes{${TARGET}}[1d], 3 * 86400)), 0)`,
          legend: 'in 3 days {{node}}',
        },
      ],
    }),
    graph({
      title: 'Age of the oldest footage',
      description: 'By node: how far back one can look. It shrinks when retention has to remove more than before.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `time() - min by (node) (kube_nvr_archive_oldest_footage_timestamp_seconds{${CAMERA}})`,
          legend: '{{node}}',
        },
      ],
    }),
    graph({
      title: 'Removed by retention',
      description: 'Bytes a second, by the rule that wanted them out. full: the disk was full; the others are limits.',
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
      title: 'Time to bring a file to the disk',
      description: 'Of 99 in 100 syncs. Seconds mean that the disk is too slow or is failing.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: `histogram_quantile(0.99, sum by (node, le) (rate(kube_nvr_archive_sync_seconds_bucket{${TARGET}}[$__rate_interval])))`,
          legend: '{{node}}',
        },
      ],
    }),
    graph({
      title: 'Trouble with disks',
      description:
        'Writes that had to wait for room, segments that could not be removed, files that the disk stopped; and nodes where nothing can be written at all.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: `sum(increase(kube_nvr_retention_write_waits_total{${TARGET}}[$__rate_interval]))`,
          legend: 'waits for room',
        },
        {
          expr: `sum(increase(kube_nvr_retention_failures_total{${TARGET}}[$__rate_interval]))`,
          legend: 'not removable',
        },
        {
          expr: `sum by (cause) (increase(kube_nvr_archive_file_failures_total{${TARGET}}[$__rate_interval]))`,
          legend: 'file stopped: {{cause}}',
        },
        { expr: `sum(kube_nvr_retention_exhausted{${TARGET}})`, legend: 'nodes without room' },
        { expr: `sum by (cause) (kube_nvr_archive_wrong_disk{${TARGET}})`, legend: 'wrong disk: {{cause}}' },
      ],
    }),
    table({
      title: 'Oldest footage and disk, by camera',
      description: 'Who takes the room, and since when there is footage. Protected footage is never removed.',
      width: 12,
      height: 8,
      queries: [
        { expr: `sum by (node, camera) (kube_nvr_retention_used_bytes{${CAMERA}})` },
        { expr: `sum by (node, camera) (kube_nvr_retention_protected_bytes{${CAMERA}})` },
        { expr: `time() - min by (node, camera) (kube_nvr_archive_oldest_footage_timestamp_seconds{${CAMERA}})` },
      ],
      columns: [
        { field: 'camera', title: 'Camera' },
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
      description: 'Whether each node renews its Lease, as the leading operator sees it.',
      unit: 'short',
      width: 8,
      steps: YES_IS_GOOD,
      texts: { 0: ['offline', 'red'], 1: ['online', 'green'] },
      queries: [
        {
          expr: `max by (namespace, pool, node) (kube_nvr_operator_node_live{${TARGET}})`,
          legend: '{{pool}} {{node}}',
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
      queries: [{ expr: `up{job="kube-nvr-recorder",${TARGET}}`, legend: '{{node}} {{instance}}' }],
    }),
    graph({
      title: 'Failovers',
      description: 'Cameras taken from a node that did not record them, by that node. Each has a gap of some seconds.',
      unit: 'cameras',
      width: 8,
      bars: true,
      queries: [
        {
          expr: `sum by (node) (increase(kube_nvr_operator_failovers_total{${TARGET}}[$__rate_interval]))`,
          legend: '{{node}}',
        },
      ],
    }),
    graph({
      title: 'Cameras of pools',
      description: 'assigned: a node has it; unassigned: nobody records it; suspended: a user wants it so.',
      unit: 'cameras',
      width: 8,
      stacked: true,
      queries: [
        {
          expr: `sum by (state) (max by (namespace, pool, state) (kube_nvr_operator_cameras{${POOL}}))`,
          legend: '{{state}}',
        },
      ],
    }),
    graph({
      title: 'Assignments written',
      description: 'How often a camera was given to a node, by reason.',
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
        'Live: it renews its Lease; Unavailable: it does not, and its cameras are moved; Unknown: not yet judged.',
      unit: 'short',
      width: 8,
      stacked: true,
      queries: [
        {
          expr: `sum by (state) (max by (namespace, pool, state) (kube_nvr_operator_nodes{${POOL}}))`,
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
          legend: '{{node}} {{instance}}',
        },
      ],
    }),
    graph({
      title: 'Memory of recorders',
      description: 'Resident memory of each recorder.',
      unit: 'bytes',
      width: 8,
      queries: [
        { expr: `process_resident_memory_bytes{job="kube-nvr-recorder",${TARGET}}`, legend: '{{node}} {{instance}}' },
      ],
    }),
    graph({
      title: 'Lag of the event loop',
      description: 'Of 99 in 100 turns. From some hundred milliseconds on, a recorder has too much to do.',
      unit: 's',
      width: 8,
      queries: [
        {
          expr: `nodejs_eventloop_lag_p99_seconds{job="kube-nvr-recorder",${TARGET}}`,
          legend: '{{node}} {{instance}}',
        },
      ],
    }),
  ],
};

const work: Row = {
  title: 'Exports, viewers, database, and what ends',
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
      title: 'Jobs that do not get on',
      description: 'How long no job of a node got on although some wait or run. What only grows is stuck.',
      unit: 's',
      width: 6,
      queries: [
        { expr: `max by (node) (kube_nvr_jobs_progress_age_seconds{${TARGET}})`, legend: '{{node}}' },
        { expr: `sum(1 - kube_nvr_jobs_available{${TARGET}})`, legend: 'nodes that refuse jobs' },
      ],
    }),
    graph({
      title: 'Jobs that ended',
      description: 'By what they made and what came of them.',
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
      description: 'Footage is there before its row is. What stays above 0 although the database answers is an alarm.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `max by (node) (kube_nvr_database_queue_rows{${TARGET}})`, legend: '{{node}}' },
        {
          expr: `sum(increase(kube_nvr_database_rows_rejected_total{${TARGET}}[$__rate_interval]))`,
          legend: 'refused',
        },
      ],
    }),
    timeline({
      title: 'Database reachable',
      description: 'For each recorder that has one.',
      unit: 'short',
      width: 6,
      steps: YES_IS_GOOD,
      texts: { 0: ['away', 'red'], 1: ['there', 'green'] },
      queries: [{ expr: `kube_nvr_database_reachable{${TARGET}}`, legend: '{{node}} {{instance}}' }],
    }),
    table({
      title: 'What ends',
      description: 'How long the TLS certificate and the licence of each recorder are good.',
      width: 6,
      height: 8,
      queries: [
        { expr: `min by (node, instance) (kube_nvr_certificate_expiry_timestamp_seconds{${TARGET}}) - time()` },
        { expr: `min by (node, instance) (kube_nvr_license_expiry_timestamp_seconds{${TARGET}}) - time()` },
        { expr: `max by (node, instance, version) (kube_nvr_info{${TARGET}})` },
      ],
      columns: [
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
      title: 'Who leads',
      description: 'Each replica: whether it leads or stands by.',
      unit: 'short',
      width: 6,
      steps: ['text', [1, 'green']],
      texts: { 0: ['stands by', 'text'], 1: ['leads', 'green'] },
      queries: [{ expr: 'kube_nvr_operator_leader', legend: '{{instance}}' }],
    }),
    graph({
      title: 'Errors of reconciling',
      description: 'Looks that failed, each minute, by what was looked at. They are tried again, later and later.',
      unit: 'cpm',
      width: 6,
      queries: [
        {
          expr: 'sum by (controller) (rate(kube_nvr_operator_reconcile_total{outcome="error"}[$__rate_interval])) * 60',
          legend: '{{controller}}',
        },
      ],
    }),
    graph({
      title: 'Since the API server was heard',
      description: 'By kind, of the replica that has waited longest. The API server speaks about once a minute.',
      unit: 's',
      width: 6,
      queries: [{ expr: 'max by (resource) (kube_nvr_operator_watch_age_seconds)', legend: '{{resource}}' }],
    }),
    graph({
      title: 'Work that waits',
      description: 'Keys in the queues of the replica that leads; those of others are not worked on.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: 'kube_nvr_operator_workqueue_depth and on (job, instance) kube_nvr_operator_leader == 1',
          legend: '{{name}}',
        },
      ],
    }),
    graph({
      title: 'Work under way',
      description: 'Seconds that keys in work have taken until now. What only grows is stuck.',
      unit: 's',
      width: 6,
      queries: [{ expr: 'sum by (name) (kube_nvr_operator_workqueue_unfinished_work_seconds)', legend: '{{name}}' }],
    }),
    graph({
      title: 'Time of a look',
      description: 'Of 99 in 100 looks.',
      unit: 's',
      width: 6,
      queries: [
        {
          expr: 'histogram_quantile(0.99, sum by (controller, le) (rate(kube_nvr_operator_reconcile_duration_seconds_bucket[$__rate_interval])))',
          legend: '{{controller}}',
        },
      ],
    }),
    graph({
      title: 'Calls of the API server',
      description: 'A second, by verb.',
      unit: 'reqps',
      width: 6,
      queries: [
        { expr: 'sum by (verb) (rate(kube_nvr_operator_api_requests_total[$__rate_interval]))', legend: '{{verb}}' },
      ],
    }),
    graph({
      title: 'Watches that failed, objects not understood',
      description: 'Watches and lists that failed, each minute; and objects that the operator leaves alone.',
      unit: 'short',
      width: 6,
      queries: [
        {
          expr: 'sum by (resource) (rate(kube_nvr_operator_watch_failures_total[$__rate_interval])) * 60',
          legend: 'failed {{resource}}',
        },
        { expr: 'max by (resource) (kube_nvr_operator_invalid_objects)', legend: 'not understood {{resource}}' },
      ],
    }),
  ],
};

export function fleetDashboard(): Dashboard {
  return dashboard({
    uid: 'kube-nvr-fleet',
    title: 'kube-nvr / Fleet',
    description: 'What records and what does not, why, and what will be next.',
    last: '6h',
    oneCamera: false,
    rows: [now, gaps, disks, nodes, streams, work, operator],
    links: [],
  });
}
