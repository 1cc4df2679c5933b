// Metrics for Prometheus on a separate listener. Nothing is counted here: each scrape reads the values from the status
// objects, so that metrics cost nothing per frame.

import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { scraped } from '../../base/scraped.ts';
import {
  otherPayloadTypes,
  type CameraCounters,
  type CameraState,
  type StreamCounters,
} from '../contract/camera-status.ts';
import { installAccess } from '../http/access.ts';
import type { Authenticator } from '../http/auth.ts';
import type { CertificatePair } from '../http/certificate.ts';
import { buildServer } from '../http/server.ts';
import type { CameraDirectory, CameraView } from '../model/camera-view.ts';

const STATES: readonly CameraState[] = ['connecting', 'recording', 'retrying', 'stopped'];
/** How often the event loop's lag is sampled: often enough for a percentile, and cheap. */
const EVENT_LOOP_PRECISION_MS = 50;
const MAX_SCRAPES = 64;

const STREAMS = ['video', 'audio'] as const;

const sumOf = ({ streams }: CameraCounters, count: (stream: StreamCounters) => number): number =>
  count(streams.video) + count(streams.audio);

const unusablePackets = (counters: CameraCounters): [cause: string, packets: number][] => [
  ['not-rtp', sumOf(counters, ({ rtp }) => rtp.malformed)],
  ['late', sumOf(counters, ({ rtp }) => rtp.late)],
  ['other-source', sumOf(counters, ({ rtp }) => rtp.foreign)],
  ['other-payload-type', sumOf(counters, otherPayloadTypes)],
];

interface MetricsDeps {
  readonly cameras: Pick<CameraDirectory, 'list'>;
  readonly version: string;
  readonly nodeName: string;
  readonly site: string;
  readonly clock: Clock;
}

export function buildMetricsRegistry({ cameras, version, nodeName, site, clock }: MetricsDeps): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  new Gauge({
    name: 'kube_nvr_info',
    help: 'Always 1; the labels have the version, the name of the node, and the name of the site if it has one.',
    labelNames: ['version', 'node', 'site'],
    registers: [registry],
  }).set({ version, node: nodeName, site }, 1);
  addCameraInfo(registry, cameras);
  const add = adderTo(registry, cameras);
  addStateMetrics(add);
  addPacketMetrics(add);
  addStreamMetrics(add);
  addArchiveMetrics(add, clock);
  addLiveMetrics(add);
  addPreviewMetrics(add);
  return registry;
}

/** Adds `kube_nvr_camera_<name>`: `values` of each camera, read at each scrape. A removed camera disappears. */
type AddMetric = (
  kind: 'counter' | 'gauge',
  name: string,
  help: string,
  label: string | undefined,
  values: (view: CameraView) => Iterable<readonly [label: string, value: number]>,
) => void;

function adderTo(registry: Registry, cameras: MetricsDeps['cameras']): AddMetric {
  const add = scraped(registry);
  return (kind, name, help, label, values) =>
    add[kind](`camera_${name}`, help, label === undefined ? ['camera'] : ['camera', label], () =>
      cameras.list().flatMap((view) => {
        const camera = view.status.id;
        const labels = (of: string) => (label === undefined ? { camera } : { camera, [label]: of });
        return Array.from(values(view), ([of, value]) => [labels(of), value] as const);
      }),
    );
}

/** The value of a metric without a label of its own. */
const one = (value: number | undefined): [string, number][] => (value === undefined ? [] : [['', value]]);

const addCameraInfo = (registry: Registry, cameras: MetricsDeps['cameras']): void =>
  scraped(registry).gauge(
    'camera_info',
    'Always 1; the labels have the name of the camera and describe its streams.',
    ['camera', 'name', 'transport', 'video', 'resolution', 'audio'],
    () =>
      cameras.list().map(({ status: { id: camera, name, transport = '', video, audio } }) => {
        const resolution = video ? `${video.width}x${video.height}` : '';
        const codecs = { video: video?.codec ?? '', resolution, audio: audio?.codec ?? '' };
        return [{ camera, name, transport, ...codecs }, 1];
      }),
  );

