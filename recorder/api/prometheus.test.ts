import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Registry } from 'prom-client';
import { VirtualClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { newToken, sha256 } from '../../base/new-token.ts';
import { Authenticator, type AuthOptions } from '../http/auth.ts';
import { newCounters } from '../contract/camera-status.ts';
import { LiveLimits } from '../live/limits.ts';
import { FakeSocket, LiveStream, SampleMaker, VIDEO, run } from '../live/test-support.ts';
import type { CameraView } from '../model/camera-view.ts';
import { buildMetricsRegistry, buildMetricsServer } from './prometheus.ts';
import { archiveStatus, cameraStatus } from './test-support.ts';
import { countFault } from '../codec/faults.ts';

/** Values by series, as `name{labels}`. */
type Scrape = ReadonlyMap<string, number>;

function setup(t: TestContext) {
  const clock = new VirtualClock();
  const cameras: CameraView[] = [];
  const directory = { list: () => cameras };
  const registry = buildMetricsRegistry({
    cameras: directory,
    version: '1.2.3',
    nodeName: 'rack-1',
    site: 'plant-7',
    clock,
  });
  const server = buildMetricsServer(registry, {
    log: silentLog,
    auth: new Authenticator({ mode: 'none', tokens: [] }),
    requireToken: false,
  });
  t.after(() => server.close());
  const scrape = async (): Promise<Scrape> => {
    const answer = await server.inject('/metrics');
    assert.equal(answer.statusCode, 200);
    assert.match(String(answer.headers['content-type']), /^text\/plain; version=0\.0\.4/);
    const lines = answer.body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
  };
  return { clock, cameras, scrape };
}

const gate = (changes: Partial<CameraView> = {}): CameraView => ({
  status: cameraStatus(),
  archive: archiveStatus(),
  live: undefined,
  ...changes,
});

const counters = (changes: Partial<CameraView['status']['counters']>) =>
  gate({ status: cameraStatus({ counters: { ...cameraStatus().counters, ...changes } }) });

/** One series each, of counts of both streams. */
function packetSeries(): { series: string; view: CameraView; value: number }[] {
  const { streams } = newCounters();
  Object.assign(streams.video.rtp, { malformed: 1, late: 2, foreign: 3, restarts: 4 });
  streams.video.rtp.otherPayloadTypes.set(107, 5).set(108, 6);
  Object.assign(streams.audio.rtp, { malformed: 10, late: 20, foreign: 30, restarts: 40 });
  countFault(streams.audio.faults, 'frame-cut');
  const view = counters({ streams });
  const unusable = { 'not-rtp': 11, late: 22, 'other-source': 33, 'other-payload-type': 11 };
  return [
    ...Object.entries(unusable).map(([cause, value]) => ({
      series: `kube_nvr_camera_unusable_packets_total{camera="gate",cause="${cause}"}`,
      view,
      value,
    })),
    { series: 'kube_nvr_camera_sequence_restarts_total{camera="gate"}', view, value: 44 },
    { series: 'kube_nvr_camera_packet_faults_total{camera="gate",kind="audio"}', view, value: 1 },
  ];
}

const archived = (changes: Parameters<typeof archiveStatus>[0]) => gate({ archive: archiveStatus(changes) });

const moved: { series: string; view: CameraView; value: number }[] = [
  { series: 'kube_nvr_camera_state{camera="gate",state="recording"}', view: gate(), value: 1 },
  {
    series: 'kube_nvr_camera_state{camera="gate",state="retrying"}',
    view: gate({ status: cameraStatus({ state: 'retrying' }) }),
    value: 1,
  },
  { series: 'kube_nvr_camera_received_bytes_total{camera="gate"}', view: counters({ bytesReceived: 5 }), value: 5 },
  { series: 'kube_nvr_camera_received_packets_total{camera="gate"}', view: counters({ packetsReceived: 6 }), value: 6 },
  { series: 'kube_nvr_camera_lost_packets_total{camera="gate"}', view: counters({ packetsLost: 7 }), value: 7 },
  {
    series: 'kube_nvr_camera_machine_dropped_packets_total{camera="gate"}',
    view: counters({ packetsDropped: 5 }),
    value: 5,
  },
  { series: 'kube_nvr_camera_skipped_bytes_total{camera="gate"}', view: counters({ bytesSkipped: 13 }), value: 13 },
  ...packetSeries(),
  { series: 'kube_nvr_camera_frames_total{camera="gate",kind="video"}', view: counters({ videoFrames: 8 }), value: 8 },
  { series: 'kube_nvr_camera_frames_total{camera="gate",kind="audio"}', view: counters({ audioFrames: 9 }), value: 9 },
  { series: 'kube_nvr_camera_discarded_frames_total{camera="gate"}', view: counters({ framesDiscarded: 3 }), value: 3 },
  {
    series: 'kube_nvr_camera_reconnects_total{camera="gate",reason="stream-silent"}',
    view: counters({ reconnects: new Map([['stream-silent', 2]]) }),
    value: 2,
  },
  {
    series: 'kube_nvr_camera_audio_refused{camera="gate",reason="unsupported-audio"}',
    view: gate({ status: cameraStatus({ audioDropped: { code: 'unsupported-audio', message: '' } }) }),
    value: 1,
  },
  {
    series: 'kube_nvr_camera_event_loop_seconds_total{camera="gate"}',
    view: counters({ heldMs: 1_500 }),
    value: 1.5,
  },
  {
    series: 'kube_nvr_camera_event_loop_longest_seconds{camera="gate"}',
    view: counters({ longestHoldMs: 250 }),
    value: 0.25,
  },
  {
    series: 'kube_nvr_camera_bitrate{camera="gate"}',
    view: gate({ status: cameraStatus({ bitrate: 4e6 }) }),
    value: 4e6,
  },
  { series: 'kube_nvr_camera_written_frames_total{camera="gate"}', view: archived({ framesWritten: 4 }), value: 4 },
  { series: 'kube_nvr_camera_written_bytes_total{camera="gate"}', view: archived({ bytesWritten: 44 }), value: 44 },
  { series: 'kube_nvr_camera_segments_total{camera="gate"}', view: archived({ segmentsClosed: 12 }), value: 12 },
  {
    series: 'kube_nvr_camera_dropped_frames_total{camera="gate",cause="disk-slow"}',
    view: archived({ framesDropped: new Map([['disk-slow', 25]]) }),
    value: 25,
  },
];
for (const { series, view, value } of moved) {
  test(`metric ${series}`, async (t) => {
    const { cameras, scrape } = setup(t);
    assert.equal((await scrape()).has(series), false);
    cameras.push(gate());
    const before = (await scrape()).get(series);
    cameras[0] = view;
    const after = (await scrape()).get(series);
    assert.equal(after, value);
    if (series.includes('state="recording"')) assert.equal(before, 1);
    else assert.notEqual(before, after);
  });
}

test('the age of the last written picture grows from its capture, and from the start while there is none', async (t) => {
  const { clock, cameras, scrape } = setup(t);
  const series = 'kube_nvr_camera_last_written_age_seconds{camera="gate"}';
  cameras.push(gate());
  clock.advance(7_000);
  assert.equal((await scrape()).get(series), 7);
  cameras[0] = archived({ lastWrittenMs: clock.wallMs() });
  assert.equal((await scrape()).get(series), 0);
  clock.advance(16_000);
  assert.equal((await scrape()).get(series), 16);
  cameras[0] = gate({ status: cameraStatus({ state: 'stopped' }) });
  assert.equal((await scrape()).has(series), false);
});

test('viewers, what was sent to them and what they missed', async (t) => {
  const { clock, cameras, scrape } = setup(t);
  const live = new LiveStream({ cameraId: 'gate', limits: new LiveLimits(), clock, log: silentLog });
  const maker = new SampleMaker();
  const socket = new FakeSocket();
  const viewer = live.add(socket);
  live.begin(run());
  live.sample(maker.make({ sync: false }));
  live.sample(maker.make({ dts: 3_600 }));
  cameras.push(gate({ live: live.stats }));
  const scraped = await scrape();
  assert.equal(scraped.get('kube_nvr_camera_viewers{camera="gate"}'), 1);
  assert.equal(
    scraped.get('kube_nvr_camera_live_sent_bytes_total{camera="gate"}'),
    socket.messages.reduce((sum, message) => sum + message.length, 0),
  );
  assert.equal(scraped.get('kube_nvr_camera_live_dropped_frames_total{camera="gate"}'), 1);
  if (viewer) live.remove(viewer);
  cameras[0] = gate({ live: live.stats });
  assert.equal((await scrape()).get('kube_nvr_camera_viewers{camera="gate"}'), 0);
});

test('the name of a camera and what it sends are labels of one series', async (t) => {
  const { cameras, scrape } = setup(t);
  const labels = async (): Promise<readonly string[]> =>
    [...(await scrape()).keys()].filter((series) => series.startsWith('kube_nvr_camera_info'));
  const named = 'kube_nvr_camera_info{camera="gate",name="Gate"';
  cameras.push(gate({ status: cameraStatus({ video: undefined, audio: undefined, transport: undefined }) }));
  assert.deepEqual(await labels(), [`${named},transport="",video="",resolution="",audio=""}`]);
  const video = VIDEO;
  cameras[0] = gate({ status: cameraStatus({ transport: 'tcp', video, audio: undefined }) });
  const resolution = `${video?.width}x${video?.height}`;
  assert.deepEqual(await labels(), [`${named},transport="tcp",video="h264",resolution="${resolution}",audio=""}`]);
});

test('a camera that is gone has no metrics', async (t) => {
  const { cameras, scrape } = setup(t);
  cameras.push(gate());
  assert.ok([...(await scrape()).keys()].some((series) => series.includes('camera="gate"')));
  cameras.pop();
  assert.ok(![...(await scrape()).keys()].some((series) => series.includes('camera="gate"')));
});

test('the process: what runs, processor time, memory and event-loop lag', async (t) => {
  const { scrape } = setup(t);
  const before = await scrape();
  assert.equal(before.get('kube_nvr_info{version="1.2.3",node="rack-1",site="plant-7"}'), 1);
  assert.ok((before.get('process_resident_memory_bytes') ?? 0) > 1e6);
  // The lag is sampled by a timer, whose first sample after a scrape tells nothing: block the loop several times.
  let lagSeconds = 0;
  for (let i = 0; i < 50 && lagSeconds < 0.1; i++) {
    for (let block = 0; block < 3; block++) {
      const untilMs = performance.now() + 120;
      while (performance.now() < untilMs) Math.sqrt(untilMs);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    lagSeconds = (await scrape()).get('nodejs_eventloop_lag_max_seconds') ?? 0;
  }
  assert.ok(lagSeconds >= 0.1, `${lagSeconds} s`);
  const cpu = 'process_cpu_seconds_total';
  assert.ok(((await scrape()).get(cpu) ?? 0) > (before.get(cpu) ?? 0));
});

const digestOf = (token: string): string => sha256(token).toString('hex');

for (const mode of ['token', 'kubernetes', 'none'] as const) {
  test(`with a token for metrics they cannot be read without one: mode ${mode}`, async (t) => {
    const [token, next] = [newToken(), newToken()];
    const viewer = { name: 'reception', role: 'viewer', sha256: digestOf('reception') } as const;
    const options: AuthOptions = { mode, tokens: [viewer], allowPlaintext: false, metricsSha256: digestOf(token) };
    const auth = new Authenticator(options, { reviewer: { review: async () => ({ kind: 'wrong' }) } as never });
    const server = buildMetricsServer(new Registry(), { log: silentLog, auth, requireToken: true });
    t.after(() => server.close());
    const ask = async (given?: string): Promise<number> => {
      const headers = given === undefined ? {} : { authorization: `Bearer ${given}` };
      // Of another machine, without TLS.
      return (await server.inject({ url: '/metrics', headers, remoteAddress: '10.0.0.7' })).statusCode;
    };
    assert.equal(await ask(), 401);
    assert.equal(await ask(token), 200);
    assert.equal(await ask(next), mode === 'kubernetes' ? 403 : 401);
    auth.replaceMetricsToken(digestOf(next));
    assert.deepEqual([await ask(token), await ask(next)], [mode === 'kubernetes' ? 403 : 401, 200]);
  });
}

test('without a token for metrics those count that see all cameras', async (t) => {
  const token = (name: string, cameras?: string[]) => ({
    name,
    role: 'viewer' as const,
    sha256: digestOf(name),
    ...(cameras && { cameras }),
  });
  const auth = new Authenticator({ mode: 'token', tokens: [token('all'), token('some', ['gate'])] });
  const server = buildMetricsServer(new Registry(), { log: silentLog, auth, requireToken: true });
  t.after(() => server.close());
  const ask = async (given: string): Promise<number> =>
    (await server.inject({ url: '/metrics', headers: { authorization: `Bearer ${given}` } })).statusCode;
  assert.deepEqual([await ask('all'), await ask('some'), await ask('none')], [200, 403, 401]);
});
