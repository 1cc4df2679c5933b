// The dashboard of one camera: whether it is recorded, what was missed and why, what it sends, what is kept of it.

import type { Dashboard } from '@grafana/schema';
import { dashboard, graph, stat, table, timeline, type Row } from './panels.ts';
import { ageOfFootage, CAMERA, endedConnections, framesNotKept, missingBeforeAndAfter, NO_FAULT } from './shared.ts';

const now: Row = {
  title: 'Now',
  panels: [
    stat({
      title: 'Video',
      description: 'Silent: it should be recorded, but no video of it has been written to the disk for 15 seconds.',
      unit: 'short',
      width: 3,
      steps: ['green', [1, 'red']],
      texts: { 0: ['is written', 'green'], 1: ['SILENT', 'red'] },
      noValue: 'not known',
      queries: [{ expr: `max(kube_nvr_camera_silent{${CAMERA}})` }],
    }),
    stat({
      title: 'Last picture',
      description: 'Time since the capture of the newest picture in a file.',
      unit: 's',
      width: 3,
      decimals: 0,
      steps: ['green', [15, 'orange'], [60, 'red']],
      noValue: 'stopped',
      queries: [{ expr: `min(kube_nvr_camera_last_written_age_seconds{${CAMERA}})` }],
    }),
    stat({
      title: 'Missing, 24 hours',
      description: 'Footage that should have been recorded in the last day but was not.',
      unit: 's',
      width: 3,
      decimals: 0,
      steps: ['green', [60, 'orange'], [600, 'red']],
      noValue: 'no data',
      queries: [{ expr: `sum(increase(kube_nvr_gap_seconds_total{${CAMERA},${NO_FAULT}}[24h]))` }],
    }),
    stat({
      title: 'Bitrate now',
      description: 'Over the last ten seconds.',
      unit: 'bps',
      width: 3,
      queries: [{ expr: `sum(kube_nvr_camera_bitrate{${CAMERA}})` }],
    }),
    stat({
      title: 'Footage since',
      description: 'When the oldest footage begins, on any node.',
      unit: 's',
      width: 3,
      decimals: 1,
      noValue: 'none',
      queries: [{ expr: `time() - min(kube_nvr_archive_oldest_footage_timestamp_seconds{${CAMERA}})` }],
    }),
    table({
      title: 'Streams, and the node that records it',
      description: 'While it is connected.',
      width: 9,
      height: 4,
      queries: [
        { expr: `max by (cluster, node, name, transport, video, resolution, audio) (kube_nvr_camera_info{${CAMERA}})` },
      ],
      columns: [
        { field: 'name', title: 'Name' },
        { field: 'node', title: 'Node' },
        { field: 'transport', title: 'By' },
        { field: 'video', title: 'Video' },
        { field: 'resolution', title: 'Size' },
        { field: 'audio', title: 'Audio' },
      ],
      sortBy: { field: 'node', descending: false },
    }),
    timeline({
      title: 'State',
      description:
        'recording: video arrives; connecting: no video yet; retrying: it waits after a failure; stopped: it should not be recorded.',
      unit: 'short',
      width: 24,
      steps: ['text', [1, 'green'], [2, 'orange'], [3, 'red']],
      texts: {
        0: ['stopped', 'text'],
        1: ['recording', 'green'],
        2: ['connecting', 'orange'],
        3: ['retrying', 'red'],
      },
      queries: [
        {
          expr: `sum by (cluster, node, camera) (kube_nvr_camera_state{${CAMERA},state="recording"}) + 2 * sum by (cluster, node, camera) (kube_nvr_camera_state{${CAMERA},state="connecting"}) + 3 * sum by (cluster, node, camera) (kube_nvr_camera_state{${CAMERA},state="retrying"})`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
  ],
};

const gaps: Row = {
  title: 'Gaps',
  panels: [
    graph({
      title: 'Not recorded, by cause',
      description: 'Missing seconds in each interval, by cause. docs/gaps.md explains the causes.',
      unit: 's',
      width: 12,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: `sum by (cause) (increase(kube_nvr_gap_seconds_total{${CAMERA}}[$__rate_interval])) > 0 or sum by (cause) (increase(kube_nvr_gap_seconds_total{${CAMERA},cause="unknown"}[$__rate_interval]))`,
          legend: '{{cause}}',
        },
      ],
    }),
    table({
      title: 'Missing in the selected time, by cause',
      description: 'In seconds. The list of gaps: GET /api/archive/{camera}/gaps.',
      width: 6,
      height: 8,
      queries: [{ expr: `sum by (cause) (increase(kube_nvr_gap_seconds_total{${CAMERA}}[$__range])) > 0.5` }],
      columns: [
        { field: 'cause', title: 'Cause' },
        { field: 'Value', title: 'Missing', unit: 's', decimals: 0 },
      ],
      sortBy: { field: 'Value', descending: true },
    }),
    endedConnections('Connections to the camera that ended in each minute, by reason.', { bars: true }),
    missingBeforeAndAfter(),
    graph({
      title: 'Filled from the memory of the camera, by cause',
      description: 'Seconds of gaps that edge recovery filled in each interval, by cause of the gap.',
      unit: 's',
      width: 12,
      bars: true,
      stacked: true,
      queries: [
        {
          expr: `sum by (cause) (increase(kube_nvr_gap_filled_seconds_total{${CAMERA}}[$__rate_interval])) > 0 or sum by (cause) (increase(kube_nvr_gap_filled_seconds_total{${CAMERA},cause="unknown"}[$__rate_interval]))`,
          legend: '{{cause}}',
        },
      ],
    }),
  ],
};

const stream: Row = {
  title: 'Stream',
  panels: [
    graph({
      title: 'Bitrate',
      description: 'Received over the network, and written to files.',
      unit: 'bps',
      width: 6,
      queries: [
        {
          expr: `sum(rate(kube_nvr_camera_received_bytes_total{${CAMERA}}[$__rate_interval])) * 8`,
          legend: 'received',
        },
        { expr: `sum(rate(kube_nvr_camera_written_bytes_total{${CAMERA}}[$__rate_interval])) * 8`, legend: 'written' },
      ],
    }),
    graph({
      title: 'Frames per second: video and audio',
      description:
        'Pictures and audio frames that arrived complete, and pictures in files. AAC at 48 kHz has 47 frames per second, at 16 kHz 16. If audio is at 0 while video arrives, the camera announces audio but sends none.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `sum by (kind) (rate(kube_nvr_camera_frames_total{${CAMERA}}[$__rate_interval]))`, legend: '{{kind}}' },
        {
          expr: `sum(rate(kube_nvr_camera_written_frames_total{${CAMERA}}[$__rate_interval]))`,
          legend: 'video in files',
        },
        { expr: `sum by (reason) (kube_nvr_camera_audio_refused{${CAMERA}})`, legend: 'audio refused: {{reason}}' },
      ],
    }),
    graph({
      title: 'Packets lost',
      description:
        'As a share of what the camera sends. From 1 % on, pictures are missing: check its network, or use TCP.',
      unit: 'percentunit',
      width: 6,
      queries: [
        {
          expr: `sum by (cluster, node) (rate(kube_nvr_camera_lost_packets_total{${CAMERA}}[$__rate_interval])) / sum by (cluster, node) (rate(kube_nvr_camera_received_packets_total{${CAMERA}}[$__rate_interval]))`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
    framesNotKept(
      'Per second. discarded: a part was lost on the way; dropped: it arrived but was not written, by cause.',
    ),
    graph({
      title: 'Faulty packets',
      description:
        'Per second: packets that arrived but were not used, by cause; faults in the payload; and jumps of the sequence numbers. docs/cameras.md explains each.',
      unit: 'short',
      width: 12,
      queries: [
        {
          expr: `sum by (cause) (rate(kube_nvr_camera_unusable_packets_total{${CAMERA}}[$__rate_interval]))`,
          legend: '{{cause}}',
        },
        {
          expr: `sum by (kind) (rate(kube_nvr_camera_packet_faults_total{${CAMERA}}[$__rate_interval]))`,
          legend: 'faults in {{kind}}',
        },
        {
          expr: `sum(rate(kube_nvr_camera_sequence_restarts_total{${CAMERA}}[$__rate_interval]))`,
          legend: 'sequence restarts',
        },
      ],
    }),
    graph({
      title: 'Stray bytes',
      description: 'Bytes of the RTSP connection that belong to no message and no packet.',
      unit: 'Bps',
      width: 12,
      queries: [
        {
          expr: `sum by (cluster, node) (rate(kube_nvr_camera_skipped_bytes_total{${CAMERA}}[$__rate_interval]))`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
  ],
};

const archive: Row = {
  title: 'Footage and viewers',
  panels: [
    graph({
      title: 'Footage on the disk',
      description: 'By node, with the protected part.',
      unit: 'bytes',
      width: 6,
      queries: [
        { expr: `sum by (cluster, node) (kube_nvr_retention_used_bytes{${CAMERA}})`, legend: '{{node}} {{cluster}}' },
        {
          expr: `sum by (cluster, node) (kube_nvr_retention_protected_bytes{${CAMERA}})`,
          legend: 'protected {{node}} {{cluster}}',
        },
      ],
    }),
    ageOfFootage('By node: footage stays where it was recorded.'),
    graph({
      title: 'Segments closed',
      description:
        'Files completed in each interval. More files than the segment duration explains mean new connections.',
      unit: 'short',
      width: 6,
      bars: true,
      queries: [
        {
          expr: `sum by (cluster, node) (increase(kube_nvr_camera_segments_total{${CAMERA}}[$__rate_interval]))`,
          legend: '{{node}} {{cluster}}',
        },
      ],
    }),
    graph({
      title: 'Live viewers',
      description: 'Live viewers, and pictures per second that were dropped for slow ones.',
      unit: 'short',
      width: 6,
      queries: [
        { expr: `sum(kube_nvr_camera_viewers{${CAMERA}})`, legend: 'viewers' },
        {
          expr: `sum(rate(kube_nvr_camera_live_dropped_frames_total{${CAMERA}}[$__rate_interval]))`,
          legend: 'pictures skipped',
        },
      ],
    }),
  ],
};

export function cameraDashboard(): Dashboard {
  return dashboard({
    uid: 'kube-nvr-camera',
    title: 'kube-nvr / Camera',
    description: 'One camera: whether it is recorded, what is missing and why, what it sends, and what is kept.',
    last: '6h',
    oneCamera: true,
    rows: [now, gaps, stream, archive],
    links: [
      {
        title: 'Fleet',
        type: 'link',
        url: '/d/kube-nvr-fleet?${datasource:queryparam}&${cluster:queryparam}&${namespace:queryparam}&${__url_time_range}',
        icon: 'dashboard',
        tooltip: 'All cameras and nodes',
        tags: [],
        asDropdown: false,
        targetBlank: false,
        includeVars: false,
        keepTime: true,
      },
    ],
  });
}