function addStateMetrics(add: AddMetric): void {
  add('gauge', 'state', '1 for the current state of the camera, 0 for the others.', 'state', ({ status }) =>
    STATES.map((state) => [state, state === status.state ? 1 : 0]),
  );
  add(
    'gauge',
    'audio_refused',
    '1 for a camera that offers audio which is not recorded, by reason.',
    'reason',
    ({ status: { audioDropped } }) => (audioDropped ? [[audioDropped.code, 1]] : []),
  );
}

function addPacketMetrics(add: AddMetric): void {
  add('counter', 'received_bytes_total', 'Bytes of RTP received.', undefined, ({ status }) =>
    one(status.counters.bytesReceived),
  );
  add('counter', 'received_packets_total', 'RTP packets received.', undefined, ({ status }) =>
    one(status.counters.packetsReceived),
  );
  add('counter', 'lost_packets_total', 'RTP packets that did not arrive.', undefined, ({ status }) =>
    one(status.counters.packetsLost),
  );
  add(
    'counter',
    'machine_dropped_packets_total',
    'Datagrams that arrived and that the kernel of the node dropped, because its receive buffer (net.core.rmem_max) was full.',
    undefined,
    ({ status }) => one(status.counters.packetsDropped),
  );
  add(
    'counter',
    'unusable_packets_total',
    'Packets that arrived but were not used, by cause: not-rtp, late (or sent twice), other-source, other-payload-type.',
    'cause',
    ({ status }) => unusablePackets(status.counters),
  );
  add(
    'counter',
    'packet_faults_total',
    'Faults found in the payload of packets, such as fragments without the first one; GET /api/cameras/{id} has them by code.',
    'kind',
    ({ status: { counters } }) => STREAMS.map((kind) => [kind, counters.streams[kind].faults.total]),
  );
  add(
    'counter',
    'sequence_restarts_total',
    'How often the sequence numbers of RTP jumped without a change of the source.',
    undefined,
    ({ status: { counters } }) => one(sumOf(counters, ({ rtp }) => rtp.restarts)),
  );
  add(
    'counter',
    'skipped_bytes_total',
    'Bytes of the RTSP connections that were neither messages nor packets.',
    undefined,
    ({ status }) => one(status.counters.bytesSkipped),
  );
}

function addStreamMetrics(add: AddMetric): void {
  add('counter', 'frames_total', 'Frames handed to archive and live.', 'kind', ({ status }) => [
    ['video', status.counters.videoFrames],
    ['audio', status.counters.audioFrames],
  ]);
  add(
    'counter',
    'discarded_frames_total',
    'Frames that were dropped because a part of them is missing.',
    undefined,
    ({ status }) => one(status.counters.framesDiscarded),
  );
  add(
    'counter',
    'reconnects_total',
    'Connections that ended, by reason.',
    'reason',
    ({ status }) => status.counters.reconnects,
  );
  add(
    'counter',
    'event_loop_seconds_total',
    'Time that the event loop spent on data of the camera.',
    undefined,
    ({ status }) => one(status.counters.heldMs / 1000),
  );
  add(
    'gauge',
    'event_loop_longest_seconds',
    'Longest time that one read of the camera blocked the event loop, in the last one to two minutes.',
    undefined,
    ({ status }) => one(status.counters.longestHoldMs / 1000),
  );
  add('gauge', 'bitrate', 'Bits per second over the last ten seconds.', undefined, ({ status }) => one(status.bitrate));
  add(
    'gauge',
    'clock_error_seconds',
    'Largest difference between the times of pictures and their arrival, in the current run: a delay, or a wrong clock.',
    undefined,
    ({ status }) => (status.clockErrorMs === undefined ? [] : one(status.clockErrorMs / 1000)),
  );
}

function addArchiveMetrics(add: AddMetric, clock: Clock): void {
  const startedMs = clock.wallMs();
  add('counter', 'written_frames_total', 'Pictures that were written to files.', undefined, ({ archive }) =>
    one(archive?.framesWritten),
  );
  add('counter', 'written_bytes_total', 'Bytes written to files.', undefined, ({ archive }) =>
    one(archive?.bytesWritten),
  );
  add(
    'counter',
    'dropped_frames_total',
    'Pictures that arrived but were not written to a file, by cause.',
    'cause',
    (view) => view.archive?.framesDropped ?? [],
  );
  add('counter', 'segments_total', 'Segments that were closed.', undefined, ({ archive }) =>
    one(archive?.segmentsClosed),
  );
  add('counter', 'short_segments_total', 'Closed segments shorter than 0.9 seconds.', undefined, ({ archive }) =>
    one(archive?.shortSegments),
  );
  add(
    'gauge',
    'last_written_age_seconds',
    'Time since the capture of the last picture in a file; while there is none, since the start.',
    undefined,
    ({ status, archive }) => {
      if (status.state === 'stopped') return [];
      return one(Math.max(0, clock.wallMs() - (archive?.lastWrittenMs ?? startedMs)) / 1000);
    },
  );
}

function addLiveMetrics(add: AddMetric): void {
  add('gauge', 'viewers', 'Live viewers.', undefined, ({ live }) => one(live?.viewers));
  add('counter', 'live_sent_bytes_total', 'Bytes sent to live viewers.', undefined, ({ live }) => one(live?.sentBytes));
  add(
    'counter',
    'live_dropped_frames_total',
    'Pictures that live viewers missed because they were too slow or waited for a key frame.',
    undefined,
    ({ live }) => one(live?.droppedFrames),
  );
}

function addPreviewMetrics(add: AddMetric): void {
  add(
    'gauge',
    'preview_connected',
    '1 while the preview of the camera is connected, 0 while nobody watches it or it failed; only for cameras with a preview.',
    undefined,
    ({ preview }) => {
      const state = preview?.state;
      return one(state && (state === 'connecting' || state === 'live' ? 1 : 0));
    },
  );
  add('gauge', 'preview_viewers', 'Live viewers of the preview.', undefined, ({ preview }) =>
    one(preview?.stats.viewers),
  );
  add('counter', 'preview_received_bytes_total', 'Bytes of RTP received for the preview.', undefined, (view) =>
    one(view.preview?.bytesReceived),
  );
  add('counter', 'preview_sent_bytes_total', 'Bytes sent to viewers of the preview.', undefined, ({ preview }) =>
    one(preview?.stats.sentBytes),
  );
  add(
    'counter',
    'preview_failures_total',
    'How often the camera did not deliver its preview, by reason.',
    'reason',
    ({ preview }) => preview?.failures ?? [],
  );
}

interface MetricsServerOptions {
  readonly log: Log;
  readonly auth: Authenticator;
  /** false: the metrics need no token. */
  readonly requireToken: boolean;
  readonly tls?: CertificatePair;
  /** The text of more metrics, of other names. */
  readonly more?: (() => Promise<string>) | undefined;
}

/** A server with `GET /metrics` and nothing else, not listening yet. */
export function buildMetricsServer(registry: Registry, options: MetricsServerOptions): FastifyInstance {
  const { auth, requireToken, more, ...others } = options;
  const app = buildServer({ name: 'metrics', ...others, maxConnections: MAX_SCRAPES });
  installAccess(app, auth);
  // The metrics name every camera: a token for some cameras is not enough.
  app.get(
    '/metrics',
    { config: requireToken ? { role: 'viewer', credentials: 'metrics' } : {} },
    async (_request, reply) => {
      const texts = await Promise.all([registry.metrics(), more?.()]);
      return reply.type(registry.contentType).send(texts.filter((text) => text !== undefined).join(''));
    },
  );
  return app;
}
